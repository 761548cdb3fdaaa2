// Fused steps of Golub–Kahan bidiagonalisation, for both devices.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by Bidiagonal of least_squares/slots.py. Vectors have the
// names of least_squares/golub_kahan.py. A kernel writes the left sides of its formulas in place, vectors into the
// arrays and scalars into `s`. A prime marks the value for the next step.
#include "step.hpp"

namespace {

// β' = ‖u‖; α = β = 0; keep the limits `allowed` and `normal`.
// launch: elements of u, 512 threads, a pack each, at most 4 blocks per multiprocessor
template <class T> KERNEL first(Context* ctx, Array<const T> u, Array<acc_t<T>> s, double allowed, double normal) {
  step<double>(ctx, vectors(u), [=] {
    return [=](auto u, auto& uu) { uu += abs2(wide(u)); };
  }, [=](double uu) { s[ALPHA] = s[BETA] = 0, s[NEXT_BETA] = sqrt(uu), s[ALLOWED] = allowed, s[NORMAL] = normal; });
}

// u = A v/α − (α/β) u; β' = ‖u‖. Av: A v.
// launch: elements of u, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T> KERNEL left(Context* ctx, Array<const T> Av, Array<T> u, Array<acc_t<T>> s) {
  step<double>(ctx, vectors(Av, u), [=] {
    const double alpha = real(s[ALPHA]);
    const real_t<T> of_v(quotient(1.0, alpha)), of_u(quotient(alpha, real(s[BETA])));
    return [=](auto Av, auto& u, auto& uu) {
      u = of_v * Av - of_u * u;
      uu += abs2(wide(u));
    };
  }, [=](double uu) { s[NEXT_BETA] = sqrt(uu); });
}

// v = Aᴴ u/β' − (β'/α) v; α' = ‖v‖. Au: Aᴴ u.
// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T> KERNEL right(Context* ctx, Array<const T> Au, Array<T> v, Array<acc_t<T>> s) {
  step<double>(ctx, vectors(Au, v), [=] {
    const double beta = real(s[NEXT_BETA]);
    const real_t<T> of_u(quotient(1.0, beta)), of_v(quotient(beta, real(s[ALPHA])));
    return [=](auto Au, auto& v, auto& vv) {
      v = of_u * Au - of_v * v;
      vv += abs2(wide(v));
    };
  }, [=](double vv) { s[NEXT_ALPHA] = sqrt(vv); });
}

}  // namespace

KERNELS("swell.least_squares.golub_kahan", VALUES(first), VALUES(left), VALUES(right))
