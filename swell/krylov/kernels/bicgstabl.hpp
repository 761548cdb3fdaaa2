// Fused steps of BiCGSTAB(l), for both devices. Notation of bicgstabl.py.
//
// The recurrences use θ A, but a product writes A v. A kernel that reads a new product multiplies it by θ. The first
// kernel that writes the vector stores this result. The correction of x is multiplied by θ too.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by BiCGSTABL of krylov/slots.py. `R`, `U`: shape (l + 1, n),
// rows r̂_i and û_i. `j`: the BiCG step, 0 to l − 1. `sums`: (r̂_i, r̂_j), i ≤ j, by j. `c`: l + 1 coefficients of r̂_i
// and û_i, then the coefficients of r̂_i in x. `convex`: see BiCGSTABL. `w`: weights of norm², empty for all ones.
// `shadow`: r̃. Left sides of the formulas are written in place.
#include "basis.hpp"

namespace {

constexpr double DEPENDENT = 64 * EPS; // r̂_i depends on earlier ones if its squared rest is at most this part of it
constexpr int64_t MOST = 9;            // largest l + 1

template <class A> struct Coefficient { A rho, value; double theta; bool lost; };

// β = α ρ'/ρ, or 0 if ρ' is only rounding error.
template <class A> DEVICE Coefficient<A> beta_of(Array<A> s, int64_t j) {
  const double theta = j > 0 ? real(s[THETA]) : 1;
  const A rho = j > 0 ? theta * s[PROJECTED] : s[SIGMA], before = j > 0 ? s[RHO] : -s[OMEGA] * s[RHO];
  const bool lost = j > 0 ? vanishes(s[PROJECTED], real(s[SHADOW2]), real(s[PRODUCT2]))
      : vanishes(rho, real(s[SHADOW2]), real(s[RR]));
  return {rho, lost ? A(0) : s[ALPHA] * quotient(rho, before), theta, lost};
}

// β = α ρ'/ρ;  û_i = r̂_i − β û_i for i ≤ j.
// launch: columns of U, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T> KERNEL direction(Context* ctx, Table<const T> R, Table<T> U, Array<acc_t<T>> s, int64_t j) {
  Coefficient<acc_t<T>> b;
  packs(ctx, U[j], [&] {
    b = beta_of(s, j);
    const T beta(b.value), fresh_beta(b.theta * b.value);
    const real_t<T> fresh(b.theta);
    return [=](auto i) {
      for (int64_t k = 0; k < j; ++k) store(U[k], i, load(R[k], i) - beta * load(U[k], i));
      store(U[j], i, fresh * load(R[j], i) - fresh_beta * load(U[j], i));
    };
  }, [&] {
    s[RHO] = b.rho;
    if (b.lost) s[LOST] = 1;
  });
}

// α = ρ/γ, or 0 if γ is only rounding error.
template <class A> DEVICE Coefficient<A> alpha_of(Array<A> s) {
  const double known = real(s[THETA]), theta = known == 0 ? 1 / magnitude(real(s[UU]) / real(s[RR])) : known;
  const bool lost = vanishes(s[GAMMA], real(s[SHADOW2]), real(s[UU]));
  return {s[RHO], lost ? A(0) : s[RHO] / (theta * s[GAMMA]), theta, lost};
}

// α = ρ/γ;  r̂_i −= α û_i+1 for i ≤ j;  x += α θ û_0 if `add`, otherwise x = α θ û_0. With an M, x is the correction to
// which M is applied later.
// launch: elements of x, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL half(Context* ctx, Table<T> R, Table<const T> U, Array<T> x, Array<acc_t<T>> s, int64_t j, bool add) {
  Coefficient<acc_t<T>> a;
  packs(ctx, x, [&] {
    a = alpha_of(s);
    const T alpha(a.value), fresh_alpha(a.theta * a.value);
    const real_t<T> fresh(j > 0 ? a.theta : 1);
    return [=](auto i) {
      const auto move = fresh_alpha * load(U[0], i);
      if (add) store(x, i, load(x, i) + move);
      else store(x, i, move);
      for (int64_t k = 0; k < j; ++k) store(R[k], i, load(R[k], i) - alpha * load(U[k + 1], i));
      store(R[j], i, fresh * load(R[j], i) - fresh_alpha * load(U[j + 1], i));
    };
  }, [&] {
    s[ALPHA] = a.value, s[THETA] = a.theta;
    if (a.lost) s[LOST] = 1;
  });
}

