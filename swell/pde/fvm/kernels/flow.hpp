// One outer iteration of a flow, over faces and over cells, for both devices. Each face and each cell gathers its own
// sums, without atomics: results are reproducible.
//
// Vectors have one row a component: u and `start` (k, n); the axis of component i is axes[i]. `gradient` has ∂/∂xⱼ of
// component i in row 3 i + j; `sides` has the boundary data of component i, by Side q, in row k q + i. Other arguments
// are as in Metrics and Pattern.
#include "step.hpp"

namespace {

// Set `sides` where it depends on the flow. Faces that are `turning` take `entering` if their flux `outward` is
// negative, else `leaving`; on `mirror` ones, planes of symmetry, the other components' part of u·n is known. `owner`:
// of the boundary faces.
// launch: elements of mirror, 128 threads
template <class J>
ROW_KERNEL follow(Device device, Array<const J> owner, Array<const double> distance, Table<const double> normal,
                  Array<const bool> mirror, Array<const bool> turning, Array<const double> outward,
                  Table<const double> u, Table<const double> entering, Table<const double> leaving,
                  Table<double> sides) {
  const int64_t k = u.rows;
  rows(device, mirror.size, [=](int64_t f) {
    if (turning[f])
      for (int64_t row = 0; row < 4 * k; ++row) sides[row][f] = (outward[f] < 0 ? entering : leaving)[row][f];
    if (!mirror[f]) return;
    for (int64_t i = 0; i < k; ++i) {
      double others = 0;
      for (int64_t j = 0; j < k; ++j)
        if (j != i) others += normal[j][f] * u[j][owner[f]];
      sides[k * OFFSET + i][f] = -normal[i][f] * others;
      sides[k * RATE + i][f] = -normal[i][f] * others / distance[f];
    }
  });
}

// Write the fluxes of momentum, F = a u_O + b u_N + deferred, of which a and b serve all components.
//
// `conductance`: ν g, at the boundary ν |s|; `oblique`: ν (s − g d); `arm`, `far_arm`: from the two cells' centres to
// the face's. `held` gets what planes of symmetry add to a, for each component.
// launch: elements of phi, 128 threads
template <class J>
ROW_KERNEL momentum_fluxes(Device device, Array<const J> owner, Array<const J> neighbour, Array<const double> weight,
                           Array<const double> conductance, Table<const double> oblique, Table<const double> tangent,
                           Table<const double> arm, Table<const double> far_arm, int64_t scheme,
                           Array<const double> phi, Table<const double> u, Table<const double> gradient,
                           Table<const double> sides, Array<const bool> mirror, Array<double> a, Array<double> b,
                           Table<double> deferred, Table<double> held) {
  const int64_t internal = neighbour.size, k = u.rows;
  rows(device, internal, [=](int64_t f) {
    const int64_t c = owner[f], o = neighbour[f];
    const double w = weight[f], size = conductance[f];
    const double leaving = max(phi[f], 0.0), entering = min(phi[f], 0.0);
    a[f] = size + (scheme == CENTRAL ? w * phi[f] : leaving);
    b[f] = (scheme == CENTRAL ? (1 - w) * phi[f] : entering) - size;
    for (int64_t i = 0; i < k; ++i) {
      double flux = 0;
      for (int j = 0; j < 3; ++j)
        flux -= oblique[j][f] * (w * gradient[3 * i + j][c] + (1 - w) * gradient[3 * i + j][o]);
      if (scheme == LINEAR) {
        const double jump = u[i][o] - u[i][c];
        flux += leaving * (1 - w) * jump - entering * w * jump;
      } else if (scheme == LINEAR_UPWIND) {
        for (int j = 0; j < 3; ++j)
          flux += leaving * arm[j][f] * gradient[3 * i + j][c] + entering * far_arm[j][f] * gradient[3 * i + j][o];
      }
      deferred[i][f] = flux;
    }
  });
  rows(device, mirror.size, [=](int64_t e) {
    const int64_t f = internal + e, c = owner[f];
    const double size = conductance[f], leaving = max(phi[f], 0.0), entering = min(phi[f], 0.0);
    a[f] = mirror[e] ? 0.0 : size * sides[k * SLOPE][e] + leaving + entering * sides[k * SHARE][e];
    for (int64_t i = 0; i < k; ++i) {
      const double share = sides[k * SHARE + i][e], slope = sides[k * SLOPE + i][e];
      const double offset = sides[k * OFFSET + i][e], rate = sides[k * RATE + i][e];
      double along = 0;
      for (int j = 0; j < 3; ++j) along += tangent[j][e] * gradient[3 * i + j][c];
      double flux = size * (slope * along - rate) + entering * (share * along + offset);
      if (scheme != UPWIND) flux += leaving * (share * (u[i][c] + along) + offset - u[i][c]);
      deferred[i][f] = flux;
      held[i][e] = mirror[e] ? size * slope : 0.0;
    }
  });
}

// Assemble the momentum matrix and its right-hand sides, and measure the residual at `start`.
//
// The matrix has Σ F − u Σ φ and the time term `rate` V, its diagonal D divided by `relaxation`. All components share
// it if `extra` has one row. Else unknown k c + i is component i of cell c, and the diagonal has D + `extra`, where
// `extra` is the part of planes of symmetry.
//
// Writes D to `diagonal`, D/α + Σ off-diagonal to `row_sums`, each cell's Σ |residual| to `lost`, and the sum of the
// forces on it (pressure, flux through the boundary) to `acting`.
// launch: elements of middle, 128 threads
template <class I>
ROW_KERNEL momentum_rows(Device device, Array<const I> ptr, Array<const I> faces, Array<const I> places,
                         Array<const I> middle, Array<const I> indptr, Array<const int32_t> owner,
                         Array<const int32_t> neighbour, Array<const double> a, Array<const double> b,
                         Table<const double> deferred, Table<const double> held, Array<const double> phi,
                         Array<const int64_t> axes, Array<const double> volumes, double relaxation, double rate,
                         Table<const double> start, Table<const double> grad_p, Array<double> values,
                         Array<double> diagonal, Array<double> row_sums, Table<double> extra, Table<double> rhs,
                         Array<double> lost, Array<double> acting) {
  const int64_t internal = neighbour.size, k = start.rows, copies = extra.rows;
  rows(device, middle.size, [=](int64_t c) {
    const int64_t first = indptr[c], width = indptr[c + 1] - first;
    double* const row = values.data + copies * first;
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
        for (int64_t i = 0; i < copies; ++i) row[i * width + place - first] = other;
      }
      last = place;
    }
    own -= away;
    diagonal[c] = own;
    row_sums[c] = own / relaxation + beside;
    double missing = 0, force = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double x = start[i][c];
      double more = 0, known = 0, product = 0;
      for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
        const I f = faces[at];
        if (f < 0) {
          known += deferred[i][~f];
          product -= a[~f] * start[i][owner[~f]];
        } else {
          known -= deferred[i][f];
          if (f < internal) {
            product += b[f] * start[i][neighbour[f]];
          } else {
            const double h = held[i][f - internal];
            more += h;
            force += fabs((a[f] + h) * x + deferred[i][f]);
          }
        }
      }
      const double D = own + more, push = volumes[c] * grad_p[axes[i]][c];
      known += (rate * volumes[c] + D / relaxation - D) * x - push;
      missing += fabs(known - D / relaxation * x - product);
      force += fabs(push);
      rhs[i][c] = known;
      if (i < copies) row[i * width + middle[c] - first] = D / relaxation;
      if (copies > 1) extra[i][c] = more;
    }
    lost[c] = missing;
    acting[c] = force;
  });
}

