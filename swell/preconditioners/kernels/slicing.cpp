// Sort the rows of a triangle for its solves, and store them in slices of 32 rows; for sweeps on a CPU.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

constexpr int64_t SLICE = 32;

bool in_triangle(int64_t i, int64_t j, bool lower) { return lower ? j < i : j > i; }

// body(s, first place, end) for the slices of 32 of `places` places.
template <class F> void slices(int64_t places, const F& body) {
  ranges((places + SLICE - 1) / SLICE, places, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) body(s, SLICE * s, std::min(places, SLICE * (s + 1)));
  });
}

// Write a sort key for each place of `order`: sorted keys put rows by descending length inside windows.
//
// The windows, of `window` rows, divide the rows of a level. depth[row] is the level of a row, from 1, and
// bounds[level − 1] the first place of the level; with an empty `depth` all rows are one level.
template <class I, class D>
void sort_keys(Array<const int64_t> order, Array<const D> depth, Array<const I> bounds, Array<const I> indptr,
               int64_t window, Array<int64_t> keys) {
  const int64_t n = order.size;
  each(n, [=](int64_t place) {
    const int64_t row = order[place], first = depth.size ? bounds[depth[row] - 1] : 0;
    const int64_t length = indptr[row + 1] - indptr[row];
    keys[place] = (first + (place - first) / window * window) * (n + 1) + n - length;
  });
}

// Write sequence = order[sorted] and place[row] = the place of each row in `sequence`.
template <class I>
void take_order(Array<const int64_t> order, Array<const int64_t> sorted, Array<I> sequence, Array<I> place) {
  each(order.size, [=](int64_t t) {
    const int64_t row = order[sorted[t]];
    sequence[t] = I(row), place[row] = I(t);
  });
}

// Write sizes[s] = the places that slice s needs: 32 times the strictly triangular entries of its longest row. Slice s
// has the rows sequence[32 s:32 s + 32] of the CSR matrix; `lower` says which triangle.
template <class I>
void measure_slices(Array<const I> indptr, Array<const I> indices, Array<const I> sequence, bool lower,
                    Array<int64_t> sizes) {
  slices(sequence.size, [=](int64_t s, int64_t begin, int64_t end) {
    int64_t longest = 0;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t row = sequence[p];
      int64_t length = 0;
      for (int64_t k = indptr[row]; k < indptr[row + 1]; ++k) length += in_triangle(row, indices[k], lower);
      longest = std::max(longest, length);
    }
    sizes[s] = SLICE * longest;
  });
}

// Write `columns` and `values` of the slices, and `inverse`, from the strict triangle of a CSR matrix.
//
// Entry k of the i-th row of slice s is at ptr[s] + 32 k + i. Column j gets the number place_of[j], and its values are
// multiplied by scale[j] if `scale` is not empty. Column −1 marks padding. inverse[p] is the scale of the row
// sequence[p], or 1.
template <class S, class T, class I, class J>
void fill_slices(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> scale,
                 Array<const I> sequence, Array<const I> place_of, bool lower, Array<const J> ptr, Array<J> columns,
                 Array<S> values, Array<S> inverse) {
  slices(sequence.size, [=](int64_t s, int64_t begin, int64_t end) {
    for (int64_t at = ptr[s]; at < ptr[s + 1]; ++at) columns[at] = -1, values[at] = S(0);
    for (int64_t p = begin; p < end; ++p) {
      const int64_t row = sequence[p];
      int64_t at = ptr[s] + p - begin;
      for (int64_t k = indptr[row]; k < indptr[row + 1]; ++k) {
        const int64_t j = indices[k];
        if (!in_triangle(row, j, lower)) continue;
        columns[at] = J(place_of[j]), values[at] = S(scale.size ? data[k] * scale[j] : data[k]);
        at += SLICE;
      }
      inverse[p] = S(scale.size ? scale[row] : T(1));
    }
  });
}

}  // namespace

#define FILL(S, T) INSTANCE(fill_slices, S, T, int32_t, int32_t), INSTANCE(fill_slices, S, T, int32_t, int64_t), \
    INSTANCE(fill_slices, S, T, int64_t, int32_t), INSTANCE(fill_slices, S, T, int64_t, int64_t)
KERNELS("swell.preconditioners.slicing", INSTANCE(sort_keys, int32_t, int32_t), INSTANCE(sort_keys, int64_t, int32_t),
        INDICES(take_order), INDICES(measure_slices), FILL(double, double), FILL(float, float), FILL(float, double),
        FILL(complex<double>, complex<double>), FILL(complex<float>, complex<float>),
        FILL(complex<float>, complex<double>))
