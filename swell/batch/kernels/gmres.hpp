// Restarted GMRES(m), preconditioned on the right, for a batch, for both devices: a team solves a system
// (core/kernels/batch.hpp). Classical Gram–Schmidt is done twice.
#include "batch.hpp"

namespace {

constexpr double USELESS = 64;         // times ε: the new part of a column of R, relative to the rest: rounding

// The small arrays of GMRES(m): columns of R, m + 1 numbers apart; inner products, and in h[m] a flag; the right-hand
// side g; rotations.
template <class T> struct Small {
  acc_t<T> *H, *h, *g, *sine;
  double* cosine;
};
template <class T> DEVICE Small<T> take_small(Team& team, Index m) {
  using A2 = acc_t<T>;
  A2 *const H = team.take<A2>(m * (m + 1)), *const h = team.take<A2>(m + 1), *const g = team.take<A2>(m + 1);
  A2* const sine = team.take<A2>(m);
  return {H, h, g, sine, team.take<double>((m + 1) / 2 * 2)};
}

// h_i = (V_i, w) for i < count;  w −= V h;  total += h.
template <class T>
DEVICE void orthogonalise(Team& team, const T* V, Index count, T* w, Index n, acc_t<T>* h, acc_t<T>* total) {
  team.dots(V, count, w, n, h);
  team.combine(n, w, count, [=](Index i) {
    const T scale(h[i]), *const v = V + i * n;
    return [=](Index k, T& value) { value = minus_times(value, scale, v[k]); };
  });
  team.each(count, [=](Index i) { total[i] += h[i]; });
}

// Iterate from x with the residual V[0]; return a verdict, RUNNING after m steps. z is w without M.
template <class T>
DEVICE int cycle(Team& team, const System<T>& A, const Preconditioner<T>& M, Judge& judge, Index m, Small<T> small,
                 T* x, T* V, T* w, T* z) {
  using A2 = acc_t<T>;
  using R = real_t<T>;
  const Index n = A.n;
  const auto [H, h, g, sine, cosine] = small;
  const double epsilon = epsilon_of(T());
  const auto [rr] = team.sums(n, norm2(V));
  const double beta = sqrt(rr);
  const R scale(1 / beta);
  team.each(n, [=](Index i) { V[i] = scale * V[i]; });                     // v₁ = r/‖r‖
  team.once([=] { small.g[0] = A2(beta); });                               // g = ‖r‖ e₁
  Index j = 0;
  int verdict = RUNNING;
  while (j < m && verdict == RUNNING) {
    T *const v = V + j * n, *const next = v + n, *const image = M.kind == PLAIN ? v : z;
    A2* const column = H + j * (m + 1);
    apply(team, A, M, v, image);                                           // z = M v_j
    const auto [ww] = team.product(A, image, next, norm2(next));           // w = A z
    const double before = sqrt(ww);
    if (!isfinite(before)) return ++judge.done, NONFINITE;
    team.each(j + 1, [=](Index i) { column[i] = A2(0); });
    orthogonalise(team, V, j + 1, next, n, small.h, column);               // w = w − V Vᴴ w, twice
    orthogonalise(team, V, j + 1, next, n, small.h, column);
    const auto [left] = team.sums(n, norm2(next));
    const bool ended = !(sqrt(left) > epsilon * before);                   // the space is invariant
    const double length = ended ? 0 : sqrt(left);
    const R inverse(1 / length);
    if (!ended) team.each(n, [=](Index i) { next[i] = inverse * next[i]; });
    team.once([=] {                                                        // Givens rotations of the new column
      const auto [H, h, g, sine, cosine] = small;
      double earlier = 0;
      for (Index i = 0; i < j; ++i) {
        const A2 up = column[i], down = column[i + 1];
        column[i] = cosine[i] * up + sine[i] * down;
        column[i + 1] = cosine[i] * down - conj(sine[i]) * up;
        earlier += abs2(column[i]);
      }
      const double d = size(column[j]), both = hypot(d, length);
      const A2 phase = d > 0 ? divided(column[j], d) : A2(1);
      h[m] = A2(j > 0 && both <= USELESS * epsilon * sqrt(earlier));       // only rounding is new in this column
      cosine[j] = both > 0 ? d / both : 0;                                 // a zero column reduces nothing
      sine[j] = both > 0 ? phase * (length / both) : phase;
      column[j] = phase * both;
      g[j + 1] = -conj(sine[j]) * g[j];
      g[j] = cosine[j] * g[j];
    });
    if (h[m] != A2(0)) {
      verdict = BREAKDOWN;
      break;
    }
    verdict = judge.after(abs2(g[j + 1]));
    ++j;
    if (ended && verdict == RUNNING) verdict = BREAKDOWN;
  }
  team.once([=] {                                                          // R y = g
    const auto [H, h, g, sine, cosine] = small;
    for (Index i = j; i--;) {
      A2 total = g[i];
      for (Index k = i + 1; k < j; ++k) total -= H[k * (m + 1) + i] * h[k];
      const A2 d = H[i * (m + 1) + i];
      h[i] = d != A2(0) ? total / d : 0.0 * total;
    }
  });
  team.each(n, [=](Index k) { w[k] = T(0); });
  team.combine(n, w, j, [=](Index i) {                                     // w = V y
    const T y(small.h[i]), *const v = V + i * n;
    return [=](Index k, T& value) { value = plus_times(value, y, v[k]); };
  });
  apply(team, A, M, w, z);                                                 // z = M V y
  team.each(n, [=](Index k) { x[k] += z[k]; });                            // x = x + z
  return verdict;
}

// x = A⁻¹ b for each system. Arguments as in cg.hpp, and `restart`: m.
// launch: a block of threads threads for each row of values, shared bytes shared
template <class T, int HELD>
KERNEL gmres(Device device, Array<const int32_t> indptr, Array<const int32_t> indices, Array<const uint16_t> ell,
             Array<const int32_t> diagonal, Array<const int32_t> lower, Array<const int32_t> upper,
             Array<const int32_t> order, Table<const T> values, Table<const T> b, Table<T> x, Table<double> record,
             int size, int columns, int lanes, int kind, int block, int held, int guess, int maxiter, double rtol,
             double atol, int restart, int threads, int shared) {
  const Batch<T> batch{indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record,
                       size, columns, lanes, kind, block, guess, maxiter, rtol, atol};
  each_system(device, values, [=](Team& team, int64_t s) {
    const Small<T> small = take_small<T>(team, restart);
    const System<T> A = system_of<HELD>(team, batch, s);
    const Preconditioner<T> M = prepare(team, batch, A);
    T *const x = team.take<T>(size), *const V = team.take<T>((restart + 1) * int64_t(size));
    T *const w = team.take<T>(size), *const z = kind == PLAIN ? w : team.take<T>(size);
    solve(team, batch, s, A, M.exists, x, V, [&](Judge& judge, int) {     // r is the first basis vector, not yet scaled
      return cycle(team, A, M, judge, restart, small, x, V, w, z);
    });
  });
}

}  // namespace

KERNELS("swell.batch.gmres", SYSTEMS(gmres))
