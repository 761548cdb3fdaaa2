// Many sums at once: over a warp, and over the blocks of a grid.
#pragma once
#include "context.cuh"

// N sums over the warp by halving, with about twice the shuffles of one sum. Lane l ends with the sum of value
// l / (32 / N).
template <int N, int O = 16> DEVICE double scatter_sum(double (&v)[N]) {
  if constexpr (O == 0) {
    return v[0];
  } else if constexpr (N == 1) {
    v[0] += __shfl_xor_sync(~0u, v[0], O);
    return scatter_sum<1, O / 2>(v);
  } else {
    bool upper = threadIdx.x & O;
    double half[N / 2];
#pragma unroll
    for (int k = 0; k < N / 2; ++k)
      half[k] = (upper ? v[k + N / 2] : v[k]) + __shfl_xor_sync(~0u, upper ? v[k] : v[k + N / 2], O);
    return scatter_sum<N / 2, O / 2>(half);
  }
}

// One block adds `many` sums over all `blocks` in a fixed order, and passes each total to `write`. Each group of 32
// or more threads has one sum a thread; the groups divide the blocks. `scratch`: shared, one double a thread.
template <class Write>
DEVICE void add_blocks(const double* partials, int blocks, int many, double* scratch, Write&& write) {
  const int threads = blockDim.x, span = min(threads, (many + 31) & ~31), groups = threads / span;
  const int lane = threadIdx.x % span, group = threadIdx.x / span;
  for (int first = 0; first < many; first += span) {
    const int k = first + lane;
    double total = 0;
    if (k < many && group < groups)
#pragma unroll 8
      for (int b = group; b < blocks; b += groups) total += __ldcg(partials + (long long)b * many + k);
    scratch[threadIdx.x] = total;
    __syncthreads();
    if (group == 0 && k < many) {
      for (int g = 1; g < groups; ++g) total += scratch[g * span + lane];
      write(k, total);
    }
    __syncthreads();
  }
}
