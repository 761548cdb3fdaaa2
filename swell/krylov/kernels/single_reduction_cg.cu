// Fused steps of CG with one reduction on a GPU; single_reduction_cg.cpp has the same kernels for a CPU.
// krylov/slots.py names the scalars s.
#include "judge.cuh"

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void norm(Context* ctx, const T* r, const float* weights, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < n; i += threads()) {
    const double square = abs2(acc_t<T>(r[i]));
    v[0] += square;
    v[1] += weights ? weights[i] * square : square;
  }
  if (grid_sum(ctx, v)) slot(s, GAMMA) = acc_t<T>(v[0]), slot(s, NORM2) = acc_t<T>(v[1]);
}

// alpha = gamma / curvature of the new direction; a gamma or curvature that is not positive ends the run.
template <class A> DEVICE void choose(Context* ctx, A* s, double beta, double curvature) {
  const double gamma = real(slot(s, GAMMA));
  if (!over(ctx) && !(gamma > 0 && curvature > 0))
    halt(ctx, isfinite(gamma) && isfinite(curvature) ? INDEFINITE : NONFINITE);
  slot(s, LAST_GAMMA) = A(gamma);
  slot(s, ALPHA) = A(curvature > 0 ? gamma / curvature : 0.0);
  slot(s, BETA) = A(beta);
}

// launch: one block of 32 threads
template <typename T> __global__ void first(Context* ctx, acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_start(ctx, real(slot(s, NORM2)));
  choose(ctx, s, 0.0, real(slot(s, DELTA)));
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) advance(Context* ctx, const T* u, const T* w, T* p, T* q, T* x, T* r,
    const float* weights, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const real_t<T> alpha(real(slot(s, ALPHA))), beta(real(slot(s, BETA)));
  const bool weigh = weights && due(ctx);
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> us = load(u, i, n), ws = load(w, i, n), ps = load(p, i, n), qs = load(q, i, n), xs = load(x, i, n),
        rs = load(r, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      ps.at[e] = us.at[e] + beta * ps.at[e];
      qs.at[e] = ws.at[e] + beta * qs.at[e];
      xs.at[e] = xs.at[e] + alpha * ps.at[e];
      rs.at[e] = rs.at[e] - alpha * qs.at[e];
      const double square = abs2(acc_t<T>(rs.at[e]));
      v[0] += square;
      if (weigh && i * Pack<T>::size + e < n) v[1] += weights[i * Pack<T>::size + e] * square;
    }
    store(p, i, n, ps);
    store(q, i, n, qs);
    store(x, i, n, xs);
    store(r, i, n, rs);
  }
  if (grid_sum(ctx, v)) slot(s, GAMMA) = acc_t<T>(v[0]), slot(s, NORM2) = acc_t<T>(weigh ? v[1] : v[0]);
}

// launch: one block of 32 threads
template <typename T>
__global__ void settle(Context* ctx, acc_t<T>* s, double* coefficients, long long coefficients_size) {
  if (stopped(ctx) || threadIdx.x) return;
  const double gamma = real(slot(s, GAMMA)), alpha = real(slot(s, ALPHA));
  double beta = gamma / real(slot(s, LAST_GAMMA)), curvature = real(slot(s, DELTA)) - beta * gamma / alpha;
  if (!(curvature > 0)) beta = 0, curvature = real(slot(s, DELTA));
  const long long k = 2 * flag(ctx, ITERATION);
  if (k + 1 < coefficients_size) coefficients[k] = alpha, coefficients[k + 1] = beta;
  judge(ctx, real(slot(s, NORM2)));
  choose(ctx, s, beta, curvature);
}

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void take(Context* ctx, const T* true_, T* r, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  double v[1] = {0};
  for (long long i = thread_id(); i < n; i += threads()) {
    const T t = true_[i];
    v[0] += abs2(acc_t<T>(t - r[i]));
    r[i] = t;
  }
  if (grid_sum(ctx, v)) slot(s, DRIFT2) = acc_t<T>(fmax(real(slot(s, DRIFT2)), v[0]));
}
