// Sweeps that update each row by itself, on a CPU, in modified SELL; pointwise.cu has them for a GPU.
//
// `slice_ptr`, `diag`, `entries`, `col_idx`: the matrix in slices of `height` rows (formats/modified_sell.py).
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// body(i, residual) for each row i, with its entry of b − A x; with `zero` x counts as 0, not read.
template <class T, class I, class F>
void with_residuals(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
                    Array<const T> b, Array<const T> x, int64_t zero, int64_t height, const F& body) {
  if (zero) return each(diag.size, [=](int64_t i) { body(i, b[i]); });
  ranges(slice_ptr.size - 1, diag.size, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s * height, stop = slice_ptr[s + 1];
      for (int64_t i = first; i < std::min(first + height, diag.size); ++i) {
        T total = b[i] - diag[i] * x[i];
        for (int64_t at = slice_ptr[s] + i - first; at < stop; at += height) {
          const int64_t c = col_idx[at];
          if (c == 0) break;
          total -= entries[at] * x[c < 0 ? first - c - 1 : c - 1];
        }
        body(i, total);
      }
    }
  });
}

// out = x + ω D⁻¹ (b − A x), ω = `omega`; with `zero` x counts as 0, not read.
template <class T, class I>
void jacobi(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
            Array<const T> b, Array<const T> x, Array<T> out, T omega, int64_t zero, int64_t height) {
  with_residuals(slice_ptr, diag, entries, col_idx, b, x, zero, height, [=](int64_t i, T residual) {
    const T step = omega * residual / diag[i];
    out[i] = zero ? step : x[i] + step;
  });
}

// d = c₀ d + c₁ D⁻¹ (b − A x); out = x + d. Writes d and `out`.
//
// `coefficients`: c₀ and c₁ of each step, in turn. `step`: number of the step; step 0 does not read d. With `zero` x
// counts as 0 and is not read.
template <class T, class I>
void chebyshev(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
               Array<const T> b, Array<const T> x, Array<T> out, Array<T> d, Array<const double> coefficients,
               int64_t step, int64_t zero, int64_t height) {
  const double before = coefficients[2 * step], now = coefficients[2 * step + 1];
  with_residuals(slice_ptr, diag, entries, col_idx, b, x, zero, height, [=](int64_t i, T residual) {
    acc_t<T> move = now * acc_t<T>(residual / diag[i]);
    if (step) move += before * acc_t<T>(d[i]);
    d[i] = T(move);
    out[i] = T(zero ? move : acc_t<T>(x[i]) + move);
  });
}

}  // namespace

KERNELS("swell.smoothers.pointwise", VALUES_INDICES(jacobi), VALUES_INDICES(chebyshev))
