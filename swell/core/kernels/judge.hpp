// The judge, for both devices: one text. `ctx` is the record of one right-hand side, which every function updates.
//
// The includer has declared Context with flag, limit, norm_after, show and over (context.cuh on a GPU,
// native/context.hpp on a CPU), and the enums of core/slots.py. On a GPU one thread of a kernel's last block calls it.
#pragma once

constexpr double PROGRESS2 = 0.98;     // a norm² below this fraction of the smallest one so far is progress

// The verdict, a Code, on norm2, the squared residual norm after the last counted iteration.
DEVICE int verdict(Context* ctx, double norm2) {
  if (!isfinite(norm2)) return NONFINITE;
  if (norm2 <= limit(ctx, THRESHOLD2)) return CONVERGED;
  if (flag(ctx, ITERATION) >= flag(ctx, MAXITER)) return MAXITER_REACHED;
  if (norm2 > limit(ctx, GROWTH2)) return DIVERGED;
  if (norm2 < PROGRESS2 * limit(ctx, BEST2)) {
    limit(ctx, BEST2) = norm2;
    flag(ctx, BEST_ITERATION) = flag(ctx, ITERATION);
  } else if (flag(ctx, WINDOW) > 0 && flag(ctx, ITERATION) - flag(ctx, BEST_ITERATION) >= flag(ctx, WINDOW)) {
    return STAGNATED;
  }
  return RUNNING;
}

// Stop the loop with the verdict `code`; `resume` at the end of the cycle may lift this stop.
DEVICE void pause(Context* ctx, int code) {
  flag(ctx, VERDICT) = code;
  flag(ctx, STOP) = 1;
}

// The same, but `resume` does not lift this stop.
DEVICE void halt(Context* ctx, int code) {
  pause(ctx, code);
  flag(ctx, FINAL) = 1;
  show(ctx);
}

// Judge the first residual: write history[0], and stop the loop if its squared norm decides that.
DEVICE void judge_start(Context* ctx, double norm2) {
  limit(ctx, CYCLE2) = norm2;
  norm_after(ctx, 0) = sqrt(norm2);
  int code = verdict(ctx, norm2);
  if (code != RUNNING) halt(ctx, code); else show(ctx);
}

// True if the current iteration will be judged; if not, its norm² need not be computed.
DEVICE bool due(const Context* ctx) {
  const long long following = flag(ctx, ITERATION) + 1, every = flag(ctx, EVERY);
  return every <= 1 || following % every == 0 || following >= flag(ctx, MAXITER);
}

// Count one more iteration, and return its index in the history. The history has room for MAXITER iterations, and the
// count is limited to MAXITER. Every method counts here, so no method can write past the end.
DEVICE long long advance(Context* ctx) {
  flag(ctx, ITERATION) = min(flag(ctx, ITERATION) + 1, flag(ctx, MAXITER));
  return flag(ctx, ITERATION);
}

// Count one more iteration, write its norm to the history, and stop the loop if norm2 decides that. If the iteration is
// not `due`, norm2 is not read, and the history repeats the last norm.
DEVICE void judge(Context* ctx, double norm2) {
  const bool now = due(ctx);
  const double last = now ? 0 : norm_after(ctx, flag(ctx, ITERATION));
  const long long k = advance(ctx);
  norm_after(ctx, k) = now ? sqrt(norm2) : last;
  if (!now) {
    show(ctx);
    return;
  }
  int code = verdict(ctx, norm2);
  if (code != RUNNING) halt(ctx, code); else show(ctx);
}

// The Code with which an iteration ends, apart from the verdict on its norm². `finite`: false after NaN or Inf. `lost`:
// true after a breakdown.
DEVICE int iteration_code(bool finite, bool lost) { return !finite ? NONFINITE : lost ? BREAKDOWN : RUNNING; }

// Judge an iteration whose norm² is s[norm2] and that ended with the code s[ended]. Across ranks, the parts of the norm
// are summed together with the first sums of the next iteration. The judgement then takes place in that iteration; a
// second call does nothing.
template <class S> DEVICE void judge_once(Context* ctx, S s, int norm2, int ended) {
  const int code = int(real(s[ended]));
  s[ended] = double(JUDGED);
  if (code == JUDGED) return;
  judge(ctx, real(s[norm2]));
  if (!over(ctx) && code != RUNNING) halt(ctx, code);
}

// At the start of a cycle: `own2` is (r, r) as the method's recursion computes it, and `judged2` the norm² that
// stopping uses. They differ if the system is scaled.
DEVICE void set_ratio(Context* ctx, double judged2, double own2) {
  limit(ctx, RATIO2) = own2 > 0 ? judged2 / own2 : 1.0;
}

// Count one more iteration inside a cycle and judge norm2, (r, r) of the method's recursion. A verdict only pauses the
// loop: it ends the cycle, whose true residual then decides (`judge_cycle`).
DEVICE void judge_inner(Context* ctx, double norm2) {
  norm2 *= limit(ctx, RATIO2);
  norm_after(ctx, advance(ctx)) = sqrt(norm2);
  int code = verdict(ctx, norm2);
  if (code != RUNNING) pause(ctx, code);
  show(ctx);
}

// Lift the stop of `judge_inner` at the end of a cycle, so that x and the true residual can be computed.
DEVICE void resume(Context* ctx) {
  if (!flag(ctx, FINAL)) flag(ctx, STOP) = 0;
}

// True if, at the rate of this cycle (from CYCLE2 to norm2), the iteration limit will come before convergence.
DEVICE bool slow(const Context* ctx, double norm2) {
  const double threshold2 = ctx->limits[THRESHOLD2], cycle2 = ctx->limits[CYCLE2];
  if (threshold2 == 0) return false;
  return log(norm2 / threshold2) * flag(ctx, CYCLE) > log(cycle2 / norm2) * (flag(ctx, MAXITER) - flag(ctx, ITERATION));
}

// Judge norm2, of the true residual, at the end of a cycle. If it contradicts a recursive verdict of convergence, the
// loop continues, with two exceptions: the whole cycle reduced the norm by less than a tenth, or no iteration is left.
// SLOW_CYCLES slow cycles are a stagnation.
DEVICE void judge_cycle(Context* ctx, double norm2) {
  norm_after(ctx, flag(ctx, ITERATION)) = sqrt(norm2);
  int code = (int)flag(ctx, VERDICT);
  if (!isfinite(norm2)) code = NONFINITE;
  else if (norm2 <= limit(ctx, THRESHOLD2)) code = CONVERGED;
  else if (code == CONVERGED) code = norm2 < 0.81 * limit(ctx, CYCLE2) ? RUNNING : STAGNATED;
  if (code == RUNNING && flag(ctx, ITERATION) >= flag(ctx, MAXITER)) code = MAXITER_REACHED;
  if (code == RUNNING && flag(ctx, SLOW_CYCLES) > 0 && slow(ctx, norm2) && --flag(ctx, SLOW_CYCLES) == 0)
    code = STAGNATED;
  if (code != RUNNING) { halt(ctx, code); return; }
  flag(ctx, VERDICT) = RUNNING;
  limit(ctx, CYCLE2) = norm2;
  show(ctx);
}
