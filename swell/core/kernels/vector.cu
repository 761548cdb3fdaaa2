// Vector operations shared by all methods, on a GPU; vector.py is the CPU version.
//
// Kernels with packs need vectors that begin at multiples of 16 bytes, as all vectors made by a space do. Their grid
// fills the device once: each thread reads the stop flag once, and then strides over the vector.
#include "context.cuh"

// launch: elements of out, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(512, 4) assign(Context* ctx, T alpha, T* out, long long n) {
  if (stopped(ctx)) return;
  Pack<T> value;
#pragma unroll
  for (int e = 0; e < value.size; ++e) value.at[e] = alpha;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) store(out, i, n, value);
}

// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(512, 4) scale(Context* ctx, T alpha, T* x, long long n) {
  if (stopped(ctx)) return;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> a = load(x, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) a.at[e] = alpha * a.at[e];
    store(x, i, n, a);
  }
}

// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512, 4) axpy(Context* ctx, T alpha, const T* x, T* y, long long n) {
  if (stopped(ctx)) return;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n);
    Pack<T> b = load(y, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) b.at[e] = fused(alpha, a.at[e], b.at[e]);
    store(y, i, n, b);
  }
}

// y = alpha x + beta y; beta = 0 never reads y.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512, 4) axpby(Context* ctx, T alpha, const T* x, T beta, T* y, long long n) {
  if (stopped(ctx)) return;
  const bool reads = beta != T(0);
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n);
    Pack<T> b;
    if (reads) b = load(y, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) b.at[e] = reads ? fused(alpha, a.at[e], beta * b.at[e]) : alpha * a.at[e];
    store(y, i, n, b);
  }
}

// y = x y, elementwise.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(512, 4) multiply(Context* ctx, const T* x, T* y, long long n) {
  if (stopped(ctx)) return;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n);
    Pack<T> b = load(y, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) b.at[e] = a.at[e] * b.at[e];
    store(y, i, n, b);
  }
}

// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512, 4) dot(Context* ctx, const T* x, const T* y, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> xy(0);
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n), b = load(y, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) xy = conj_fused(a.at[e], b.at[e], xy);
  }
  double v[scalar<T>::parts];
  split(v, xy);
  if (grid_sum(ctx, v)) join(out[0], v);
}

// out[0] = ‖x‖₂.
// launch: elements of x, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512, 4) norm(Context* ctx, const T* x, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  double v[1] = {0};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) v[0] += abs2(acc_t<T>(a.at[e]));
  }
  if (grid_sum(ctx, v)) out[0] = acc_t<T>(sqrt(v[0]));
}

// y = alpha x + y, sums[0] = (w, y) and sums[1] = (y, y).
// launch: elements of x, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512, 3) axpy_dots(Context* ctx, T alpha, const T* x, T* y, const T* w, acc_t<T>* out,
    long long n) {
  if (stopped(ctx)) return;
  acc_t<T> wy(0);
  double yy = 0;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> a = load(x, i, n), c = load(w, i, n);
    Pack<T> b = load(y, i, n);
#pragma unroll
    for (int e = 0; e < a.size; ++e) {
      b.at[e] = fused(alpha, a.at[e], b.at[e]);
      wy = conj_fused(c.at[e], b.at[e], wy);
      yy += abs2(acc_t<T>(b.at[e]));
    }
    store(y, i, n, b);
  }
  Two<T> both(wy, yy);
  if (grid_sum(ctx, both.v)) both.write(out);
}

// launch: elements of x, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void dots(Context* ctx, const T* x, const T* y, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> xy(0);
  double yy = 0;
  for (long long i = thread_id(); i < n; i += threads()) {
    T v = y[i];
    xy = conj_fused(x[i], v, xy);
    yy += abs2(acc_t<T>(v));
  }
  Two<T> sums(xy, yy);
  if (grid_sum(ctx, sums.v)) sums.write(out);
}

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void weighted_norm2(Context* ctx, const T* r, const float* w, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  double v[1] = {0};
  for (long long i = thread_id(); i < n; i += threads()) v[0] += w[i] * abs2(acc_t<T>(r[i]));
  if (grid_sum(ctx, v)) out[0] = acc_t<T>(v[0]);
}

DEVICE double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

