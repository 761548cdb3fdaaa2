// Incomplete LU by fixed-point sweeps, a thread an entry, for both devices; ilu_rows.cu and ilu_rows.cpp factor row by
// row. One CSR pattern holds L, without its unit diagonal, and U; `diagonal` has the places of the diagonal entries.
#include "step.hpp"
#include "pivots.hpp"

namespace {

// One sweep of lᵢⱼ = (aᵢⱼ − Σ lᵢₘ uₘⱼ) / uⱼⱼ and uᵢⱼ = aᵢⱼ − Σ lᵢₘ uₘⱼ, over m < min(i, j), from the old factors to the
// new. It merges row i and column j up to min(i, j); both have an entry there or behind it, their diagonal.
//
// `data` is A, `old` and `fresh` are the old and new factors on one pattern. A pivot of at most `tiny` times its row's
// `scale` is replaced by `replacement` times `scale`, and recorded in `bad`. entry_rows[k] is the row of entry k.
// Column j has its rows and places from starts[j] on, in `column_rows` and `places`.
// launch: elements of data, 256 threads
template <class T, class I>
ROW_KERNEL fixed_point(Device device, Array<const I> indptr, Array<const I> indices, Array<const I> diagonal,
                       Array<const I> entry_rows, Array<const I> starts, Array<const I> column_rows,
                       Array<const I> places, Array<const T> data, Array<const real_t<T>> scale, Array<const T> old,
                       Array<T> fresh, double tiny, double replacement, Array<int64_t> bad) {
  rows(device, data.size, [=](int64_t k) {
    const int64_t i = entry_rows[k], j = indices[k], stop = min(i, j);
    T total = data[k];
    for (int64_t p = indptr[i], q = starts[j]; indices[p] < stop && column_rows[q] < stop;) {
      const I a = indices[p], b = column_rows[q];
      if (a == b) total -= old[p] * old[places[q]];
      p += a <= b;
      q += b <= a;
    }
    if (i > j) {
      total = total / old[diagonal[j]];
    } else if (i == j && !is_good(total, scale[i], tiny)) {
      total = replaced(total, scale[i], replacement);
      record(bad.data, i);
    }
    fresh[k] = total;
  });
}

}  // namespace

KERNELS("swell.preconditioners.ilu", VALUES_INDICES(fixed_point))
