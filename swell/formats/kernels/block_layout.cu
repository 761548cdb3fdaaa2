// Dense blocks in the pattern of a CSR matrix, found on a GPU; block_layout.py is the same on a CPU. A thread has a block row.
#include "context.cuh"

constexpr int MOST = 32;                               // rows of a block

// The rows of a block row, each at its next entry.
template <class I> struct Rows {
  const I* indices;
  I at[MOST], last[MOST];
  int count;

  DEVICE Rows(const I* indptr, const I* indices, long long first, int size, long long n) : indices(indices) {
    count = int(min((long long)size, n - first));
    for (int r = 0; r < count; ++r) at[r] = indptr[first + r], last[r] = indptr[first + r + 1];
  }
  // The least block column that is left, `none` where all rows have ended.
  DEVICE long long next(int size, long long none) const {
    long long least = none;
    for (int r = 0; r < count; ++r)
      if (at[r] < last[r]) least = min(least, (long long)indices[at[r]] / size);
    return least;
  }
};

// How many blocks of `size` hold entries of a block row, and how many entries they hold, of as many block rows as there are
// counts, spread evenly over all `block_rows`; `none`: more than all block columns.
// launch: elements of counts, 64 threads
template <typename I>
__global__ void count_blocks(Context* ctx, const I* indptr, const I* indices, int size, long long block_rows, long long none,
                             long long* counts, long long* entries, long long n, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n) return;
  const long long first = p * block_rows / n * size;
  Rows<I> rows(indptr, indices, first, size, indptr_size - 1);
  long long count = 0;
  for (long long column = rows.next(size, none); column < none; column = rows.next(size, none)) {
    ++count;
    for (int r = 0; r < rows.count; ++r)
      while (rows.at[r] < rows.last[r] && indices[rows.at[r]] < (column + 1) * size) ++rows.at[r];
  }
  counts[p] = count;
  entries[p] = indptr[first + rows.count] - indptr[first];
}

// The block columns, ascending in each block row, and where each entry lies in the blocks, row-major.
// launch: elements of ptr, 64 threads
template <typename I, typename P>
__global__ void place_blocks(Context* ctx, const I* indptr, const I* indices, int size, long long none, const P* ptr, P* columns,
                             P* positions, long long n, long long indptr_size) {
  if (stopped(ctx)) return;
  const long long p = thread_id();
  if (p >= n - 1) return;
  Rows<I> rows(indptr, indices, p * size, size, indptr_size - 1);
  long long block = ptr[p];
  for (long long column = rows.next(size, none); column < none; column = rows.next(size, none), ++block) {
    columns[block] = P(column);
    for (int r = 0; r < rows.count; ++r)
      for (; rows.at[r] < rows.last[r] && indices[rows.at[r]] < (column + 1) * size; ++rows.at[r])
        positions[rows.at[r]] = P((block * size + r) * size + indices[rows.at[r]] - column * size);
  }
}
