// The matrices of a cycle, and its products, on a CPU, threads sharing the rows; see balancing.py one folder up.
//
// A matrix is its CSR arrays (indptr, indices, data). S is the type of the stored matrix that is written.
#include <math.h>

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/lanes.hpp"
#include "../../../formats/kernels/sums.hpp"

namespace {

// |z| by operations that a GPU rounds alike; it neither overflows nor underflows.
template <class R> R modulus(R z) { return fabs(z); }
template <class R> R modulus(complex<R> z) {
  if (z.im == 0) return fabs(z.re);
  const R largest = std::max(fabs(z.re), fabs(z.im)), a = z.re / largest, b = z.im / largest;
  return largest * sqrt(a * a + b * b);
}

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
template <class T, class I>
void correct(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const I> q_indptr,
             Array<const I> q_indices, Array<const T> q_data, int64_t width, Array<const T> b, Array<const T> coarse,
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
  ranges(n, n * n, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < width; ++c) {
        T lane[8] = {T(0), T(0), T(0), T(0), T(0), T(0), T(0), T(0)};
        int64_t j = 0;
        for (; j + 8 <= n; j += 8)
          for (int k = 0; k < 8; ++k) lane[k] += matrix[i * n + j + k] * x[(j + k) * width + c];
        for (int k = 0; j < n; ++j, ++k) lane[k] += matrix[i * n + j] * x[j * width + c];
        y[i * width + c] = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
      }
  });
}

}  // namespace

#define STORED(f, T, S) KERNEL(f, T, S, int32_t), KERNEL(f, T, S, int64_t)
KERNELS("swell.preconditioners.amg.cycle", VALUES_INDICES(l1_scales), STORED(smoothing_matrix, double, double),
        STORED(smoothing_matrix, double, float), STORED(smoothing_matrix, complex<double>, complex<double>),
        STORED(smoothing_matrix, complex<double>, complex<float>), VALUES_INDICES(balance),
        VALUES_INDICES(shared_rows), VALUES_INDICES(rows_product), VALUES_INDICES(correct), VALUES(dense_product))
