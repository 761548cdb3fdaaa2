// The judge as separate kernels, for methods without a kernel that could call it. Norms names the entries of norm2.
#include "judge.cuh"

// launch: one block of 32 threads
template <typename T> __global__ void start(Context* ctx, const acc_t<T>* norm2) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_start(ctx, real(slot(norm2, JUDGED2)));
}

// launch: one block of 32 threads
template <typename T> __global__ void iteration(Context* ctx, const acc_t<T>* norm2) {
  if (stopped(ctx) || threadIdx.x) return;
  judge(ctx, real(slot(norm2, JUDGED2)));
}

// launch: one block of 32 threads
template <typename T> __global__ void cycle(Context* ctx, const acc_t<T>* norm2) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_cycle(ctx, real(slot(norm2, JUDGED2)));
}
