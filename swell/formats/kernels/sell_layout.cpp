// Kernels that build the layout of SELL on a CPU, in passes over rows or slices; sell_layout.cu is for GPUs.
//
// `place[i]` is the position of row i in the sorted order, and `order[p]` the row at position p. An empty array stands
// for the identity. Kernels that read only row pointers run on one thread.
#include <limits>
#include <vector>

#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"

namespace {

constexpr uint16_t PAD = 0xFFFF;

// high_ptr = where the upper 16 bits of each slice's columns begin, −1 for none; halves[0] = their number. `ptr`: where
// each slice's entries begin. `wide`: nonzero for slices with 32-bit columns.
template <class J>
void find_upper(Array<const J> ptr, Array<const uint8_t> wide, Array<J> high_ptr, Array<int64_t> halves) {
  int64_t total = 0;
  for (int64_t s = 0; s < wide.size; ++s) {
    high_ptr[s] = wide[s] ? J(total) : J(-1);
    if (wide[s]) total += ptr[s + 1] - ptr[s];
  }
  halves[0] = total;
}

// where = the index in a SELL matrix's values of each entry of a CSR matrix. `place`: each row's place in the sorted
// order; empty: unsorted. `ptr`: starts of slices; `height`: their rows.
template <class I, class J>
void find_where(Array<const I> indptr, Array<const I> place, Array<const J> ptr, int64_t height, Array<J> where) {
  each(indptr.size - 1, [=](int64_t i) {
    const int64_t p = place.size ? place[i] : i, first = ptr[p / height] + p % height, begin = indptr[i];
    for (int64_t k = begin; k < indptr[i + 1]; ++k) where[k] = J(first + (k - begin) * height);
  });
}

// counts[l] = the number of rows of length l among rows first to last − 1; rows past the end of the matrix are empty.
template <class I>
void histogram(Array<const I> indptr, int64_t first, int64_t last, std::vector<int64_t>& counts) {
  const int64_t end = std::min(last, indptr.size - 1);
  int64_t longest = 0;
  for (int64_t i = first; i < end; ++i) longest = std::max<int64_t>(longest, indptr[i + 1] - indptr[i]);
  counts.assign(longest + 1, 0);
  for (int64_t i = first; i < end; ++i) ++counts[indptr[i + 1] - indptr[i]];
  counts[0] += last - std::max(first, end);
}

// The length of the longest row of each slice: in the given order (`plain`), and sorted (`ordered`) by length, inside
// windows of `window` rows. `height`: rows of a slice.
template <class I>
void measure_windows(Array<const I> indptr, int64_t height, int64_t window, Array<int32_t> plain,
                     Array<int32_t> ordered) {
  const int64_t n = indptr.size - 1, places = plain.size * height;
  std::vector<int64_t> counts;
  for (int64_t first = 0; first < places; first += window) {
    const int64_t last = std::min(first + window, places);
    histogram(indptr, first, last, counts);
    int64_t length = int64_t(counts.size()) - 1, before = 0;
    for (int64_t s = first / height; s < last / height; ++s) {
      int64_t longest = 0;
      for (int64_t i = s * height; i < std::min((s + 1) * height, n); ++i)
        longest = std::max<int64_t>(longest, indptr[i + 1] - indptr[i]);
      plain[s] = int32_t(longest);
      for (; before + counts[length] <= s * height - first; --length) before += counts[length];
      ordered[s] = int32_t(length);
    }
  }
}

// Sort the rows of each window of `window` rows by descending length, stably. Writes `order`, the row at each place,
// and its inverse, `place`.
template <class I> void sort_windows(Array<const I> indptr, int64_t window, Array<I> order, Array<I> place) {
  const int64_t n = indptr.size - 1;
  std::vector<int64_t> at;             // counts, and then the place of the next row of each length
  for (int64_t first = 0; first < order.size; first += window) {
    const int64_t last = std::min(first + window, order.size);
    histogram(indptr, first, last, at);
    int64_t before = first;
    for (int64_t length = int64_t(at.size()) - 1; length >= 0; --length) {
      const int64_t count = at[length];
      at[length] = before, before += count;
    }
    for (int64_t i = first; i < last; ++i) {
      int64_t& next = at[i < n ? indptr[i + 1] - indptr[i] : 0];
      order[next] = I(i), place[i] = I(next++);
    }
  }
}

// The row at a place of the sorted order, its first entry and its number of entries; a row past the end is empty.
struct Row { int64_t begin, length, row; };
template <class I> Row row_at(Array<const I> indptr, Array<const I> order, int64_t place) {
  const int64_t i = order.size ? int64_t(order[place]) : place;
  if (i + 1 >= indptr.size) return {0, 0, i};
  return {indptr[i], indptr[i + 1] - indptr[i], i};
}

// body(s) for the slices of `height` rows.
template <class F> void each_slice(int64_t slices, int64_t height, const F& body) {
  ranges(slices, slices * height, [body](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) body(s);
  });
}

