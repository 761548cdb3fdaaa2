// The fused steps of conjugate gradients on a GPU; cg.py is the same on a CPU, with the same scalars s.
#include "judge.cuh"

template <class A> DEVICE double step_length(const A* s) {
  double sigma = real(s[1]);
  return sigma > 0 ? real(s[0]) / sigma : 0.0;
}

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T> __global__ void begin(Context* ctx, const T* r, const T* z, const float* w, T* p, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < n; i += threads()) {
    acc_t<T> ri(r[i]), zi(z[i]);
    p[i] = z[i];
    v[0] += real(conj_mul(ri, zi));
    v[1] += (w ? w[i] : 1.0) * abs2(ri);
  }
  if (grid_sum(ctx, v)) {
    s[0] = acc_t<T>(v[0]);
    judge_start(ctx, v[1]);
    if (!stopped(ctx) && !(v[0] > 0)) halt(ctx, isfinite(v[0]) ? INDEFINITE : NONFINITE);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T> __global__ void residual(Context* ctx, const T* q, T* r, const float* w, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  real_t<T> alpha(step_length(s));
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), qs = load(q, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      rs.at[e] = rs.at[e] - alpha * qs.at[e];
      double square = abs2(acc_t<T>(rs.at[e]));
      v[0] += square;
      if (w && i * S + e < n) v[1] += w[i * S + e] * square;
    }
    store(r, i, n, rs);
  }
  if (grid_sum(ctx, v)) {
    s[3] = acc_t<T>(v[0]);
    s[5] = acc_t<T>(w ? v[1] : v[0]);
  }
}

// launch: elements of p, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T> __global__ void direction(Context* ctx, const T* z, T* p, T* x, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  double rho = real(s[3]);
  real_t<T> alpha(step_length(s)), beta(rho / real(s[0]));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = load(x, i, n), ps = load(p, i, n), zs = load(z, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      xs.at[e] = xs.at[e] + alpha * ps.at[e];
      ps.at[e] = zs.at[e] + beta * ps.at[e];
    }
    store(x, i, n, xs);
    store(p, i, n, ps);
  }
  if (last_to_read(ctx)) {
    s[0] = acc_t<T>(rho);
    double sigma = real(s[1]);
    if (!(sigma > 0)) {
      halt(ctx, isfinite(sigma) ? INDEFINITE : NONFINITE);
      return;
    }
    judge(ctx, real(s[5]));
    if (!stopped(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
  }
}
