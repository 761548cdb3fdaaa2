// Checks of systems with few rows, each in one call and one thread: of a matrix as it came, and of its solution.
//
// residual.cpp has the verdict's numbers: r = b − A x and t = |A||x| + |b| in double precision, or r in doubled
// precision. Here the matrix may also be read as its transpose, or conjugated: factors solve with these, too.
#include <cmath>
#include <vector>

#include "../../core/native/launcher.hpp"
#include "doubled.hpp"
#include "rows.hpp"

namespace {

// True if the arrays are a square matrix in CSR, or CSC, whose indices ascend in each row without duplicates, and whose
// values are finite.
template <class T, class I> bool is_sound(Array<const I> indptr, Array<const I> indices, Array<const T> data) {
  const int64_t n = indptr.size - 1;
  if (n < 1 || indptr[0] != 0 || indptr[n] != indices.size || indices.size != data.size) return false;
  for (int64_t i = 0; i < n; ++i)
    if (indptr[i] > indptr[i + 1] || indptr[i + 1] > indices.size) return false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t e = indptr[i], last = -1; e < indptr[i + 1]; last = indices[e++])
      if (indices[e] <= last || indices[e] >= n) return false;
  double sum = 0;
  for (int64_t e = 0; e < data.size; ++e) sum += 0 * size(data[e]);          // NaN after Inf and NaN
  return sum == 0;
}

inline double square(double a) { return a * a; }
inline double square(complex<double> a) { return a.re * a.re + a.im * a.im; }

// The larger one; NaN if one is NaN.
inline double larger(double most, double a) { return a > most || a != a ? a : most; }

// r −= A x, terms += |A||x| and sums += Σⱼ |aᵢⱼ|. Conditions are types: they would cost more than the arithmetic.
template <bool transposed, bool precise, class T, class I>
void subtract_product(Array<const I> indptr, Array<const I> indices, Array<const T> data, bool conjugated,
                      Array<const T> x, T* r, T* low, double* terms, double* sums) {
  for (int64_t i = 0, n = indptr.size - 1; i < n; ++i) {
    T high = r[i], rest = precise ? low[i] : T(0);
    double term = terms[i], sum = sums[i];
    const T of_x = x[i];
    const double size_x = size(of_x);
    for (int64_t e = indptr[i]; e < indptr[i + 1]; ++e) {
      const int64_t j = indices[e];
      const T a = conjugated ? conj(data[e]) : data[e], by = transposed ? of_x : x[j];
      const double size_a = size(a);
      if constexpr (transposed) {
        if constexpr (precise) subtract(r[j], low[j], a, by);
        else r[j] -= a * by;
        terms[j] += size_a * size_x, sums[j] += size_a;
      } else {
        if constexpr (precise) subtract(high, rest, a, by);
        else high -= a * by;
        term += size_a * size(by), sum += size_a;
      }
    }
    if constexpr (!transposed) {
      r[i] = high, terms[i] = term, sums[i] = sum;
      if constexpr (precise) low[i] = rest;
    }
  }
}

// The largest ‖r‖₂/‖t‖₂ of a group of rows. Rows of one group have sums within three decades (solving/measure.py).
template <class T> double of_groups(const std::vector<double>& terms, const std::vector<double>& sums, Array<T> r) {
  constexpr int GROUPS = 32;
  constexpr double DECADES = 3;
  double rr[GROUPS] = {}, tt[GROUPS] = {}, most = 0, largest = 0;
  for (double sum : sums) largest = larger(largest, sum);
  for (int64_t i = 0; i < r.size; ++i) {
    const double group = std::floor(std::log10(largest / sums[i]) / DECADES);
    const int g = group < GROUPS - 1 ? int(group) : GROUPS - 1;            // the last one for empty rows
    rr[g] += square(r[i]), tt[g] += square(terms[i]);
  }
  for (int g = 0; g < GROUPS; ++g)
    if (rr[g] != 0) most = larger(most, std::sqrt(rr[g] / tt[g]));
  return most;
}

// Writes r, and returns Σ|bᵢ|², Σ|rᵢ|², Σtᵢ², max |xᵢ| and the quality of rows, of A, Aᵀ (`transposed`) or their
// conjugates. This quality is max |rᵢ|/tᵢ if that is at most `enough`, and else that of groups of rows.
template <class T, class I>
std::tuple<double, double, double, double, double> measure(
    Array<const I> indptr, Array<const I> indices, Array<const T> data, bool transposed, bool conjugated,
    Array<const T> b, Array<const T> x, Array<T> r, bool precise, double enough) {
  const int64_t n = b.size;
  std::vector<T> low(precise ? n : 0, T(0));
  std::vector<double> terms(n), sums(n, 0.0);
  double bb = 0, rr = 0, tt = 0, most_x = 0, ratio = 0;
  for (int64_t i = 0; i < n; ++i) {
    r[i] = b[i], terms[i] = size(b[i]);
    bb += square(b[i]), most_x = larger(most_x, size(x[i]));
  }
  const auto product =
      transposed ? precise ? subtract_product<true, true, T, I> : subtract_product<true, false, T, I>
                 : precise ? subtract_product<false, true, T, I> : subtract_product<false, false, T, I>;
  product(indptr, indices, data, conjugated, x, &r[0], low.data(), terms.data(), sums.data());
  for (int64_t i = 0; i < n; ++i) {
    if (precise) r[i] += low[i];
    rr += square(r[i]), tt += square(terms[i]);
    if (const double of_r = size(r[i]); of_r != 0) ratio = larger(ratio, of_r / terms[i]);
  }
  return {bb, rr, tt, most_x, ratio <= enough ? ratio : of_groups(terms, sums, r)};
}

}  // namespace

#define TYPES(f, I) INSTANCE(f, double, I), INSTANCE(f, complex<double>, I)
KERNELS("swell.formats.few_rows", TYPES(is_sound, int32_t), TYPES(is_sound, int64_t), TYPES(measure, int32_t),
        TYPES(measure, int64_t))
