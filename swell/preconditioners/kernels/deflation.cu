// The two projections of deflation on a GPU; deflation.cpp is the CPU's version.
//
// B is the type of the stored vectors: T in single precision. All arithmetic is in T, and sums are in double.
#include "context.cuh"
#include "strip.cuh"

constexpr int BATCH = 8;               // vectors that a block works on at a time

// sums = V^T x, or V^H x. A block has a batch of vectors and a share of the rows; the last block adds up the shares.
// launch: 2 blocks per multiprocessor of 256 threads, 16 bytes at once
template <typename T, typename B>
__global__ void __launch_bounds__(256, 2) dots(Context* ctx, const B* V, const T* x, acc_t<T>* sums, bool conjugate,
    long long V_stride, long long x_size, long long sums_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<B>::size, P = scalar<T>::parts;
  const int n = x_size, many = sums_size, batches = (many + BATCH - 1) / BATCH,
      shares = max(1, int(gridDim.x) / batches);
  const long long strips = (x_size + S - 1) / S;
  for (int task = blockIdx.x; task < batches * shares; task += gridDim.x) {
    const int first = task % batches * BATCH, share = task / batches;
    const int from = strips * share / shares, to = strips * (share + 1) / shares;
    A total[BATCH] = {};
    for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
      const Strip<T, S> xs = load_strip<S>(x, i, n);
      Strip<B, S> vs[BATCH];
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        vs[b] = {};
        if (first + b < many) vs[b] = load_strip<S>(V + (first + b) * V_stride, i, n);
      }
#pragma unroll
      for (int b = 0; b < BATCH; ++b)
#pragma unroll
        for (int e = 0; e < S; ++e) {
          const A v(vs[b].at[e]);
          total[b] = fused(conjugate ? conj(v) : v, A(xs.at[e]), total[b]);
        }
    }
    double v[BATCH * P];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) split(v + b * P, total[b]);
    block_sum(v);
    if (threadIdx.x == 0)
      for (int k = 0; k < min(BATCH, many - first) * P; ++k)
        ctx->partials[((long long)share * many + first) * P + k] = v[k];
    __syncthreads();
  }
  if (!last_block(ctx)) return;
  for (int k = threadIdx.x; k < many * P; k += blockDim.x) {
    double total = 0;
#pragma unroll 8
    for (int share = 0; share < shares; ++share) total += __ldcg(ctx->partials + (long long)share * many * P + k);
    ((double*)sums)[k] = total;
  }
}

// y = E^-1 s, or with `again` y = y - E^-1 s; a warp has a row.
// launch: one block of 1024 threads
template <typename T>
__global__ void coefficients(Context* ctx, const acc_t<T>* inverse, const acc_t<T>* sums, acc_t<T>* y, bool again,
    long long y_size) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  const int k = y_size, lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < k; i += blockDim.x / 32) {
    acc_t<T> total(0);
    for (int j = lane; j < k; j += 32) total = fused(inverse[i * k + j], sums[j], total);
    double v[P];
    split(v, total);
    warp_sum(v);
    join(total, v);
    if (lane == 0) y[i] = again ? y[i] - total : total;
  }
}

// Pack i of x plus `sign` V y, or with the conjugate of V.
template <class T, class B>
DEVICE void add_vectors(Pack<T>& x, const B* V, long long V_stride, const acc_t<T>* y, int many, double sign,
    bool conjugate, int i, int n) {
  constexpr int S = Pack<T>::size;
#pragma unroll 8
  for (int k = 0; k < many; ++k) {
    const T yk(sign * y[k]);
    const Strip<B, S> v = load_strip<S>(V + k * V_stride, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) x.at[e] = fused(yk, T(conjugate ? conj(v.at[e]) : v.at[e]), x.at[e]);
  }
}

// out = x - W y, or with the conjugate of W.
// launch: elements of out, 256 threads, a pack each
template <typename T, typename B>
__global__ void subtract(Context* ctx, const B* W, const acc_t<T>* y, const T* x, T* out, bool conjugate,
    long long W_stride, long long y_size, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= packs_of<T>(n)) return;
  Pack<T> value = load(x, i, n);
  add_vectors(value, W, W_stride, y, int(y_size), -1.0, conjugate, int(i), int(n));
  store(out, i, n, value);
}

// out = alpha (z + U y) + beta out, or with the conjugate of U; beta = 0 never reads out.
// launch: elements of out, 256 threads, a pack each
template <typename T, typename B>
__global__ void correct(Context* ctx, const B* U, const acc_t<T>* y, const T* z, T* out, T alpha, T beta,
    bool conjugate, long long U_stride, long long y_size, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= packs_of<T>(n)) return;
  Pack<T> value = load(z, i, n), old = {};
  add_vectors(value, U, U_stride, y, int(y_size), 1.0, conjugate, int(i), int(n));
  if (beta != T(0)) old = load(out, i, n);
#pragma unroll
  for (int e = 0; e < Pack<T>::size; ++e) value.at[e] = fused(alpha, value.at[e], beta * old.at[e]);
  store(out, i, n, value);
}

// W = P0 + t P1 + t^2 P2.
// launch: elements of W, 256 threads
template <typename T, typename B>
__global__ void polynomial(Context* ctx, const B* P0, const B* P1, const B* P2, double t, B* W, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  const real_t<B> r(t);
  W[i] = P0[i] + r * (P1[i] + r * P2[i]);
}
