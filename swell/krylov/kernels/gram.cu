// Inner products of two blocks of vectors on a GPU; gram.cpp has the same kernel for a CPU. They differ as block.cuh
// and block.hpp do: sums of a warp and shared memory, tiles in the cache.
#include "block.cuh"

// launch: a block of height threads for each slice of rows
template <typename T>
__global__ void __launch_bounds__(256, 2) gram(Context* ctx, const T* P, const T* Q, acc_t<T>* partial,
    const long long* rows, int count, int height, long long P_stride, long long Q_stride) {
  if (stopped(ctx)) return;
  const int p = blockIdx.x;
  gram_of<T>(P, P_stride, count, Q, Q_stride, count, nullptr, rows[p], rows[p + 1],
      partial + (long long)p * count * count, count);
}