// Write Rhie and Chow's fluxes to `phi`, with Majumdar's term, from velocities u, those `before` the solve, and the
// fluxes `old`; and the fluxes a p'_O + b p'_N of the pressure correction, with a = (V/d_prime)_f g and b = −a.
// `given`: boundary faces whose pressure is known, p_b = p_share p' + p_offset.
// launch: elements of phi, 128 threads
template <class J>
ROW_KERNEL rhie_chow(Device device, Array<const J> owner, Array<const J> neighbour, Array<const double> weight,
                     Table<const double> s, Table<const double> d, Array<const double> g, Table<const double> tangent,
                     Array<const bool> closed, Array<const bool> given, Table<const double> sides,
                     Array<const double> p_share, Array<const double> p_offset, Array<const int64_t> axes,
                     double relaxation, Array<const double> volumes, Array<const double> diagonal,
                     Array<const double> d_prime, Table<const double> u, Table<const double> before,
                     Array<const double> old, Array<const double> p, Table<const double> grad_p, Array<double> phi,
                     Array<double> a, Array<double> b) {
  const int64_t internal = neighbour.size, k = u.rows;
  rows(device, internal, [=](int64_t f) {
    const int64_t c = owner[f], o = neighbour[f];
    const double w = weight[f];
    const double mobility = w * (relaxation * volumes[c] / diagonal[c])
                            + (1 - w) * relaxation * volumes[o] / diagonal[o];
    double through = 0, moved = old[f], seen = p[o] - p[c];
    for (int64_t i = 0; i < k; ++i) {
      const double area = s[axes[i]][f];
      through += area * (w * u[i][c] + (1 - w) * u[i][o]);
      moved -= area * (w * before[i][c] + (1 - w) * before[i][o]);
    }
    for (int j = 0; j < 3; ++j) seen -= d[j][f] * (w * grad_p[j][c] + (1 - w) * grad_p[j][o]);
    phi[f] = through - mobility * g[f] * seen + (1 - relaxation) * moved;
    a[f] = g[f] * (w * volumes[c] / d_prime[c] + (1 - w) * volumes[o] / d_prime[o]);
    b[f] = -a[f];
  });
  rows(device, closed.size, [=](int64_t e) {
    const int64_t f = internal + e, c = owner[f];
    double flux = 0, coefficient = 0;
    if (!closed[e])
      for (int64_t i = 0; i < k; ++i)
        flux += s[axes[i]][f] * (sides[k * SHARE + i][e] * u[i][c] + sides[k * OFFSET + i][e]);
    if (given[e]) {
      double along = 0, seen = 0;
      for (int j = 0; j < 3; ++j) along += tangent[j][e] * grad_p[j][c], seen -= d[j][f] * grad_p[j][c];
      flux -= relaxation * volumes[c] / diagonal[c] * g[f] * (p_share[e] * (p[c] + along) + p_offset[e] - p[c] + seen);
      coefficient = g[f] * volumes[c] / d_prime[c];
    }
    phi[f] = flux;
    a[f] = coefficient;
  });
}

