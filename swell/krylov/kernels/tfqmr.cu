// Fused steps of TFQMR on a GPU; tfqmr.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

DEVICE double share(double tau2, double w2) { return tau2 > 0 ? tau2 / (tau2 + w2) : 0.0; }

// launch: elements of r, 256 threads
template <typename T>
__global__ void clear(Context* ctx, const T* r, T* y, T* v, T* even, T* d, acc_t<T>* s, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= n) return;
  y[i] = r[i];
  v[i] = even[i] = d[i] = T(0);
  if (i == 0) {
    slot(s, CARRY) = slot(s, BETA) = acc_t<T>(0);
    slot(s, ENDED) = acc_t<T>(JUDGED);
  }
}

// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) direction(Context* ctx, const T* odd, const T* even, const T* shadow, T* v,
    acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  const T beta(slot(s, BETA));
  acc_t<T> sigma(0);
  double sums[P + 1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> os = load(odd, i, n), es = load(even, i, n), hs = load(shadow, i, n), vs = load(v, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      vs.at[e] = os.at[e] + beta * (es.at[e] + beta * vs.at[e]);
      sigma = conj_fused(hs.at[e], vs.at[e], sigma);
      sums[P] += abs2(acc_t<T>(vs.at[e]));
    }
    store(v, i, n, vs);
  }
  split(sums, sigma);
  if (grid_sum(ctx, sums)) {
    join(slot(s, SIGMA), sums);
    slot(s, VV) = acc_t<T>(sums[P]);
  }
}

// launch: elements of w, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) odd(Context* ctx, const T* yh, const T* v, const T* u, T* d, T* y, T* w,
    acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const acc_t<T> step = quotient(slot(s, RHO), slot(s, SIGMA));
  const T alpha(step), c(quotient(slot(s, CARRY), step));
  double ww[1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> ys = load(y, i, n), vs = load(v, i, n), us = load(u, i, n), ds = load(d, i, n), ws = load(w, i, n);
    const Pack<T> hs = yh == y ? ys : load(yh, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      ds.at[e] = hs.at[e] + c * ds.at[e];
      ys.at[e] = ys.at[e] - alpha * vs.at[e];
      ws.at[e] = ws.at[e] - alpha * us.at[e];
      ww[0] += abs2(acc_t<T>(ws.at[e]));
    }
    store(d, i, n, ds);
    store(y, i, n, ys);
    store(w, i, n, ws);
  }
  if (grid_sum(ctx, ww)) {
    slot(s, ODD2) = acc_t<T>(ww[0]);
    judge_once(ctx, s, NORM2, ENDED);
  }
}

// launch: elements of w, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) even(Context* ctx, const T* u, const T* shadow, T* w, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  const T alpha(quotient(slot(s, RHO), slot(s, SIGMA)));
  acc_t<T> rho(0);
  double sums[P + 1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> us = load(u, i, n), hs = load(shadow, i, n), ws = load(w, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      ws.at[e] = ws.at[e] - alpha * us.at[e];
      rho = conj_fused(hs.at[e], ws.at[e], rho);
      sums[P] += abs2(acc_t<T>(ws.at[e]));
    }
    store(w, i, n, ws);
  }
  split(sums, rho);
  if (grid_sum(ctx, sums)) {
    slot(s, EVEN2) = acc_t<T>(sums[P]);
    join(slot(s, NEXT_RHO), sums);
  }
}

// launch: elements of w, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(256) update(Context* ctx, const T* yh, const T* u, const T* w,
    const float* weights, T* d, T* x, T* r, T* y, acc_t<T>* s, bool single_rank, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  using R = real_t<T>;
  const acc_t<T> step = quotient(slot(s, RHO), slot(s, SIGMA)), rho = slot(s, NEXT_RHO),
      next_beta = quotient(rho, slot(s, RHO));
  const double c1 = share(real(slot(s, TAU2)), real(slot(s, ODD2))), tau2 = real(slot(s, TAU2)) * (1 - c1),
      c2 = share(tau2, real(slot(s, EVEN2)));
  const T alpha(step), beta(next_beta), eta1(c1 * step), eta2(c2 * step);
  const R own1(1 - c1), own2(1 - c2), new1(c1), new2(c2);
  double sum[1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = load(x, i, n), ds = load(d, i, n), rs = load(r, i, n), ws = load(w, i, n), us = load(u, i, n),
        ys = load(y, i, n);
    const Pack<T> hs = yh == y ? ys : load(yh, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      const T second = hs.at[e] + own1 * ds.at[e];
      xs.at[e] = xs.at[e] + eta1 * ds.at[e] + eta2 * second;
      ds.at[e] = second;
      rs.at[e] = own2 * (own1 * rs.at[e] + new1 * (ws.at[e] + alpha * us.at[e])) + new2 * ws.at[e];
      ys.at[e] = ws.at[e] + beta * ys.at[e];
      const double square = abs2(acc_t<T>(rs.at[e]));
      if (!weights || i * S + e < n) sum[0] += weights ? weights[i * S + e] * square : square;
    }
    store(x, i, n, xs);
    store(d, i, n, ds);
    store(r, i, n, rs);
    store(y, i, n, ys);
  }
  if (grid_sum(ctx, sum)) {
    const bool finite = isfinite(real(slot(s, VV))) && isfinite(real(slot(s, EVEN2)));
    const bool lost = vanishes(slot(s, SIGMA), real(slot(s, SHADOW2)), real(slot(s, VV)))
        || vanishes(rho, real(slot(s, SHADOW2)), real(slot(s, EVEN2)));
    slot(s, RHO) = rho;
    slot(s, NORM2) = acc_t<T>(sum[0]);
    slot(s, TAU2) = acc_t<T>(tau2 * (1 - c2));
    slot(s, CARRY) = (1 - c2) * step;
    slot(s, BETA) = next_beta;
    slot(s, ENDED) = acc_t<T>(iteration_code(finite, lost));
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  }
}
