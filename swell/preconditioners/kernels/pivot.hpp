// The record of bad pivots of incomplete LU factorisations on a CPU.
#pragma once
#include "../../core/native/lanes.hpp"
#include "../../core/kernels/pivots.hpp"

// The bad pivots of some rows: the first such row, and their number.
struct Bad {
  int64_t first = INT64_MAX, count = 0;

  void add(int64_t row, int64_t pivots = 1) {
    if (pivots) first = std::min(first, row), count += pivots;
  }
  void add_to(Array<int64_t> bad) const { bad[0] = std::min(bad[0], first), bad[1] += count; }
};
