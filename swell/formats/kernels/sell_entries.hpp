// The entries of a CSR matrix in SELL's layout, for both devices: formats/sell.py describes it. sell_layout.cu and
// sell_layout.cpp sort the rows and find the slices.
#include "step.hpp"

namespace {

constexpr uint16_t PAD = 0xFFFF;

// where = the index in a SELL matrix's values of each entry of a CSR matrix. `place`: each row's place in the sorted
// order; empty: unsorted. `ptr`: starts of slices; `height`: their rows.
// launch: elements of indptr, 256 threads
template <class I, class J>
ROW_KERNEL find_where(Device device, Array<const I> indptr, Array<const I> place, Array<const J> ptr, int64_t height,
                      Array<J> where) {
  rows(device, indptr.size - 1, [=](int64_t i) {
    const int64_t p = place.size ? int64_t(place[i]) : i, first = ptr[p / height] + p % height, begin = indptr[i];
    for (int64_t k = begin; k < indptr[i + 1]; ++k) where[k] = J(first + (k - begin) * height);
  });
}

// Write a CSR matrix into the arrays of SELL: `values`, `offsets`, `high`, `own_rows`. The other arguments are arrays
// of formats/sell.py that are known already. order[p]: the row at place p; empty: unsorted. Places past the end are
// empty.
// launch: a block of height threads for each slice of ptr
template <class T, class I, class J, class W>
ROW_KERNEL place_entries(Device device, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                         Array<const I> order, Array<const J> ptr, Array<const J> base, int64_t height,
                         int64_t window, Array<const J> high_ptr, Array<T> values, Array<uint16_t> offsets,
                         Array<uint16_t> high, Array<W> own_rows) {
  rows_of_blocks(device, (ptr.size - 1) * height, height, [=](int64_t s, int64_t) {
    const int64_t first = ptr[s], width = (ptr[s + 1] - first) / height, columns = first / height;
    const int64_t upper = high_ptr.size ? int64_t(high_ptr[s]) : -1;
    return [=](int64_t lane) {
      const int64_t place = s * height + lane, row = order.size ? int64_t(order[place]) : place;
      const bool there = row + 1 < indptr.size;
      const int64_t begin = there ? int64_t(indptr[row]) : 0, length = there ? indptr[row + 1] - begin : 0;
      if (own_rows.size) own_rows[place] = W(row % window);
      for (int64_t k = 0; k < width; ++k) {
        const int64_t at = k * height + lane;
        const bool stored = k < length;
        const int64_t column = stored ? int64_t(indices[begin + k]) : 0;
        values[first + at] = stored ? data[begin + k] : T(0);
        offsets[first + at] = stored ? uint16_t(column - base[columns + k]) : PAD;
        if (upper >= 0) high[upper + at] = stored ? uint16_t(column >> 16) : PAD;
      }
    };
  });
}

}  // namespace

#define MIXES(f) INSTANCE(f, int32_t, int32_t), INSTANCE(f, int32_t, int64_t), INSTANCE(f, int64_t, int64_t)
#define FORMS(T, W) INSTANCE(place_entries, T, int32_t, int32_t, W), INSTANCE(place_entries, T, int32_t, int64_t, W), \
    INSTANCE(place_entries, T, int64_t, int64_t, W)
#define ALL(W) FORMS(double, W), FORMS(float, W), FORMS(complex<double>, W), FORMS(complex<float>, W)
KERNELS("swell.formats.sell_entries", MIXES(find_where), ALL(uint8_t), ALL(uint16_t))
