// Fused steps of conjugate gradients on a CPU; cg.cu has the same kernels for a GPU.
//
// `ctx` is the judge's record. `s`: the scalars, indexed by CG of krylov/slots.py. The vectors have the names of
// krylov/cg.py; z may be r. `w`: weights of the tested norm², empty for all ones. A kernel writes the left sides of its
// formulas in place.
#include "slots/swell/krylov/cg.hpp"

#include "../../core/native/context.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// α = ρ/σ; 0 if the curvature σ is not positive: `direction` then ends the iteration.
double step_length(double rho, double sigma) { return sigma > 0 ? rho / sigma : 0; }

// p = z;  ρ = (r, z);  norm² = Σ w |r|².
template <class T>
void begin(Context* ctx, Array<const T> r, Array<const T> z, Array<const float> w, Array<T> p, Array<acc_t<T>> s) {
  const auto [rho, norm2] = sums<double, double>(r.size, [=](auto i, auto& rho, auto& norm2) {
    const auto direction = load(z, i);
    const auto residual = wide(load(r, i));
    store(p, i, direction);
    add(rho, i, real(conj(residual) * wide(direction)));
    add(norm2, i, w.size ? wide(load(w, i)) * abs2(residual) : abs2(residual));
  });
  s[RHO] = acc_t<T>(rho), s[NORM2] = acc_t<T>(norm2);
}

// Test the first residual for convergence.
template <class A> void judge_first(Context* ctx, Array<const A> s) {
  const double rho = real(s[RHO]);
  judge_start(ctx, real(s[NORM2]));
  if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
}

// r −= α q;  norm² = Σ w |r|²;  next ρ = (r, r), right without M only: with M, M's product writes it again.
template <class T>
void residual(Context* ctx, Array<const T> q, Array<T> r, Array<const float> w, Array<acc_t<T>> s) {
  const real_t<T> alpha(step_length(real(s[RHO]), real(s[SIGMA])));
  const auto step = [=](auto i) {
    const auto value = load(r, i) - alpha * load(q, i);
    store(r, i, value);
    return abs2(wide(value));
  };
  double rr, norm2;
  if (w.size && due(ctx)) {
    std::tie(rr, norm2) = sums<double, double>(r.size, [=](auto i, auto& rr, auto& norm2) {
      const auto square = step(i);
      add(rr, i, square), add(norm2, i, wide(load(w, i)) * square);
    });
  } else {
    std::tie(rr) = sums<double>(r.size, [=](auto i, auto& rr) { add(rr, i, step(i)); });
    norm2 = rr;
  }
  s[NEXT_RHO] = acc_t<T>(rr), s[NORM2] = acc_t<T>(norm2);
}

// x += α p;  β = next ρ / ρ;  p = z + β p; then test this iteration for convergence. Iteration k stores α and β at 2 k
// and 2 k + 1 of `coefficients`, if there is room.
template <class T>
void direction(Context* ctx, Array<const T> z, Array<T> p, Array<T> x, Array<acc_t<T>> s, Array<double> coefficients) {
  const double rho = real(s[NEXT_RHO]), sigma = real(s[SIGMA]);
  const double length = step_length(real(s[RHO]), sigma), ratio = rho / real(s[RHO]);
  const int64_t k = 2 * flag(ctx, ITERATION);
  if (k + 1 < coefficients.size) coefficients[k] = length, coefficients[k + 1] = ratio;
  const real_t<T> alpha(length), beta(ratio);
  elements(p, [=](auto i) {
    const auto d = load(p, i), next = load(z, i) + beta * d;
    store(x, i, load(x, i) + alpha * d);
    store(p, i, next);
  });
  s[RHO] = acc_t<T>(rho);
  if (!(sigma > 0)) {
    halt(ctx, isfinite(sigma) ? INDEFINITE : NONFINITE);
    return;
  }
  judge(ctx, real(s[NORM2]));
  if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
}

}  // namespace

KERNELS("swell.krylov.cg", VALUES(begin), SUMS(judge_first), VALUES(residual), VALUES(direction))
