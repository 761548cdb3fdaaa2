// The fused steps of GMRES(m) on a GPU; gmres.py is the same on a CPU, with the same arrays.
//
// The small dense work of a step is done by one block of its own beside those that update the vectors: nothing waits
// for it. Where it ends the cycle, the vectors that the others are writing are not used again.
#include "judge.cuh"

constexpr int BATCH = 4;               // basis vectors whose sums a thread keeps at a time

// launch: columns of V, 256 threads
template <typename T> __global__ void first(Context* ctx, T* V, const acc_t<T>* norm2, acc_t<T>* g, int* columns, long long n,
                                            long long g_size) {
  if (stopped(ctx)) return;
  double beta = sqrt(real(norm2[1]));
  long long i = thread_id();
  if (i < n) V[i] = real_t<T>(beta > 0 ? 1 / beta : 0.0) * V[i];
  if (i < g_size) g[i] = acc_t<T>(i == 0 ? beta : 0.0);
  if (i == 0) {
    columns[0] = 0;
    ctx->limits[RATIO2] = beta > 0 ? real(norm2[0]) / real(norm2[1]) : 1.0;
  }
}

// Every block adds up its rows: BATCH basis vectors at a time, whose sums stay in registers.
// launch: elements of w, 256 threads, 4 each, at most 4 blocks per multiprocessor
template <typename T> __global__ void dots(Context* ctx, const T* V, const T* w, acc_t<T>* sums, int j, long long n,
                                           long long sums_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int P = scalar<T>::parts;
  const int m = (sums_size - 3) / 2, count = 2 * j + 3;
  const T* u = V + j * n;
  double* mine = ctx->partials + (long long)blockIdx.x * count * P;
  for (int k = 0; k < j; k += BATCH) {
    A s[BATCH], t[BATCH];
    for (int b = 0; b < BATCH; ++b) s[b] = t[b] = A(0);
    for (long long i = thread_id(); i < n; i += threads()) {
      T ui = u[i], wi = w[i];
#pragma unroll
      for (int b = 0; b < BATCH; ++b)
        if (k + b < j) {
          T v = V[(k + b) * n + i];
          s[b] = conj_fused(v, ui, s[b]);
          t[b] = conj_fused(v, wi, t[b]);
        }
    }
    double v[2 * BATCH * P];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) put(v + 2 * b * P, s[b]), put(v + (2 * b + 1) * P, t[b]);
    block_sum(v);
    if (threadIdx.x == 0)
      for (int b = 0; b < BATCH && k + b < j; ++b)
        for (int q = 0; q < P; ++q) {
          mine[(k + b) * P + q] = v[2 * b * P + q];
          mine[(j + k + b) * P + q] = v[(2 * b + 1) * P + q];
        }
    __syncthreads();
  }
  double v[P + 2] = {};
  A uw(0);
  for (long long i = thread_id(); i < n; i += threads()) {
    A ui(u[i]), wi(w[i]);
    v[P] += abs2(ui);
    v[P + 1] += abs2(wi);
    uw = conj_fused(ui, wi, uw);
  }
  put(v, uw);
  block_sum(v);
  if (threadIdx.x == 0) {
    put(mine + 2 * j * P, A(v[P]));
    get(v, uw);
    put(mine + (2 * j + 1) * P, uw);
    put(mine + (2 * j + 2) * P, A(v[P + 1]));
  }
  __shared__ bool last;
  bool is_last = last_block(ctx);
  if (threadIdx.x == 0) last = is_last;
  __syncthreads();
  if (!last) return;
  for (int k = threadIdx.x; k < count * P; k += blockDim.x) {
    double total = 0;
    for (int b = 0; b < gridDim.x; ++b) total += __ldcg(ctx->partials + (long long)b * count * P + k);
    int at = k / P, to = at < j ? at : at < 2 * j ? m + at - j : 2 * m + at - 2 * j;
    ((double*)(sums + to))[k % P] = total;
  }
}

template <class A> DEVICE double norm_after_pass(const A* sums, int m, int j) {
  double left = real(sums[2 * m]);
  for (int i = 0; i < j; ++i) left -= abs2(sums[i]);
  return sqrt(left > 0 ? left : 0.0);
}

template <class A> DEVICE double modulus(A a) { return sqrt(abs2(a)); }

// By one thread: Givens rotation of column k of R, and of g. Returns |g[k + 1]|, or -1 where the column is zero.
template <class A> DEVICE double rotate(A* R, A* rotations, A* g, int m, int k) {
  A a = R[k];
  for (int i = 0; i < k; ++i) {
    double c = real(rotations[2 * i]);
    A sn = rotations[2 * i + 1], b = R[(i + 1) * m + k];
    if (i == 0) a = R[k];
    R[i * m + k] = c * a + sn * b;
    a = c * b - conj(sn) * a;
  }
  A b = R[(k + 1) * m + k];
  double size = hypot(modulus(a), modulus(b));
  if (size == 0) return -1;
  double c = modulus(a) / size;
  A sn = modulus(a) == 0 ? conj(b) / A(modulus(b)) : a / A(modulus(a)) * conj(b) / A(size);
  R[k * m + k] = c * a + sn * b;
  R[(k + 1) * m + k] = A(0);
  rotations[2 * k] = A(c);
  rotations[2 * k + 1] = sn;
  g[k + 1] = -(conj(sn) * g[k]);
  g[k] = c * g[k];
  return modulus(g[k + 1]);
}

