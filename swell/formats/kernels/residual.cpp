// The true residual of a CSR system and the size of its rounding errors, on a CPU; residual.cu is for GPUs.
//
// r = b − A x and t = |A||x| + |b|, row by row, in double precision for every type of A: a computed rᵢ differs from the
// exact one by at most about mᵢ eps tᵢ, with mᵢ entries in row i. `precise` computes r with a small multiple of eps² in
// place of eps: every product and every sum keeps its rounding error (Ogita, Rump and Oishi, "Accurate sum and dot
// product", SIAM J. Sci. Comput. 26, 2005, algorithm Dot2). The compiler may reorder and fuse nothing here.
//
// A matrix across ranks adds its entries in ghost columns by a second call, with `boundary`: the row of each row of A.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "doubled.hpp"
#include "rows.hpp"

namespace {

// r = b − A x and terms = |A||x| + |b|; x has A's type or r's. With `boundary`, of A's length: r[boundary] −= A x,
// terms[boundary] += |A||x|, and b is not read.
template <class T, class X, class I>
void residual(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const int32_t> boundary,
              Array<const X> x, Array<const acc_t<T>> b, Array<acc_t<T>> r, Array<double> terms) {
  each(indptr.size - 1, [=](int64_t k) {
    const int64_t i = boundary.size ? boundary[k] : k;
    acc_t<T> value = boundary.size ? r[i] : b[i];
    double sum = boundary.size ? terms[i] : size(b[i]);
    for (int64_t e = indptr[k]; e < indptr[k + 1]; ++e) {
      const acc_t<T> product = acc_t<T>(data[e]) * acc_t<T>(x[indices[e]]);
      value -= product, sum += size(product);
    }
    r[i] = value, terms[i] = sum;
  });
}

// r + low = b − A x, as two numbers a row: the sum and its rounding error. `boundary`: as for `residual`.
template <class T, class X, class I>
void precise(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const int32_t> boundary,
             Array<const X> x, Array<const acc_t<T>> b, Array<acc_t<T>> r, Array<acc_t<T>> low) {
  each(indptr.size - 1, [=](int64_t k) {
    const int64_t i = boundary.size ? boundary[k] : k;
    acc_t<T> high = boundary.size ? r[i] : b[i], rest = boundary.size ? low[i] : 0.0 * b[i];
    for (int64_t e = indptr[k]; e < indptr[k + 1]; ++e)
      subtract(high, rest, acc_t<T>(data[e]), acc_t<T>(x[indices[e]]));
    r[i] = high, low[i] = rest;
  });
}

// The bits of |a|: integers in the order of the numbers, and NaN is the largest.
inline int64_t bits(double a) {
  int64_t held;
  a = fabs(a);
  memcpy(&held, &a, sizeof held);
  return held;
}
inline double number(int64_t bits) {
  double held;
  memcpy(&held, &bits, sizeof held);
  return held;
}

// The sums and maxima of `assess` over some rows.
struct Sizes {
  double rr = 0, tt = 0;
  int64_t most_r = 0, most_x = 0, ratio = 0;     // `bits` of the maxima

  explicit Sizes(int = 0) {}
  Sizes& operator+=(const Sizes& more) {
    rr += more.rr, tt += more.tt;
    most_r = std::max(most_r, more.most_r), most_x = std::max(most_x, more.most_x);
    ratio = std::max(ratio, more.ratio);
    return *this;
  }
};

// out = Σ|rᵢ|², Σtᵢ², max |rᵢ|, max |xᵢ|, max |rᵢ|/tᵢ, with t = `terms`; NaN if any of them meets NaN.
template <class A, class X>
void assess(Array<const A> r, Array<const double> terms, Array<const X> x, Array<double> out) {
  const auto [sizes] = row_sums<Sizes>(r.size, [=](int64_t i, Sizes& sizes) {
    const double of_r = size(r[i]), t = terms[i];
    sizes.rr += of_r * of_r, sizes.tt += t * t;
    sizes.most_r = std::max(sizes.most_r, bits(of_r)), sizes.most_x = std::max(sizes.most_x, bits(size(x[i])));
    if (of_r != 0) sizes.ratio = std::max(sizes.ratio, bits(of_r / t));
  });
  out[0] = sizes.rr, out[1] = sizes.tt;
  out[2] = number(sizes.most_r), out[3] = number(sizes.most_x), out[4] = number(sizes.ratio);
}

}  // namespace

#define TYPES(f, I) INSTANCE(f, double, double, I), INSTANCE(f, float, float, I), INSTANCE(f, float, double, I), \
    INSTANCE(f, complex<double>, complex<double>, I), INSTANCE(f, complex<float>, complex<float>, I), \
    INSTANCE(f, complex<float>, complex<double>, I)
KERNELS("swell.formats.residual", TYPES(residual, int32_t), TYPES(residual, int64_t), TYPES(precise, int32_t),
        TYPES(precise, int64_t), INSTANCE(assess, double, double), INSTANCE(assess, double, float),
        INSTANCE(assess, complex<double>, complex<double>), INSTANCE(assess, complex<double>, complex<float>))
