// CSR kernels on a CPU, threads sharing the rows; only GPU kernels use `lanes`. A is (indptr, indices, data).
//
// Products with several right-hand sides, tables with a row for each, take pieces of PIECE rows, and FOUR columns of x
// at a time: their sums overlap, and the matrix comes from memory once. `running` lists the columns to be computed;
// each has the bits of its own product.
#include <numeric>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "columns.hpp"
#include "rows.hpp"
#include "sums.hpp"

namespace {

constexpr int64_t FOUR = 4;            // columns of x that are treated together, by FourColumns
constexpr int64_t INSERTION = 64;      // entries up to which a row is sorted by insertion

// y = alpha A x + beta y; beta = 0 never reads y.
template <class T, class I>
void product(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
             int64_t lanes, T alpha, T beta) {
  const auto row = [=](int64_t i) { return row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]); };
  if (beta == T(0)) each(y.size, [=](int64_t i) { y[i] = alpha * row(i); });
  else each(y.size, [=](int64_t i) { y[i] = alpha * row(i) + beta * y[i]; });
}

// y = alpha A x + beta z + gamma w; gamma = 0 never reads w. y may be z or w.
template <class T, class I>
void product_sum(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x,
                 Array<const T> z, Array<const T> w, Array<T> y, int64_t lanes, T alpha, T beta, T gamma) {
  const auto sum = [=](int64_t i) {
    return alpha * row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]) + beta * z[i];
  };
  if (gamma == T(0)) each(y.size, [=](int64_t i) { y[i] = sum(i); });
  else each(y.size, [=](int64_t i) { y[i] = sum(i) + gamma * w[i]; });
}

// y = A x, dots[0] = (w, y), dots[1] = (y, y).
template <class T, class I>
void product_dots(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, Array<T> y,
                  Array<const T> w, Array<acc_t<T>> dots, int64_t lanes) {
  const auto [wy, yy] = row_sums<acc_t<T>, double>(y.size, [=](int64_t i, acc_t<T>& wy, double& yy) {
    const T value = row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]);
    y[i] = value;
    wy += conj_product(w[i], value);
    yy += square(value);
  });
  dots[0] = wy, dots[1] = acc_t<T>(yy);
}

// put(k, i, value) for the products `value` of rows i = begin to end − 1 with the k-th column of `group`.
template <class T, class I, class F>
void multiply(Array<const int64_t> group, Array<const I> indptr, Array<const I> indices, Array<const T> data,
              Table<const T> x, int64_t begin, int64_t end, const F& put) {
  for (int64_t first = 0; first < group.size; first += FOUR) {
    const int64_t last = group.size - 1, count = std::min(FOUR, group.size - first);
    const T* columns[FOUR];            // the last one stands for missing ones
    for (int64_t k = 0; k < FOUR; ++k) columns[k] = x[group[std::min(first + k, last)]].data;
    for (int64_t i = begin; i < end; ++i) {
      FourColumns<T> sums;
      int64_t e = indptr[i];
      const int64_t until = indptr[i + 1];
      for (; e + 1 < until; e += 2) sums.add(data.data + e, columns, indices[e], indices[e + 1]);
      if (e < until) sums.add_one(data.data + e, columns, indices[e]);
      T values[FOUR];
      sums.put(values);
      if (count == FOUR) {
#pragma GCC unroll 4
        for (int k = 0; k < FOUR; ++k) put(first + k, i, values[k]);
      } else {
        for (int k = 0; k < count; ++k) put(first + k, i, values[k]);
      }
    }
  }
}

// body(begin, end) for pieces of `n` rows.
template <class F> void pieces(int64_t n, const F& body) {
  ranges((n + PIECE - 1) / PIECE, n, [=](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) body(k * PIECE, std::min(n, (k + 1) * PIECE));
  });
}

// y[j] = alpha A x[j] + beta y[j] for the columns j in `running`.
template <class T, class I>
void product_columns(Array<const int64_t> running, Array<const I> indptr, Array<const I> indices, Array<const T> data,
                     Table<const T> x, Table<T> y, int64_t lanes, T alpha, T beta) {
  each_group(running, reach(indptr, indices), sizeof(T), [=](Array<const int64_t> group) {
    if (group.size == 1) return product<T, I>(indptr, indices, data, x[group[0]], y[group[0]], lanes, alpha, beta);
    pieces(y.columns, [=](int64_t begin, int64_t end) {
      multiply(group, indptr, indices, data, x, begin, end, [=](int64_t k, int64_t i, T value) {
        T& out = y[group[k]][i];
        out = beta == T(0) ? alpha * value : alpha * value + beta * out;
      });
    });
  });
}

// y[j] = alpha A x[j] + beta z[j] + gamma w[j] for the columns j in `running`; gamma = 0 never reads w.
template <class T, class I>
void product_sum_columns(Array<const int64_t> running, Array<const I> indptr, Array<const I> indices,
                         Array<const T> data, Table<const T> x, Table<const T> z, Table<const T> w, Table<T> y,
                         int64_t lanes, T alpha, T beta, T gamma) {
  each_group(running, reach(indptr, indices), sizeof(T), [=](Array<const int64_t> group) {
    if (const int64_t j = group[0]; group.size == 1)
      return product_sum<T, I>(indptr, indices, data, x[j], z[j], w[j], y[j], lanes, alpha, beta, gamma);
    pieces(y.columns, [=](int64_t begin, int64_t end) {
      multiply(group, indptr, indices, data, x, begin, end, [=](int64_t k, int64_t i, T value) {
        const int64_t j = group[k];
        const T sum = alpha * value + beta * z[j][i];
        y[j][i] = gamma == T(0) ? sum : sum + gamma * w[j][i];
      });
    });
  });
}

