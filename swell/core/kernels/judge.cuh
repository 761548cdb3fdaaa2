// The judge on a GPU; judge.py is the same on a CPU, line for line. One thread calls it, in the last block of a kernel.
#pragma once
#include "context.cuh"

constexpr double PROGRESS2 = 0.98;
constexpr int JUDGED = -1;                             // in place of a code: nothing is left to be judged

DEVICE void show(Context* ctx) {                       // one word for the host, which looks there between two graphs
  *(volatile long long*)ctx->mirror = ctx->flags[ITERATION] << 16 | ctx->flags[VERDICT] << 8 | ctx->flags[STOP];
}

DEVICE int verdict(Context* ctx, double norm2) {
  long long* flags = ctx->flags;
  double* limits = ctx->limits;
  if (!isfinite(norm2)) return NONFINITE;
  if (norm2 <= limits[THRESHOLD2]) return CONVERGED;
  if (flags[ITERATION] >= flags[MAXITER]) return MAXITER_REACHED;
  if (norm2 > limits[GROWTH2]) return DIVERGED;
  if (norm2 < PROGRESS2 * limits[BEST2]) {
    limits[BEST2] = norm2;
    flags[BEST_ITERATION] = flags[ITERATION];
  } else if (flags[WINDOW] > 0 && flags[ITERATION] - flags[BEST_ITERATION] >= flags[WINDOW]) {
    return STAGNATED;
  }
  return RUNNING;
}

DEVICE void halt(Context* ctx, int code) {
  ctx->flags[VERDICT] = code;
  ctx->flags[STOP] = 1;
  ctx->flags[FINAL] = 1;
  show(ctx);
}

DEVICE void judge_start(Context* ctx, double norm2) {
  ctx->limits[CYCLE2] = norm2;
  ctx->history[0] = sqrt(norm2);
  int code = verdict(ctx, norm2);
  if (code != RUNNING) halt(ctx, code); else show(ctx);
}

DEVICE bool due(const Context* ctx) {
  const long long* flags = ctx->flags;
  long long following = flags[ITERATION] + 1;
  return flags[EVERY] <= 1 || following % flags[EVERY] == 0 || following >= flags[MAXITER];
}

// Count one more iteration; returns its place in the history. The history has room for MAXITER iterations, and the count
// never exceeds that: every method counts here, so no method can write past the end.
DEVICE long long advance(Context* ctx) {
  long long* flags = ctx->flags;
  flags[ITERATION] = min(flags[ITERATION] + 1, flags[MAXITER]);
  return flags[ITERATION];
}

DEVICE void judge(Context* ctx, double norm2) {
  const bool now = due(ctx);
  const double last = now ? 0 : ctx->history[ctx->flags[ITERATION]];
  const long long k = advance(ctx);
  ctx->history[k] = now ? sqrt(norm2) : last;
  if (!now) {
    show(ctx);
    return;
  }
  int code = verdict(ctx, norm2);
  if (code != RUNNING) halt(ctx, code); else show(ctx);
}

// Of an iteration of norm² s[norm2] that ended with the code s[ended]. Where ranks have parts of the norm, they are added
// up with the first sums of the next iteration, in which the judge then speaks.
template <class A> DEVICE void judge_ended(Context* ctx, A* s, int norm2, int ended) {
  const int code = (int)real(s[ended]);
  s[ended] = A(JUDGED);
  if (code == JUDGED) return;
  judge(ctx, real(s[norm2]));
  if (!ctx->flags[STOP] && code != RUNNING) halt(ctx, code);
}

DEVICE void judge_inner(Context* ctx, double norm2) {
  norm2 *= ctx->limits[RATIO2];
  ctx->history[advance(ctx)] = sqrt(norm2);
  int code = verdict(ctx, norm2);
  if (code != RUNNING) {
    ctx->flags[VERDICT] = code;
    ctx->flags[STOP] = 1;
  }
  show(ctx);
}

DEVICE void resume(Context* ctx) {
  if (!ctx->flags[FINAL]) ctx->flags[STOP] = 0;
}

DEVICE void judge_cycle(Context* ctx, double norm2) {
  ctx->history[ctx->flags[ITERATION]] = sqrt(norm2);
  int code = (int)ctx->flags[VERDICT];
  if (!isfinite(norm2)) code = NONFINITE;
  else if (norm2 <= ctx->limits[THRESHOLD2]) code = CONVERGED;
  else if (code == CONVERGED) code = norm2 < 0.81 * ctx->limits[CYCLE2] ? RUNNING : STAGNATED;
  if (code == RUNNING && ctx->flags[ITERATION] >= ctx->flags[MAXITER]) code = MAXITER_REACHED;
  if (code != RUNNING) { halt(ctx, code); return; }
  ctx->flags[VERDICT] = RUNNING;
  ctx->limits[CYCLE2] = norm2;
  show(ctx);
}
