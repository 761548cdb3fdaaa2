// The two projections of deflation, for both devices.
//
// The rows of V, U and W are vectors of type B: T, or single precision. All arithmetic has T's precision; sums are in
// double precision.
#include "basis.hpp"
#include "entries.hpp"

namespace {

// Write sums[j] = the product of row j of V with x, Σ V_jk x_k; with `conjugate`, Σ conj(V_jk) x_k.
// launch: 2 blocks per multiprocessor of 256 threads, 16 bytes at once
template <class T, class B>
ROW_KERNEL dots(Device device, Table<const B> V, Array<const T> x, Array<acc_t<T>> sums, bool conjugate) {
  products(device, V, x, sums, conjugate);
}

// Write y = E⁻¹ s; if `again`, y = y − E⁻¹ s with the y on entry. `inverse` is E⁻¹, k × k; `sums` is s.
// launch: elements of y, 256 threads, a warp each
template <class A>
ROW_KERNEL coefficients(Device device, Table<const A> inverse, Array<const A> sums, Array<A> y, bool again) {
  lines(device, y.size, y.size, [=](auto row) {
    A total = again && row.first() ? -y[row.i] : A(0);
    row.each([&](int64_t j) { total += inverse[row.i][j] * sums[j]; });
    total = row.sum(total);
    y[row.i] = again ? -total : total;
  });
}

// Write out = x − Σ y_j W_j, with the rows W_j of W; with `conjugate`, the conjugates of W_j.
// launch: elements of out, 256 threads, a pack each
template <class T, class B>
ROW_KERNEL subtract(Device device, Table<const B> W, Array<const acc_t<T>> y, Array<const T> x, Array<T> out,
                    bool conjugate) {
  plus_rows(device, x, -1, y, W, conjugate, [=](auto i, auto sum) { store(out, i, sum); });
}

// Write out = α (z + Σ y_j U_j) + β out, with the rows U_j of U; with `conjugate`, the conjugates of U_j. β = 0 never
// reads out.
// launch: elements of out, 256 threads, a pack each
template <class T, class B>
ROW_KERNEL correct(Device device, Table<const B> U, Array<const acc_t<T>> y, Array<const T> z, Array<T> out, T alpha,
                   T beta, bool conjugate) {
  if (beta == T(0)) plus_rows(device, z, 1, y, U, conjugate, [=](auto i, auto sum) { store(out, i, alpha * sum); });
  else plus_rows(device, z, 1, y, U, conjugate, [=](auto i, auto sum) {
    store(out, i, alpha * sum + beta * load(out, i));
  });
}

// Write W = P₀ + t P₁ + t² P₂, arrays of one shape; t is a number.
// launch: columns of W, 256 threads
template <class B>
ROW_KERNEL polynomial(Device device, Table<const B> P0, Table<const B> P1, Table<const B> P2, double t, Table<B> W) {
  for (int64_t j = 0; j < W.rows; ++j) {
    const Array<const B> p0 = P0[j], p1 = P1[j], p2 = P2[j];
    const Array<B> w = W[j];
    rows(device, w.size, [=](int64_t k) { w[k] = B(wide(p0[k]) + t * (wide(p1[k]) + t * wide(p2[k]))); });
  }
}

}  // namespace

#define SINGLE(f) INSTANCE(f, double, float), INSTANCE(f, float, float), INSTANCE(f, complex<double>, complex<float>), \
    INSTANCE(f, complex<float>, complex<float>)
#define BASES(f) SINGLE(f), INSTANCE(f, double, double), INSTANCE(f, complex<double>, complex<double>)
KERNELS("swell.preconditioners.deflation", BASES(dots), SUMS(coefficients), BASES(subtract), SINGLE(correct),
        INSTANCE(polynomial, float), INSTANCE(polynomial, complex<float>))
