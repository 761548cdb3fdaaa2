// Fused steps of block CG on a GPU; block_cg.cpp has the same kernels for a CPU.
// krylov/slots.py names the matrices in `small`. SIDE is the power of two that is not below the number of vectors.
#include "block.cuh"

// launch: columns of R, 256 threads
template <typename T>
__global__ void begin(Context* ctx, T* R, acc_t<T>* small, int count, long long R_stride, long long n) {
  stopped(ctx);                                        // it waits for the kernel before
  const long long i = thread_id();
  for (int j = 0; j < count; ++j)
    if (i < n && ended(ctx, j)) R[j * R_stride + i] = T(0);
  if (blockIdx.x) return;
  for (int e = threadIdx.x; e < count * count; e += blockDim.x)
    small[COEFFICIENTS * count * count + e] = acc_t<T>(e / count == e % count && !ended(ctx, e % count) ? 1.0 : 0.0);
  if (threadIdx.x == 0) go_on(ctx, count);
}

// launch: one block of 1024 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(1024) step(Context* ctx, const acc_t<T>* partial, acc_t<T>* small,
    const int* independent, double tolerance, int count, int side, long long partial_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  __shared__ Dense<A, SIDE> s;
  const int k = count, t = threadIdx.x, i = t / SIDE, j = t % SIDE;
  const bool entry = i < k && j < k;
  total(partial, partial_size, k, s.scratch, s.h);
  if (t >= ENTRIES<SIDE>) return;
  const bool good = all_finite(s.h, k, &s.bad);
  bool positive = true;
  for (int l = 0; l < independent[0]; ++l) positive = positive && real(s.h[l][l]) > 0;
  __syncthreads();
  own_reference(s, k);
  const bool definite = good && pivoted_cholesky(s, k, tolerance, false) >= 0 && positive;
  if (!definite) {
    if (t == 0) halt_all(ctx, k, good ? INDEFINITE : NONFINITE);
    return;
  }
  A xi(0), alpha(0);
  if (entry) {
    for (int l = 0; l < k; ++l) xi += s.h[i][l] * conj(s.h[j][l]);
    s.f[i][j] = xi;
  }
  __syncthreads();
  if (!entry) return;
  if (!ended(ctx, j))
    for (int l = 0; l < k; ++l) alpha += s.f[i][l] * small[(COEFFICIENTS * k + l) * k + j];
  small[(XI * k + i) * k + j] = xi;
  small[(ALPHA * k + i) * k + j] = alpha;
}

// launch: a block of height threads for each slice of rows
template <typename T, int SIDE>
__global__ void __launch_bounds__(256, SIDE > 16 ? 1 : 2) residual(Context* ctx, T* x, const T* P, T* R, const T* Q,
    const float* w, const acc_t<T>* small, acc_t<T>* norms, acc_t<T>* metric, const long long* rows, int count,
    int side, int height, long long x_stride, long long P_stride, long long R_stride, long long Q_stride) {
  if (stopped(ctx)) return;
  __shared__ T left[SIDE][SIDE], right[SIDE][SIDE];
  __shared__ bool frozen[SIDE];
  const int k = count;
  const long long from = rows[blockIdx.x], to = rows[blockIdx.x + 1];
  coefficients_of(small + ALPHA * k * k, k, 1, left);
  if (threadIdx.x < k) frozen[threadIdx.x] = ended(ctx, threadIdx.x);
  __syncthreads();
  for (long long row = from + threadIdx.x; row < to; row += blockDim.x) {
    T p[SIDE];
    load_row(P, P_stride, k, row, p);
#pragma unroll 4
    for (int j = 0; j < k; ++j)
      if (!frozen[j]) x[j * x_stride + row] = combination(p, left[j], x[j * x_stride + row]);
  }
  __syncthreads();
  coefficients_of(small + XI * k * k, k, -1, left);
  coefficients_of(small + INVERSE * k * k, k, 1, right);
  __syncthreads();
  for (long long row = from + threadIdx.x; row < to; row += blockDim.x) {
    T q[SIDE], r[SIDE];
    load_row(Q, Q_stride, k, row, q), load_row(R, R_stride, k, row, r);
#pragma unroll 4
    for (int j = 0; j < k; ++j) R[j * R_stride + row] = combination(q, left[j], combination(r, right[j], T(0)));
  }
  __syncthreads();
  gram_of<T>(R, R_stride, k, R, R_stride, k, w, from, to, norms + blockIdx.x * (long long)k * k, k);
  if (w) gram_of<T>(R, R_stride, k, R, R_stride, k, nullptr, from, to, metric + blockIdx.x * (long long)k * k, k);
}

