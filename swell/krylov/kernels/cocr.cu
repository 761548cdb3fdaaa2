// Fused steps of COCR on a GPU; cocr.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

template <class A>
DEVICE A step_length(const A* s) {
  return vanishes(slot(s, MU), real(slot(s, QQ)), real(slot(s, TT))) ? A(0) : slot(s, NEXT_RHO) / slot(s, MU);
}

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const T* r, const T* z, const float* w, T* p, T* q, T* zc, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  double v[2] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    p[i] = q[i] = T(0);
    if (zc) zc[i] = conj(z[i]);
    v[0] += abs2(acc_t<T>(z[i]));
    v[1] += (w ? w[i] : 1.0) * abs2(acc_t<T>(r[i]));
  }
  if (grid_sum(ctx, v)) {
    slot(s, RHO) = acc_t<T>(0);
    slot(s, ZZ) = acc_t<T>(v[0]);
    slot(s, NORM2) = acc_t<T>(v[1]);
    slot(s, ENDED) = acc_t<T>(JUDGED);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void judge_first(Context* ctx, const acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_start(ctx, real(slot(s, NORM2)));
}

// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) direction(Context* ctx, const T* z, const T* az, T* p, T* q, T* qc, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  const T beta(quotient(slot(s, NEXT_RHO), slot(s, RHO)));
  acc_t<T> mu(0);
  double v[P + 1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> ps = load(p, i, n), qs = load(q, i, n), zs = load(z, i, n), as = load(az, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      ps.at[e] = zs.at[e] + beta * ps.at[e];
      qs.at[e] = as.at[e] + beta * qs.at[e];
      const acc_t<T> t(qs.at[e]);
      mu = fused(t, t, mu);
      v[P] += abs2(t);
      as.at[e] = conj(qs.at[e]);
    }
    store(p, i, n, ps);
    store(q, i, n, qs);
    if (qc) store(qc, i, n, as);
  }
  split(v, mu);
  if (grid_sum(ctx, v)) {
    join(slot(s, MU), v);
    slot(s, TT) = slot(s, QQ) = acc_t<T>(v[P]);
    judge_once(ctx, s, NORM2, ENDED);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) residual(Context* ctx, const T* p, const T* q, const T* t, const float* w, T* x,
    T* r, T* z, T* zc, acc_t<T>* s, bool single_rank, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  const T alpha(step_length(s));
  double v[2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = load(x, i, n), ps = load(p, i, n), rs = load(r, i, n), qs = load(q, i, n), zs, ts;
    if (z) zs = load(z, i, n), ts = load(t, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      xs.at[e] = xs.at[e] + alpha * ps.at[e];
      rs.at[e] = rs.at[e] - alpha * qs.at[e];
      const double square = abs2(acc_t<T>(rs.at[e]));
      if (!w || i * S + e < n) v[0] += w ? w[i * S + e] * square : square;
      zs.at[e] = z ? zs.at[e] - alpha * ts.at[e] : rs.at[e];
      v[1] += abs2(acc_t<T>(zs.at[e]));
    }
    store(x, i, n, xs);
    store(r, i, n, rs);
    if (z) store(z, i, n, zs);
#pragma unroll
    for (int e = 0; e < S; ++e) zs.at[e] = conj(zs.at[e]);
    if (zc) store(zc, i, n, zs);
  }
  if (grid_sum(ctx, v)) {
    const bool finite = isfinite(real(slot(s, AZ2))) && isfinite(real(slot(s, TT)));
    const bool lost = vanishes(slot(s, NEXT_RHO), real(slot(s, ZZ)), real(slot(s, AZ2)))
        || vanishes(slot(s, MU), real(slot(s, QQ)), real(slot(s, TT)));
    slot(s, RHO) = slot(s, NEXT_RHO);
    slot(s, ZZ) = acc_t<T>(v[1]);
    slot(s, NORM2) = acc_t<T>(v[0]);
    slot(s, ENDED) = acc_t<T>(iteration_code(finite, lost));
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  }
}
