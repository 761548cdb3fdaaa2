// The judge's record of one right-hand side, as kernels/judge.hpp sees it: DirectLoop.states in core/loop.py holds the
// three arrays. The generated header of a kernel file's slots precedes this one; it declares Flag, Limit and Code.
#pragma once
#include <algorithm>
#include <stdint.h>

#include "../kernels/scalar.hpp"

struct Context {
  int64_t* flags;
  double* limits;
  double* history;
};

// The records of several right-hand sides: a block method's kernels take them together.
struct Contexts {
  int64_t* flags;
  double *limits, *histories;
  int64_t count, length;     // length: of a history

  Context operator[](int64_t j) const { return {flags + j * FLAGS, limits + j * LIMITS, histories + j * length}; }
};

using std::min;
using std::max;

inline int64_t& flag(Context* ctx, Flag place) { return ctx->flags[place]; }
inline int64_t flag(const Context* ctx, Flag place) { return ctx->flags[place]; }
inline double& limit(Context* ctx, Limit place) { return ctx->limits[place]; }
inline double& norm_after(const Context* ctx, int64_t iteration) { return ctx->history[iteration]; }
inline bool over(const Context* ctx) { return flag(ctx, STOP) != 0; }
inline void show(Context*) {}                  // the host reads the record itself

#include "../kernels/judge.hpp"
