// Search of the largest modulus in a column, by one block. The first of equal ones wins; a NaN counts as the largest
// (1.13).
#pragma once
#include "settled.cuh"

template <class T> DEVICE double size_of(T v) {
  const double size = modulus(v);
  return size >= 0 ? size : __longlong_as_double(0x7FF0000000000000ll);
}
DEVICE void take_larger(double& size, int& where, double other, int there) {
  if (other > size || (other == size && there < where)) size = other, where = there;
}

// The largest of a warp's candidates, which all lanes receive; sizes of at least 0 are ordered as their bits are.
DEVICE void largest_of_warp(double& size, int& where) {
  const long long bits = __double_as_longlong(size);
  const int high = int(bits >> 32), most = __reduce_max_sync(~0u, high);
  const unsigned low = high == most ? unsigned(bits) : 0u, rest = __reduce_max_sync(~0u, low);
  where = __reduce_min_sync(~0u, high == most && low == rest ? where : 0x7FFFFFFF);
  size = __longlong_as_double((long long)most << 32 | rest);
}

// Reduce each thread's candidate to the block's, which all threads receive. All threads must call it; it has one
// barrier, and between two calls the block needs another.
DEVICE void largest_of_block(double& size, int& where) {
  __shared__ double sizes[32];
  __shared__ int places[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  largest_of_warp(size, where);
  if (lane == 0) sizes[warp] = size, places[warp] = where;
  __syncthreads();
  size = lane < warps ? sizes[lane] : -1, where = lane < warps ? places[lane] : 0x7FFFFFFF;
  largest_of_warp(size, where);
}
