// ELL products on a CPU: TILE rows at a time, column by column, their sums in the L1 cache.
//
// formats/ell.py describes the layout: columns[k][i] and values[k][i] are entry k of row i; column −1 is padding, which
// takes no branch, since no processor predicts where a row ends.
#include "../../core/native/launcher.hpp"
#include "apply.hpp"

namespace {

constexpr int64_t TILE = 64;           // rows of a tile, which stops after its longest row

template <class T, class I> struct Ell {
  Table<const I> columns;
  Table<const T> values;
  int64_t rows;

  int64_t units() const { return (rows + TILE - 1) / TILE; }

  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    for (int64_t row = first * TILE; row < std::min(n, last * TILE); row += TILE) {
      const int64_t count = std::min(TILE, n - row);
      T sums[TILE] = {};
      bool ended = false;
      for (int64_t k = 0; k < columns.rows && !ended; ++k) {
        const I* column = columns[k].data + row;
        const T* value = values[k].data + row;
        I all = -1;
#pragma GCC ivdep
        for (int64_t t = 0; t < count; ++t) {
          const T term = value[t] * x[std::max<I>(column[t], 0)];
          all &= column[t];
          sums[t] += column[t] < 0 ? T(0) : term;      // padding adds nothing, even if its value is NaN
        }
        ended = all < 0;
      }
      for (int64_t t = 0; t < count; ++t) put(row + t, sums[t]);
    }
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Table<const I> columns, Table<const T> values, Array<const T> x, Array<T> y, int64_t width, T alpha,
             T beta) {
  apply(Ell<T, I>{columns, values, y.size}, x, y, alpha, beta);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Table<const I> columns, Table<const T> values, Array<const T> x, Array<T> y, Array<const T> w,
                  Array<acc_t<T>> dots, int64_t width) {
  apply_dots(Ell<T, I>{columns, values, y.size}, x, y, w, dots);
}

}  // namespace

KERNELS("swell.formats.ell", VALUES_INDICES(product), VALUES_INDICES(product_dots))