// The maximum over the threads of a block, NaN if there is one; valid in warp 0.
DEVICE double block_max(double most) {
  __shared__ double of_warp[32];
  for (int o = 16; o; o >>= 1) most = larger(__shfl_xor_sync(~0u, most, o), most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
  most = of_warp[threadIdx.x % (blockDim.x / 32)];
  for (int o = 16; o; o >>= 1) most = larger(__shfl_xor_sync(~0u, most, o), most);
  return most;
}

// The maximum over all threads of the grid, NaN if there is one. True in the one thread that holds it.
DEVICE bool grid_max(Context* ctx, double& most) {
  most = block_max(most);
  if (threadIdx.x == 0) ctx->partials[blockIdx.x] = most;
  if (!last_block(ctx)) return false;
  for (int k = threadIdx.x; k < gridDim.x; k += blockDim.x) most = larger(__ldcg(ctx->partials + k), most);
  most = block_max(most);
  return threadIdx.x == 0;
}

// out[0] = ‖x‖∞; NaN if x contains NaN.
// launch: elements of x, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void norm_inf(Context* ctx, const T* x, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  double most = 0;
  for (long long i = thread_id(); i < n; i += threads()) most = larger(sqrt(abs2(acc_t<T>(x[i]))), most);
  if (grid_max(ctx, most)) out[0] = acc_t<T>(most);
}

// out[0] = (x, x) and out[1] = ‖x‖∞; NaN if x contains NaN.
// launch: elements of x, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void norms(Context* ctx, const T* x, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  double v[1] = {0}, most = 0;
  for (long long i = thread_id(); i < n; i += threads()) {
    const double square = abs2(acc_t<T>(x[i]));
    v[0] += square;
    most = larger(square, most);
  }
  block_sum(v);
  most = block_max(sqrt(most));
  if (threadIdx.x == 0) ctx->partials[2 * blockIdx.x] = v[0], ctx->partials[2 * blockIdx.x + 1] = most;
  if (!last_block(ctx)) return;
  v[0] = most = 0;
  for (int k = threadIdx.x; k < gridDim.x; k += blockDim.x) {
    v[0] += __ldcg(ctx->partials + 2 * k);
    most = larger(__ldcg(ctx->partials + 2 * k + 1), most);
  }
  block_sum(v);
  most = block_max(most);
  if (threadIdx.x == 0) out[0] = acc_t<T>(v[0]), out[1] = acc_t<T>(most);
}

// out[0] = the largest entry of a real x; NaN if x contains NaN.
// launch: elements of x, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void maximum(Context* ctx, const T* x, acc_t<T>* out, long long n) {
  if (stopped(ctx)) return;
  double most = real(acc_t<T>(x[0]));
  for (long long i = thread_id(); i < n; i += threads()) most = larger(real(acc_t<T>(x[i])), most);
  if (grid_max(ctx, most)) out[0] = acc_t<T>(most);
}

// Sum the partial sums that the blocks of a product left in memory (leave_dots).
// launch: one block of 1024 threads
template <typename T> __global__ void collect_dots(Context* ctx, acc_t<T>* dots) {
  if (stopped(ctx)) return;
  Two<T> sums(acc_t<T>(0), 0);
  collect_sums(ctx->left, ctx->left_count, sums.v);
  if (threadIdx.x == 0) sums.write(dots);
}

// launch: elements of x, 256 threads
template <typename T>
__global__ void multiply_add(Context* ctx, const T* d, const T* x, T* out, T alpha, T beta, long long n) {
  if (stopped(ctx)) return;
  long long i = thread_id();
  if (i >= n) return;
  T y = alpha * d[i] * x[i];
  out[i] = beta == T(0) ? y : y + beta * out[i];
}

// launch: elements of x, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void multiply_dots(Context* ctx, const T* d, const T* x, T* out, const T* w, acc_t<T>* found, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> wy(0);
  double yy = 0;
  for (long long i = thread_id(); i < n; i += threads()) {
    T y = d[i] * x[i];
    out[i] = y;
    wy = conj_fused(w[i], y, wy);
    yy += abs2(acc_t<T>(y));
  }
  Two<T> both(wy, yy);
  if (grid_sum(ctx, both.v)) both.write(found);
}

// launch: elements of out, 256 threads
template <typename T> __global__ void random(Context* ctx, long long seed, long long first, T* out,
                                               long long n) {
  long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  unsigned long long z = first + i + seed * 0x9E3779B97F4A7C15ull + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  out[i] = T(real_t<T>(double(z >> 11) * 0x1p-52 - 1.0));
}