// y[j] = A x[j], dots[j] = ((w[j], y[j]), (y[j], y[j])) for the columns j in `running`.
template <class T, class I>
void product_dots_columns(Array<const int64_t> running, Array<const I> indptr, Array<const I> indices,
                          Array<const T> data, Table<const T> x, Table<T> y, Table<const T> w, Table<acc_t<T>> dots,
                          int64_t lanes) {
  each_group(running, reach(indptr, indices), sizeof(T), [=](Array<const int64_t> group) {
    if (const int64_t j = group[0]; group.size == 1)
      return product_dots<T, I>(indptr, indices, data, x[j], y[j], w[j], dots[j], lanes);
    column_dots(group, y.columns, y.columns, dots, [=](int64_t begin, int64_t end, auto* sums) {
      multiply(group, indptr, indices, data, x, begin, end, [=](int64_t k, int64_t i, T value) {
        y[group[k]][i] = value;
        sums[k].wy += conj_product(w[group[k]][i], value);
        sums[k].yy += square(value);
      });
    });
  });
}

// y[i] = maxⱼ |aᵢⱼ| xⱼ over the stored entries of row i, at least 0.
template <class T, class I, class R>
void maxima(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const R> x, Array<R> y) {
  each(y.size, [=](int64_t i) {
    R largest = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) largest = std::max<R>(largest, size(data[k]) * x[indices[k]]);
    y[i] = largest;
  });
}

// d = the diagonal; 0 for entries that are not stored.
template <class T, class I>
void diagonal(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<T> d) {
  each(d.size, [=](int64_t i) {
    const int64_t place = place_of(indices, indptr[i], indptr[i + 1], i);
    d[i] = place < indptr[i + 1] ? data[place] : T(0);
  });
}

// out = the values of diag(left) A diag(right), in the order of `data`.
template <class T, class I>
void scale(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const real_t<T>> left,
           Array<const real_t<T>> right, Array<T> out) {
  each(left.size, [=](int64_t i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) out[k] = left[i] * data[k] * right[indices[k]];
  });
}

// y[i] = Σⱼ |aᵢⱼ|.
template <class T, class I> void modulus_sums(Array<const I> indptr, Array<const T> data, Array<double> y) {
  each(y.size, [=](int64_t i) {
    double total = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) total += size(data[k]);
    y[i] = total;
  });
}

// The pattern with permuted rows and columns; columns ascend in each new row. `order`: the old row of each new row;
// `inverse`: its inverse. `new_indptr` is given. Writes `new_indices`, and `entry`, the old index of each new entry.
// Insertion sorts short rows.
template <class I, class P>
void permute(Array<const I> indptr, Array<const I> indices, Array<const P> order, Array<const P> inverse,
             Array<const I> new_indptr, Array<I> new_indices, Array<I> entry) {
  each(order.size, [=](int64_t t) {
    const int64_t begin = indptr[order[t]], length = indptr[order[t] + 1] - begin, first = new_indptr[t];
    if (length > INSERTION) {
      std::vector<I> sequence(length);
      std::iota(sequence.begin(), sequence.end(), I(begin));
      std::sort(sequence.begin(), sequence.end(), [=](I a, I b) { return inverse[indices[a]] < inverse[indices[b]]; });
      for (int64_t k = 0; k < length; ++k)
        new_indices[first + k] = I(inverse[indices[sequence[k]]]), entry[first + k] = sequence[k];
      return;
    }
    for (int64_t k = 0; k < length; ++k) {
      const I column = I(inverse[indices[begin + k]]);
      int64_t at = first + k;
      for (; at > first && new_indices[at - 1] > column; --at)
        new_indices[at] = new_indices[at - 1], entry[at] = entry[at - 1];
      new_indices[at] = column, entry[at] = I(begin + k);
    }
  });
}

}  // namespace

#define MAXIMA(T, R) INSTANCE(maxima, T, int32_t, R), INSTANCE(maxima, T, int64_t, R)
KERNELS("swell.formats.csr", VALUES_INDICES(product), VALUES_INDICES(product_sum), VALUES_INDICES(product_dots),
        VALUES_INDICES(product_columns), VALUES_INDICES(product_sum_columns), VALUES_INDICES(product_dots_columns),
        MAXIMA(double, double), MAXIMA(complex<double>, double), MAXIMA(float, float), MAXIMA(complex<float>, float),
        MAXIMA(float, double), MAXIMA(complex<float>, double), VALUES_INDICES(diagonal), VALUES_INDICES(scale),
        VALUES_INDICES(modulus_sums), INSTANCE(permute, int32_t, int32_t), INSTANCE(permute, int32_t, int64_t),
        INSTANCE(permute, int64_t, int32_t), INSTANCE(permute, int64_t, int64_t), PLAIN(group_size))
