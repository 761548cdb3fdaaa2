// Sort the rows of a product on a GPU into bins, by a bound of their number of entries; see product.cu. A row of bin 0
// to 4 has a group of 2, 4, 8, 16 or 32 lanes with room for `each` entries a lane; a row of the last bin has a block.
#include "rows.cuh"

constexpr int BINS = 6;                                             // as in product.cu

// The bin of a row; `each` entries a lane fit. If the matrix has few rows, `spread` times as many lanes share one.
DEVICE int bin_of(long long entries, int each, int spread) {
  if (entries > (long long)each << (BINS - 1)) return BINS - 1;
  int bin = 0;
  while (bin < BINS - 2 && entries * spread > (long long)each << (bin + 1)) ++bin;
  return bin;
}

// counts = the number of products a_ik b_kj in each row, at most the number of columns of B.
// launch: elements of counts, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <typename I>
__global__ void products(Context* ctx, const I* a_indptr, const I* a_indices, const I* b_indptr, long long columns,
    I* counts, long long n, long long a_indices_size) {
  if (stopped(ctx)) return;
  visit_all(a_indptr, n, lanes_for(n, a_indices_size), [&](const Portion& p) {
    long long total = 0;
    for (long long k = p.begin + p.part; k < p.end; k += p.lanes) {
      const I j = a_indices[k];
      total += (long long)b_indptr[j + 1] - (long long)b_indptr[j];
    }
    for (int o = p.lanes / 2; o; o >>= 1) total += __shfl_xor_sync(~0u, total, o);
    if (p.there && p.part == 0) counts[p.row] = I(min(total, columns));
  });
}

// bins[b] += the number of rows in bin b.
// launch: elements of counts, 256 threads, at most 8 blocks per multiprocessor
template <typename I>
__global__ void count_bins(Context* ctx, const I* counts, int each, int spread, long long* bins, long long n) {
  if (stopped(ctx)) return;
  __shared__ int of_block[BINS];
  if (threadIdx.x < BINS) of_block[threadIdx.x] = 0;
  __syncthreads();
  for (long long row = thread_id(); row < n; row += threads())
    atomicAdd(of_block + bin_of(counts[row], each, spread), 1);
  __syncthreads();
  if (threadIdx.x < BINS && of_block[threadIdx.x])
    atomicAdd(reinterpret_cast<unsigned long long*>(bins) + threadIdx.x, (unsigned long long)of_block[threadIdx.x]);
}

// By a block: write a tile of blockDim.x rows to their bins. first_of(bin, count) reserves `count` places, and returns
// the first.
template <class I, class First>
DEVICE void place_tile(const I* counts, int each, int spread, long long tile, long long n, I* rows, First first_of) {
  __shared__ int of_tile[BINS];
  __shared__ long long first[BINS];
  if (threadIdx.x < BINS) of_tile[threadIdx.x] = 0;
  __syncthreads();
  const long long row = tile + threadIdx.x;
  const int bin = row < n ? bin_of(counts[row], each, spread) : 0;
  const int place = row < n ? atomicAdd(of_tile + bin, 1) : 0;
  __syncthreads();
  if (threadIdx.x < BINS && of_tile[threadIdx.x]) first[threadIdx.x] = first_of(threadIdx.x, of_tile[threadIdx.x]);
  __syncthreads();
  if (row < n) rows[first[bin] + place] = I(row);
}

// rows = the rows sorted by bin; bin b has rows[bounds[b]] to rows[bounds[b + 1] - 1]. `bins` holds the sizes of the
// BINS bins, then BINS zeros. The order inside a bin, nearly ascending, does not affect results.
// launch: elements of rows, 256 threads, at most 8 blocks per multiprocessor
template <typename I>
__global__ void place_rows(Context* ctx, const I* counts, int each, int spread, long long* bins, I* rows,
    long long* bounds, long long n) {
  if (stopped(ctx)) return;
  long long start = 0;                                              // where bin number threadIdx.x begins
  if (threadIdx.x <= BINS)
    for (int b = 0; b < threadIdx.x; ++b) start += bins[b];
  if (blockIdx.x == 0 && threadIdx.x <= BINS) bounds[threadIdx.x] = start;
  unsigned long long* const taken = reinterpret_cast<unsigned long long*>(bins) + BINS;
  for (long long tile = blockIdx.x * (long long)blockDim.x; tile < n; tile += threads())
    place_tile(counts, each, spread, tile, n, rows,
               [&](int bin, int count) { return start + (long long)atomicAdd(taken + bin, (unsigned long long)count);
               });
}

// count_bins and place_rows in one kernel, for few rows.
// launch: one block of 1024 threads
template <typename I>
__global__ void __launch_bounds__(1024) place_few(Context* ctx, const I* counts, int each, int spread, I* rows,
    long long* bounds, long long counts_size) {
  if (stopped(ctx)) return;
  __shared__ int of_bins[BINS];
  if (threadIdx.x < BINS) of_bins[threadIdx.x] = 0;
  __syncthreads();
  for (long long row = threadIdx.x; row < counts_size; row += blockDim.x)
    atomicAdd(of_bins + bin_of(counts[row], each, spread), 1);
  __syncthreads();
  long long start = 0;
  if (threadIdx.x <= BINS) {
    for (int b = 0; b < threadIdx.x; ++b) start += of_bins[b];
    bounds[threadIdx.x] = start;
  }
  for (long long tile = 0; tile < counts_size; tile += blockDim.x)
    place_tile(counts, each, spread, tile, counts_size, rows, [&](int, int count) { return (start += count) - count; });
}
