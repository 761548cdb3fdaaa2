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

// Reduce each thread's candidate to the block's, which all threads receive. All threads must call it; it begins and
// ends with a barrier.
DEVICE void largest_of_block(double& size, int& where) {
  __shared__ double sizes[32];
  __shared__ int places[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int o = 16; o; o >>= 1) take_larger(size, where, shuffle_xor(size, o), __shfl_xor_sync(~0u, where, o));
  __syncthreads();
  if (lane == 0) sizes[warp] = size, places[warp] = where;
  __syncthreads();
  size = sizes[0], where = places[0];
  for (int w = 1; w < blockDim.x / 32; ++w) take_larger(size, where, sizes[w], places[w]);
  __syncthreads();
}
