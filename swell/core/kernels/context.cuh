// What all kernels of a space share, in device memory: the judge's record, and the scratch of deterministic reductions.
//
// The record is that of core/kernels/judge.py, place for place. After the judge has spoken every kernel returns at once,
// so that a captured graph may run past the end of a solve.
#pragma once
#include "scalar.cuh"

enum Flag { STOP, VERDICT, ITERATION, MAXITER, BEST_ITERATION, WINDOW, FINAL, FLAGS = 8 };
enum Limit { THRESHOLD2, GROWTH2, BEST2, CYCLE2, RATIO2, LIMITS = 8 };
enum Code { RUNNING, CONVERGED, MAXITER_REACHED, STAGNATED, DIVERGED, NONFINITE, BREAKDOWN, INDEFINITE };

struct Context {
  long long flags[FLAGS];
  double limits[LIMITS];
  long long* mirror;     // of flags, in mapped host memory: the host looks there and never reads the device
  double* history;       // residual norms, in mapped host memory
  double* partials;      // sums of every block
  unsigned arrived;      // blocks at the end of a kernel; back at 0 afterwards
};

DEVICE long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }
DEVICE bool stopped(const Context* ctx) { return ctx->flags[STOP] != 0; }

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

// Leave the sums of this block in memory, for a later kernel.
template <int K> DEVICE void leave_sums(Context* ctx, double (&v)[K]) {
  block_sum(v);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) ctx->partials[blockIdx.x * (long long)K + k] = v[k];
}

// By one block: add what `count` blocks left, in a fixed order. Complete in warp 0.
template <int K> DEVICE void collect_sums(const Context* ctx, int count, double (&v)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = 0;
#pragma unroll 8
  for (int i = threadIdx.x; i < count; i += blockDim.x)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __ldcg(ctx->partials + i * (long long)K + k);
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
  leave_sums(ctx, v);
  if (!last_block(ctx)) return false;
  collect_sums(ctx, gridDim.x, v);
  return threadIdx.x == 0;
}

// Two sums, (w, y) and (y, y), as one group of doubles.
template <class T> struct Two {
  static constexpr int count = scalar<T>::parts + 1;
  double v[count];
  DEVICE Two(acc_t<T> wy, double yy) { split(v, wy), v[count - 1] = yy; }
  DEVICE void write(acc_t<T>* out) const { join(out[0], v), out[1] = acc_t<T>(v[count - 1]); }
};
