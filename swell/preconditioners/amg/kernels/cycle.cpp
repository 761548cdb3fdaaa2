// The matrices of a cycle, and its products, on a CPU, threads sharing the rows; see balancing.py one folder up.
//
// A matrix is its CSR arrays (indptr, indices, data). S is the type of the stored matrix that is written.
#include <math.h>

#include <vector>

#include "../../../core/kernels/modulus.hpp"
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/lanes.hpp"
#include "../../../formats/kernels/sums.hpp"

namespace {

// scales[i] = √(ω / Σⱼ |aᵢⱼ|) for each row; 1 for an empty row.
template <class T, class I>
void l1_scales(Array<const I> indptr, Array<const T> data, double omega, Array<double> scales) {
  each(scales.size, [=](int64_t i) {
    double moduli = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) moduli += modulus(data[k]);
    scales[i] = moduli > 0 ? sqrt(omega / moduli) : 1.0;
  });
}

// out = the values of S = I − D A D on the pattern of A, with D = diag(scales).
template <class T, class S, class I>
void smoothing_matrix(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const double> scales,
                      Array<S> out) {
  each(scales.size, [=](int64_t i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      out[k] = S(acc_t<T>(i == j ? 1.0 : 0.0) - scales[j] * (scales[i] * acc_t<T>(data[k])));
    }
  });
}

// out = the values of diag(fine)⁻¹ P diag(coarse) on the pattern of P; 0 in rows with fine[i] = 0.
template <class S, class I>
void balance(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const double> fine,
             Array<const double> coarse, Array<S> out) {
  each(fine.size, [=](int64_t i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      out[k] = S(real_t<S>(fine[i] > 0 ? data[k] / fine[i] * coarse[indices[k]] : 0.0));
  });
}

// out = the values of diag(coarse) R diag(fine)⁻¹ on R's pattern; 0 in columns with fine[j] = 0.
template <class S, class I>
void balance_restriction(Array<const I> indptr, Array<const I> indices, Array<const double> data,
                         Array<const double> fine, Array<const double> coarse, Array<S> out) {
  each(coarse.size, [=](int64_t i) {
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const double own = fine[indices[k]];
      out[k] = S(real_t<S>(own > 0 ? coarse[i] * data[k] / own : 0.0));
    }
  });
}

// out = the values of Q = (D⁻¹ P − D A P) D_c on the pattern of A P (indptr, indices, data), which contains P's
// pattern. fine and coarse: the diagonals of D and D_c.
template <class T, class S, class I, class J>
void smoothed_interpolation(Array<const I> indptr, Array<const I> indices, Array<const T> data,
                            Array<const J> p_indptr, Array<const J> p_indices, Array<const double> p_data,
                            Array<const double> fine, Array<const double> coarse, Array<S> out) {
  each(fine.size, [=](int64_t i) {
    int64_t at = p_indptr[i];
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const bool own = at < p_indptr[i + 1] && p_indices[at] == indices[k];
      const double value = own && fine[i] > 0 ? p_data[at] / fine[i] : 0.0;
      out[k] = S((acc_t<T>(value) - fine[i] * data[k]) * coarse[indices[k]]);
      at += own;
    }
  });
}

// Set scales[r] = 0 for each row r of the next level whose diagonal entry there is at most `singular` times
// Σ (pᵢᵣ / fine[i])². indptr, indices, data: Pᵀ. fine: this level's scales, 0 for rows left out. c_…: the next level's
// matrix.
template <class T, class I, class J>
void drop_rounding(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const double> fine,
                   Array<const J> c_indptr, Array<const J> c_indices, Array<const T> c_data, double singular,
                   Array<double> scales) {
  each(scales.size, [=](int64_t r) {
    double bound = 0;
    for (int64_t k = indptr[r]; k < indptr[r + 1]; ++k) {
      const double own = fine[indices[k]], part = own > 0 ? data[k] / own : 0.0;
      bound += part * part;
    }
    T diagonal(0);
    for (int64_t k = c_indptr[r]; k < c_indptr[r + 1]; ++k)
      if (c_indices[k] == r) {
        diagonal = c_data[k];
        break;
      }
    if (modulus(diagonal) <= singular * bound) scales[r] = 0;
  });
}

// y = alpha A x + beta z + gamma w. beta = 0 reads neither z nor w, gamma = 0 never w. y may be z or w. `lanes`:
// threads of a GPU that share a row.
template <class T, class I>
void shared_rows(Array<const I> indptr, Array<const I> indices, Array<const T> data, int64_t lanes, Array<const T> x,
                 T alpha, T beta, T gamma, Array<const T> z, Array<const T> w, Array<T> y) {
  each(indptr.size - 1, [=](int64_t i) {
    T total = alpha * row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]);
    if (beta != T(0)) total += beta * z[i] + (gamma != T(0) ? gamma * w[i] : T(0));
    y[i] = total;
  });
}

