// Modified SELL products on a CPU, threads sharing the slices: column by column, the sums of a slice in the L1 cache.
//
// formats/modified_sell.py describes the layout: `slice_ptr`, `diag`, `entries`, `col_idx` and `height` hold A. Entries
// are read in storage order: eight rows at a time, with sums in registers, would jump by memory pages in a high slice.
// Columns are decoded without a branch, since no processor predicts where a row ends.
#include <vector>

#include "../../core/native/launcher.hpp"
#include "apply.hpp"

namespace {

template <class T, class I> struct ModifiedSell {
  Array<const I> slice_ptr;
  Array<const T> diag, entries;
  Array<const I> col_idx;
  int64_t height;

  int64_t units() const { return slice_ptr.size - 1; }

  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    std::vector<T> held(height);
    T* const sums = held.data();
    for (int64_t s = first; s < last; ++s) {
      const int64_t row = s * height, count = std::min(height, n - row);
      const int64_t square = std::min(count, std::max<int64_t>(0, x.size - row));      // rows with a diagonal
      for (int64_t t = 0; t < square; ++t) sums[t] = diag[row + t] * x[row + t];
      std::fill(sums + square, sums + count, T(0));
      for (int64_t k = slice_ptr[s]; k < slice_ptr[s + 1]; k += height) {
        const T* entry = entries.data + k;
        const I* code = col_idx.data + k;
#pragma GCC ivdep
        for (int64_t t = 0; t < count; ++t) {
          const I inside = code[t] >> (8 * sizeof(I) - 1);             // all bits set, or none
          const I column = (code[t] ^ inside) + (inside & I(row + 1)) - (code[t] != 0);
          const T term = entry[t] * x[column];
          sums[t] += code[t] ? term : T(0);              // padding adds nothing, even if its value is NaN
        }
      }
      for (int64_t t = 0; t < count; ++t) put(row + t, sums[t]);
    }
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
             Array<const T> x, Array<T> y, int64_t height, T alpha, T beta) {
  apply(ModifiedSell<T, I>{slice_ptr, diag, entries, col_idx, height}, x, y, alpha, beta);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
                  Array<const T> x, Array<T> y, Array<const T> w, Array<acc_t<T>> dots, int64_t height) {
  apply_dots(ModifiedSell<T, I>{slice_ptr, diag, entries, col_idx, height}, x, y, w, dots);
}

}  // namespace

KERNELS("swell.formats.modified_sell", VALUES_INDICES(product), VALUES_INDICES(product_dots))
