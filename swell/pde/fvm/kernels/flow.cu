// One outer iteration of a flow, over faces and over cells, on a GPU; flow.cpp is the CPU version, and explains the
// arguments. One thread a face or a cell gathers what it needs: no atomics, so results are reproducible.
#include "context.cuh"

// launch: elements of mirror, 128 threads
template <typename J>
__global__ void follow(Context* ctx, const J* owner, const double* distance, const double* normal, const bool* mirror,
                       const bool* turning, const double* outward, const double* u, const double* entering,
                       const double* leaving, double* sides, long long n, long long u_size, long long u_stride) {
  if (stopped(ctx)) return;
  long long f = thread_id();
  if (f >= n) return;
  const int k = int(u_size / u_stride);
  if (turning[f]) {
    const double* chosen = outward[f] < 0.0 ? entering : leaving;
    for (int q = 0; q < 4 * k; ++q) sides[q * n + f] = chosen[q * n + f];
  }
  if (!mirror[f]) return;
  for (int i = 0; i < k; ++i) {
    double others = 0;
    for (int j = 0; j < k; ++j)
      if (j != i) others += normal[j * n + f] * u[j * u_stride + owner[f]];
    sides[(OFFSET * k + i) * n + f] = -normal[i * n + f] * others;
    sides[(RATE * k + i) * n + f] = -normal[i * n + f] * others / distance[f];
  }
}

// launch: elements of phi, 128 threads
template <typename J>
__global__ void momentum_fluxes(Context* ctx, const J* owner, const J* neighbour, const double* weight,
                                const double* conductance, const double* oblique, const double* tangent,
                                const double* arm, const double* far_arm, int scheme, const double* phi,
                                const double* u, const double* gradient, const double* sides, const bool* mirror,
                                double* a, double* b, double* deferred, double* held, long long n,
                                long long neighbour_size, long long mirror_size, long long u_size,
                                long long u_stride) {
  if (stopped(ctx)) return;
  long long f = thread_id();
  if (f >= n) return;
  const long long internal = neighbour_size, nb = mirror_size, c = owner[f], cells = u_stride;
  const int k = int(u_size / u_stride);
  const double leaving = phi[f] > 0.0 ? phi[f] : 0.0, entering = phi[f] < 0.0 ? phi[f] : 0.0, size = conductance[f];
  if (f < internal) {
    const long long o = neighbour[f];
    const double w = weight[f];
    a[f] = size + (scheme == CENTRAL ? w * phi[f] : leaving);
    b[f] = (scheme == CENTRAL ? (1.0 - w) * phi[f] : entering) - size;
    for (int i = 0; i < k; ++i) {
      const double* g = gradient + 3 * i * cells;
      double flux = 0;
      for (int j = 0; j < 3; ++j)
        flux -= oblique[j * internal + f] * (w * g[j * cells + c] + (1.0 - w) * g[j * cells + o]);
      if (scheme == LINEAR) {
        double jump = u[i * cells + o] - u[i * cells + c];
        flux += leaving * (1.0 - w) * jump - entering * w * jump;
      } else if (scheme == LINEAR_UPWIND) {
        for (int j = 0; j < 3; ++j)
          flux += leaving * arm[j * internal + f] * g[j * cells + c]
                  + entering * far_arm[j * internal + f] * g[j * cells + o];
      }
      deferred[i * n + f] = flux;
    }
    return;
  }
  const long long e = f - internal;
  a[f] = mirror[e] ? 0.0 : size * sides[SLOPE * k * nb + e] + leaving + entering * sides[SHARE * k * nb + e];
  for (int i = 0; i < k; ++i) {
    const double* g = gradient + 3 * i * cells;
    const double share = sides[(SHARE * k + i) * nb + e], slope = sides[(SLOPE * k + i) * nb + e];
    const double offset = sides[(OFFSET * k + i) * nb + e];
    double along = 0;
    for (int j = 0; j < 3; ++j) along += tangent[j * nb + e] * g[j * cells + c];
    double flux = size * (slope * along - sides[(RATE * k + i) * nb + e]) + entering * (share * along + offset);
    if (scheme != UPWIND) flux += leaving * (share * (u[i * cells + c] + along) + offset - u[i * cells + c]);
    deferred[i * n + f] = flux;
    held[i * nb + e] = mirror[e] ? size * slope : 0.0;
  }
}

