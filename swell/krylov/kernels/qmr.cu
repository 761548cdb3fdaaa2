// Fused steps of QMR on a GPU; qmr.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

template <class A> DEVICE A over_delta(const A* s) {
  if (vanishes(slot(s, EPSILON), real(slot(s, QQ)), real(slot(s, AP2)))) return A(0);
  return (sqrt(real(slot(s, XI2))) * sqrt(real(slot(s, RHO2)))) * quotient(slot(s, EPSILON), slot(s, WV));
}

// launch: elements of p, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void first(Context* ctx, const T* vh, const T* w, T* p, T* q, T* d, T* Ad, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const real_t<T> of_v(quotient(1.0, sqrt(real(slot(s, RHO2))))), of_w(quotient(1.0, sqrt(real(slot(s, XI2)))));
  double qq[1] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    p[i] = of_v * vh[i];
    q[i] = of_w * w[i];
    d[i] = Ad[i] = T(0);
    qq[0] += abs2(acc_t<T>(q[i]));
  }
  if (grid_sum(ctx, qq)) {
    slot(s, QQ) = acc_t<T>(qq[0]);
    slot(s, ETA) = acc_t<T>(-1);
    slot(s, THETA) = acc_t<T>(0);
    slot(s, GAMMA) = acc_t<T>(1);
    slot(s, ENDED) = acc_t<T>(JUDGED);
  }
}

// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) lanczos(Context* ctx, const T* Ap, const T* MAq, T* v, T* w, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int P = scalar<T>::parts;
  const A beta = over_delta(s);
  const T of_v(quotient(beta, A(sqrt(real(slot(s, RHO2)))))), of_w(conj(quotient(beta, A(sqrt(real(slot(s, XI2)))))));
  A wv(0);
  double sums[P + 2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> vs = load(v, i, n), ws = load(w, i, n);
    const Pack<T> as = load(Ap, i, n), bs = load(MAq, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      vs.at[e] = as.at[e] - of_v * vs.at[e];
      ws.at[e] = bs.at[e] - of_w * ws.at[e];
      wv = conj_fused(ws.at[e], vs.at[e], wv);
      sums[P] += abs2(A(vs.at[e]));
      sums[P + 1] += abs2(A(ws.at[e]));
    }
    store(v, i, n, vs);
    store(w, i, n, ws);
  }
  split(sums, wv);
  if (grid_sum(ctx, sums)) {
    join(slot(s, NEXT_WV), sums);
    slot(s, NEXT_RHO2) = A(sums[P]);
    slot(s, NEXT_XI2) = A(sums[P + 1]);
    judge_once(ctx, s, NORM2, ENDED);
  }
}

// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(256) update(Context* ctx, const T* vh, const T* w, const T* Ap,
    const float* weights, T* p, T* q, T* d, T* Ad, T* x, T* r, acc_t<T>* s, bool single_rank, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<T>::size;
  const A beta = over_delta(s);
  const double rho = sqrt(real(slot(s, NEXT_RHO2))), xi = sqrt(real(slot(s, NEXT_XI2))), size = modulus(beta),
      theta = quotient(rho, real(slot(s, GAMMA)) * size);
  const double gamma = 1 / sqrt(1 + theta * theta), ratio = gamma / real(slot(s, GAMMA)),
      carried = real(slot(s, THETA)) * gamma;
  const A step = -((ratio * ratio) * (slot(s, ETA) * quotient(A(sqrt(real(slot(s, RHO2)))), beta)));
  const A factor = size > 0 ? quotient(quotient(slot(s, NEXT_WV), slot(s, EPSILON)), A(rho * xi)) : A(0);
  const T eta(step), of_p(xi * factor), of_q(conj(rho * factor));
  const real_t<T> c(carried * carried), of_v(quotient(1.0, rho)), of_w(quotient(1.0, xi));
  double sums[2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> ps = load(p, i, n), ds = load(d, i, n), xs = load(x, i, n);
    const Pack<T> vs = load(vh, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      ds.at[e] = eta * ps.at[e] + c * ds.at[e];
      xs.at[e] = xs.at[e] + ds.at[e];
      ps.at[e] = of_v * vs.at[e] - of_p * ps.at[e];
    }
    store(d, i, n, ds);
    store(x, i, n, xs);
    store(p, i, n, ps);
    Pack<T> es = load(Ad, i, n), rs = load(r, i, n), qs = load(q, i, n);
    const Pack<T> as = load(Ap, i, n), ws = load(w, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      es.at[e] = eta * as.at[e] + c * es.at[e];
      rs.at[e] = rs.at[e] - es.at[e];
      qs.at[e] = of_w * ws.at[e] - of_q * qs.at[e];
      const double square = abs2(A(rs.at[e]));
      if (!weights || i * S + e < n) sums[0] += weights ? weights[i * S + e] * square : square;
      sums[1] += abs2(A(qs.at[e]));
    }
    store(Ad, i, n, es);
    store(r, i, n, rs);
    store(q, i, n, qs);
  }
  if (grid_sum(ctx, sums)) {
    const bool finite = isfinite(real(slot(s, AP2))) && isfinite(real(slot(s, NEXT_RHO2)))
        && isfinite(real(slot(s, NEXT_XI2)));
    const bool lost = size == 0 || vanishes(slot(s, NEXT_WV), real(slot(s, NEXT_RHO2)), real(slot(s, NEXT_XI2)));
    slot(s, WV) = slot(s, NEXT_WV);
    slot(s, QQ) = A(sums[1]);
    slot(s, NORM2) = A(sums[0]);
    slot(s, ETA) = step;
    slot(s, THETA) = A(theta);
    slot(s, XI2) = slot(s, NEXT_XI2);
    slot(s, RHO2) = slot(s, NEXT_RHO2);
    slot(s, GAMMA) = A(gamma);
    slot(s, ENDED) = A(iteration_code(finite, lost));
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  }
}
