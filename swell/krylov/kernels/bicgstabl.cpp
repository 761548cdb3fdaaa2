// Fused steps of BiCGSTAB(l) on a CPU; bicgstabl.cu has the same kernels for a GPU. Notation of bicgstabl.py.
//
// The recurrences use θ A, but a product writes A v. A kernel that reads a new product multiplies it by θ. The first
// kernel that writes the vector stores this result. The correction of x is multiplied by θ too.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by BiCGSTABL of krylov/slots.py. `R`, `U`: shape (l + 1, n),
// rows r̂_i and û_i. `j`: the BiCG step, 0 to l − 1. `sums`: (r̂_i, r̂_j), i ≤ j, by j. `c`: l + 1 coefficients of r̂_i
// and û_i, then the coefficients of r̂_i in x. `convex`: see BiCGSTABL. `w`: weights of norm², empty for all ones.
// `shadow`: r̃. Left sides of the formulas are written in place.
#include "slots/swell/krylov/bicgstabl.hpp"

#include <vector>

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "../../core/native/products.hpp"
#include "weights.hpp"

namespace {

constexpr double DEPENDENT = 64 * EPS; // r̂_i depends on earlier ones if its squared rest is at most this part of it
constexpr int64_t TILE = 512;          // tiles of the rows of R fit in the cache of a core

// β = α ρ'/ρ;  û_i = r̂_i − β û_i for i ≤ j.
template <class T> void direction(Context* ctx, Table<const T> R, Table<T> U, Array<acc_t<T>> s, int64_t j) {
  using A = acc_t<T>;
  const double theta = j > 0 ? real(s[THETA]) : 1;
  const A rho = j > 0 ? theta * s[PROJECTED] : s[SIGMA], before = j > 0 ? s[RHO] : -s[OMEGA] * s[RHO];
  const bool lost = j > 0 ? vanishes(s[PROJECTED], real(s[SHADOW2]), real(s[PRODUCT2]))
      : vanishes(rho, real(s[SHADOW2]), real(s[RR]));
  const A b = lost ? A(0) : s[ALPHA] * quotient(rho, before);
  const T beta(b), fresh_beta(theta * b);
  const real_t<T> fresh(theta);
  packs(U.columns, [=](auto i) {
    for (int64_t k = 0; k < j; ++k) store(U[k], i, load(R[k], i) - beta * load(U[k], i));
    store(U[j], i, fresh * load(R[j], i) - fresh_beta * load(U[j], i));
  });
  s[RHO] = rho;
  if (lost) s[LOST] = A(1);
}

// α = ρ/γ;  r̂_i −= α û_i+1 for i ≤ j;  x += α θ û_0 if `add`, otherwise x = α θ û_0. With an M, x is the correction to
// which M is applied later.
template <class T>
void half(Context* ctx, Table<T> R, Table<const T> U, Array<T> x, Array<acc_t<T>> s, int64_t j, bool add) {
  using A = acc_t<T>;
  const double known = real(s[THETA]), theta = known == 0 ? 1 / magnitude(real(s[UU]) / real(s[RR])) : known;
  const bool lost = vanishes(s[GAMMA], real(s[SHADOW2]), real(s[UU]));
  const A a = lost ? A(0) : s[RHO] / (theta * s[GAMMA]);
  const T alpha(a), fresh_alpha(theta * a);
  const real_t<T> fresh(j > 0 ? theta : 1);
  packs(x.size, [=](auto i) {
    const auto move = fresh_alpha * load(U[0], i);
    if (add) store(x, i, load(x, i) + move);
    else store(x, i, move);
    for (int64_t k = 0; k < j; ++k) store(R[k], i, load(R[k], i) - alpha * load(U[k + 1], i));
    store(R[j], i, fresh * load(R[j], i) - fresh_alpha * load(U[j + 1], i));
  });
  s[ALPHA] = a, s[THETA] = A(theta);
  if (lost) s[LOST] = A(1);
}

// Write the coefficients c and ω from G = (r̂_i, r̂_j), shape (l + 1, l + 1), and adapt θ.
//
// On entry only the upper triangle of G is set; the lower one becomes its Cholesky factor.
template <class A> void solve(Table<A> G, Array<A> c, Array<A> s, int64_t l, double convex) {
  std::vector<A> a(l + 1, A(0)), b(l + 1, A(0));                         // minimal residual without r̂_l; shortest r̂_l
  std::vector<double> inverse(l + 1);
  a[0] = b[l] = A(1);
  const double last = real(G[l][l]);
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
    omega = divided(product, of_b);
    const double cosine = of_a > 0 ? modulus(product) / (sqrt(max(of_a, 0.0)) * sqrt(of_b)) : 1;
    if (cosine > 0 && cosine < convex) omega = convex / cosine * omega;
  }
  const double theta = real(s[THETA]);
  for (int64_t i = 0; i <= l; ++i) {
    c[i] = a[i] - omega * b[i];
    if (i > 0) c[l + i] = -theta * c[i];
  }
  c[l] = theta * c[l];
  s[OMEGA] = omega;
  if (omega == A(0)) s[LOST] = A(1);
  double grown = 0;
  for (int64_t i = 1; i <= l; ++i) {
    const double before = real(G[i - 1][i - 1]), after = real(G[i][i]);
    if (before > 0) grown = max(grown, after / before);
  }
  if (grown > 1) s[THETA] = A(theta / magnitude(grown));
}

