// SELL products on a CPU, threads sharing the slices, ROWS rows of a slice at a time with their sums in registers.
//
// formats/sell.py describes the layout: the arrays from `ptr` to `high`, and `height`, hold A. `window`: rows that were
// sorted by length together, a power of two. Only GPU kernels use `task`.
//
// Products with several right-hand sides, tables with a row for each, take pieces of about PIECE rows, and two columns
// of x at a time, so that the matrix comes from memory once. `running` lists the columns to be computed; each has the
// bits of its own product.
#include "../../core/native/launcher.hpp"
#include "apply.hpp"
#include "columns.hpp"

namespace {

constexpr int ROWS = 8;                // every slice height is a multiple of it
constexpr uint16_t PAD = 0xFFFF;

template <class T, class I> struct Sell {
  Array<const I> ptr, base;
  Array<const uint16_t> offsets;
  Array<const T> values;
  Unsigned rows;
  Array<const I> high_ptr;
  Array<const uint16_t> high;
  int64_t height, window;

  int64_t units() const { return ptr.size - 1; }

  // The row at a place of the sorted order; an empty `rows` is the identity.
  int64_t row_at(int64_t place) const { return rows.size ? (place & ~(window - 1)) + rows[place] : place; }

  // sums[c][k] = the product with x[c] of row i + k of slice s, which has slice columns begin to end − 1.
  template <int K>
  void products(T (&sums)[K][ROWS], const T* const (&x)[K], int64_t s, int64_t begin, int64_t end, int64_t i) const {
    if (high_ptr.size && high_ptr[s] >= 0) {
      for (int c = 0; c < K; ++c) wide(sums[c], x[c], begin, end, i, high_ptr[s]);
      return;
    }
    int64_t full = end;                // padding lies at the ends of rows
    for (; full > begin; --full) {
      const uint16_t* offset = offsets.data + (full - 1) * height + i;
      bool padded = false;
      for (int k = 0; k < ROWS; ++k) padded |= offset[k] == PAD;
      if (!padded) break;
    }
    TwoSums<T> total[K][ROWS / 2];
    for (int64_t e = begin; e < full; ++e) {
      const uint16_t* offset = offsets.data + e * height + i;
      const T* value = values.data + e * height + i;
#pragma GCC unroll 2
      for (int c = 0; c < K; ++c) {
        const T* from = x[c] + base[e];
#pragma GCC unroll 4
        for (int k = 0; k < ROWS / 2; ++k) total[c][k].add(value + 2 * k, from[offset[2 * k]], from[offset[2 * k + 1]]);
      }
    }
#pragma GCC unroll 2
    for (int c = 0; c < K; ++c)
#pragma GCC unroll 8
      for (int k = 0; k < ROWS; ++k) sums[c][k] = total[c][k / 2].value(k % 2);
    for (int64_t e = full; e < end; ++e) {
      const uint16_t* offset = offsets.data + e * height + i;
      const T* value = values.data + e * height + i;
      for (int c = 0; c < K; ++c) {
        const T* from = x[c] + base[e];
        for (int k = 0; k < ROWS; ++k) if (offset[k] != PAD) sums[c][k] += value[k] * from[offset[k]];
      }
    }
  }

  // The same of one vector for a slice with 32-bit columns, whose upper halves begin at high[first].
  __attribute__((noinline))
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

  // put(c, row, value) for the products with x[c] of the rows of slices first to last − 1, of n rows in all.
  template <int K, class F>
  void multiply(const T* const (&x)[K], int64_t n, int64_t first, int64_t last, const F& put) const {
    int64_t end = ptr[first] / height;
    for (int64_t s = first; s < last; ++s) {
      const int64_t begin = end;
      end = ptr[s + 1] / height;
      for (int64_t i = 0; i < height; i += ROWS) {
        T sums[K][ROWS];
        products<K>(sums, x, s, begin, end, i);
        for (int c = 0; c < K; ++c)
          for (int k = 0; k < ROWS; ++k)
            if (const int64_t row = row_at(s * height + i + k); row < n) put(c, row, sums[c][k]);
      }
    }
  }

  // The same for one x, with put(row, value).
  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    const T* const one[] = {x.data};
    multiply<1>(one, n, first, last, [&put](int, int64_t row, T value) { put(row, value); });
  }

  // The same for the columns of `group`, where c counts them.
  template <class F>
  void multiply(Array<const int64_t> group, Table<const T> x, int64_t n, int64_t first, int64_t last,
                const F& put) const {
    const int64_t step = std::max<int64_t>(1, PIECE / height);
    for (; first < last; first += step) {
      const int64_t end = std::min(last, first + step);
      int64_t k = 0;
      const auto put_from = [&](int c, int64_t row, T value) { put(k + c, row, value); };
      for (; k + 1 < group.size; k += 2) {
        const T* const pair[] = {x[group[k]].data, x[group[k + 1]].data};
        multiply<2>(pair, n, first, end, put_from);
      }
      if (k < group.size) {
        const T* const one[] = {x[group[k]].data};
        multiply<1>(one, n, first, end, put_from);
      }
    }
  }

