// Fused steps of IDR(s), for both devices. Notation of idrs.py. One thread does the dense work.
//
// `ctx` is the judge's record. `s`: the dimension; `k`: the step, 0 to s − 1. `P`, `G`, `U`: shape (s, n), their
// vectors p_i, g_i and u_i in rows; P is real. `PG`: Pᴴ G, shape (s, s). `f`: Pᴴ r, and in f[s] norm² of the tested
// residual. `alpha`: Pᴴ g_k, later the α_i, and in alpha[s] (g_k, g_k): ranks add these up with the other entries.
// `gamma`: the γ_i, s entries. `hat`: v̂. `small`: scalars, indexed by IDRS of krylov/slots.py. `w`: weights of norm²,
// empty for all ones. `pp`: expected ‖p_i‖². Left sides of the formulas are written in place.
#include "basis.hpp"

namespace {

constexpr double LEAST_COSINE = 0.7;

// Solve the last s − k rows of (Pᴴ G) γ = f, a lower triangle, for γ. No DEVICE: a GPU's compiler need not inline it.
template <class A> void solve(Table<const A> PG, Array<const A> f, Array<A> gamma, int64_t k, int64_t s) {
  for (int64_t i = k; i < s; ++i) {
    A left = f[i];
    for (int64_t j = k; j < i; ++j) left -= PG[i][j] * gamma[j];
    gamma[i] = quotient(left, PG[i][i]);
  }
}

// f = Pᴴ r, and f[s] = (r, r).
// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <class T, int S = 0>
ROW_KERNEL begin(Context* ctx, Table<const real_t<T>> P, Array<const T> r, Array<acc_t<T>> f, int64_t s) {
  products<S>(ctx, P, r, f, [] {});
}

// Pᴴ G = I;  ω = 1;  γ of the first step.
// launch: one block of 32 threads
template <class A>
KERNEL prepare(Context* ctx, Table<A> PG, Array<const A> f, Array<A> gamma, Array<A> small, int64_t s) {
  once(ctx, [=] {
    for (int64_t i = 0; i < s; ++i)
      for (int64_t j = 0; j < s; ++j) PG[i][j] = i == j;
    small[OMEGA] = 1, small[LOST] = 0;
    solve<A>(PG, f, gamma, 0, s);
  });
}

// v = r − Σ γ_i g_i over i ≥ k.
// launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <class T>
KERNEL reduce(Context* ctx, Array<const T> r, Table<const T> G, Array<const acc_t<T>> gamma, Array<T> v, int64_t k,
              int64_t s) {
  packs(ctx, v, [=] {
    return [=](auto i) {
      auto value = load(r, i);
      for (int64_t j = k; j < s; ++j) value = value - T(gamma[j]) * load(G[j], i);
      store(v, i, value);
    };
  });
}

// u_k = ω v̂ + Σ γ_i u_i over i ≥ k, where v̂ is `hat`, or hat − Σ γ_i g_i if `reduced`.
// launch: elements of hat, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL expand(Context* ctx, Array<const T> hat, Table<const T> G, Table<T> U, Array<const acc_t<T>> gamma,
              Array<const acc_t<T>> small, int64_t k, int64_t s, bool reduced) {
  const Array<T> u = U[k];
  packs(ctx, u, [=] {
    const acc_t<T> omega = small[OMEGA];
    return [=](auto i) {
      auto value = T(omega) * load(hat, i) + T(gamma[k]) * load(u, i);
      for (int64_t j = k + 1; j < s; ++j) value = value + T(gamma[j]) * load(U[j], i);
      if (reduced)
        for (int64_t j = k; j < s; ++j) value = value - T(omega * gamma[j]) * load(G[j], i);
      store(u, i, value);
    };
  });
}

// Make α_0 … α_k−1 in `alpha`, column k of Pᴴ G, β in `small`, and f and γ of the next step.
//
// On entry `alpha` holds Pᴴ g_k, added up over the ranks. Subtracting Σ α_i g_i from g_k will make the first k entries
// of Pᴴ g_k vanish.
template <class A>
void next_column(Table<A> PG, Array<A> f, Array<A> gamma, Array<A> alpha, Array<A> small, int64_t k, int64_t s,
                 double pp) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < i; ++j) alpha[i] -= alpha[j] * PG[i][j];
    alpha[i] = quotient(alpha[i], PG[i][i]);
  }
  for (int64_t i = k; i < s; ++i) {
    PG[i][k] = alpha[i];
    for (int64_t j = 0; j < k; ++j) PG[i][k] -= alpha[j] * PG[i][j];
  }
  if (vanishes(PG[k][k], pp, real(alpha[s]))) PG[k][k] = 0, small[LOST] = 1;
  const A beta = quotient(f[k], PG[k][k]);
  small[BETA] = beta;
  f[k] = 0;
  for (int64_t i = k + 1; i < s; ++i) f[i] -= beta * PG[i][k];
  solve<A>(PG, f, gamma, k + 1, s);
}

