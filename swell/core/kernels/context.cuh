// What all kernels of a space share, in device memory: the judge's record, and the scratch of deterministic reductions.
//
// Flag, Limit, Code, FLAGS, LIMITS and COLUMNS are declared in core/slots.py, and precede every source. The record is laid
// out as [place][column], the history as [iteration][column]. After the judge has spoken every kernel returns at once, so
// that a captured graph may run past the end of a solve.
#pragma once
#include "scalar.cuh"

struct Context {
  long long flags[FLAGS][COLUMNS];
  double limits[LIMITS][COLUMNS];
  long long* mirror;     // iteration, verdict and stop in one word of mapped host memory
  double* history;       // residual norms, in mapped host memory
  double* partials;      // sums of every block inside a grid_sum
  double* left;          // sums that every block of a product left
  int left_count;        // of how many blocks
  unsigned arrived;      // blocks at the end of a kernel; back at 0 afterwards
};

DEVICE long long& flag(Context* ctx, Flag place, int column = 0) { return ctx->flags[place][column]; }
DEVICE long long flag(const Context* ctx, Flag place, int column = 0) { return ctx->flags[place][column]; }
DEVICE double& limit(Context* ctx, Limit place, int column = 0) { return ctx->limits[place][column]; }
DEVICE double& norm_after(const Context* ctx, long long iteration, int column = 0) { return ctx->history[iteration * COLUMNS + column]; }
// A method's scalar, by the name that the method's package declares in its slots.py.
template <class A> DEVICE A& slot(A* s, int place, int column = 0) { return s[place * COLUMNS + column]; }
DEVICE bool over(const Context* ctx) { return flag(ctx, STOP) != 0; }                 // has the judge spoken?

DEVICE long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }

// Programmatic dependent launch (core/launch.py): a kernel may start while the one before it drains. Nothing that a kernel
// before it writes may be touched until wait_for_previous, which every kernel calls, in `stopped`. No-ops otherwise. Products
// read their matrix before that: so a setup whose last kernel writes a matrix ends with a synchronisation.
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

// The first thing that a kernel asks. After its wait, all that came before has been done.
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

// Sum over the block, complete in warp 0 only.
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

// By one block: add the sums of `count` blocks, in a fixed order. Complete in warp 0.
template <int K> DEVICE void collect_sums(const double* from, int count, double (&v)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = 0;
#pragma unroll 8
  for (int i = threadIdx.x; i < count; i += blockDim.x)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __ldcg(from + i * (long long)K + k);
  block_sum(v);
}

// True in every thread of the last block to come here, which then sees what the others wrote before. A fence waits for a
// thread's stores, so this is for grids of a few hundred blocks.
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

// All blocks of a cooperative launch wait for one another. `arrived` is 0 before the first launch, and a multiple of the
// grid's blocks after each. What others wrote before is read past the cache of the multiprocessor (__ldcg) afterwards.
// blocks: how many wait, if others have left.
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

// True in one thread of the last block: all others have read what this one may now change. No fence, since nothing that
// they wrote is looked at.
DEVICE bool last_to_read(Context* ctx) {
  __syncthreads();
  if (threadIdx.x || atomicAdd(&ctx->arrived, 1u) != gridDim.x - 1) return false;
  ctx->arrived = 0;
  return true;
}

// Sum over a grid of a few hundred blocks in a fixed order: the last block adds all. True in the one thread that holds
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

// A product runs on thousands of short blocks, and one that waits for an atomic holds its place on the multiprocessor: so
// each leaves its sums in memory, for collect_dots.
template <class T> DEVICE void leave_dots(Context* ctx, Two<T> sums) {
  block_sum(sums.v);
  if (threadIdx.x) return;
#pragma unroll
  for (int k = 0; k < sums.count; ++k) ctx->left[blockIdx.x * (long long)sums.count + k] = sums.v[k];
  if (blockIdx.x == 0) ctx->left_count = gridDim.x;
}