// Write −Σ φ of each cell to `imbalance`, its size to `lost`, and Σ |φ| `way` of the cell's own faces to `through`.
// launch: elements of imbalance, 128 threads
template <class I>
ROW_KERNEL balance(Device device, Array<const I> ptr, Array<const I> faces, Array<const double> phi,
                   Array<const double> way, Array<double> imbalance, Array<double> lost, Array<double> through) {
  rows(device, imbalance.size, [=](int64_t c) {
    double net = 0, flow = 0;
    for (I at = ptr[c]; at < ptr[c + 1]; ++at) {
      const I f = faces[at];
      if (f >= 0) net += phi[f], flow += fabs(phi[f]) * way[f];
      else net -= phi[~f];
    }
    imbalance[c] = -net, lost[c] = fabs(net), through[c] = flow;
  });
}

// φ += a (p_O − p_N), at the boundary a p_O: the fluxes of a pressure correction p.
// launch: elements of phi, 128 threads
template <class J>
ROW_KERNEL correct_fluxes(Device device, Array<const J> owner, Array<const J> neighbour, Array<const double> a,
                          Array<const double> p, Array<double> phi) {
  rows(device, phi.size, [=](int64_t f) {
    phi[f] += a[f] * (p[owner[f]] - (f < neighbour.size ? p[neighbour[f]] : 0.0));
  });
}

// u −= V/d_prime ∇p', p += `share` p', for the correction p' and its `gradient`.
// launch: elements of p, 128 threads
template <class J>
ROW_KERNEL correct_cells(Device device, Array<const J> axes, Array<const double> volumes, Array<const double> d_prime,
                         Array<const double> correction, Table<const double> gradient, double share, Table<double> u,
                         Array<double> p) {
  rows(device, p.size, [=](int64_t c) {
    for (int64_t i = 0; i < u.rows; ++i) u[i][c] -= volumes[c] / d_prime[c] * gradient[axes[i]][c];
    p[c] += share * correction[c];
  });
}

// out[q] = Σ values[q][c] over the cells c with counted[c] = 1, for the four rows of `values`.
// launch: elements of counted, 256 threads, at most 4 blocks per multiprocessor
template <class C>
ROW_KERNEL counted_sums(Device device, Table<const double> values, Array<const C> counted, Array<double> out) {
  rows<double, double, double, double>(device, counted.size, [=](int64_t c, auto& v0, auto& v1, auto& v2, auto& v3) {
    v0 += values[0][c] * counted[c], v1 += values[1][c] * counted[c];
    v2 += values[2][c] * counted[c], v3 += values[3][c] * counted[c];
  }, [=](double v0, double v1, double v2, double v3) { out[0] = v0, out[1] = v1, out[2] = v2, out[3] = v3; });
}

}  // namespace

KERNELS("swell.pde.fvm.flow", INSTANCE(follow, int32_t), INSTANCE(momentum_fluxes, int32_t), INDICES(momentum_rows),
        INSTANCE(rhie_chow, int32_t), INDICES(balance), INSTANCE(correct_fluxes, int32_t),
        INSTANCE(correct_cells, int64_t), INSTANCE(counted_sums, uint8_t))