// launch: one block of 32 threads
template <class A>
KERNEL column(Context* ctx, Table<A> PG, Array<A> f, Array<A> gamma, Array<A> alpha, Array<A> small, int64_t k,
              int64_t s, double pp) {
  once(ctx, [=] { next_column(PG, f, gamma, alpha, small, k, s, pp); });
}

// Write Pᴴ g_k and (g_k, g_k) to `alpha`; on a single rank, then the next column.
// launch: columns of G, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <class T, int S = 0>
ROW_KERNEL project(Context* ctx, Table<const real_t<T>> P, Table<const T> G, Table<acc_t<T>> PG, Array<acc_t<T>> f,
                   Array<acc_t<T>> gamma, Array<acc_t<T>> alpha, Array<acc_t<T>> small, int64_t k, int64_t s, double pp,
                   bool single_rank) {
  products<S>(ctx, P, G[k], alpha, [=] {
    if (single_rank) next_column(PG, f, gamma, alpha, small, k, s, pp);
  });
}

// g_k −= Σ α_i g_i and u_k −= Σ α_i u_i over i < k;  r −= β g_k;  x += β u_k;  in the last step (r, r) in `small`.
// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <class T>
KERNEL update(Context* ctx, Table<T> G, Table<T> U, Array<T> x, Array<T> r, Array<const acc_t<T>> alpha,
              Array<acc_t<T>> small, int64_t k, int64_t s) {
  const Array<T> g = G[k], u = U[k];
  const auto scalars = [=] {
    const T beta(small[BETA]);
    return [=](auto i, auto&... rr) {
      auto of_g = load(g, i), of_u = load(u, i);
      for (int64_t j = 0; j < k; ++j) {
        const T by(alpha[j]);
        of_g = of_g - by * load(G[j], i), of_u = of_u - by * load(U[j], i);
      }
      const auto value = load(r, i) - beta * of_g;
      if (k > 0) store(g, i, of_g), store(u, i, of_u);
      store(r, i, value);
      store(x, i, load(x, i) + beta * of_u);
      ((rr += abs2(wide(value))), ...);
    };
  };
  if (k < s - 1) packs(ctx, r, scalars);
  else packs<double>(ctx, r, scalars, [=](double rr) { small[RR] = rr; });
}

// ω = (t, r)/(t, t), enlarged if r and t are nearly orthogonal.
template <class A> DEVICE A polynomial(Array<A> small) {
  const A rt = small[RT], omega = quotient(conj(rt), A(real(small[TT])));
  const double cosine = quotient(modulus(rt), sqrt(real(small[TT])) * sqrt(real(small[RR])));
  return cosine > 0 && cosine < LEAST_COSINE ? LEAST_COSINE / cosine * omega : omega;
}

// Compute ω in `small` and the next γ; then test this iteration for convergence.
template <class A>
void conclude(Context* ctx, Table<const A> PG, Array<const A> f, Array<A> gamma, Array<A> small, int64_t s) {
  const A omega = polynomial(small);
  solve(PG, f, gamma, 0, s);
  const bool lost = small[LOST] != A(0) || omega == A(0);
  small[OMEGA] = omega, small[LOST] = 0;
  judge(ctx, real(f[s]));
  if (!over(ctx) && lost) halt(ctx, isfinite(real(small[TT])) ? BREAKDOWN : NONFINITE);
}

// launch: one block of 32 threads
template <class A>
KERNEL settle(Context* ctx, Table<const A> PG, Array<const A> f, Array<A> gamma, Array<A> small, int64_t s) {
  once(ctx, [=] { conclude(ctx, PG, f, gamma, small, s); });
}

// x += ω v̂;  r −= ω t;  f = Pᴴ r, f[s] = norm² = Σ w |r|²; on a single rank, then the next γ and the test.
// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <class T, int S = 0>
ROW_KERNEL finish(Context* ctx, Table<const real_t<T>> P, Array<const T> hat, Array<const T> t, Array<const float> w,
                  Array<T> x, Array<T> r, Table<acc_t<T>> PG, Array<acc_t<T>> f, Array<acc_t<T>> gamma,
                  Array<acc_t<T>> small, int64_t s, bool single_rank) {
  products<S, double>(ctx, P, r, f, [=] {
    const T omega(polynomial(small));
    return [=](auto i, auto& norm2) {
      const auto value = load(r, i) - omega * load(t, i);
      const auto square = abs2(wide(value));
      store(x, i, load(x, i) + omega * load(hat, i));            // v̂ may be r
      store(r, i, value);
      norm2 += w.size ? wide(load(w, i)) * square : square;
      return value;
    };
  }, [=](double norm2) {
    f[s] = norm2;
    if (single_rank) conclude<acc_t<T>>(ctx, PG, f, gamma, small, s);
  });
}

}  // namespace

KERNELS("swell.krylov.idrs", VALUES(begin), SUMS(prepare), VALUES(reduce), VALUES(expand), VALUES(project),
        SUMS(column), VALUES(update), VALUES(finish), SUMS(settle))
