// The verdict on a system of a batch, for both devices: from its true residual, as `verdict` of solving/verdict.py, and
// from a recursive one. The names of verdicts are declared in core/slots.py and batch/slots.py, before this file.
#pragma once
#include "scalar.hpp"

// Stopping.growth; LEAST: the squares of smaller norms underflow
constexpr double NO_LIMIT = 1e300, GROWTH = 1e10, LEAST = 0x1p-511;
// ROUNDING of solving/measure.py, SINGULAR of solving/verdict.py
constexpr double ROUNDING = 8, SINGULAR_TERMS = 0.1;
// The floor of a residual in doubled precision, as part of ‖|A||x| + |b|‖.
constexpr double DOUBLED = ROUNDING * 0x1p-104;

DEVICE double epsilon_of(float) { return 0x1p-23; }
DEVICE double epsilon_of(double) { return 0x1p-52; }
template <class R> DEVICE double epsilon_of(complex<R> z) { return epsilon_of(z.re); }

// The norms of a true residual: ‖r‖₂, ‖b‖₂, the backward error, ‖|A||x| + |b|‖₂.
struct Norms {
  double norm, rhs, backward, terms;
};

// True if rounding could decide on convergence; as `uncertain` of solving/measure.py.
DEVICE bool uncertain(const Norms& now, double threshold, double epsilon) {
  const double floor = ROUNDING * epsilon * now.terms;
  return now.norm <= threshold + floor && threshold < fmax(floor, now.norm) && threshold > 0;
}

// The code for the record, from the method's own verdict and the true residual.
DEVICE int judged(int reason, const Norms& now, double threshold, double epsilon) {
  if (!isfinite(now.norm)) return NONFINITE;
  if (now.norm <= threshold && !(threshold < DOUBLED * now.terms)) return CONVERGED;
  if (now.terms > SINGULAR_TERMS / epsilon * (now.rhs + now.norm)) return SINGULAR;
  if (now.norm <= ROUNDING * epsilon * now.terms) return ATTAINABLE_ACCURACY;
  return reason == CONVERGED ? int(FALSE_CONVERGENCE) : reason;
}

// The stopping criteria of a right-hand side.
struct Judge {
  double rtol, atol;
  int maxiter, done;                          // done: iterations so far
  double threshold, threshold2, growth2;      // ‖r‖₂ of convergence; of the squared norm of a recursive residual

  // Set the limits from the norms of the first residual.
  DEVICE void begin(const Norms& first) {
    const double size = fmax(first.norm, first.rhs);
    done = 0;
    threshold = fmax(rtol * first.rhs, atol), threshold2 = threshold * threshold;
    growth2 = GROWTH * GROWTH * size * size;
  }

  // The verdict on a recursive residual with this squared norm, after an iteration.
  DEVICE int after(double norm2) {
    ++done;
    if (!isfinite(norm2)) return NONFINITE;
    if (norm2 <= threshold2) return CONVERGED;
    if (norm2 > growth2) return DIVERGED;
    return done >= maxiter ? MAXITER_REACHED : RUNNING;
  }

  // The verdict on a true residual; RUNNING: another cycle shall follow. `last`: its norm before the last cycle.
  // `inner`: the cycle's own verdict; before the first one RUNNING, or NOT_FACTORED without a preconditioner.
  DEVICE int verdict(const Norms& now, double last, int inner, int attempt, double epsilon) const {
    const bool again = inner == CONVERGED || inner == BREAKDOWN;
    const bool rounded = now.norm <= ROUNDING * epsilon * now.terms;           // nothing much better can come
    if (!isfinite(now.norm) || now.norm <= threshold) return judged(inner, now, threshold, epsilon);
    if (now.norm < LEAST) return BREAKDOWN;
    if (inner != RUNNING && inner != MAXITER_REACHED && !again) return judged(inner, now, threshold, epsilon);
    if (done >= maxiter) return judged(MAXITER_REACHED, now, threshold, epsilon);
    if (now.norm < (again || rounded ? 0.5 : 0.999) * last || (inner == BREAKDOWN && attempt < 3)) return RUNNING;
    return judged(again ? inner : int(STAGNATED), now, threshold, epsilon);
  }
};
