// Dense blocks in the pattern of a CSR matrix, found on a GPU, a thread a block row; block_layout.cpp is for CPUs.
#include "context.cuh"

constexpr int MOST = 32;                               // most rows of a block
constexpr long long NONE = 0x7FFFFFFFFFFFFFFF;         // more than every block column

// The rows of a block row, with the next entry of each.
template <class I> struct Rows {
  const I* indices;
  I at[MOST], last[MOST];
  int count;

  DEVICE Rows(const I* indptr, const I* indices, long long first, int size, long long n) : indices(indices) {
    count = int(min((long long)size, n - first));
    for (int r = 0; r < count; ++r) at[r] = indptr[first + r], last[r] = indptr[first + r + 1];
  }
  // The smallest block column left, NONE if all rows have ended.
  DEVICE long long next(int size) const {
    long long least = NONE;
    for (int r = 0; r < count; ++r)
      if (at[r] < last[r]) least = min(least, (long long)indices[at[r]] / size);
    return least;
  }
};

// counts, entries = the number of nonempty blocks, and of entries, in n block rows, spread evenly over all
// `block_rows`.
// launch: elements of counts, 64 threads
template <typename I>
__global__ void count_blocks(Context* ctx, const I* indptr, const I* indices, int size, long long block_rows,
    long long* counts, long long* entries, long long n, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n) return;
  const long long first = p * block_rows / n * size;
  Rows<I> rows(indptr, indices, first, size, indptr_size - 1);
  long long count = 0;
  for (long long column = rows.next(size); column < NONE; column = rows.next(size)) {
    ++count;
    for (int r = 0; r < rows.count; ++r)
      while (rows.at[r] < rows.last[r] && indices[rows.at[r]] < (column + 1) * size) ++rows.at[r];
  }
  counts[p] = count;
  entries[p] = indptr[first + rows.count] - indptr[first];
}

// columns = the block columns, ascending in each block row; positions = the index of each entry in the blocks.
// launch: elements of ptr, 64 threads
template <typename I, typename P>
__global__ void place_blocks(Context* ctx, const I* indptr, const I* indices, int size, const P* ptr, P* columns,
    P* positions, long long n, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n - 1) return;
  Rows<I> rows(indptr, indices, p * size, size, indptr_size - 1);
  long long block = ptr[p];
  for (long long column = rows.next(size); column < NONE; column = rows.next(size), ++block) {
    columns[block] = P(column);
    for (int r = 0; r < rows.count; ++r)
      for (; rows.at[r] < rows.last[r] && indices[rows.at[r]] < (column + 1) * size; ++rows.at[r])
        positions[rows.at[r]] = P((block * size + r) * size + indices[rows.at[r]] - column * size);
  }
}
