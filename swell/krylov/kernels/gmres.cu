// Fused steps of GMRES(m) on a GPU; gmres.cpp has the same kernels for a CPU, with the same arrays.
//
// One extra block does the small dense work of a step, while the other blocks update the vectors: nothing waits for it.
// If this block ends the cycle, no kernel uses the vectors that the other blocks are writing.
//
// B is the storage type of the basis: T, or single precision if T is double. All arithmetic is in T.
#include "judge.cuh"
#include "many_sums.cuh"
#include "strip.cuh"

constexpr int MOST = 500;              // the longest cycle; GMRES(restart=...) is checked against it

// launch: elements of u, 256 threads
template <typename T>
__global__ void first(Context* ctx, T* u, const acc_t<T>* norm2, acc_t<T>* g, int* columns, long long n,
    long long g_size) {
  if (stopped(ctx)) return;
  double beta = sqrt(real(slot(norm2, OWN2)));
  long long i = thread_id();
  if (i < n) u[i] = real_t<T>(beta > 0 ? 1 / beta : 0.0) * u[i];
  if (i < g_size) g[i] = acc_t<T>(i == 0 ? beta : 0.0);
  if (i == 0) {
    columns[0] = 0;
    set_ratio(ctx, real(slot(norm2, JUDGED2)), real(slot(norm2, OWN2)));
  }
}

// The strips of one block, in tiles of equal size. A block owns the same strips in dots and in update. dots walks them
// upwards and update downwards, so that each finds in the cache the strips that the other read last.
struct Range {
  int from, to, tile;
};
DEVICE Range range_of(long long packs, int block, int blocks) {
  int from = int(packs * block / blocks) & ~31, to = block + 1 == blocks ? int(packs)
      : int(packs * (block + 1) / blocks) & ~31;
  int tiles = max(1, (to - from + int(blockDim.x) - 1) / int(blockDim.x));
  return {from, to, max(32, ((to - from + tiles - 1) / tiles + 31) & ~31)};
}

// The kernel reads each basis vector once, and u and w once for every CHUNK of basis vectors. A thread keeps a strip of
// u and w, and the sums of BATCH vectors at a time.
// launch: 2 blocks per multiprocessor of 512 threads, 16 bytes at once
template <typename T, typename B>
__global__ void __launch_bounds__(512, 2) dots(Context* ctx, const B* V, const T* u, const T* w, acc_t<T>* sums,
    int begin, int end, long long V_stride, long long w_size, long long sums_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<B>::size, P = scalar<T>::parts, BATCH = 4, N = 2 * P * BATCH, WARPS = 16, CHUNK = 32;
  __shared__ double totals[WARPS][2 * P * CHUNK];      // s_0 t_0 s_1 t_1 ... of a chunk of the basis
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, m = (sums_size - 3) / 2, many = end - begin;
  const int count = 2 * many + (begin ? 0 : 3);
  const int n = w_size;                                // fewer than 2^31 rows; positions in V have 64 bits
  double* mine = ctx->partials + (long long)blockIdx.x * count * P;
  const Range range = range_of((w_size + S - 1) / S, blockIdx.x, gridDim.x);
  A uu(0), uw(0), ww(0);
  for (int chunk = begin; chunk == begin || chunk < end; chunk += CHUNK) {
    const int last = min(end, chunk + CHUNK);
    for (int k = threadIdx.x; k < WARPS * 2 * P * CHUNK; k += blockDim.x) totals[0][k] = 0;
    __syncthreads();
    for (int at = range.from; at < range.to; at += range.tile) {
      const int i = at + threadIdx.x;
      const bool in = i < min(at + range.tile, range.to);
      Strip<T, S> us = {}, ws = {};
      if (in) us = load_strip<S>(u, i, n), ws = load_strip<S>(w, i, n);
      const B* row = V + chunk * V_stride;
      for (int k = chunk; k < last; k += BATCH, row += BATCH * V_stride) {
        Strip<B, S> vs[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
          vs[b] = {};
          if (in && k + b < last) vs[b] = load_strip<S>(row + b * V_stride, i, n);
        }
        double part[N];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
          A s(0), t(0);
#pragma unroll
          for (int e = 0; e < S; ++e) s = conj_fused(T(vs[b].at[e]), us.at[e], s),
              t = conj_fused(T(vs[b].at[e]), ws.at[e], t);
          split(part + 2 * P * b, s), split(part + 2 * P * b + P, t);
        }
        double sum = scatter_sum(part);
        if (lane % (32 / N) == 0) totals[warp][(k - chunk) * 2 * P + lane / (32 / N)] += sum;
      }
      if (chunk == 0)
#pragma unroll
        for (int e = 0; e < S; ++e) {
          uu = conj_fused(us.at[e], us.at[e], uu), uw = conj_fused(us.at[e], ws.at[e], uw);
          ww = conj_fused(ws.at[e], ws.at[e], ww);
        }
    }
    __syncthreads();
    for (int k = threadIdx.x; k < (last - chunk) * 2 * P; k += blockDim.x) {
      double total = 0;
      for (int v = 0; v < WARPS; ++v) total += totals[v][k];
      mine[(chunk - begin) * 2 * P + k] = total;
    }
    __syncthreads();
  }
  if (begin == 0) {
    double three[3 * P];
    split(three, uu), split(three + P, uw), split(three + 2 * P, ww);
    block_sum(three);
    if (threadIdx.x == 0)
      for (int k = 0; k < 3 * P; ++k) mine[2 * P * many + k] = three[k];
  }
  __threadfence();
  __syncthreads();
  if (!last_block(ctx)) return;
  add_blocks(ctx->partials, gridDim.x, count * P, totals[0], [&](int k, double total) {
    const int value = k / P, to = value < 2 * many ? begin + value / 2 + value % 2 * m : 2 * m + value - 2 * many;
    ((double*)(sums + to))[k % P] = total;
  });
}

