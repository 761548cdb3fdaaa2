// Strength of connection, for both devices; see strength.py one folder up. Values are double, as in every setup.
#include "entries.hpp"

namespace {

// strong[k] = 1 if entry k is a strong link, else 0: if −aᵢⱼ ≥ θᵢ maxₖ(−aᵢₖ) with j ≠ i, in a row with |Σⱼ aᵢⱼ| ≤
// max_row_sum aᵢᵢ. θᵢ is twice the sum of the positive over the sum of the negative off-diagonal entries, but at least
// `least` and at most `most`.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL strong_links(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                        double least, double most, double max_row_sum, Array<uint8_t> strong) {
  entries(device, indptr, data.size, [=](auto row) {
    double diagonal = 0, total = 0, positive = 0, largest = 0;
    row.each([&](int64_t k, double& total, double& positive) {
      const double value = data[k];
      const bool own = indices[k] == row.i;
      total += value;
      positive += own ? 0.0 : max(value, 0.0);
      diagonal = own ? value : diagonal;
      largest = !own & (-value > largest) ? -value : largest;
    }, total, positive);
    diagonal = row.sum(diagonal), largest = row.max(largest);
    const double negative = positive + diagonal - total, ratio = negative > 0 ? 2 * positive / negative : most;
    const double bound = min(max(ratio, least), most) * largest;
    const bool linked = (largest > 0) & (fabs(total) <= max_row_sum * diagonal);
    row.each([&](int64_t k) {
      strong[k] = linked & (indices[k] != row.i) & (data[k] < 0) & (-data[k] >= bound);
    });
  });
}

// marked[i] = 1 if row i has an entry aᵢⱼ > bound aᵢᵢ off its diagonal, else 0.
// launch: elements of marked, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL positive_rows(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                         double bound, Array<uint8_t> marked) {
  entries(device, indptr, data.size, [=](auto row) {
    double diagonal = 0, largest = 0;
    row.each([&](int64_t k) {
      if (indices[k] == row.i) diagonal = data[k];
      else largest = max(largest, data[k]);
    });
    marked[row.i] = row.max(largest) > bound * row.sum(diagonal);
  });
}

// forced[i] = 1 if row i, or a column of one of its entries, is marked, else 0.
// launch: elements of forced, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL with_neighbours(Device device, Array<const I> indptr, Array<const I> indices, Array<const uint8_t> marked,
                           Array<uint8_t> forced) {
  entries(device, indptr, indices.size, [=](auto row) {
    uint8_t found = marked[row.i];
    row.each([&](int64_t k) { found |= marked[indices[k]]; });
    forced[row.i] = row.any(found);
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.strength", INDICES(strong_links), INDICES(positive_rows), INDICES(with_neighbours))