// By one block: correct column j - 1 of H by the second pass, rotate it, and judge the residual after j steps.
template <class A> DEVICE void finish_column(Context* ctx, const A* sums, A* H, A* R, A* rotations, A* g, A* small, int* columns,
                                             int m, int j, double alpha) {
  int k = j - 1;
  double gamma = real(small[0]);
  for (int i = threadIdx.x; i <= j; i += blockDim.x) {
    A h = i < j ? H[i * m + k] + gamma * sums[i] : A(gamma * alpha);
    H[i * m + k] = h;
    R[i * m + k] = h;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double estimate = rotate(R, rotations, g, m, k);
    if (estimate < 0) {
      ctx->flags[VERDICT] = BREAKDOWN;
      ctx->flags[STOP] = 1;
    } else {
      columns[0] = j;
      judge_inner(ctx, estimate * estimate);
    }
  }
  __syncthreads();
}

// What every block knows of a step: alpha, beta, the square of the next candidate's norm (times the divisor squared).
template <class A> struct Step {
  double alpha, left;
  A beta;
};
template <class A> DEVICE Step<A> step_of(const A* sums, int m, int j) {
  Step<A> step;
  step.alpha = norm_after_pass(sums, m, j);
  A beta = sums[2 * m + 1];
  double left = real(sums[2 * m + 2]);
  for (int i = 0; i < j; ++i) {
    beta -= conj_mul(sums[i], sums[m + i]);
    left -= abs2(sums[m + i]);
  }
  step.beta = (1 / step.alpha) * beta;
  left -= abs2(step.beta);
  double least = 0x1p-104 * real(sums[2 * m + 2]);
  step.left = sqrt(left > least ? left : least);
  return step;
}

// launch: elements of w, 256 threads, 2 each, and one block more
template <typename T>
__global__ void update(Context* ctx, T* V, const T* w, const acc_t<T>* sums, acc_t<T>* H, acc_t<T>* R, acc_t<T>* rotations,
                       acc_t<T>* g, acc_t<T>* small, int* columns, int j, bool flexible, long long n, long long sums_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  const int m = (sums_size - 3) / 2;
  __shared__ Step<A> shared;
  if (threadIdx.x == 0) shared = step_of(sums, m, j);
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
    if (threadIdx.x == 0) small[0] = A(gamma);
    return;
  }
  const double scale = gamma > 0 ? 1 / (gamma * divisor) : 0.0;
  long long blocks = gridDim.x - 1;
  for (long long i = thread_id(); i < n; i += blocks * blockDim.x) {
    A a(V[j * n + i]), b(w[i]);
#pragma unroll 8
    for (int k = 0; k < j; ++k) {
      A v(V[k * n + i]);
      a -= sums[k] * v;
      b -= sums[m + k] * v;
    }
    a = (1 / step.alpha) * a;
    V[j * n + i] = T(a);
    V[(j + 1) * n + i] = T(scale * (b - step.beta * a));
  }
}

// launch: one block of 128 threads
template <typename T>
__global__ void close(Context* ctx, const acc_t<T>* sums, acc_t<T>* H, acc_t<T>* R, acc_t<T>* rotations, acc_t<T>* g,
                      acc_t<T>* small, int* columns, acc_t<T>* y, int j, long long sums_size) {
  using A = acc_t<T>;
  const int m = (sums_size - 3) / 2;
  if (ctx->flags[FINAL]) return;                       // the stop inside a cycle does not stop this kernel
  if (!stopped(ctx)) finish_column(ctx, sums, H, R, rotations, g, small, columns, m, j, norm_after_pass(sums, m, j));
  __syncthreads();
  int k = columns[0];
  for (int i = threadIdx.x; i < m; i += blockDim.x) y[i] = i < k ? g[i] : A(0);
  __syncthreads();
  for (int i = k - 1; i >= 0; --i) {                   // column by column, so that the rows above go in parallel
    A yi = y[i] / R[i * m + i];
    __syncthreads();
    if (threadIdx.x == 0) y[i] = yi;
    for (int l = threadIdx.x; l < i; l += blockDim.x) y[l] -= R[l * m + i] * yi;
    __syncthreads();
  }
  if (threadIdx.x == 0) resume(ctx);
}

// launch: elements of out, 256 threads, 2 each
template <typename T>
__global__ void combine(Context* ctx, const T* V, const acc_t<T>* y, const int* columns, T* out, bool add, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  int k = columns[0];
  for (long long i = thread_id(); i < n; i += threads()) {
    A total = add ? A(out[i]) : A(0);
#pragma unroll 8
    for (int l = 0; l < k; ++l) total += y[l] * A(V[l * n + i]);
    out[i] = T(total);
  }
}
