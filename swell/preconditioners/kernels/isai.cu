// Sparse approximate inverses of triangular matrices on a GPU, a warp a row; see isai.py. Single entries are blocks of
// 1. Lane (g, c) has column c of a block. A warp has 32 / BLOCK groups g; they have different entries of a row of T, or
// different rows of a block. BLOCK is a constant. A CPU has a thread a row, without
// groups: so it has a text of its own.
#include "context.cuh"

// Place of a column in sorted columns, or `end`.
template <class I> DEVICE I find(const I* columns, I begin, I end, I column) {
  I low = begin, high = end;
  while (low < high) {
    const I middle = low + (high - low) / 2;
    if (columns[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low < end && columns[low] == column ? low : end;
}

// Compute W with W T = 1 on its pattern; row i of W is first[i] to last[i]. From the diagonal outwards, each known
// entry of row i, at column r, times row r of T is subtracted from the unknown entries. Entries of a row of T meet
// different entries of W, so that groups never write the same one.
// launch: elements of first, 256 threads, a warp each
template <typename T, typename I, int BLOCK>
__global__ void __launch_bounds__(256) approximate(Context* ctx, const I* indptr, const I* indices, const T* blocks,
    const T* inverse, const I* first, const I* last, const I* columns, T* values, int block, bool lower,
    long long inverse_size, long long n) {
  constexpr int GROUPS = 32 / BLOCK;
  constexpr long long AREA = BLOCK * BLOCK;
  const long long i = thread_id() / 32;
  if (stopped(ctx) || i >= n) return;
  const int lane = threadIdx.x % 32, g = lane / BLOCK, c = lane % BLOCK;
  const I begin = first[i], end = last[i], diagonal = lower ? end - 1 : begin;
  for (long long e = begin * AREA + lane; e < end * AREA; e += 32) {
    const long long within = e - diagonal * AREA;
    values[e] = T(within >= 0 && within < AREA && within % (BLOCK + 1) == 0 ? 1 : 0);
  }
  __syncwarp();
  for (I step = 0; step < end - begin; ++step) {
    const I k = lower ? end - 1 - step : begin + step, r = columns[k];
    T* own = values + k * AREA;
    if (inverse_size) {
      for (int a = 0; a < BLOCK; a += GROUPS) {              // a group reads its row before it writes it
        const bool active = g < GROUPS && a + g < BLOCK;
        T sum = T(0);
        if (active)
          for (int t = 0; t < BLOCK; ++t)
            sum = fused(own[(a + g) * BLOCK + t], inverse[r * AREA + t * BLOCK + c], sum);
        __syncwarp();
        if (active) own[(a + g) * BLOCK + c] = sum;
      }
      __syncwarp();
    }
    const I stop = indptr[r + 1];
    for (I at = indptr[r] + g; g < GROUPS && at < stop; at += GROUPS) {
      const I j = indices[at];
      if (!(lower ? j < r : j > r)) continue;
      const I p = find(columns, begin, end, j);
      if (p == end) continue;
      for (int a = 0; a < BLOCK; ++a) {
        T sum = values[p * AREA + a * BLOCK + c];
        for (int t = 0; t < BLOCK; ++t) sum = fused(-own[a * BLOCK + t], blocks[at * AREA + t * BLOCK + c], sum);
        values[p * AREA + a * BLOCK + c] = sum;
      }
    }
    __syncwarp();
  }
}
