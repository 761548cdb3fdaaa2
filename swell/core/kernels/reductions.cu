// Maxima, and the sums that a product's blocks have left, on a GPU: blocks combine what their threads have.
// reductions.cpp walks through a vector once.
#include "context.cuh"

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