// Write the coefficients c and ω from G = (r̂_i, r̂_j), and adapt θ. No DEVICE: to inline these loops takes minutes.
//
// On entry only the upper triangle of G is set; the lower one becomes its Cholesky factor.
template <class A> void solve(A (*G)[MOST], Array<A> c, Array<A> s, int64_t l, double convex) {
  A a[MOST], b[MOST];                                                    // minimal residual without r̂_l; shortest r̂_l
  double inverse[MOST];
  const double last = real(G[l][l]), theta = real(s[THETA]);
  for (int64_t i = 0; i <= l; ++i) a[i] = A(i == 0), b[i] = A(i == l);
  for (int64_t i = 1; i < l; ++i) {
    double left = real(G[i][i]);
    for (int64_t k = 1; k < i; ++k) {
      A entry = conj(G[k][i]);
      for (int64_t m = 1; m < k; ++m) entry -= G[i][m] * conj(G[k][m]);
      G[i][k] = inverse[k] * entry;
      left -= abs2(G[i][k]);
    }
    inverse[i] = left > DEPENDENT * real(G[i][i]) ? 1 / sqrt(left) : 0;
    a[i] = -conj(G[0][i]), b[i] = -G[i][l];
    for (int64_t k = 1; k < i; ++k) a[i] -= G[i][k] * a[k], b[i] -= G[i][k] * b[k];
    a[i] = inverse[i] * a[i], b[i] = inverse[i] * b[i];
  }
  for (int64_t i = l - 1; i > 0; --i) {
    for (int64_t k = i + 1; k < l; ++k) a[i] -= conj(G[k][i]) * a[k], b[i] -= conj(G[k][i]) * b[k];
    a[i] = inverse[i] * a[i], b[i] = inverse[i] * b[i];
  }
  A product = conj(G[0][l]);                                   // (b's vector, a's vector), and their squared lengths
  double of_a = real(G[0][0]), of_b = last;
  for (int64_t i = 1; i < l; ++i) {
    product += conj(G[i][l]) * a[i];
    of_a += real(G[0][i] * a[i]);
    of_b += real(conj(G[i][l]) * b[i]);
  }
  A omega(0);
  if (of_b > DEPENDENT * last) {
    omega = quotient(product, A(of_b));
    const double cosine = of_a > 0 ? modulus(product) / (sqrt(of_a) * sqrt(of_b)) : 1;
    if (cosine > 0 && cosine < convex) omega = convex / cosine * omega;
  }
  for (int64_t i = 0; i <= l; ++i) {
    c[i] = a[i] - omega * b[i];
    if (i > 0) c[l + i] = -theta * c[i];
  }
  c[l] = theta * c[l];
  s[OMEGA] = omega;
  if (omega == A(0)) s[LOST] = 1;
  double grown = 0;
  for (int64_t i = 1; i <= l; ++i) {
    const double before = real(G[i - 1][i - 1]), after = real(G[i][i]);
    if (before > 0) grown = max(grown, after / before);
  }
  if (grown > 1) s[THETA] = theta / magnitude(grown);
}

// Write the coefficients c of the residual polynomial, and ω and θ, from `sums`, added up over all ranks.
template <class A> void find(Array<const A> sums, Array<A> c, Array<A> s, int64_t l, double convex) {
  A G[MOST][MOST] = {};
  const double theta = real(s[THETA]);
  for (int64_t j = 0; j <= l; ++j)
    for (int64_t i = 0; i <= j; ++i) G[i][j] = sums[j * (j + 1) / 2 + i];
  for (int64_t i = 0; i <= l; ++i) G[i][l] = theta * G[i][l];
  G[l][l] = theta * G[l][l];
  solve(G, c, s, l, convex);
}

// launch: one block of 32 threads
template <class A>
KERNEL coefficients(Context* ctx, Array<const A> sums, Array<A> c, Array<A> s, int64_t l, double convex) {
  once(ctx, [=] { find(sums, c, s, l, convex); });
}

// Write all inner products of r̂_0 … r̂_l to `sums`; on a single rank, then the coefficients.
// launch: columns of R, 128 threads, a pack each, at most 2 blocks per multiprocessor
template <class T, int L = -1>
ROW_KERNEL polynomial(Context* ctx, Table<const T> R, Array<acc_t<T>> sums, Array<acc_t<T>> c, Array<acc_t<T>> s,
                      int64_t l, double convex, bool single_rank) {
  gram<L + 1>(ctx, R, sums, [=] {
    if (single_rank) find<acc_t<T>>(sums, c, s, l, convex);
  });
}

// r̂_0 = Σ c_i r̂_i;  û_0 = Σ c_i û_i;  x += Σ c_l+1+i r̂_i;  (r̃, r̂_0), (r̂_0, r̂_0), norm² = Σ w |r̂_0|².
// launch: elements of x, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL combine(Context* ctx, Table<T> R, Table<T> U, Array<const acc_t<T>> c, Array<const T> shadow,
               Array<const float> w, Array<T> x, Array<acc_t<T>> s, int64_t l) {
  packs<acc_t<T>, double, double>(ctx, x, [=] {
    return [=](auto i, auto& rho, auto& rr, auto& norm2) {
      auto r = load(R[0], i), u = load(U[0], i), sum = load(x, i);
      sum = sum + T(c[l + 1]) * r;
      for (int64_t k = 1; k <= l; ++k) {
        const auto of_r = load(R[k], i);
        const T by(c[k]);
        r = r + by * of_r, u = u + by * load(U[k], i);
        if (k < l) sum = sum + T(c[l + 1 + k]) * of_r;
      }
      store(R[0], i, r), store(U[0], i, u), store(x, i, sum);
      const auto square = abs2(wide(r));
      rho += conj(wide(load(shadow, i))) * wide(r);
      rr += square, norm2 += w.size ? wide(load(w, i)) * square : square;
    };
  }, [=](acc_t<T> rho, double rr, double norm2) { s[SIGMA] = rho, s[RR] = rr, s[NORM2] = norm2; });
}

// Test this iteration for convergence; after a breakdown (s[LOST]) stop the run.
// launch: one block of 32 threads
template <class A> KERNEL settle(Context* ctx, Array<A> s) {
  once(ctx, [=] {
    const bool lost = s[LOST] != A(0);
    s[LOST] = 0;
    judge(ctx, real(s[NORM2]));
    if (!over(ctx) && lost) halt(ctx, isfinite(real(s[UU])) ? BREAKDOWN : NONFINITE);
  });
}

}  // namespace

KERNELS("swell.krylov.bicgstabl", VALUES(direction), VALUES(half), VALUES(polynomial), SUMS(coefficients),
        VALUES(combine), SUMS(settle))