// One thread applies Givens rotations to `column`, whose entries 0..k+1 are filled, and to g. `turns` holds the earlier
// rotations, cosine and sine in turn. Both arrays are in shared memory, since each step waits for the previous one.
// Returns |g[k + 1]|, or -1 if all but rounding errors of the column depends on the columns before it.
template <class A> DEVICE double rotate(A* column, const A* turns, A* rotations, A* g, int k) {
  A a = column[0];
  double norm2 = 0;
  for (int i = 0; i < k; ++i) {
    const double c = real(turns[2 * i]);
    const A sn = turns[2 * i + 1], b = column[i + 1];
    column[i] = c * a + sn * b;
    a = c * b - conj(sn) * a;
    norm2 += abs2(column[i]);
  }
  const A b = column[k + 1];
  const double of_a = sqrt(abs2(a)), size = hypot(of_a, sqrt(abs2(b)));
  if (size <= 0x1p-50 * sqrt(norm2)) return -1;
  const double c = of_a / size;
  const A sn = of_a == 0 ? (1 / sqrt(abs2(b))) * conj(b) : (1 / (of_a * size)) * (a * conj(b));
  column[k] = c * a + sn * b;
  column[k + 1] = A(0);
  rotations[2 * k] = A(c);
  rotations[2 * k + 1] = sn;
  const A old = g[k], next = -(conj(sn) * old);
  g[k] = c * old;
  g[k + 1] = next;
  return sqrt(abs2(next));
}

