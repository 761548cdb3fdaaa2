// Sums of all numbers before each, by one block of 1024 threads.
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

// By one block: put(i, the sum of count(0) to count(i - 1)) for i = 0 to n - 1. Returns the sum of all.
template <class Count, class Put> DEVICE long long scan(long long n, Count count, Put put) {
  constexpr int THREADS = 1024, EACH = 8;
  __shared__ long long of_warp[32], total;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long before = 0;
  for (long long base = 0; base < n; base += THREADS * EACH) {
    const long long first = base + threadIdx.x * (long long)EACH;
    long long mine[EACH], sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; ++e) sum += mine[e] = first + e < n ? count(first + e) : 0;
    const long long upto = warp_scan(sum);
    if (lane == 31) of_warp[warp] = upto;
    __syncthreads();
    if (warp == 0) {
      const long long warps = warp_scan(of_warp[lane]);
      of_warp[lane] = warps - of_warp[lane];
      if (lane == 31) total = warps;
    }
    __syncthreads();
    long long at = before + of_warp[warp] + upto - sum;
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
      if (first + e < n) put(first + e, at);
      at += mine[e];
    }
    before += total;
    __syncthreads();
  }
  return before;
}