// launch: elements of middle, 128 threads
template <typename I, typename J>
__global__ void momentum_rows(Context* ctx, const I* ptr, const I* faces, const I* places, const I* middle,
                              const I* indptr, const J* owner, const J* neighbour, const double* a, const double* b,
                              const double* deferred, const double* held, const double* phi, const long long* axes,
                              const double* volumes, double relaxation, double rate, const double* start,
                              const double* grad_p, double* values, double* diagonal, double* row_sums, double* extra,
                              double* rhs, double* lost, double* acting, long long n, long long neighbour_size,
                              long long phi_size, long long axes_size, long long values_size) {
  if (stopped(ctx)) return;
  long long c = thread_id();
  if (c >= n) return;
  const long long internal = neighbour_size, nf = phi_size, nb = nf - internal;
  const int k = int(axes_size), copies = int(values_size / indptr[n]);
  const long long first = indptr[c], width = indptr[c + 1] - first;
  double* row = values + copies * first;
  double own = rate * volumes[c], away = 0, beside = 0, other = 0;
  I last = -1;
  for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
    const I f = faces[at], place = places[at];
    double part = 0;
    if (f >= 0) {
      own += a[f];
      away += phi[f];
      if (f < internal) part = b[f];
    } else {
      own -= b[~f];
      away -= phi[~f];
      part = -a[~f];
    }
    if (place >= 0) {
      other = place == last ? other + part : part;
      beside += part;
      for (int i = 0; i < copies; ++i) row[i * width + place - first] = other;
    }
    last = place;
  }
  own -= away;
  diagonal[c] = own;
  row_sums[c] = own / relaxation + beside;
  double missing = 0, force = 0;
  for (int i = 0; i < k; ++i) {
    const double* flux = deferred + i * nf;
    const double x = start[i * n + c];
    double more = 0, known = 0, product = 0;
    for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
      const I f = faces[at];
      if (f < 0) {
        known += flux[~f];
        product -= a[~f] * start[i * n + owner[~f]];
      } else {
        known -= flux[f];
        if (f < internal) {
          product += b[f] * start[i * n + neighbour[f]];
        } else {
          const double h = held[i * nb + f - internal];
          more += h;
          force += fabs((a[f] + h) * x + flux[f]);
        }
      }
    }
    const double D = own + more, push = volumes[c] * grad_p[axes[i] * n + c];
    known += (rate * volumes[c] + D / relaxation - D) * x - push;
    missing += fabs(known - D / relaxation * x - product);
    force += fabs(push);
    rhs[i * n + c] = known;
    if (i < copies) row[i * width + middle[c] - first] = D / relaxation;
    if (copies > 1) extra[i * n + c] = more;
  }
  lost[c] = missing;
  acting[c] = force;
}

