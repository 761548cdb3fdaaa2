// Fused steps of COCG on a GPU; cocg.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

template <class A> DEVICE bool drowns(const A* s) {
  return modulus(slot(s, MU)) * sqrt(real(slot(s, LAST_RR))) <= EPS * modulus(slot(s, RHO)) * sqrt(real(slot(s, QQ)));
}
template <class A> DEVICE A step_length(const A* s) { return drowns(s) ? A(0) : slot(s, RHO) / slot(s, MU); }

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const T* r, const T* z, const float* w, T* p, T* pc, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts;
  acc_t<T> rho(0);
  double v[P + 3] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    const acc_t<T> ri(r[i]), zi(z[i]);
    p[i] = z[i];
    if (pc) pc[i] = conj(z[i]);
    rho = fused(ri, zi, rho);
    const double square = abs2(ri);
    v[P] += abs2(zi);
    v[P + 1] += square;
    v[P + 2] += w ? w[i] * square : square;
  }
  split(v, rho);
  if (grid_sum(ctx, v)) {
    join(rho, v);
    slot(s, RHO) = rho;
    slot(s, ZZ) = acc_t<T>(v[P]);
    slot(s, NORM2) = acc_t<T>(v[P + 2]);
    slot(s, LAST_RR) = acc_t<T>(v[P + 1]);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void judge_first(Context* ctx, const acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  judge_start(ctx, real(slot(s, NORM2)));
  if (!over(ctx) && vanishes(slot(s, RHO), real(slot(s, LAST_RR)), real(slot(s, ZZ)))) halt(ctx, BREAKDOWN);
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) residual(Context* ctx, const T* q, T* r, T* rc, const float* w, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts, S = Pack<T>::size;
  const T alpha(step_length(s));
  acc_t<T> rho(0);
  double v[P + 2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), qs = load(q, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      rs.at[e] = rs.at[e] - alpha * qs.at[e];
      const acc_t<T> t(rs.at[e]);
      rho = fused(t, t, rho);
      v[P] += abs2(t);
      if (w && i * S + e < n) v[P + 1] += w[i * S + e] * abs2(t);
      qs.at[e] = conj(rs.at[e]);
    }
    store(r, i, n, rs);
    if (rc) store(rc, i, n, qs);
  }
  split(v, rho);
  if (grid_sum(ctx, v)) {
    join(slot(s, NEXT_RHO), v);
    slot(s, ZZ) = slot(s, RR) = acc_t<T>(v[P]);
    slot(s, NORM2) = acc_t<T>(w ? v[P + 1] : v[P]);
  }
}

// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) direction(Context* ctx, const T* z, T* p, T* pc, T* x, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  bool lost = drowns(s);
  const acc_t<T> rho = slot(s, NEXT_RHO);
  const T alpha(step_length(s)), beta(rho / slot(s, RHO));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = load(x, i, n), ps = load(p, i, n), zs = load(z, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      xs.at[e] = xs.at[e] + alpha * ps.at[e];
      ps.at[e] = zs.at[e] + beta * ps.at[e];
      zs.at[e] = conj(ps.at[e]);
    }
    store(x, i, n, xs);
    store(p, i, n, ps);
    if (pc) store(pc, i, n, zs);
  }
  if (last_to_read(ctx)) {
    const bool finite = isfinite(real(slot(s, QQ))) && isfinite(real(slot(s, ZZ)));
    lost = lost || vanishes(rho, real(slot(s, RR)), real(slot(s, ZZ))) || !finite;
    slot(s, RHO) = rho;
    slot(s, LAST_RR) = slot(s, RR);
    judge(ctx, real(slot(s, NORM2)));
    if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
  }
}
