// SELL products on a CPU, threads sharing the slices, ROWS rows of a slice at a time with their sums in registers.
//
// formats/sell.py describes the layout: the arrays from `ptr` to `high`, and `height`, hold A. `window`: rows that were
// sorted by length together, a power of two. Only the first form of this kernel used `task`.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "sums.hpp"

namespace {

constexpr int ROWS = 8;                // every slice height is a multiple of it
constexpr uint16_t PAD = 0xFFFF;

template <class T, class I, class R> struct Sell {
  Array<const I> ptr, base;
  Array<const uint16_t> offsets;
  Array<const T> values;
  Array<const R> rows;
  Array<const I> high_ptr;
  Array<const uint16_t> high;
  int64_t height, window;

  // The row at a place of the sorted order; an empty `rows` is the identity.
  int64_t row_at(int64_t place) const { return rows.size ? (place & ~(window - 1)) + rows[place] : place; }

  // sums[k] = the product with x of row i + k of slice s, which has slice columns begin to end − 1.
  void products(T (&sums)[ROWS], const T* x, int64_t s, int64_t begin, int64_t end, int64_t i) const {
    if (high_ptr.size && high_ptr[s] >= 0) return wide(sums, x, begin, end, i, high_ptr[s]);
    int64_t full = end;                // padding lies at the ends of rows
    for (; full > begin; --full) {
      const uint16_t* offset = offsets.data + (full - 1) * height + i;
      bool padded = false;
      for (int k = 0; k < ROWS; ++k) padded |= offset[k] == PAD;
      if (!padded) break;
    }
    TwoSums<T> total[ROWS / 2];
    for (int64_t e = begin; e < full; ++e) {
      const uint16_t* offset = offsets.data + e * height + i;
      const T *value = values.data + e * height + i, *from = x + base[e];
#pragma GCC unroll 4
      for (int k = 0; k < ROWS / 2; ++k) total[k].add(value + 2 * k, from[offset[2 * k]], from[offset[2 * k + 1]]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < ROWS; ++k) sums[k] = total[k / 2].value(k % 2);
    for (int64_t e = full; e < end; ++e) {
      const uint16_t* offset = offsets.data + e * height + i;
      const T *value = values.data + e * height + i, *from = x + base[e];
#pragma GCC unroll 8
      for (int k = 0; k < ROWS; ++k) if (offset[k] != PAD) sums[k] += value[k] * from[offset[k]];
    }
  }

  // The same for a slice with 32-bit columns, whose upper halves begin at high[first].
  void wide(T (&sums)[ROWS], const T* x, int64_t begin, int64_t end, int64_t i, int64_t first) const {
    for (int k = 0; k < ROWS; ++k) {
      T total(0);
      for (int64_t e = begin; e < end; ++e) {
        const uint16_t lower = offsets[e * height + i + k], upper = high[first + (e - begin) * height + i + k];
        if (lower != PAD || upper != PAD) total += values[e * height + i + k] * x[int64_t(upper) << 16 | lower];
      }
      sums[k] = total;
    }
  }

  // put(row, k, value) for the products with x of the rows of slices first to last − 1; a row may lie past the end.
  template <class F> void multiply(const T* x, int64_t first, int64_t last, const F& put) const {
    int64_t end = ptr[first] / height;
    for (int64_t s = first; s < last; ++s) {
      const int64_t begin = end;
      end = ptr[s + 1] / height;
      for (int64_t i = 0; i < height; i += ROWS) {
        T sums[ROWS];
        products(sums, x, s, begin, end, i);
        put(s * height + i, sums);
      }
    }
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I, class R>
void product(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
             Array<const R> rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x, Array<T> y,
             int64_t height, int64_t window, int64_t task, T alpha, T beta) {
  const Sell<T, I, R> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  ranges(ptr.size - 1, y.size, [=](int64_t first, int64_t last) {
    A.multiply(x.data, first, last, [=](int64_t place, const T (&sums)[ROWS]) {
      for (int k = 0; k < ROWS; ++k) {
        const int64_t row = A.row_at(place + k);
        if (row < y.size) y[row] = beta == T(0) ? alpha * sums[k] : alpha * sums[k] + beta * y[row];
      }
    });
  });
}

// y = alpha A x + beta z + gamma w; gamma = 0 never reads w. y may be z or w.
template <class T, class I, class R>
void product_sum(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
                 Array<const R> rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x,
                 Array<const T> z, Array<const T> w, Array<T> y, int64_t height, int64_t window, int64_t task, T alpha,
                 T beta, T gamma) {
  const Sell<T, I, R> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  ranges(ptr.size - 1, y.size, [=](int64_t first, int64_t last) {
    A.multiply(x.data, first, last, [=](int64_t place, const T (&sums)[ROWS]) {
      for (int k = 0; k < ROWS; ++k) {
        const int64_t row = A.row_at(place + k);
        if (row >= y.size) continue;
        const T value = alpha * sums[k] + beta * z[row];
        y[row] = gamma == T(0) ? value : value + gamma * w[row];
      }
    });
  });
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I, class R>
void product_dots(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
                  Array<const R> rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x,
                  Array<T> y, Array<const T> w, Array<acc_t<T>> dots, int64_t height, int64_t window, int64_t task) {
  const Sell<T, I, R> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  const auto [wy, yy] = in_order<acc_t<T>, double>(y.size, ptr.size - 1, [=](int64_t first, int64_t last) {
    acc_t<T> wy(0);
    double yy = 0;
    A.multiply(x.data, first, last, [&](int64_t place, const T (&sums)[ROWS]) {
      for (int k = 0; k < ROWS; ++k) {
        const int64_t row = A.row_at(place + k);
        if (row >= y.size) continue;
        y[row] = sums[k];
        wy += conj_product(w[row], sums[k]);
        yy += square(sums[k]);
      }
    });
    return std::tuple(wy, yy);
  });
  dots[0] = wy, dots[1] = acc_t<T>(yy);
}

}  // namespace

#define FORMS(f, T) KERNEL(f, T, int32_t, uint8_t), KERNEL(f, T, int64_t, uint8_t), KERNEL(f, T, int32_t, uint16_t), \
    KERNEL(f, T, int64_t, uint16_t)
#define ALL(f) FORMS(f, double), FORMS(f, float), FORMS(f, complex<double>), FORMS(f, complex<float>)
KERNELS("swell.formats.sell", ALL(product), ALL(product_sum), ALL(product_dots))
