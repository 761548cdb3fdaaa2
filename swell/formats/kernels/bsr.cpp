// BSR products on a CPU, threads sharing the block rows, blocks in storage order; formats/bsr.py describes the layout.
// A is (indptr, indices, data), `data` the blocks one after the other, of `size` × `size` values.
//
// A piece of PIECE rows at a time is computed for all columns of x in turn, so that the matrix comes from memory once.
// `running` lists the columns to be computed; each has the bits of its own product.
#include "../../core/native/launcher.hpp"
#include "apply.hpp"
#include "bsr.hpp"
#include "columns.hpp"

namespace {

constexpr int64_t TILE = 64;           // about the rows whose products stay in the L1 cache until they are used

template <class T, class I> struct Bsr {
  Array<const I> indptr, indices;
  Array<const T> data;
  int64_t size;

  int64_t units() const { return indptr.size - 1; }

  // out = A x for block rows `first` to `last` − 1; out[0] is the first of their rows. S: `size`; 0: above UNROLLED.
  template <int S> void rows_product(Array<const T> x, int64_t first, int64_t last, T* out) const {
    const int64_t s = S ? S : size, whole = x.size / s;
    for (int64_t i = first; i < last; ++i, out += s) {
      const int64_t begin = indptr[i], ended = indptr[i + 1];
      const bool cut = begin < ended && indices[ended - 1] >= whole;   // the last block reaches past the end of x
      const int64_t end = ended - cut;
      if constexpr (S == 1) {
        out[0] = row_product(indices.data, data.data, x.data, begin, end);
      } else if constexpr (S > 0) {
        BlockSums<S, T> sums;
        for (int64_t k = begin; k < end; ++k) sums.add(data.data + k * S * S, x.data + indices[k] * int64_t(S));
#pragma GCC unroll 8
        for (int r = 0; r < S; ++r) out[r] = sums.value(r);
      } else {
        std::fill(out, out + s, T(0));
        for (int64_t k = begin; k < end; ++k) add_block(data.data + k * s * s, x.data + indices[k] * s, s, s, out);
      }
      if (cut) add_block(data.data + end * s * s, x.data + whole * s, s, x.size - whole * s, out);
    }
  }

  // put(row, value) for the products with x of the rows of block rows `first` to `last` − 1, of n rows in all.
  template <class F> void multiply(Array<const T> x, int64_t n, int64_t first, int64_t last, const F& put) const {
    const auto product = of_size(size, [](auto S) { return &Bsr::template rows_product<decltype(S)::value>; });
    const int64_t step = std::max<int64_t>(1, TILE / size);
    std::vector<T> products(step * size);
    T* const out = products.data();
    for (; first < last; first += step) {
      const int64_t end = std::min(last, first + step), row = first * size, count = std::min(n, end * size) - row;
      (this->*product)(x, first, end, out);
      for (int64_t t = 0; t < count; ++t) put(row + t, out[t]);
    }
  }

  // body(k, begin, end) for pieces of block rows from `first` to `last` − 1, and the k-th column of `group`, every k.
  template <class F> void pieces(Array<const int64_t> group, int64_t first, int64_t last, const F& body) const {
    const int64_t step = std::max<int64_t>(1, PIECE / size);
    for (; first < last; first += step)
      for (int64_t k = 0; k < group.size; ++k) body(k, first, std::min(last, first + step));
  }
};

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
             int64_t size, T alpha, T beta) {
  apply(Bsr<T, I>{indptr, indices, data, size}, x, y, alpha, beta);
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
                  Array<const T> w, Array<acc_t<T>> dots, int64_t size) {
  apply_dots(Bsr<T, I>{indptr, indices, data, size}, x, y, w, dots);
}

// y[j] = alpha A x[j] + beta y[j] for the columns j in `running`.
template <class T, class I>
void product_columns(Array<const int64_t> running, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                     Table<const T> x, Table<T> y, int64_t size, T alpha, T beta) {
  const Bsr<T, I> A{indptr, indices, data, size};
  each_group(running, reach(indptr, indices, size), sizeof(T), [=](Array<const int64_t> group) {
    ranges(A.units(), y.columns, [=](int64_t first, int64_t last) {
      A.pieces(group, first, last, [=](int64_t k, int64_t begin, int64_t end) {
        const Array<T> out = y[group[k]];
        A.multiply(x[group[k]], out.size, begin, end, [=](int64_t i, T value) {
          out[i] = beta == T(0) ? alpha * value : alpha * value + beta * out[i];
        });
      });
    });
  });
}

// y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in `running`.
template <class T, class I>
void product_dots_columns(Array<const int64_t> running, Array<const I> indptr, Array<const I> indices,
                          Array<const T> data, Table<const T> x, Table<T> y, Table<const T> w, Table<acc_t<T>> dots,
                          int64_t size) {
  const Bsr<T, I> A{indptr, indices, data, size};
  each_group(running, reach(indptr, indices, size), sizeof(T), [=](Array<const int64_t> group) {
    column_dots(group, y.columns, A.units(), dots, [=](int64_t first, int64_t last, auto* sums) {
      A.pieces(group, first, last, [=](int64_t k, int64_t begin, int64_t end) {
        const Array<T> out = y[group[k]];
        const Array<const T> own = w[group[k]];
        auto [wy, yy] = sums[k];
        A.multiply(x[group[k]], out.size, begin, end, [&](int64_t i, T value) {
          out[i] = value;
          wy += conj_product(own[i], value);
          yy += square(value);
        });
        sums[k] = {wy, yy};
      });
    });
  });
}

}  // namespace

KERNELS("swell.formats.bsr", VALUES_INDICES(product), VALUES_INDICES(product_dots), VALUES_INDICES(product_columns),
        VALUES_INDICES(product_dots_columns))
