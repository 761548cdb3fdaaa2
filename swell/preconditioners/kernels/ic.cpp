// Incomplete Cholesky on a CPU: rows one after the other, and the fixed-point sweeps; ic.cu has the GPU's kernels.
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

// Σ lᵢₘ conj(lⱼₘ) over m < j, by merging rows i and j of L.
template <class T, class I>
T common(Array<const I> indptr, Array<const I> indices, Array<const T> values, int64_t i, int64_t j) {
  T total(0);
  int64_t p = indptr[i], q = indptr[j];
  while (p < indptr[i + 1] && q < indptr[j + 1]) {
    const I a = indices[p], b = indices[q];
    if (a >= j || b >= j) break;
    if (a == b) total += values[p] * conj(values[q]);
    p += a <= b;
    q += b <= a;
  }
  return total;
}

// One sweep of lᵢⱼ = (aᵢⱼ − Σ lᵢₘ conj(lⱼₘ)) / lⱼⱼ from the factor `old` to `fresh`. entry_rows[k] is the row of entry
// k. A pivot that breaks down keeps its old value; bad[0] becomes the least of its old value and such rows.
template <class T, class I>
void fixed_point(Array<const I> indptr, Array<const I> indices, Array<const I> entry_rows, Array<const T> data,
                 Array<const T> old, Array<T> fresh, double shift, double tiny, Array<int64_t> bad) {
  int64_t first[CHUNKS];
  const int64_t chunks = chunks_of(data.size);
  parallel_for(data.size, chunks, [&](int64_t chunk) {
    int64_t broken = bad[0];
    const int64_t end = chunk_begin(data.size, chunk + 1, chunks);
    for (int64_t k = chunk_begin(data.size, chunk, chunks); k < end; ++k) {
      const int64_t i = entry_rows[k], j = indices[k];
      const T total = common<T, I>(indptr, indices, old, i, j);
      if (i == j) {
        const double diagonal = real(data[k]) * (1 + shift), pivot = diagonal - real(total);
        const bool good = pivot > tiny * diagonal;
        fresh[k] = T(good ? real_t<T>(sqrt(pivot)) : real(old[k]));
        if (!good) broken = std::min(broken, i);
      } else {
        fresh[k] = divided(data[k] - total, real(old[indptr[j + 1] - 1]));
      }
    }
    first[chunk] = broken;
  });
  bad[0] = *std::min_element(first, first + chunks);
}

}  // namespace

KERNELS("swell.preconditioners.ic", VALUES_INDICES(factor), VALUES_INDICES(fixed_point))
