// Exclusive prefix sums, by one block.
#pragma once
#include "context.cuh"

DEVICE long long warp_scan(long long value) {                 // inclusive
  const int lane = threadIdx.x % 32;
  for (int o = 1; o < 32; o *= 2) {
    const long long below = __shfl_up_sync(~0u, value, o);
    if (lane >= o) value += below;
  }
  return value;
}

// The sum over the block, in every thread.
DEVICE long long block_total(long long value) {
  __shared__ long long of_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? of_warp[lane] : 0;
  for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
  __syncthreads();
  return value;
}

// One block calls put(i, before + count(begin) + … + count(i - 1)) for i = begin, …, end - 1. Returns `before` plus the
// sum of all counts. Each thread takes eight elements at a time; the lanes of a warp read neighbouring ones.
template <class Count, class Put>
DEVICE long long scan(long long begin, long long end, long long before, Count count, Put put) {
  constexpr int EACH = 8;
  __shared__ long long of_warp[32], total;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (long long base = begin; base < end; base += blockDim.x * EACH) {
    const long long first = base + warp * (32 * EACH) + lane;
    long long mine[EACH], sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) mine[e] = first + 32 * e < end ? count(first + 32 * e) : 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const long long upto = warp_scan(mine[e]);
      mine[e] = sum + upto - mine[e];
      sum += __shfl_sync(~0u, upto, 31);
    }
    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      const long long own = lane < blockDim.x / 32 ? of_warp[lane] : 0, upto = warp_scan(own);
      of_warp[lane] = upto - own;
      if (lane == 31) total = upto;
    }
    __syncthreads();
    const long long start = before + of_warp[warp];
#pragma unroll
    for (int e = 0; e < EACH; ++e)
      if (first + 32 * e < end) put(first + 32 * e, start + mine[e]);
    before += total;
    __syncthreads();
  }
  return before;
}

// Call put(i, count(0) + … + count(i - 1)) for i = 0, …, n - 1. Returns the sum of all counts.
template <class Count, class Put>
DEVICE long long scan(long long n, Count count, Put put) { return scan(0, n, 0, count, put); }
