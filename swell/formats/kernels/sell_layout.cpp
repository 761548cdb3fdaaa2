// Kernels that build the layout of SELL on a CPU, in passes over rows or slices; sell_layout.cu is for GPUs.
//
// `place[i]` is the position of row i in the sorted order, and `order[p]` the row at position p. An empty array stands
// for the identity. Kernels that read only row pointers run on one thread.
#include <limits>
#include <vector>

#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"

namespace {

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

// base = the smallest matrix column in each slice column. Slice s has `height` places, and slice columns
// starts[s] / each to starts[s + 1] / each − 1. wide[s] = 1 if an offset from the base exceeds `largest`; the bases of
// this slice are then 0.
template <class I, class J>
void find_bases(Array<const I> indptr, Array<const I> indices, Array<const I> order, Array<const J> starts,
                int64_t each, int64_t height, int64_t largest, Array<J> base, Array<uint8_t> wide) {
  each_slice(wide.size, height, [=](int64_t s) {
    const int64_t first = starts[s] / each, last = starts[s + 1] / each;
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

}  // namespace

KERNELS("swell.formats.sell_layout", INDICES(find_upper), INDICES(measure_windows), INDICES(sort_windows),
        INSTANCE(find_bases, int32_t, int32_t), INSTANCE(find_bases, int32_t, int64_t),
        INSTANCE(find_bases, int64_t, int64_t))