// Σ data[k] x[indices[k], c] over row i, for x with `width` columns, stored row after row.
template <class T, class I>
T of_column(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> x, int64_t width,
            int64_t i, int64_t c) {
  if (width == 1) return row_product(indices.data, data.data, x.data, indptr[i], indptr[i + 1]);
  T total(0);
  for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) total += data[k] * x[indices[k] * width + c];
  return total;
}

// y = A x. x and y have `width` columns and are stored row after row.
template <class T, class I>
void rows_product(Array<const I> indptr, Array<const I> indices, Array<const T> data, int64_t width, Array<const T> x,
                  Array<T> y) {
  each(indptr.size - 1, [=](int64_t i) {
    for (int64_t c = 0; c < width; ++c) y[i * width + c] = of_column(indptr, indices, data, x, width, i, c);
  });
}

// x = b + S b + Q c for matrices S (indptr, indices, data) and Q (q_…); c is `coarse`. x, b and c have `width` columns
// and are stored row after row.
template <class T, class I, class J>
void correct(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const J> q_indptr,
             Array<const J> q_indices, Array<const T> q_data, int64_t width, Array<const T> b, Array<const T> coarse,
             Array<T> x) {
  each(indptr.size - 1, [=](int64_t i) {
    for (int64_t c = 0; c < width; ++c)
      x[i * width + c] = b[i * width + c] + (of_column(indptr, indices, data, b, width, i, c) +
                                             of_column(q_indptr, q_indices, q_data, coarse, width, i, c));
  });
}

// y = G x for a square matrix G. G, x and y are stored row after row; x and y have `width` columns.
template <class T> void dense_product(Array<const T> matrix, int64_t width, Array<const T> x, Array<T> y) {
  const int64_t n = x.size / width;
  std::vector<T> columns;                        // x, column after column
  for (int64_t c = 0; width > 1 && c < width; ++c)
    for (int64_t j = 0; j < n; ++j) columns.push_back(x[j * width + c]);
  const T* const from = width > 1 ? columns.data() : x.data;
  ranges(n, n * n, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < width; ++c) {
        const Array<const T> row{matrix.data + i * n, n}, column{from + c * n, n};
        auto total = load(row, Tail{0, 0}), other = total;                     // 0
        int64_t j = 0;
        for (; j + 2 * LANES <= n; j += 2 * LANES) {
          total = total + load(row, Lanes{j}) * load(column, Lanes{j});
          other = other + load(row, Lanes{j + LANES}) * load(column, Lanes{j + LANES});
        }
        T lane[LANES];
        store_pack(lane, total + other);
        for (; j < n; ++j) lane[j % LANES] += row[j] * column[j];
        for (int apart = LANES / 2; apart; apart /= 2)
          for (int k = 0; k < apart; ++k) lane[k] += lane[k + apart];
        y[i * width + c] = lane[0];
      }
  });
}

}  // namespace

#define STORED(f, T, S) INSTANCE(f, T, S, int32_t), INSTANCE(f, T, S, int64_t)
#define MIXED(f, ...) INSTANCE(f, __VA_ARGS__, int32_t, int32_t), INSTANCE(f, __VA_ARGS__, int64_t, int64_t), \
    INSTANCE(f, __VA_ARGS__, int64_t, int32_t), INSTANCE(f, __VA_ARGS__, int32_t, int64_t)
KERNELS("swell.preconditioners.amg.cycle", VALUES_INDICES(l1_scales), STORED(smoothing_matrix, double, double),
        STORED(smoothing_matrix, double, float), STORED(smoothing_matrix, complex<double>, complex<double>),
        STORED(smoothing_matrix, complex<double>, complex<float>), VALUES_INDICES(balance),
        VALUES_INDICES(balance_restriction), MIXED(smoothed_interpolation, double, double),
        MIXED(smoothed_interpolation, double, float), MIXED(smoothed_interpolation, complex<double>, complex<double>),
        MIXED(smoothed_interpolation, complex<double>, complex<float>), MIXED(drop_rounding, double),
        MIXED(drop_rounding, complex<double>), VALUES_INDICES(shared_rows), VALUES_INDICES(rows_product),
        MIXED(correct, double), MIXED(correct, float), MIXED(correct, complex<double>), MIXED(correct, complex<float>),
        VALUES(dense_product))
