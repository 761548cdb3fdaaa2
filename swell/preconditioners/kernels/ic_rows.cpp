// Incomplete Cholesky on a CPU: rows one after the other. On a GPU rows wait for one another instead; ic_rows.cu.
//
// L is CSR, the diagonal last in its row; `data` holds the lower triangle of A on the same pattern. A's diagonal is
// multiplied by 1 + shift. A pivot of at most `tiny` times its diagonal entry is a breakdown.
#include <math.h>

#include "../../core/native/launcher.hpp"
#include "../../core/native/lanes.hpp"

namespace {

// Write `values` = L with (L Lᴴ)ᵢⱼ = aᵢⱼ on the pattern, and inverse[i] = 1 / lᵢᵢ. `row` is a work vector of zeros,
// zero again on return. At a breakdown bad[0] becomes the row, and the factorisation stops.
template <class T, class I>
void factor(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<T> values,
            Array<real_t<T>> inverse, Array<T> row, double shift, double tiny, Array<int64_t> bad) {
  for (int64_t i = 0; i < inverse.size; ++i) {
    const int64_t begin = indptr[i], end = indptr[i + 1] - 1;
    const double diagonal = real(data[end]) * (1 + shift);
    double pivot = diagonal;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t j = indices[k];
      T total = data[k];
      for (int64_t m = indptr[j]; m < indptr[j + 1] - 1; ++m) total -= row[indices[m]] * conj(values[m]);
      total = inverse[j] * total;
      values[k] = row[j] = total;
      pivot -= abs2(total);
    }
    for (int64_t k = begin; k < end; ++k) row[indices[k]] = T(0);
    if (!(pivot > tiny * diagonal)) {
      bad[0] = i;
      return;
    }
    const double root = sqrt(pivot);
    values[end] = T(real_t<T>(root));
    inverse[i] = real_t<T>(1 / root);
  }
}

}  // namespace

KERNELS("swell.preconditioners.ic_rows", VALUES_INDICES(factor))
