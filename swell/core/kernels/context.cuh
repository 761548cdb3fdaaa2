// The context that all kernels of a space share, in device memory: the judge's record, and the scratch of deterministic
// reductions.
//
// Flag, Limit, Code, FLAGS and LIMITS are declared in core/slots.py, and precede every source. Each right-hand side has
// its own context; the contexts of a solve lie one after the other. Once the judge has stopped the loop, every kernel
// returns at once: a captured graph may run past the end of a solve.
#pragma once
#include "pack.cuh"

#define KERNEL __global__ void __launch_bounds__(512, 2)
#define ROW_KERNEL __global__ void        // with bounds it would have up to twice the registers
#define KERNELS(...)                      // the list of kernels is for CPUs

struct Context {
  long long flags[FLAGS];
  double limits[LIMITS];
  long long* mirror;     // iteration, verdict and stop in one word of mapped host memory
  double* history;       // residual norms, in mapped host memory
  double* partials;      // one group of sums for each block, inside a grid_sum
  double* left;          // one group of sums for each block of a product
  int left_count;        // number of groups in `left`
  unsigned arrived;      // number of blocks that have reached the end of a kernel; 0 again after it
};
using Device = Context*;   // the first parameter of a text's kernel that is called outside loops

DEVICE long long& flag(Context* ctx, Flag place) { return ctx->flags[place]; }
DEVICE long long flag(const Context* ctx, Flag place) { return ctx->flags[place]; }
DEVICE double& limit(Context* ctx, Limit place) { return ctx->limits[place]; }
DEVICE double& norm_after(const Context* ctx, long long iteration) { return ctx->history[iteration]; }
// A method's scalar, by the name that the method's package declares in its slots.py.
template <class A> DEVICE A& slot(A* s, int place) { return s[place]; }
DEVICE bool over(const Context* ctx) { return flag(ctx, STOP) != 0; }                 // has the loop been stopped?

DEVICE void show(Context* ctx) {                       // write one word for the host, which reads it between two graphs
  *(volatile long long*)ctx->mirror = flag(ctx, ITERATION) << 16 | flag(ctx, VERDICT) << 8 | flag(ctx, STOP);
}

DEVICE long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }

// Programmatic dependent launch (core/launch.py): a kernel may start while the previous one drains. It must not touch
// data that earlier kernels write until wait_for_previous, which every kernel calls in `stopped`. For an ordinary
// launch both functions are no-ops. Products read their matrix before the wait: a setup whose last kernel writes a
// matrix must therefore end with a synchronisation.
DEVICE void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
DEVICE void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// True if the loop has stopped. Every kernel calls this first; when it returns, all earlier kernels have finished.
DEVICE bool stopped(const Context* ctx) {
  let_next_start();
  wait_for_previous();
  return over(ctx);
}

template <int K> DEVICE void warp_sum(double (&v)[K]) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __shfl_xor_sync(~0u, v[k], o);
}

// Sum over the block; valid in warp 0 only.
template <int K> DEVICE void block_sum(double (&v)[K]) {
  __shared__ double sums[32][K];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  warp_sum(v);
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) sums[warp][k] = v[k];
  __syncthreads();
  if (warp == 0) {
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = lane < (blockDim.x >> 5) ? sums[lane][k] : 0.0;
    warp_sum(v);
  }
}

// One block adds the sums of `count` blocks, in a fixed order. The result is valid in warp 0 only.
template <int K> DEVICE void collect_sums(const double* from, int count, double (&v)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = 0;
#pragma unroll 8
  for (int i = threadIdx.x; i < count; i += blockDim.x)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __ldcg(from + i * (long long)K + k);
  block_sum(v);
}

// True in every thread of the last block that calls it; this block then sees all earlier writes of the others. The
// fence waits for a thread's stores, so use this with grids of a few hundred blocks only.
DEVICE bool last_block(Context* ctx) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&ctx->arrived, 1u) == gridDim.x - 1;
    if (last) {
      ctx->arrived = 0;
      __threadfence();
    }
  }
  __syncthreads();
  return last;
}

// A barrier of all blocks of a cooperative launch. `arrived` is 0 before the first launch, and a multiple of the number
// of blocks after each. After the barrier, read data of other blocks past the cache of the multiprocessor (__ldcg).
// blocks: the number of blocks that wait, if some have left already.
DEVICE void grid_wait(unsigned long long* arrived, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned long long ticket = atomicAdd(arrived, 1ull), all = (ticket / blocks + 1) * blocks;
    while (*(volatile unsigned long long*)arrived < all) {}
    __threadfence();
  }
  __syncthreads();
}
DEVICE void grid_wait(unsigned long long* arrived) { grid_wait(arrived, gridDim.x); }

// True in one thread of the last block that calls it: all other blocks have done their reads, so this thread may
// overwrite the data. There is no fence, since this thread reads nothing that they wrote.
DEVICE bool last_to_read(Context* ctx) {
  __syncthreads();
  if (threadIdx.x || atomicAdd(&ctx->arrived, 1u) != gridDim.x - 1) return false;
  ctx->arrived = 0;
  return true;
}

// Sum over a grid of a few hundred blocks, in a fixed order: the last block adds all. True in the one thread that holds
// the totals.
template <int K> DEVICE bool grid_sum(Context* ctx, double (&v)[K]) {
  block_sum(v);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) ctx->partials[blockIdx.x * K + k] = v[k];
  if (!last_block(ctx)) return false;
  collect_sums(ctx->partials, gridDim.x, v);
  return threadIdx.x == 0;
}

// Two inner products, (w, y) and (y, y), as one group of doubles.
template <class T> struct Two {
  static constexpr int count = scalar<T>::parts + 1;
  double v[count];
  DEVICE Two(acc_t<T> wy, double yy) { split(v, wy), v[count - 1] = yy; }
  DEVICE acc_t<T> wy() const {
    acc_t<T> value;
    join(value, v);
    return value;
  }
  DEVICE double yy() const { return v[count - 1]; }
  DEVICE void write(acc_t<T>* out) const { slot(out, 0) = wy(), slot(out, 1) = acc_t<T>(yy()); }
};

// Write this block's sums to memory; the kernel collect_dots adds them. A product has thousands of short blocks, and a
// block that waited for an atomic would keep its place on the multiprocessor.
template <class T> DEVICE void leave_dots(Context* ctx, Two<T> sums) {
  block_sum(sums.v);
  if (threadIdx.x) return;
#pragma unroll
  for (int k = 0; k < sums.count; ++k) ctx->left[blockIdx.x * (long long)sums.count + k] = sums.v[k];
  if (blockIdx.x == 0) ctx->left_count = gridDim.x;
}
