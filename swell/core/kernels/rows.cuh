// Rows of a CSR matrix shared by lanes, so that accesses are whole: a warp has 32 rows, and as many lanes work on one of them as
// the mean row suggests. A lane sees every `lanes`-th entry of a row.
#pragma once
#include "context.cuh"

// One row as one of its lanes sees it: this lane has the entries begin + part, begin + part + lanes, … before end.
struct Portion {
  long long row, begin, end;
  int part, lanes;
  bool there;                                                  // false beyond the last row, which is empty
};

// The power of two below the mean row, 32 at most.
DEVICE int lanes_for(long long rows, long long entries) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * rows <= entries) lanes *= 2;
  return lanes;
}

// By a warp: visit 32 / lanes rows at a time, from `first` on, then from `first + step`, and so on below `last`. The matrix has
// `rows` rows. All lanes of the warp come to every visit.
template <class I, class Visit>
DEVICE void visit_between(const I* indptr, long long first, long long last, long long step, long long rows, int lanes, Visit visit) {
  const int lane = threadIdx.x % 32;
  for (long long base = first; base < last; base += step) {
    const long long row = base + lane / lanes;
    const bool there = row < rows;
    visit(Portion{row, there ? (long long)indptr[row] : 0, there ? (long long)indptr[row + 1] : 0, lane % lanes, lanes, there});
  }
}

// The 32 rows from `first` on, or another number that 32 / lanes divides.
template <class I, class Visit>
DEVICE void visit_rows(const I* indptr, long long first, long long rows, int lanes, Visit visit, int count = 32) {
  visit_between(indptr, first, min(first + count, rows), 32 / lanes, rows, lanes, visit);
}

// How many neighbouring rows a warp has at once: 32, or fewer where more warps of the grid get some then.
DEVICE int rows_a_warp(long long rows, int lanes) {
  int count = 32;
  while (count > 32 / lanes && count / 2 * (threads() / 32) >= rows) count /= 2;
  return count;
}

// By all warps of a grid: every row. Few long rows are spread over more warps than a thread for each row would make.
template <class I, class Visit> DEVICE void visit_all(const I* indptr, long long rows, int lanes, Visit visit) {
  const int each = 32 / lanes;
  visit_between(indptr, thread_id() / 32 * each, rows, threads() / 32 * each, rows, lanes, visit);
}

// Has any row of the warp an entry at or behind k, for loops with shuffles?
DEVICE bool any_left(const Portion& p, long long k) { return __any_sync(~0u, k - p.part < p.end); }

// Add the values of a row's lanes to its sum, in their order: the sum has the bits of a sequential one.
DEVICE void add_in_order(double& sum, double value, int lanes) {
  for (int from = 0; from < lanes; ++from) sum += __shfl_sync(~0u, value, from, lanes);
}

DEVICE double lanes_sum(double value, int lanes) {
  for (int o = lanes / 2; o; o >>= 1) value += __shfl_xor_sync(~0u, value, o);
  return value;
}

DEVICE double lanes_max(double value, int lanes) {
  for (int o = lanes / 2; o; o >>= 1) value = fmax(value, __shfl_xor_sync(~0u, value, o));
  return value;
}

// Which lanes of the row it is true for, as bits from the row's first lane on.
DEVICE unsigned lane_votes(bool found, int lanes) {
  const unsigned votes = __ballot_sync(~0u, found);
  const int lane = threadIdx.x % 32;
  return votes >> (lane - lane % lanes) & (~0u >> (32 - lanes));
}

DEVICE bool any_lane(bool found, int lanes) { return lane_votes(found, lanes); }