// base = the smallest matrix column in each slice column. Slice s has `height` places, and slice columns starts[s] to
// starts[s + 1] − 1. wide[s] = 1 if an offset from the base exceeds `largest`; the bases of this slice are then 0.
template <class I, class J>
void find_bases(Array<const I> indptr, Array<const I> indices, Array<const I> order, Array<const J> starts,
                int64_t height, int64_t largest, Array<J> base, Array<uint8_t> wide) {
  each_slice(wide.size, height, [=](int64_t s) {
    const int64_t first = starts[s], last = starts[s + 1];
    std::fill(base.data + first, base.data + last, std::numeric_limits<J>::max());
    for (int64_t lane = 0; lane < height; ++lane) {
      const Row row = row_at(indptr, order, s * height + lane);
      for (int64_t k = 0; k < row.length; ++k) base[first + k] = std::min<J>(base[first + k], indices[row.begin + k]);
    }
    int64_t reach = 0;
    for (int64_t lane = 0; lane < height; ++lane) {
      const Row row = row_at(indptr, order, s * height + lane);
      for (int64_t k = 0; k < row.length; ++k)
        reach = std::max<int64_t>(reach, int64_t(indices[row.begin + k]) - base[first + k]);
    }
    wide[s] = reach > largest;
    if (wide[s]) std::fill(base.data + first, base.data + last, J(0));
  });
}

// Write a CSR matrix into the arrays of SELL: `values`, `offsets`, `high`, `rows`. The other arguments are arrays of
// formats/sell.py that are known already.
template <class T, class I, class J, class R>
void place_entries(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const I> order,
                   Array<const J> ptr, Array<const J> base, int64_t height, int64_t window, Array<const J> high_ptr,
                   Array<T> values, Array<uint16_t> offsets, Array<uint16_t> high, Array<R> rows) {
  each_slice(ptr.size - 1, height, [=](int64_t s) {
    const int64_t first = ptr[s], width = (ptr[s + 1] - first) / height, columns = first / height;
    const int64_t upper = high_ptr.size ? int64_t(high_ptr[s]) : -1;
    for (int64_t lane = 0; lane < height; ++lane) {
      const Row row = row_at(indptr, order, s * height + lane);
      if (rows.size) rows[s * height + lane] = R(row.row % window);
      for (int64_t k = 0; k < width; ++k) {
        const int64_t at = k * height + lane;
        const bool stored = k < row.length;
        const int64_t column = stored ? indices[row.begin + k] : 0;
        values[first + at] = stored ? data[row.begin + k] : T(0);
        offsets[first + at] = stored ? uint16_t(column - base[columns + k]) : PAD;
        if (upper >= 0) high[upper + at] = stored ? uint16_t(column >> 16) : PAD;
      }
    }
  });
}

}  // namespace

#define MIXES(f) INSTANCE(f, int32_t, int32_t), INSTANCE(f, int32_t, int64_t), INSTANCE(f, int64_t, int64_t)
#define FORMS(T, R) INSTANCE(place_entries, T, int32_t, int32_t, R), INSTANCE(place_entries, T, int32_t, int64_t, R), \
    INSTANCE(place_entries, T, int64_t, int64_t, R)
#define ALL(R) FORMS(double, R), FORMS(float, R), FORMS(complex<double>, R), FORMS(complex<float>, R)
KERNELS("swell.formats.sell_layout", INDICES(find_upper), MIXES(find_where), INDICES(measure_windows),
        INDICES(sort_windows), MIXES(find_bases), ALL(uint8_t), ALL(uint16_t))
