// Fused steps of Golub–Kahan bidiagonalisation on a CPU; golub_kahan.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by Bidiagonal of least_squares/slots.py. Vectors have the
// names of least_squares/golub_kahan.py. A kernel writes the left sides of its formulas in place, vectors into the arrays and
// scalars into `s`. A prime marks the value for the next step.
#include "slots/swell/least_squares/golub_kahan.hpp"

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// β' = ‖u‖; α = β = 0; keep the limits `allowed` and `normal`.
template <class T> void first(Context* ctx, Array<const T> u, Array<acc_t<T>> s, double allowed, double normal) {
  using A = acc_t<T>;
  const auto [uu] = sums<double>(u.size, [=](auto i, auto& uu) { add(uu, i, abs2(wide(load(u, i)))); });
  s[ALPHA] = s[BETA] = A(0);
  s[NEXT_BETA] = A(sqrt(uu)), s[ALLOWED] = A(allowed), s[NORMAL] = A(normal);
}

// out = of_new fresh − of_old out; return ‖out‖.
template <class T> double combine(Array<const T> fresh, Array<T> out, real_t<T> of_new, real_t<T> of_old) {
  const auto [norm2] = sums<double>(out.size, [=](auto i, auto& norm2) {
    const auto value = of_new * load(fresh, i) - of_old * load(out, i);
    store(out, i, value);
    add(norm2, i, abs2(wide(value)));
  });
  return sqrt(norm2);
}

// u = A v/α − (α/β) u; β' = ‖u‖. Av: A v.
template <class T> void left(Context* ctx, Array<const T> Av, Array<T> u, Array<acc_t<T>> s) {
  const double alpha = real(s[ALPHA]), beta = real(s[BETA]);
  s[NEXT_BETA] = acc_t<T>(combine<T>(Av, u, real_t<T>(quotient(1.0, alpha)), real_t<T>(quotient(alpha, beta))));
}

// v = Aᴴ u/β' − (β'/α) v; α' = ‖v‖. Au: Aᴴ u.
template <class T> void right(Context* ctx, Array<const T> Au, Array<T> v, Array<acc_t<T>> s) {
  const double alpha = real(s[ALPHA]), beta = real(s[NEXT_BETA]);
  s[NEXT_ALPHA] = acc_t<T>(combine<T>(Au, v, real_t<T>(quotient(1.0, beta)), real_t<T>(quotient(beta, alpha))));
}

}  // namespace

KERNELS("swell.least_squares.golub_kahan", VALUES(first), VALUES(left), VALUES(right))
