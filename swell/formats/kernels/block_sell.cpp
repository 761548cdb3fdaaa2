// Block SELL products on a CPU, threads sharing the slices, whose sums stay in the L1 cache; a column of a block is
// contiguous.
//
// formats/block_sell.py describes the layout: `ptr`, `columns`, `values`, `height` and `size` hold A.
#include <vector>

#include "../../core/native/launcher.hpp"
#include "apply.hpp"
#include "bsr.hpp"

namespace {

template <class T, class I> struct BlockSell {
  Array<const I> ptr, columns;
  Array<const T> values;
  int64_t height, size;

  int64_t units() const { return ptr.size - 1; }

  // sums = A x for the rows of slice s. S: `size`, or 0 if above UNROLLED.
  template <int S> void slice_product(Array<const T> x, int64_t s, T* sums) const {
    const int64_t rows_of_block = S ? S : size, pitch = height * rows_of_block, whole = x.size / rows_of_block;
    std::fill(sums, sums + pitch, T(0));
    for (int64_t e = ptr[s] / height; e < ptr[s + 1] / height; ++e)
      for (int64_t i = 0; i < height; ++i) {
        const int64_t column = columns[e * height + i];
        if (column < 0) continue;                // padding
        const T* value = values.data + (e * pitch + i) * rows_of_block;
        const T* from = x.data + column * rows_of_block;
        T* sum = sums + i * rows_of_block;
        if (S && column < whole) {
          T total[S + !S];
#pragma GCC unroll 8
          for (int r = 0; r < S; ++r) total[r] = sum[r];
#pragma GCC unroll 8
          for (int c = 0; c < S; ++c)
#pragma GCC unroll 8
            for (int r = 0; r < S; ++r) total[r] += value[c * pitch + r] * from[c];
#pragma GCC unroll 8
          for (int r = 0; r < S; ++r) sum[r] = total[r];
        } else {                                 // the last block column may reach past the end of x
          const int64_t width = std::min(rows_of_block, x.size - column * rows_of_block);
          for (int64_t c = 0; c < width; ++c)
#pragma GCC ivdep
            for (int64_t r = 0; r < rows_of_block; ++r) sum[r] += value[c * pitch + r] * from[c];
        }
      }
  }

  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    const auto product = of_size(size, [](auto S) { return &BlockSell::template slice_product<decltype(S)::value>; });
    std::vector<T> held(height * size);
    T* const sums = held.data();
    for (int64_t s = first; s < last; ++s) {
      const int64_t row = s * height * size, count = std::min(height * size, n - row);
      (this->*product)(x, s, sums);
      for (int64_t t = 0; t < count; ++t) put(row + t, sums[t]);
    }
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> ptr, Array<const I> columns, Array<const T> values, Array<const T> x, Array<T> y,
             int64_t height, int64_t size, T alpha, T beta) {
  apply(BlockSell<T, I>{ptr, columns, values, height, size}, x, y, alpha, beta);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> ptr, Array<const I> columns, Array<const T> values, Array<const T> x, Array<T> y,
                  Array<const T> w, Array<acc_t<T>> dots, int64_t height, int64_t size) {
  apply_dots(BlockSell<T, I>{ptr, columns, values, height, size}, x, y, w, dots);
}

}  // namespace

KERNELS("swell.formats.block_sell", VALUES_INDICES(product), VALUES_INDICES(product_dots))
