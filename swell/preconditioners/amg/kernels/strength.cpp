// Strength of connection on a CPU, threads sharing the rows; see strength.py one folder up.
#include <math.h>

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// strong[k] = 1 if entry k is a strong link, else 0: if −aᵢⱼ ≥ θᵢ maxₖ(−aᵢₖ) with j ≠ i, in a row with |Σⱼ aᵢⱼ| ≤
// max_row_sum aᵢᵢ. θᵢ is twice the sum of the positive over the sum of the negative off-diagonal entries, but at least
// `least` and at most `most`.
template <class I>
void strong_links(Array<const I> indptr, Array<const I> indices, Array<const double> data, double least, double most,
                  double max_row_sum, Array<uint8_t> strong) {
  each(indptr.size - 1, [=](int64_t i) {
    double diagonal = 0, total = 0, positive = 0, largest = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const double value = data[k];
      const bool own = indices[k] == i;
      total += value;
      positive += own ? 0.0 : std::max(value, 0.0);
      diagonal = own ? value : diagonal;
      largest = !own & (-value > largest) ? -value : largest;
    }
    const double negative = positive + diagonal - total, ratio = negative > 0 ? 2 * positive / negative : most;
    const double bound = std::min(std::max(ratio, least), most) * largest;
    const bool linked = (largest > 0) & (fabs(total) <= max_row_sum * diagonal);
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      strong[k] = linked & (indices[k] != i) & (data[k] < 0) & (-data[k] >= bound);
  });
}

// marked[i] = 1 if row i has an entry aᵢⱼ > bound aᵢᵢ off its diagonal, else 0.
template <class I>
void positive_rows(Array<const I> indptr, Array<const I> indices, Array<const double> data, double bound,
                   Array<uint8_t> marked) {
  each(indptr.size - 1, [=](int64_t i) {
    double diagonal = 0, largest = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      if (indices[k] == i) diagonal = data[k];
      else largest = std::max(largest, data[k]);
    marked[i] = largest > bound * diagonal;
  });
}

// forced[i] = 1 if row i, or a column of one of its entries, is marked, else 0.
template <class I>
void with_neighbours(Array<const I> indptr, Array<const I> indices, Array<const uint8_t> marked,
                     Array<uint8_t> forced) {
  each(indptr.size - 1, [=](int64_t i) {
    uint8_t found = marked[i];
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) found |= marked[indices[k]];
    forced[i] = found;
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.strength", INDICES(strong_links), INDICES(positive_rows), INDICES(with_neighbours))
