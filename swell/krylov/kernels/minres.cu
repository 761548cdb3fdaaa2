// Fused steps of MINRES on a GPU; minres.cpp has the same kernels for a CPU. krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

constexpr double TRUSTED = 0.01;

struct Rotated { double alpha, delta, bar; };

template <class A> DEVICE Rotated rotated(const A* s) {
  const double alpha = real(slot(s, ALPHA)) / real(slot(s, BETA2));
  const double c = real(slot(s, COS)), sine = real(slot(s, SIN)), d = real(slot(s, DELTA));
  return {alpha, c * d + sine * alpha, sine * d - c * alpha};
}

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const T* r, const T* z, const float* w, T* v, T* v_old, T* d, T* d_old, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  double sums[4] = {};
  for (long long i = thread_id(); i < n; i += threads()) {
    const A ri(r[i]), zi(z[i]);
    const double square = abs2(ri);
    v[i] = r[i];
    v_old[i] = d[i] = d_old[i] = T(0);
    sums[0] += real(conj_mul(ri, zi));
    sums[1] += abs2(zi);
    sums[2] += square;
    sums[3] += w ? w[i] * square : square;
  }
  if (grid_sum(ctx, sums)) {
    slot(s, BETA2) = A(sums[0]);
    slot(s, ZZ) = A(sums[1]);
    slot(s, RR) = A(sums[2]);
    slot(s, NORM2) = A(sums[3]);
    slot(s, LAST_BETA2) = slot(s, SIN) = slot(s, DELTA) = slot(s, EPSILON) = slot(s, COLUMN) = slot(s, A2) = slot(s,
        DRIFT) = A(0);
    slot(s, COS) = A(-1);
    slot(s, GAMMA) = slot(s, LAST_GAMMA) = A(1);
    slot(s, ENDED) = A(JUDGED);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void judge_first(Context* ctx, acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  const double beta2 = real(slot(s, BETA2));
  slot(s, PHI) = acc_t<T>(sqrt(max(beta2, 0.0)));
  judge_start(ctx, real(slot(s, NORM2)));
  if (!over(ctx) && !(beta2 > 0)) halt(ctx, isfinite(beta2) ? INDEFINITE : NONFINITE);
}

// launch: elements of v, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) lanczos(Context* ctx, const T* q, const T* z, const T* v, T* v_next, const T* d,
    T* d_next, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  using R = real_t<T>;
  const Rotated t = rotated(s);
  const double beta = sqrt(real(slot(s, BETA2))), last = sqrt(real(slot(s, LAST_BETA2)));
  const R of_z(1 / beta), of_v(t.alpha / beta), of_old(quotient(beta, last));
  const R of_d(t.delta / real(slot(s, GAMMA))), of_older(real(slot(s, EPSILON)) / real(slot(s, LAST_GAMMA)));
  double sums[2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> qs = load(q, i, n), vs = load(v, i, n), zs = z == v ? vs : load(z, i, n), ds = load(d, i, n);
    Pack<T> vn = load(v_next, i, n), dn = load(d_next, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      vn.at[e] = of_z * qs.at[e] - of_v * vs.at[e] - of_old * vn.at[e];
      dn.at[e] = of_z * zs.at[e] - of_d * ds.at[e] - of_older * dn.at[e];
      sums[0] += abs2(acc_t<T>(vn.at[e]));
      sums[1] += abs2(acc_t<T>(dn.at[e]));
    }
    store(v_next, i, n, vn);
    store(d_next, i, n, dn);
  }
  if (grid_sum(ctx, sums)) {
    slot(s, A2) = acc_t<T>(max(real(slot(s, A2)), quotient(real(slot(s, QQ)), real(slot(s, ZZ)))));
    slot(s, VV) = slot(s, NEXT_BETA2) = slot(s, ZZ) = acc_t<T>(sums[0]);
    slot(s, DD) = acc_t<T>(sums[1]);
    judge_once(ctx, s, NORM2, ENDED);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) update(Context* ctx, const T* v, const T* d, const float* w, T* x, T* r,
    acc_t<T>* s, double eps, bool single_rank, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  using R = real_t<T>;
  constexpr int S = Pack<T>::size;
  const Rotated t = rotated(s);
  const double beta2 = real(slot(s, NEXT_BETA2)), phi = real(slot(s, PHI)), last_c = real(slot(s, COS));
  const bool finite = isfinite(t.alpha) && isfinite(beta2), definite = beta2 > 0 || real(slot(s, VV)) == 0;
  const double beta = sqrt(max(beta2, 0.0)), gamma = hypot(t.bar, beta), cos = quotient(t.bar, gamma),
      sin = quotient(beta, gamma);
  const double column = max(real(slot(s, COLUMN)), hypot(hypot(real(slot(s, EPSILON)), t.delta), gamma));
  const double step = quotient(cos * phi, gamma), length = fabs(step) * sqrt(real(slot(s, DD)));
  const double drift = real(slot(s, DRIFT)) + eps * sqrt(real(slot(s, A2))) * length;
  const bool annihilated = hypot(t.bar, last_c * beta) <= EPS * column, lost = annihilated
      || drift > TRUSTED * sqrt(real(slot(s, RR)));
  const bool stays = lost || !definite;
  const R of_d(stays ? 0.0 : step), of_r(stays ? 1.0 : sin * sin), of_v(stays ? 0.0 : quotient(sin * cos * phi, beta));
  double sums[2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = load(x, i, n), rs = load(r, i, n);
    const Pack<T> ds = load(d, i, n), vs = load(v, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      xs.at[e] = xs.at[e] + of_d * ds.at[e];
      rs.at[e] = of_r * rs.at[e] - of_v * vs.at[e];
      const double square = abs2(A(rs.at[e]));
      sums[0] += square;
      if (!w || i * S + e < n) sums[1] += w ? w[i * S + e] * square : square;
    }
    store(x, i, n, xs);
    store(r, i, n, rs);
  }
  if (grid_sum(ctx, sums)) {
    slot(s, RR) = A(sums[0]);
    slot(s, NORM2) = A(sums[1]);
    slot(s, EPSILON) = A(real(slot(s, SIN)) * beta);
    slot(s, DELTA) = A(-last_c * beta);
    slot(s, COS) = A(cos);
    slot(s, SIN) = A(sin);
    slot(s, PHI) = A(sin * phi);
    slot(s, LAST_GAMMA) = slot(s, GAMMA);
    slot(s, GAMMA) = A(gamma > 0 ? gamma : 1.0);
    slot(s, LAST_BETA2) = slot(s, BETA2);
    slot(s, BETA2) = A(beta2 > 0 ? beta2 : 1.0);
    slot(s, COLUMN) = A(column);
    slot(s, DRIFT) = A(drift);
    slot(s, ENDED) = A(finite && !definite ? INDEFINITE : iteration_code(finite, lost));
    if (single_rank) judge_once(ctx, s, NORM2, ENDED);
  }
}
