// The judge as separate kernels on a CPU, for methods without a kernel that could call it; judging.cu has the same
// kernels for a GPU. `Norms` names the entries of norm2.
#include "slots/swell/core/judging.hpp"

#include "../native/context.hpp"
#include "../native/launcher.hpp"

namespace {

template <class A> void start(Context* ctx, Array<const A> norm2) { judge_start(ctx, real(norm2[JUDGED2])); }
template <class A> void iteration(Context* ctx, Array<const A> norm2) { judge(ctx, real(norm2[JUDGED2])); }
template <class A> void cycle(Context* ctx, Array<const A> norm2) { judge_cycle(ctx, real(norm2[JUDGED2])); }

}  // namespace

KERNELS("swell.core.judging", SUMS(start), SUMS(iteration), SUMS(cycle))
