// The fused steps of QMR on a GPU; qmr.py is the same on a CPU, with the same scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

template <class A> DEVICE A over_delta(const A* s) {
  if (vanishes(s[1], real(s[3]), real(s[2]))) return A(0);
  return (sqrt(real(s[7])) * sqrt(real(s[8]))) * quotient(s[1], s[0]);
}

// launch: elements of p, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void first(Context* ctx, const T* vh, const T* w, T* p, T* q, T* d, T* Ad, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  const real_t<T> of_v(quotient(1.0, sqrt(real(s[8])))), of_w(quotient(1.0, sqrt(real(s[7]))));
  double qq[1] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    p[i] = of_v * vh[i];
    q[i] = of_w * w[i];
    d[i] = Ad[i] = T(0);
    qq[0] += abs2(acc_t<T>(q[i]));
  }
  if (grid_sum(ctx, qq)) {
    s[3] = acc_t<T>(qq[0]);
    s[5] = acc_t<T>(-1);
    s[6] = acc_t<T>(0);
    s[12] = acc_t<T>(1);
    s[13] = acc_t<T>(JUDGED);
  }
}

// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(512) lanczos(Context* ctx, const T* Ap, const T* MAq, T* v, T* w, acc_t<T>* s,
                                                                     long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int P = scalar<T>::parts;
  const A beta = over_delta(s);
  const T of_v(quotient(beta, A(sqrt(real(s[8]))))), of_w(conj(quotient(beta, A(sqrt(real(s[7]))))));
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
    join(s[9], sums);
    s[10] = A(sums[P]);
    s[11] = A(sums[P + 1]);
    judge_ended(ctx, s, 4, 13);
  }
}

// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T> __global__ void __launch_bounds__(256) update(Context* ctx, const T* vh, const T* w, const T* Ap,
    const float* weights, T* p, T* q, T* d, T* Ad, T* x, T* r, acc_t<T>* s, bool alone, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<T>::size;
  const A beta = over_delta(s);
  const double rho = sqrt(real(s[10])), xi = sqrt(real(s[11])), size = modulus(beta), theta = quotient(rho, real(s[12]) * size);
  const double gamma = 1 / sqrt(1 + theta * theta), ratio = gamma / real(s[12]), carried = real(s[6]) * gamma;
  const A step = -((ratio * ratio) * (s[5] * quotient(A(sqrt(real(s[8]))), beta)));
  const A factor = size > 0 ? quotient(quotient(s[9], s[1]), A(rho * xi)) : A(0);
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
    const bool finite = isfinite(real(s[2])) && isfinite(real(s[10])) && isfinite(real(s[11]));
    const bool lost = size == 0 || vanishes(s[9], real(s[10]), real(s[11]));
    s[0] = s[9];
    s[3] = A(sums[1]);
    s[4] = A(sums[0]);
    s[5] = step;
    s[6] = A(theta);
    s[7] = s[11];
    s[8] = s[10];
    s[12] = A(gamma);
    s[13] = A(!finite ? NONFINITE : lost ? BREAKDOWN : RUNNING);
    if (alone) judge_ended(ctx, s, 4, 13);
  }
}