// One block corrects column j - 1 of H by the second pass, rotates it, and judges the residual after j steps.
template <class A>
DEVICE void finish_column(Context* ctx, const A* sums, A* H, A* R, A* rotations, A* g, A* small, int* columns, int m,
    int j, double alpha) {
  __shared__ A column[MOST + 2], turns[2 * MOST];
  const int k = j - 1;
  const double gamma = real(slot(small, GAMMA));
  for (int i = threadIdx.x; i < 2 * k; i += blockDim.x) turns[i] = rotations[i];
  for (int i = threadIdx.x; i <= j; i += blockDim.x)
    H[i * m + k] = column[i] = i < j ? H[i * m + k] + gamma * sums[i] : A(gamma * alpha);
  __syncthreads();
  if (threadIdx.x == 0) {
    const double estimate = rotate(column, turns, rotations, g, k);
    if (estimate < 0) {
      pause(ctx, BREAKDOWN);
    } else {
      columns[0] = j;
      judge_inner(ctx, estimate * estimate);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= j; i += blockDim.x) R[i * m + k] = column[i];
  __syncthreads();
}

// Scalars of a step, known to every block: alpha, beta, and left, the norm of w − V t − beta v_j by Pythagoras.
template <class A> struct Step {
  double alpha, left;
  A beta;
};

// One warp computes them, with the same bits in every block.
template <class A> DEVICE Step<A> step_of(const A* sums, int m, int j) {
  constexpr int P = scalar<A>::parts;
  double v[P + 2] = {};                                // conj(s) t, |s|^2, |t|^2
  A st(0);
  for (int i = threadIdx.x % 32; i < j; i += 32) {
    st += conj_mul(sums[i], sums[m + i]);
    v[P] += abs2(sums[i]);
    v[P + 1] += abs2(sums[m + i]);
  }
  split(v, st);
  warp_sum(v);
  join(st, v);
  Step<A> step;
  const double alpha2 = real(sums[2 * m + UU]) - v[P], ww = real(sums[2 * m + WW]);
  step.alpha = sqrt(alpha2 > 0 ? alpha2 : 0.0);
  step.beta = (1 / step.alpha) * (sums[2 * m + UW] - st);
  const double left = ww - v[P + 1] - abs2(step.beta), least = 0x1p-104 * ww;
  step.left = sqrt(left > least ? left : least);
  return step;
}

// u -= V s and w -= V t, for a strip of both.
template <int S, class T, class B, class C>
DEVICE void subtract_basis(Strip<T, S>& us, Strip<T, S>& ws, const B* V, long long V_stride, const C& coefficients,
    int begin, int end, int i, int n) {
  constexpr int BATCH = 16;
  const B* row = V + begin * V_stride;
  for (int k = begin; k < end; k += BATCH, row += BATCH * V_stride) {
    Strip<B, S> vs[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; ++b)
      if (k + b < end) vs[b] = load_strip<S>(row + b * V_stride, i, n);
#pragma unroll
    for (int b = 0; b < BATCH; ++b)
      if (k + b < end) {
        const T s = coefficients[k + b][0], t = coefficients[k + b][1];
#pragma unroll
        for (int e = 0; e < S; ++e) us.at[e] = fused(s, T(vs[b].at[e]), us.at[e]),
            ws.at[e] = fused(t, T(vs[b].at[e]), ws.at[e]);
      }
  }
}

// launch: 2 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename B>
__global__ void __launch_bounds__(256, 2) subtract(Context* ctx, const B* V, T* u, T* w, const acc_t<T>* sums,
    int begin, int end, long long V_stride, long long w_size, long long sums_size) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<B>::size;
  const int m = (sums_size - 3) / 2, n = w_size;
  __shared__ T coefficients[MOST][2];
  for (int k = begin + threadIdx.x; k < end; k += blockDim.x) coefficients[k][0] = T(-sums[k]),
      coefficients[k][1] = T(-sums[m + k]);
  __syncthreads();
  const Range range = range_of((w_size + S - 1) / S, blockIdx.x, gridDim.x);
  for (int i = range.from + threadIdx.x; i < range.to; i += blockDim.x) {
    Strip<T, S> us = load_strip<S>(u, i, n), ws = load_strip<S>(w, i, n);
    subtract_basis<S>(us, ws, V, V_stride, coefficients, begin, end, i, n);
    store_strip(u, i, n, us), store_strip(w, i, n, ws);
  }
}

