// Rows of a product in bins (product_bins.cu), each with a group of lanes or a block of its own.
#pragma once
#include "rows.cuh"

constexpr int LOG_THREADS = 8, THREADS = 1 << LOG_THREADS, WARPS = THREADS / 32, BINS = 6;

// Visit every row once. The lanes of a group call of_group(row, lanes), all groups of a warp at once, with row -1 for
// an idle group. A block calls of_block(row).
template <class I, class OfGroup, class OfBlock>
DEVICE void for_rows(const I* rows, const long long* bounds, OfGroup of_group, OfBlock of_block) {
  long long item = blockIdx.x;
  for (int bin = BINS - 1; bin >= 0; --bin) {
    const long long first = bounds[bin], last = bounds[bin + 1];
    const int log = bin < BINS - 1 ? bin + 1 : LOG_THREADS, groups = THREADS >> log;               // 2^log lanes a row
    const long long items = (last - first + groups - 1) >> (LOG_THREADS - log);
    for (; item < items; item += gridDim.x) {
      const long long place = first + item * groups + (threadIdx.x >> log);
      const long long row = place < last ? (long long)rows[place] : -1;
      if (bin < BINS - 1) of_group(row, 1 << log);
      else of_block(row);
    }
    item -= items;
  }
}

// This thread's number in its group; `lanes`, the group's size, is a power of two.
DEVICE int lane_of(int lanes) { return threadIdx.x & (lanes - 1); }

// The entries of a row: begin to end - 1; none for row -1.
template <class I> struct Span {
  I begin, end;
  DEVICE Span(const I* indptr, long long row) : begin(row < 0 ? I(0) : indptr[row]),
      end(row < 0 ? I(0) : indptr[row + 1]) {}
};

// The first of the indices `from` to `to` - 1 whose column is at least `column`, by bisection; `to` if none is.
template <class I, class N> DEVICE N first_from(const I* indices, N from, N to, long long column) {
  while (from < to) {
    const N middle = from + (to - from) / 2;
    if (indices[middle] < column) from = middle + 1; else to = middle;
  }
  return from;
}
