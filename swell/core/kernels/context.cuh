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
  double* groups;        // sums of every group of blocks
  unsigned* arrivals;    // blocks of each group that have finished; back at 0 after every reduction
  unsigned arrived;      // groups that have finished; back at 0 after every reduction
};

constexpr int GROUP = 64;                // blocks of a group: two levels of 64 serve 4096 blocks without a long tail

DEVICE long long thread_id() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
DEVICE long long threads() { return gridDim.x * (long long)blockDim.x; }
DEVICE bool stopped(const Context* ctx) { return ctx->flags[STOP] != 0; }

template <int K> DEVICE void warp_sum(double (&v)[K]) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __shfl_xor_sync(~0u, v[k], o);
}

// Sum over the block, complete in every lane of warp 0 only.
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

// By one whole warp; true in the warp that completes the count, which then sees what the others wrote before.
DEVICE bool arrive(unsigned* counter, unsigned expected) {
  unsigned before = 0;
  if ((threadIdx.x & 31) == 0) {
    __threadfence();
    before = atomicAdd(counter, 1u);
    if (before == expected - 1) {
      *counter = 0;
      __threadfence();
    }
  }
  return __shfl_sync(~0u, before, 0) == expected - 1;
}

// By one whole warp, in a fixed order: lane-strided, then the butterfly.
template <int K> DEVICE void warp_gather(const double* from, int count, double (&v)[K]) {
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = 0;
  for (int i = threadIdx.x & 31; i < count; i += 32)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] += __ldcg(from + i * K + k);
  warp_sum(v);
}

// Sum over the grid in a fixed order, by a tree of two levels: the last block of each group adds up the group, the last
// group adds up the groups. True in warp 0 of the one block that holds the totals. To be called by all threads.
template <int K> DEVICE bool grid_sum(Context* ctx, double (&v)[K]) {
  block_sum(v);
  if (threadIdx.x >= 32) return false;
  int group = blockIdx.x / GROUP, groups = (gridDim.x + GROUP - 1) / GROUP;
  int first = group * GROUP, size = min(GROUP, (int)gridDim.x - first);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) ctx->partials[blockIdx.x * K + k] = v[k];
  if (!arrive(ctx->arrivals + group, size)) return false;
  warp_gather(ctx->partials + first * K, size, v);
  if (groups == 1) return true;
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) ctx->groups[group * K + k] = v[k];
  if (!arrive(&ctx->arrived, groups)) return false;
  warp_gather(ctx->groups, groups, v);
  return true;
}

// True in warp 0 of the last block to come here: all others have read what this one may now change. After a barrier.
DEVICE bool last_block(Context* ctx) {
  __syncthreads();
  if (threadIdx.x >= 32) return false;
  int group = blockIdx.x / GROUP, groups = (gridDim.x + GROUP - 1) / GROUP;
  if (!arrive(ctx->arrivals + group, min(GROUP, (int)gridDim.x - group * GROUP))) return false;
  return groups == 1 || arrive(&ctx->arrived, groups);
}

// Real and complex sums among the doubles of a reduction.
DEVICE void put(double* to, double v) { to[0] = v; }
DEVICE void put(double* to, complex<double> v) { to[0] = v.re, to[1] = v.im; }
DEVICE void get(const double* from, double& v) { v = from[0]; }
DEVICE void get(const double* from, complex<double>& v) { v = {from[0], from[1]}; }

// Two sums, (w, y) and (y, y), over the grid and to their places.
template <class T> DEVICE void sum_to(Context* ctx, acc_t<T> wy, double yy, acc_t<T>* out) {
  double v[scalar<T>::parts + 1];
  put(v, wy);
  v[scalar<T>::parts] = yy;
  if (grid_sum(ctx, v) && threadIdx.x == 0) {
    get(v, out[0]);
    out[1] = acc_t<T>(v[scalar<T>::parts]);
  }
}
