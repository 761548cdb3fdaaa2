// Sort the rows of a triangle for its solves, and store them in slices of 32 rows (preconditioners/level_schedule.py),
// for both devices.
#include "step.hpp"

namespace {

constexpr int64_t SLICE = 32;

DEVICE bool in_triangle(int64_t i, int64_t j, bool lower) { return lower ? j < i : j > i; }

// Write a sort key for each place of `order`: sorted keys put rows by descending length inside windows.
//
// The windows, of `window` rows, divide the rows of a level. depth[row] is the level of a row, from 1, and
// bounds[level − 1] the first place of the level; with an empty `depth` all rows are one level.
// launch: elements of order, 256 threads
template <class I>
ROW_KERNEL sort_keys(Device device, Array<const int64_t> order, Array<const int32_t> depth, Array<const I> bounds,
                     Array<const I> indptr, int64_t window, Array<int64_t> keys) {
  const int64_t n = order.size;
  rows(device, n, [=](int64_t place) {
    const int64_t row = order[place], first = depth.size ? bounds[depth[row] - 1] : 0;
    const int64_t length = indptr[row + 1] - indptr[row];
    keys[place] = (first + (place - first) / window * window) * (n + 1) + n - length;
  });
}

// Write sequence = order[sorted] and place[row] = the place of each row in `sequence`.
// launch: elements of order, 256 threads
template <class I>
ROW_KERNEL take_order(Device device, Array<const int64_t> order, Array<const int64_t> sorted, Array<I> sequence,
                      Array<I> place) {
  rows(device, order.size, [=](int64_t t) {
    const int64_t row = order[sorted[t]];
    sequence[t] = I(row), place[row] = I(t);
  });
}

// Write sizes[s] = the places that slice s needs: 32 times the strictly triangular entries of its longest row. Slice s
// has the rows sequence[32 s:32 s + 32] of the CSR matrix; `lower` says which triangle. `sizes` are 0 before.
// launch: elements of sequence, 256 threads
template <class I>
ROW_KERNEL measure_slices(Device device, Array<const I> indptr, Array<const I> indices, Array<const I> sequence,
                          bool lower, Array<int64_t> sizes) {
  rows(device, sequence.size, [=](int64_t p) {
    const int64_t row = sequence[p];
    int64_t length = 0;
    for (I k = indptr[row]; k < indptr[row + 1]; ++k) length += in_triangle(row, indices[k], lower);
    atomic_max(&sizes[p / SLICE], SLICE * length);
  });
}

// Write `columns` and `values` of the slices, and `inverse`, from the strict triangle of a CSR matrix.
//
// Entry k of the i-th row of slice s is at ptr[s] + 32 k + i. Column j gets the number place_of[j], and its values are
// multiplied by scale[j] if `scale` is not empty. Column −1 marks padding. inverse[p] is the scale of the row
// sequence[p], or 1.
// launch: elements of ptr, 256 threads, a warp each
template <class T, class V, class I, class P>
ROW_KERNEL fill_slices(Device device, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                       Array<const T> scale, Array<const I> sequence, Array<const I> place_of, bool lower,
                       Array<const P> ptr, Array<P> columns, Array<V> values, Array<V> inverse) {
  rows(device, SLICE * (ptr.size - 1), [=](int64_t p) {
    const int64_t end = ptr[p / SLICE + 1];
    int64_t at = ptr[p / SLICE] + p % SLICE;
    if (p < sequence.size) {
      const int64_t row = sequence[p];
      for (I k = indptr[row]; k < indptr[row + 1]; ++k) {
        const int64_t j = indices[k];
        if (!in_triangle(row, j, lower)) continue;
        columns[at] = P(place_of[j]), values[at] = V(scale.size ? data[k] * scale[j] : data[k]);
        at += SLICE;
      }
      inverse[p] = V(scale.size ? scale[row] : T(1));
    }
    for (; at < end; at += SLICE) columns[at] = P(-1), values[at] = V(0);
  });
}

}  // namespace

#define FILL(T, V) INSTANCE(fill_slices, T, V, int32_t, int32_t), INSTANCE(fill_slices, T, V, int32_t, int64_t), \
    INSTANCE(fill_slices, T, V, int64_t, int32_t), INSTANCE(fill_slices, T, V, int64_t, int64_t)
KERNELS("swell.preconditioners.slicing", INDICES(sort_keys), INDICES(take_order), INDICES(measure_slices),
        FILL(double, double), FILL(float, float), FILL(double, float), FILL(complex<double>, complex<double>),
        FILL(complex<float>, complex<float>), FILL(complex<double>, complex<float>))
