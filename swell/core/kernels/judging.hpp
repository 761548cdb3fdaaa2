// The judge as separate kernels, for methods without a kernel that could call it. `Norms` names the entries of norm2.
#include "step.hpp"

namespace {

// launch: one block of 32 threads
template <class A> KERNEL start(Context* ctx, Array<const A> norm2) {
  once(ctx, [=] { judge_start(ctx, real(norm2[JUDGED2])); });
}

// launch: one block of 32 threads
template <class A> KERNEL iteration(Context* ctx, Array<const A> norm2) {
  once(ctx, [=] { judge(ctx, real(norm2[JUDGED2])); });
}

// launch: one block of 32 threads
template <class A> KERNEL cycle(Context* ctx, Array<const A> norm2) {
  once(ctx, [=] { judge_cycle(ctx, real(norm2[JUDGED2])); });
}

}  // namespace

KERNELS("swell.core.judging", SUMS(start), SUMS(iteration), SUMS(cycle))