// launch: one block of 1024 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(1024) orthonormalise(Context* ctx, const acc_t<T>* norms, const acc_t<T>* metric,
    acc_t<T>* small, int* independent, double tolerance, bool first, int count, int side, long long norms_size,
    long long metric_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  __shared__ Dense<A, SIDE> s;
  __shared__ double norm2[SIDE];
  __shared__ bool nonzero[SIDE];
  const int k = count, t = threadIdx.x, i = t / SIDE, j = t % SIDE;
  const bool entry = i < k && j < k;
  A* C = small + COEFFICIENTS * k * k;
  total(norms, norms_size, k, s.scratch, s.f);
  if (entry) {                                         // s.h = the terms of (Cᴴ N C)_jj
    A nc(0);
    for (int l = 0; l < k; ++l) nc += s.f[i][l] * C[l * k + j];
    s.h[i][j] = conj(C[i * k + j]) * nc;
  }
  __syncthreads();
  if (t < k) {
    double sum = 0;
    for (int l = 0; l < k; ++l) sum += real(s.h[l][t]);
    norm2[t] = sum < 0 ? 0.0 : sum;
    nonzero[t] = real(s.f[t][t]) > 0;
  }
  __syncthreads();
  total(metric, metric_size, k, s.scratch, s.h);
  if (t >= ENTRIES<SIDE>) return;
  const bool good = all_finite(s.h, k, &s.bad);
  bool definite = true;
  for (int l = 0; l < k; ++l) definite = definite && !(nonzero[l] && real(s.h[l][l]) <= 0);
  __syncthreads();
  own_reference(s, k);
  const int found = good ? pivoted_cholesky(s, k, tolerance, false) : 0;
  definite = definite && found >= 0;
  A c(0);
  if (entry) {
    for (int l = 0; l < k; ++l) c += s.f[i][l] * C[l * k + j];
  }
  __syncthreads();
  if (entry && good && definite) {
    C[i * k + j] = c;
    small[(ZETA * k + i) * k + j] = s.f[i][j];
    small[(INVERSE * k + i) * k + j] = s.h[i][j];
  }
  if (t < k && !first && !ended(ctx, t)) judge(ctx + t, norm2[t]);
  __syncthreads();
  if (t) return;
  independent[0] = found;
  if (!first) go_on(ctx, k);
  if (!over(ctx) && !(good && found > 0 && definite))
    halt_all(ctx, k, !good ? NONFINITE : !definite ? INDEFINITE : BREAKDOWN);
}

// launch: columns of R, 256 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(256) scale(Context* ctx, T* R, const acc_t<T>* small, int count, int side,
    long long R_stride, long long n) {
  if (!stopped(ctx)) multiply_by<SIDE>(R, R_stride, n, small + INVERSE * count * count, count);
}

// launch: columns of P, 256 threads
template <typename T, int SIDE> __global__ void __launch_bounds__(256) directions(Context* ctx, const T* Z, T* P,
    const acc_t<T>* small, bool first, int count, int side, long long Z_stride, long long P_stride, long long n) {
  if (stopped(ctx)) return;
  __shared__ T inverse[SIDE][SIDE], zeta[SIDE][SIDE];
  const int k = count;
  coefficients_of(small + INVERSE * k * k, k, 1, inverse);
  fill(zeta, k, [=](int j, int i) { return conj(small[(ZETA * k + j) * k + i]); });      // P ζᴴ
  __syncthreads();
  const long long row = thread_id();
  if (row >= n) return;
  T z[SIDE], p[SIDE];
  load_row(Z, Z_stride, k, row, z);
  if (first) {
#pragma unroll
    for (int i = 0; i < SIDE; ++i) p[i] = T(0);
  } else {
    load_row(P, P_stride, k, row, p);
  }
#pragma unroll 4
  for (int j = 0; j < k; ++j) P[j * P_stride + row] = combination(p, zeta[j], combination(z, inverse[j], T(0)));
}
