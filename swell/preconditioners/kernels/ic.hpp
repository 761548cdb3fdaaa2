// Incomplete Cholesky by fixed-point sweeps, a thread an entry, and the lower triangle that it factors, for both
// devices. ic_rows.cu and ic_rows.cpp factor row by row.
//
// L is CSR, the diagonal last in its row; `data` holds the lower triangle of A on the same pattern. A's diagonal is
// multiplied by 1 + shift. A pivot of at most `tiny` times its diagonal entry is a breakdown.
#include "step.hpp"
#include "pivots.hpp"

namespace {

// One sweep of lᵢⱼ = (aᵢⱼ − Σ lᵢₘ conj(lⱼₘ)) / lⱼⱼ, over m < j, from the factor `old` to `fresh`, by merging rows i and
// j. entry_rows[k] is the row of entry k. A pivot that breaks down keeps its old value, and is recorded in `bad`.
// launch: elements of data, 256 threads
template <class T, class I>
ROW_KERNEL fixed_point(Device device, Array<const I> indptr, Array<const I> indices, Array<const I> entry_rows,
                       Array<const T> data, Array<const T> old, Array<T> fresh, double shift, double tiny,
                       Array<int64_t> bad) {
  rows(device, data.size, [=](int64_t k) {
    const int64_t i = entry_rows[k], j = indices[k];
    T total(0);                                            // both rows end with their diagonal: i and j stop the merge
    for (int64_t p = indptr[i], q = indptr[j]; indices[p] < j && indices[q] < j;) {
      const I a = indices[p], b = indices[q];
      if (a == b) total += old[p] * conj(old[q]);
      p += a <= b;
      q += b <= a;
    }
    if (i != j) {
      fresh[k] = divided(data[k] - total, real(old[indptr[j + 1] - 1]));
      return;
    }
    const double diagonal = real(data[k]) * (1 + shift), pivot = diagonal - real(total);
    const bool good = pivot > tiny * diagonal;
    fresh[k] = T(good ? real_t<T>(sqrt(pivot)) : real(old[k]));
    if (!good) record(bad.data, i);
  });
}

// counts[i] = the number of entries of row i in the lower triangle, diagonal included.
// launch: elements of counts, 256 threads
template <class I>
ROW_KERNEL count_lower(Device device, Array<const I> indptr, Array<const I> indices, Array<int64_t> counts) {
  rows(device, counts.size, [=](int64_t i) {
    int64_t count = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) count += indices[k] <= i;
    counts[i] = count;
  });
}

// Copy the columns of the lower triangle, whose rows begin at `starts`. Columns ascend, so that these are the first of
// each row.
// launch: elements of counts, 256 threads
template <class I>
ROW_KERNEL take_columns(Device device, Array<const I> indptr, Array<const I> indices, Array<const int64_t> counts,
                        Array<const I> starts, Array<I> columns) {
  rows(device, counts.size, [=](int64_t i) {
    for (int64_t k = 0; k < counts[i]; ++k) columns[starts[i] + k] = indices[indptr[i] + k];
  });
}

// data = the values of a matrix on the pattern of a lower triangle; zero for entries that the matrix does not store.
// launch: elements of indptr, 256 threads
template <class T, class I, class J>
ROW_KERNEL take_values(Device device, Array<const J> of_indptr, Array<const J> of_indices, Array<const T> of_data,
                       Array<const I> indptr, Array<const I> indices, Array<T> data) {
  rows(device, indptr.size - 1, [=](int64_t i) {
    const int64_t end = of_indptr[i + 1];
    int64_t e = of_indptr[i];
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      while (e < end && of_indices[e] < indices[k]) ++e;
      data[k] = e < end && of_indices[e] == indices[k] ? of_data[e] : T(0);
    }
  });
}

}  // namespace

KERNELS("swell.preconditioners.ic", VALUES_INDICES(fixed_point), INDICES(count_lower), INDICES(take_columns),
        INSTANCE(take_values, double, int32_t, int32_t), INSTANCE(take_values, float, int32_t, int32_t),
        INSTANCE(take_values, complex<double>, int32_t, int32_t),
        INSTANCE(take_values, complex<float>, int32_t, int32_t), INSTANCE(take_values, double, int64_t, int64_t),
        INSTANCE(take_values, float, int64_t, int64_t), INSTANCE(take_values, complex<double>, int64_t, int64_t),
        INSTANCE(take_values, complex<float>, int64_t, int64_t), INSTANCE(take_values, double, int32_t, int64_t),
        INSTANCE(take_values, float, int32_t, int64_t), INSTANCE(take_values, complex<double>, int32_t, int64_t),
        INSTANCE(take_values, complex<float>, int32_t, int64_t), INSTANCE(take_values, double, int64_t, int32_t),
        INSTANCE(take_values, float, int64_t, int32_t), INSTANCE(take_values, complex<double>, int64_t, int32_t),
        INSTANCE(take_values, complex<float>, int64_t, int32_t))
