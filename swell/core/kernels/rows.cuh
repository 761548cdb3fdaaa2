// Rows of a CSR matrix shared by several lanes, for coalesced access. A warp has 32 rows. The mean row length decides
// how many lanes share a row; each of them takes every `lanes`-th entry of the row.
#pragma once
#include "context.cuh"

// The part of a row that belongs to one lane: the entries begin + part, begin + part + lanes, …, before end.
struct Portion {
  long long row, begin, end;
  int part, lanes;
  bool there;                                                  // false past the last row; begin = end then
};

// Lanes for a row: the largest power of two that is at most the mean row length, and at most 32.
DEVICE int lanes_for(long long rows, long long entries) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * rows <= entries) lanes *= 2;
  return lanes;
}

// One warp visits 32 / lanes rows at a time: from `first` on, then from `first + step` on, and so forth below `last`.
// The matrix has `rows` rows. All lanes of the warp take part in every visit.
template <class I, class Visit>
DEVICE void visit_between(const I* indptr, long long first, long long last, long long step, long long rows, int lanes,
    Visit visit) {
  const int lane = threadIdx.x % 32;
  for (long long base = first; base < last; base += step) {
    const long long row = base + lane / lanes;
    const bool there = row < rows;
    visit(Portion{row, there ? (long long)indptr[row] : 0, there ? (long long)indptr[row + 1] : 0, lane % lanes, lanes,
        there});
  }
}

// One warp visits `count` rows from `first` on; 32 / lanes must divide `count`.
template <class I, class Visit>
DEVICE void visit_rows(const I* indptr, long long first, long long rows, int lanes, Visit visit, int count = 32) {
  visit_between(indptr, first, min(first + count, rows), 32 / lanes, rows, lanes, visit);
}

// Number of neighbouring rows for a warp: 32, or fewer if that gives rows to more warps of the grid.
DEVICE int rows_a_warp(long long rows, int lanes) {
  int count = 32;
  while (count > 32 / lanes && count / 2 * (threads() / 32) >= rows) count /= 2;
  return count;
}

// All warps of a grid together visit every row. Few long rows occupy more warps than one thread for each row would.
template <class I, class Visit> DEVICE void visit_all(const I* indptr, long long rows, int lanes, Visit visit) {
  const int each = 32 / lanes;
  visit_between(indptr, thread_id() / 32 * each, rows, threads() / 32 * each, rows, lanes, visit);
}

// True if any row of the warp still has entries at or after k; for loops with shuffles, which all lanes must join.
DEVICE bool any_left(const Portion& p, long long k) { return __any_sync(~0u, k - p.part < p.end); }

// Add the values of a row's lanes to its sum in lane order, so that it has the same bits as a sequential sum.
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

// The lanes of the row for which `found` is true, as bits; bit 0 is the row's first lane.
DEVICE unsigned lane_votes(bool found, int lanes) {
  const unsigned votes = __ballot_sync(~0u, found);
  const int lane = threadIdx.x % 32;
  return votes >> (lane - lane % lanes) & (~0u >> (32 - lanes));
}

DEVICE bool any_lane(bool found, int lanes) { return lane_votes(found, lanes); }