  // The distance between the first and the last column of a slice's rows: the mean over some slices.
  double reach() const {
    int64_t distance = 0;
    const int64_t slices = ptr.size - 1;
    if (slices < 1) return 0;
    for (int64_t sample = 0; sample < SAMPLES; ++sample) {
      const int64_t s = sample * slices / SAMPLES, first = ptr[s] / height, end = ptr[s + 1] / height;
      if (high_ptr.size && high_ptr[s] >= 0) distance += 1 << 16;    // at least: its columns need more than 16 bits
      else if (first < end) distance += std::abs(int64_t(base[end - 1]) - int64_t(base[first]));
    }
    return double(distance) / SAMPLES;
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
             Unsigned rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x, Array<T> y,
             int64_t height, int64_t window, int64_t task, T alpha, T beta) {
  apply(Sell<T, I>{ptr, base, offsets, values, rows, high_ptr, high, height, window}, x, y, alpha, beta);
}

// y[j] = alpha A x[j] + beta y[j] for the columns j in `running`.
template <class T, class I>
void product_columns(Array<const int64_t> running, Array<const I> ptr, Array<const I> base,
                     Array<const uint16_t> offsets, Array<const T> values, Unsigned rows,
                     Array<const I> high_ptr, Array<const uint16_t> high, Table<const T> x, Table<T> y,
                     int64_t height, int64_t window, int64_t task, T alpha, T beta) {
  const Sell<T, I> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  each_group(running, A.reach(), sizeof(T), [=](Array<const int64_t> group) {
    ranges(A.units(), y.columns, [=](int64_t first, int64_t last) {
      A.multiply(group, x, y.columns, first, last, [=](int64_t c, int64_t row, T value) {
        T& out = y[group[c]][row];
        out = beta == T(0) ? alpha * value : alpha * value + beta * out;
      });
    });
  });
}

// y = alpha A x + beta z + gamma w; gamma = 0 never reads w. y may be z or w.
template <class T, class I>
void product_sum(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
                 Unsigned rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x,
                 Array<const T> z, Array<const T> w, Array<T> y, int64_t height, int64_t window, int64_t task, T alpha,
                 T beta, T gamma) {
  const Sell<T, I> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  ranges(A.units(), y.size, [=](int64_t first, int64_t last) {
    A.multiply(x, y.size, first, last, [=](int64_t row, T value) {
      const T sum = alpha * value + beta * z[row];
      y[row] = gamma == T(0) ? sum : sum + gamma * w[row];
    });
  });
}

// y[j] = alpha A x[j] + beta z[j] + gamma w[j] for the columns j in `running`; gamma = 0 never reads w.
template <class T, class I>
void product_sum_columns(Array<const int64_t> running, Array<const I> ptr, Array<const I> base,
                         Array<const uint16_t> offsets, Array<const T> values, Unsigned rows,
                         Array<const I> high_ptr, Array<const uint16_t> high, Table<const T> x, Table<const T> z,
                         Table<const T> w, Table<T> y, int64_t height, int64_t window, int64_t task, T alpha, T beta,
                         T gamma) {
  const Sell<T, I> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  each_group(running, A.reach(), sizeof(T), [=](Array<const int64_t> group) {
    ranges(A.units(), y.columns, [=](int64_t first, int64_t last) {
      A.multiply(group, x, y.columns, first, last, [=](int64_t c, int64_t row, T value) {
        const int64_t j = group[c];
        const T sum = alpha * value + beta * z[j][row];
        y[j][row] = gamma == T(0) ? sum : sum + gamma * w[j][row];
      });
    });
  });
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> ptr, Array<const I> base, Array<const uint16_t> offsets, Array<const T> values,
                  Unsigned rows, Array<const I> high_ptr, Array<const uint16_t> high, Array<const T> x,
                  Array<T> y, Array<const T> w, Array<acc_t<T>> dots, int64_t height, int64_t window, int64_t task) {
  apply_dots(Sell<T, I>{ptr, base, offsets, values, rows, high_ptr, high, height, window}, x, y, w, dots);
}

// y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in `running`.
template <class T, class I>
void product_dots_columns(Array<const int64_t> running, Array<const I> ptr, Array<const I> base,
                          Array<const uint16_t> offsets, Array<const T> values, Unsigned rows,
                          Array<const I> high_ptr, Array<const uint16_t> high, Table<const T> x, Table<T> y,
                          Table<const T> w, Table<acc_t<T>> dots, int64_t height, int64_t window, int64_t task) {
  const Sell<T, I> A{ptr, base, offsets, values, rows, high_ptr, high, height, window};
  each_group(running, A.reach(), sizeof(T), [=](Array<const int64_t> group) {
    column_dots(group, y.columns, A.units(), dots, [=](int64_t first, int64_t last, auto* sums) {
      A.multiply(group, x, y.columns, first, last, [=](int64_t c, int64_t row, T value) {
        y[group[c]][row] = value;
        sums[c].wy += conj_product(w[group[c]][row], value);
        sums[c].yy += square(value);
      });
    });
  });
}

}  // namespace

KERNELS("swell.formats.sell", VALUES_INDICES(product), VALUES_INDICES(product_sum), VALUES_INDICES(product_dots),
        VALUES_INDICES(product_columns), VALUES_INDICES(product_sum_columns), VALUES_INDICES(product_dots_columns))