// launch: 2 blocks per multiprocessor of 256 threads, and one block more, 16 bytes at once
template <typename T, typename B>
__global__ void __launch_bounds__(256, 2) update(Context* ctx, B* V, T* u, const T* w, const acc_t<T>* sums,
    acc_t<T>* H, acc_t<T>* R, acc_t<T>* rotations, acc_t<T>* g, acc_t<T>* small, int* columns, int begin, int j,
    bool flexible, long long V_stride, long long w_size, long long sums_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<B>::size;
  const int m = (sums_size - 3) / 2;
  const int n = w_size;                                // fewer than 2^31 rows; positions in V have 64 bits
  __shared__ Step<A> shared;
  __shared__ T coefficients[MOST][2];
  for (int k = threadIdx.x; k < j; k += blockDim.x) coefficients[k][0] = T(-sums[k]),
      coefficients[k][1] = T(-sums[m + k]);
  if (threadIdx.x < 32) {
    Step<A> mine = step_of(sums, m, j);
    if (threadIdx.x == 0) shared = mine;
  }
  __syncthreads();
  const Step<A> step = shared;
  const double divisor = flexible ? 1.0 : step.alpha, gamma = step.left / divisor;
  if (blockIdx.x == gridDim.x - 1) {
    if (j > 0) finish_column(ctx, sums, H, R, rotations, g, small, columns, m, j, step.alpha);
    for (int i = threadIdx.x; i <= j; i += blockDim.x) {
      A correction(0);
      if (!flexible)
        for (int k = max(0, i - 1); k < j; ++k) correction += H[i * m + k] * sums[k];
      H[i * m + j] = (1 / divisor) * ((i < j ? sums[m + i] : step.beta) - correction);
    }
    if (threadIdx.x == 0) slot(small, GAMMA) = A(gamma);
    return;
  }
  const real_t<T> inverse(1 / step.alpha), scale(gamma > 0 ? 1 / (gamma * divisor) : 0.0);
  const T beta(step.beta);
  const Range range = range_of((w_size + S - 1) / S, blockIdx.x, gridDim.x - 1);
  for (int tile = (range.to - range.from - 1) / range.tile; tile >= 0; --tile) {
    const int at = range.from + tile * range.tile, i = at + threadIdx.x;
    if (i >= min(at + range.tile, range.to)) continue;
    Strip<T, S> us = load_strip<S>(u, i, n), ws = load_strip<S>(w, i, n);
    subtract_basis<S>(us, ws, V, V_stride, coefficients, begin, j, i, n);
    Strip<B, S> finished;
#pragma unroll
    for (int e = 0; e < S; ++e) {
      const T v = inverse * us.at[e];
      finished.at[e] = B(v), us.at[e] = scale * (ws.at[e] - beta * v);
    }
    store_strip(V + j * V_stride, i, n, finished), store_strip(u, i, n, us);
  }
}

// launch: one block of 128 threads
template <typename T>
__global__ void close(Context* ctx, const acc_t<T>* sums, acc_t<T>* H, acc_t<T>* R, acc_t<T>* rotations, acc_t<T>* g,
                      acc_t<T>* small, int* columns, acc_t<T>* y, int j, long long sums_size) {
  using A = acc_t<T>;
  const int m = (sums_size - 3) / 2;
  const bool ended = stopped(ctx);
  if (flag(ctx, FINAL)) return;                       // the stop inside a cycle does not stop this kernel
  __shared__ double alpha;
  const double of_warp = step_of(sums, m, j).alpha;
  if (threadIdx.x == 0) alpha = of_warp;
  __syncthreads();
  if (!ended) finish_column(ctx, sums, H, R, rotations, g, small, columns, m, j, alpha);
  __syncthreads();
  int k = columns[0];
  for (int i = threadIdx.x; i < m; i += blockDim.x) y[i] = i < k ? g[i] : A(0);
  __syncthreads();
  for (int i = k - 1; i >= 0; --i) {                   // column by column: threads update the rows above in parallel
    A yi = y[i] / R[i * m + i];
    __syncthreads();
    if (threadIdx.x == 0) y[i] = yi;
    for (int l = threadIdx.x; l < i; l += blockDim.x) y[l] -= R[l * m + i] * yi;
    __syncthreads();
  }
  if (threadIdx.x == 0) resume(ctx);
}

// launch: elements of out, 256 threads, a pack each
template <typename T, typename B>
__global__ void combine(Context* ctx, const B* V, const acc_t<T>* y, const int* columns, T* out, bool add,
    long long V_stride, long long n) {
  constexpr int S = Pack<T>::size;
  const long long i = thread_id();
  if (stopped(ctx) || i >= packs_of<T>(n)) return;
  const int k = columns[0];
  Pack<T> total = {};
  if (add) total = load(out, i, n);
#pragma unroll 8
  for (int l = 0; l < k; ++l) {
    const T yl(y[l]);
    const Strip<B, S> v = load_strip<S>(V + l * V_stride, int(i), int(n));
#pragma unroll
    for (int e = 0; e < S; ++e) total.at[e] = fused(yl, T(v.at[e]), total.at[e]);
  }
  store(out, i, n, total);
}

// launch: elements of z, 256 threads
template <typename T, typename B> __global__ void compress(Context* ctx, T* z, B* row, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  row[i] = B(z[i]);
  z[i] = T(row[i]);
}