// Write the coefficients c of the residual polynomial, and ω and θ, from `sums`, added up over all ranks.
template <class A>
void coefficients(Context* ctx, Array<const A> sums, Array<A> c, Array<A> s, int64_t l, double convex) {
  std::vector<A> entries((l + 1) * (l + 1), A(0));
  const Table<A> G{entries.data(), l + 1, l + 1, l + 1};
  const double theta = real(s[THETA]);
  for (int64_t j = 0; j <= l; ++j)
    for (int64_t i = 0; i <= j; ++i) G[i][j] = sums[j * (j + 1) / 2 + i];
  for (int64_t i = 0; i <= l; ++i) G[i][l] = theta * G[i][l];
  G[l][l] = theta * G[l][l];
  solve(G, c, s, l, convex);
}

// Write all inner products of r̂_0 … r̂_l to `sums`; on a single rank, then call `coefficients`.
template <class T>
void polynomial(Context* ctx, Table<const T> R, Array<acc_t<T>> sums, Array<acc_t<T>> c, Array<acc_t<T>> s, int64_t l,
                double convex, bool single_rank) {
  using A = acc_t<T>;
  const int64_t n = R.columns, tiles = (n + TILE - 1) / TILE, parts = min(tiles, CHUNKS);
  const int64_t count = (l + 1) * (l + 2) / 2;
  std::vector<A> partial(parts * count, A(0));
  A* const all = partial.data();
  parallel_for(n, parts, [=](int64_t part) {
    A* const mine = all + part * count;
    for (int64_t tile = chunk_begin(tiles, part, parts); tile < chunk_begin(tiles, part + 1, parts); ++tile) {
      const int64_t lo = tile * TILE, rows = min(n, lo + TILE) - lo;
      for (int64_t j = 0; j <= l; ++j) {
        const T* const y = R[j].data + lo;
        A* const own = mine + j * (j + 1) / 2;
        add_row_products<false>(R, 0, j + 1, lo, rows, y, y, own, own);
      }
    }
  });
  for (int64_t i = 0; i < count; ++i) {
    sums[i] = A(0);
    for (int64_t part = 0; part < parts; ++part) sums[i] += all[part * count + i];
  }
  if (single_rank) coefficients<A>(ctx, sums, c, s, l, convex);
}

// r̂_0 = Σ c_i r̂_i;  û_0 = Σ c_i û_i;  x += Σ c_l+1+i r̂_i;  (r̃, r̂_0), (r̂_0, r̂_0), norm² = Σ w |r̂_0|².
template <class T>
void combine(Context* ctx, Table<T> R, Table<T> U, Array<const acc_t<T>> c, Array<const T> shadow, Array<const float> w,
             Array<T> x, Array<acc_t<T>> s, int64_t l) {
  using A = acc_t<T>;
  const auto [rho, rr, norm2] = sums<A, double, double>(R.columns, [=](auto i, auto& rho, auto& rr, auto& norm2) {
    auto r = load(R[0], i), u = load(U[0], i), out = load(x, i);
    out = out + T(c[l + 1]) * r;
    for (int64_t k = 1; k <= l; ++k) {
      const auto of_r = load(R[k], i);
      const T by(c[k]);
      r = r + by * of_r, u = u + by * load(U[k], i);
      if (k < l) out = out + T(c[l + 1 + k]) * of_r;
    }
    store(R[0], i, r), store(U[0], i, u), store(x, i, out);
    const auto square = abs2(wide(r));
    add(rho, i, conj(wide(load(shadow, i))) * wide(r));
    add(rr, i, square), add(norm2, i, weighted(w, i, square));
  });
  s[SIGMA] = rho, s[RR] = A(rr), s[NORM2] = A(norm2);
}

// Test this iteration for convergence; after a breakdown (s[LOST]) stop the run.
template <class A> void settle(Context* ctx, Array<A> s) {
  const bool lost = s[LOST] != A(0);
  s[LOST] = A(0);
  judge(ctx, real(s[NORM2]));
  if (!over(ctx) && lost) halt(ctx, isfinite(real(s[UU])) ? BREAKDOWN : NONFINITE);
}

}  // namespace

KERNELS("swell.krylov.bicgstabl", VALUES(direction), VALUES(half), VALUES(polynomial), SUMS(coefficients),
        VALUES(combine), SUMS(settle))
