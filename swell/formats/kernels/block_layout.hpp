// Dense blocks in the pattern of a CSR matrix (`indptr`, `indices`, columns ascending), found by threads that share the
// block rows, for both devices. `size`: rows and columns of a block. `at`: scratch, a number for each row.
#include "step.hpp"

namespace {

constexpr int64_t NONE = 0x7FFFFFFFFFFFFFFF;           // more than every column

// The nonempty blocks of the block row that begins at row `first`, by ascending columns: block(column), with the block
// column, and after it entry(r, k) for each entry k, which lies in row r of the block.
//
// The rows are merged: the next block has the smallest column left in any row.
template <class I, class B, class E>
DEVICE void each_block(Array<const I> indptr, Array<const I> indices, int64_t size, int64_t first, int64_t* at,
                       const B& block, const E& entry) {
  const int64_t rows = min(size, indptr.size - 1 - first);
  int64_t least = NONE;
  for (int64_t r = 0; r < rows; ++r) {
    at[r] = indptr[first + r];
    if (at[r] < indptr[first + r + 1]) least = min(least, int64_t(indices[at[r]]));
  }
  while (least < NONE) {
    const int64_t column = least / size, end = (column + 1) * size;
    block(column), least = NONE;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t last = indptr[first + r + 1];
      int64_t k = at[r];
      for (; k < last && indices[k] < end; ++k) entry(r, k);
      if (k < last) least = min(least, int64_t(indices[k]));
      at[r] = k;
    }
  }
}

// counts, entries = the number of nonempty blocks, and of entries, in counts.size block rows, which are spread evenly
// over all `block_rows`.
// launch: elements of counts, 64 threads
template <class I>
ROW_KERNEL count_blocks(Device device, Array<const I> indptr, Array<const I> indices, int64_t size, int64_t block_rows,
                        Array<int64_t> at, Array<int64_t> counts, Array<int64_t> entries) {
  groups(device, counts.size, size, [=](int64_t p) {
    const int64_t first = p * block_rows / counts.size * size;
    int64_t count = 0;
    each_block(indptr, indices, size, first, &at[first], [&](int64_t) { ++count; }, [](int64_t, int64_t) {});
    counts[p] = count;
    entries[p] = indptr[min(first + size, indptr.size - 1)] - indptr[first];
  });
}

// columns = the block columns, ascending in each block row; positions = the index of each entry in row-major blocks
// that lie one after the other. `ptr`: block row pointers.
// launch: elements of ptr, 64 threads
template <class I, class P>
ROW_KERNEL place_blocks(Device device, Array<const I> indptr, Array<const I> indices, int64_t size, Array<int64_t> at,
                        Array<const P> ptr, Array<P> columns, Array<P> positions) {
  groups(device, ptr.size - 1, size, [=](int64_t p) {
    int64_t next = ptr[p], origin = 0;         // of the block, as if its first column were 0
    const auto block = [&](int64_t column) {
      columns[next] = P(column);
      origin = next++ * size * size - column * size;
    };
    each_block(indptr, indices, size, p * size, &at[p * size], block,
               [&](int64_t r, int64_t k) { positions[k] = P(origin + r * size + indices[k]); });
  });
}

}  // namespace

KERNELS("swell.formats.block_layout", INDICES(count_blocks), INSTANCE(place_blocks, int32_t, int32_t),
        INSTANCE(place_blocks, int32_t, int64_t), INSTANCE(place_blocks, int64_t, int32_t),
        INSTANCE(place_blocks, int64_t, int64_t))
