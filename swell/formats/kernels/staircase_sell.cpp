// Staircase SELL on a CPU: its layout, and products, threads sharing the slices, entries read in storage order.
//
// formats/staircase_sell.py describes the layout: the arrays from `ptr` to `high` hold A. `window`: rows that were
// sorted by length together, a power of two.
#include "../../core/native/launcher.hpp"
#include "apply.hpp"

namespace {

constexpr int64_t HEIGHT = 32;

// Write a CSR matrix (first three arrays) into `values`, `offsets` and `high`. `order`: the row at each place; those
// past the end of the matrix are empty. The other arrays are known already.
template <class T, class I, class J>
void place_entries(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const I> order,
                   Array<const J> ptr, Array<const J> base_ptr, Array<const J> base, Array<const J> high_ptr,
                   Array<T> values, Array<uint16_t> offsets, Array<uint16_t> high) {
  ranges(ptr.size - 1, indptr.size - 1, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      int64_t first[HEIGHT] = {}, length[HEIGHT] = {};
      for (int64_t lane = 0; lane < HEIGHT; ++lane) {
        const int64_t row = order[s * HEIGHT + lane];
        if (row < indptr.size - 1) first[lane] = indptr[row], length[lane] = indptr[row + 1] - indptr[row];
      }
      const bool wide = high_ptr.size && high_ptr[s] >= 0;
      int64_t at = ptr[s], up = wide ? high_ptr[s] : 0, count = HEIGHT;
      for (int64_t k = 0; k < base_ptr[s + 1] - base_ptr[s]; ++k) {
        const int64_t least = base[base_ptr[s] + k];
        while (length[count - 1] <= k) --count;
        for (int64_t lane = 0; lane < count; ++lane, ++at) {
          const int64_t offset = indices[first[lane] + k] - least;
          values[at] = data[first[lane] + k], offsets[at] = uint16_t(offset);
          if (wide) high[up++] = uint16_t(offset >> 16);
        }
      }
    }
  });
}

template <class T, class I, class R> struct StaircaseSell {
  Array<const I> ptr, base_ptr;
  Array<const R> lengths;
  Array<const I> base;
  Array<const uint16_t> offsets;
  Array<const T> values;
  Array<const R> rows;
  Array<const I> high_ptr;
  Array<const uint16_t> high;
  int64_t window;

  int64_t units() const { return ptr.size - 1; }

  // The row at a place of the sorted order; an empty `rows` is the identity.
  int64_t row_at(int64_t place) const { return rows.size ? (place & ~(window - 1)) + int64_t(rows[place]) : place; }

  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    for (int64_t s = first; s < last; ++s) {
      T sums[HEIGHT] = {};
      const bool wide = high_ptr.size && high_ptr[s] >= 0;
      const uint16_t* offset = offsets.data + ptr[s];
      const uint16_t* upper = wide ? high.data + high_ptr[s] : nullptr;
      const T* value = values.data + ptr[s];
      const R* length = lengths.data + s * HEIGHT;
      int64_t count = HEIGHT;
      for (int64_t k = 0; k < int64_t(length[0]); ++k) {
        while (int64_t(length[count - 1]) <= k) --count;
        if (wide) {
          for (int64_t i = 0; i < count; ++i) sums[i] += value[i] * x[int64_t(upper[i]) << 16 | offset[i]];
          upper += count;
        } else {
          const T* from = x.data + base[base_ptr[s] + k];
          for (int64_t i = 0; i < count; ++i) sums[i] += value[i] * from[offset[i]];
        }
        value += count, offset += count;
      }
      for (int64_t i = 0; i < HEIGHT; ++i)
        if (const int64_t row = row_at(s * HEIGHT + i); row < n) put(row, sums[i]);
    }
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I, class R>
void product(Array<const I> ptr, Array<const I> base_ptr, Array<const R> lengths, Array<const I> base,
             Array<const uint16_t> offsets, Array<const T> values, Array<const R> rows, Array<const I> high_ptr,
             Array<const uint16_t> high, Array<const T> x, Array<T> y, int64_t window, T alpha, T beta) {
  apply(StaircaseSell<T, I, R>{ptr, base_ptr, lengths, base, offsets, values, rows, high_ptr, high, window}, x, y,
        alpha, beta);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I, class R>
void product_dots(Array<const I> ptr, Array<const I> base_ptr, Array<const R> lengths, Array<const I> base,
                  Array<const uint16_t> offsets, Array<const T> values, Array<const R> rows, Array<const I> high_ptr,
                  Array<const uint16_t> high, Array<const T> x, Array<T> y, Array<const T> w, Array<acc_t<T>> dots,
                  int64_t window) {
  apply_dots(StaircaseSell<T, I, R>{ptr, base_ptr, lengths, base, offsets, values, rows, high_ptr, high, window}, x, y,
             w, dots);
}

}  // namespace

#define PLACES(T) INSTANCE(place_entries, T, int32_t, int32_t), INSTANCE(place_entries, T, int32_t, int64_t), \
    INSTANCE(place_entries, T, int64_t, int32_t), INSTANCE(place_entries, T, int64_t, int64_t)
#define LENGTHS(f, T, I) INSTANCE(f, T, I, uint8_t), INSTANCE(f, T, I, uint16_t), INSTANCE(f, T, I, uint32_t)
#define FORMS(f, T) LENGTHS(f, T, int32_t), LENGTHS(f, T, int64_t)
#define ALL(f) FORMS(f, double), FORMS(f, float), FORMS(f, complex<double>), FORMS(f, complex<float>)
KERNELS("swell.formats.staircase_sell", PLACES(double), PLACES(float), PLACES(complex<double>),
        PLACES(complex<float>), ALL(product), ALL(product_dots))
