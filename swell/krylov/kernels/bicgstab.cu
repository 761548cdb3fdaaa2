// Fused steps of BiCGSTAB on a GPU; bicgstab.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

template <class A> DEVICE A step_alpha(const A* s) { return quotient(slot(s, RHO), slot(s, GAMMA)); }
template <class A> DEVICE A step_omega(const A* s) { return quotient(conj(slot(s, ST)), A(real(slot(s, TT)))); }

// launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T> __global__ void half(Context* ctx, const T* v, T* r, const acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const T alpha(step_alpha(s));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), vs = load(v, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) rs.at[e] = rs.at[e] - alpha * vs.at[e];
    store(r, i, n, rs);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void update(Context* ctx, const T* ph, const T* sh, const T* t, const T* shadow, const float* w, T* x, T* r,
    acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int P = scalar<T>::parts, S = Pack<T>::size;
  const T alpha(step_alpha(s)), omega(step_omega(s));
  acc_t<T> rho(0);
  double v[P + 2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), ts = load(t, i, n), xs = load(x, i, n), ps = load(ph, i, n), hs = load(shadow, i, n);
    Pack<T> ss = sh == r ? rs : load(sh, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      xs.at[e] = xs.at[e] + alpha * ps.at[e] + omega * ss.at[e];
      rs.at[e] = rs.at[e] - omega * ts.at[e];
      rho = conj_fused(hs.at[e], rs.at[e], rho);
      double square = abs2(acc_t<T>(rs.at[e]));
      v[P] += square;
      if (w && i * S + e < n) v[P + 1] += w[i * S + e] * square;
    }
    store(x, i, n, xs);
    store(r, i, n, rs);
  }
  split(v, rho);
  if (grid_sum(ctx, v)) {
    join(slot(s, NEXT_RHO), v);
    slot(s, NORM2) = acc_t<T>(w ? v[P + 1] : v[P]);
    slot(s, RR) = acc_t<T>(v[P]);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T> __global__ void direction(Context* ctx, const T* r, const T* v, T* p, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  acc_t<T> omega_ = step_omega(s), rho = slot(s, NEXT_RHO);
  acc_t<T> beta_ = quotient(rho, slot(s, RHO)) * quotient(step_alpha(s), omega_);
  T beta(beta_), omega(omega_);
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), vs = load(v, i, n), ps = load(p, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) ps.at[e] = rs.at[e] + beta * (ps.at[e] - omega * vs.at[e]);
    store(p, i, n, ps);
  }
  if (last_to_read(ctx)) {
    bool lost = vanishes(slot(s, GAMMA), real(slot(s, SHADOW2)), real(slot(s, VV))) || omega_ == acc_t<T>(0)
        || vanishes(rho, real(slot(s, SHADOW2)), real(slot(s, RR)));
    bool finite = isfinite(real(slot(s, GAMMA))) && isfinite(real(slot(s, TT)));
    slot(s, RHO) = rho;
    judge(ctx, real(slot(s, NORM2)));
    if (!over(ctx) && lost) halt(ctx, finite ? BREAKDOWN : NONFINITE);
  }
}