// launch: elements of phi, 128 threads
template <typename J>
__global__ void rhie_chow(Context* ctx, const J* owner, const J* neighbour, const double* weight, const double* s,
                          const double* d, const double* g, const double* tangent, const bool* closed,
                          const bool* given, const double* sides, const double* p_share, const double* p_offset,
                          const long long* axes, double relaxation, const double* volumes, const double* diagonal,
                          const double* d_prime, const double* u, const double* before, const double* old,
                          const double* p, const double* grad_p, double* phi, double* a, double* b, long long n,
                          long long neighbour_size, long long closed_size, long long axes_size,
                          long long volumes_size) {
  if (stopped(ctx)) return;
  long long f = thread_id();
  if (f >= n) return;
  const long long c = owner[f], nb = closed_size, cells = volumes_size;
  const int k = int(axes_size);
  double mobility = relaxation * volumes[c] / diagonal[c];
  if (f < neighbour_size) {
    const long long o = neighbour[f];
    const double w = weight[f];
    double through = 0, moved = old[f], seen = p[o] - p[c];
    for (int i = 0; i < k; ++i) {
      const double area = s[axes[i] * n + f];
      through += area * (w * u[i * cells + c] + (1.0 - w) * u[i * cells + o]);
      moved -= area * (w * before[i * cells + c] + (1.0 - w) * before[i * cells + o]);
    }
    for (int j = 0; j < 3; ++j)
      seen -= d[j * n + f] * (w * grad_p[j * cells + c] + (1.0 - w) * grad_p[j * cells + o]);
    mobility = w * mobility + (1.0 - w) * relaxation * volumes[o] / diagonal[o];
    phi[f] = through - mobility * g[f] * seen + (1.0 - relaxation) * moved;
    a[f] = g[f] * (w * volumes[c] / d_prime[c] + (1.0 - w) * volumes[o] / d_prime[o]);
    b[f] = -a[f];
    return;
  }
  const long long e = f - neighbour_size;
  double flux = 0, coefficient = 0;
  if (!closed[e])
    for (int i = 0; i < k; ++i)
      flux += s[axes[i] * n + f]
              * (sides[(SHARE * k + i) * nb + e] * u[i * cells + c] + sides[(OFFSET * k + i) * nb + e]);
  if (given[e]) {
    double along = 0, seen = 0;
    for (int j = 0; j < 3; ++j) {
      along += tangent[j * nb + e] * grad_p[j * cells + c];
      seen -= d[j * n + f] * grad_p[j * cells + c];
    }
    flux -= mobility * g[f] * (p_share[e] * (p[c] + along) + p_offset[e] - p[c] + seen);
    coefficient = g[f] * volumes[c] / d_prime[c];
  }
  phi[f] = flux;
  a[f] = coefficient;
}

// launch: elements of imbalance, 128 threads
template <typename I>
__global__ void balance(Context* ctx, const I* ptr, const I* faces, const double* phi, const double* way,
                        double* imbalance, double* lost, double* through, long long n) {
  if (stopped(ctx)) return;
  long long c = thread_id();
  if (c >= n) return;
  double net = 0, flow = 0;
  for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
    const I f = faces[at];
    if (f >= 0) {
      net += phi[f];
      flow += fabs(phi[f]) * way[f];
    } else {
      net -= phi[~f];
    }
  }
  imbalance[c] = -net;
  lost[c] = fabs(net);
  through[c] = flow;
}

// launch: elements of phi, 128 threads
template <typename J>
__global__ void correct_fluxes(Context* ctx, const J* owner, const J* neighbour, const double* a, const double* p,
                               double* phi, long long n, long long neighbour_size) {
  if (stopped(ctx)) return;
  long long f = thread_id();
  if (f >= n) return;
  phi[f] += a[f] * (p[owner[f]] - (f < neighbour_size ? p[neighbour[f]] : 0.0));
}

// launch: elements of p, 128 threads
template <typename J>
__global__ void correct_cells(Context* ctx, const J* axes, const double* volumes, const double* d_prime,
                              const double* correction, const double* gradient, double share, double* u, double* p,
                              long long n, long long axes_size) {
  if (stopped(ctx)) return;
  long long c = thread_id();
  if (c >= n) return;
  for (int i = 0; i < axes_size; ++i) u[i * n + c] -= volumes[c] / d_prime[c] * gradient[axes[i] * n + c];
  p[c] += share * correction[c];
}

// launch: elements of counted, 256 threads, at most 4 blocks per multiprocessor
template <typename C>
__global__ void counted_sums(Context* ctx, const double* values, const C* counted, double* out, long long n) {
  if (stopped(ctx)) return;
  double v[4] = {0, 0, 0, 0};
  for (long long c = thread_id(); c < n; c += threads())
    for (int q = 0; q < 4; ++q) v[q] += values[q * n + c] * counted[c];
  if (grid_sum(ctx, v))
    for (int q = 0; q < 4; ++q) out[q] = v[q];
}
