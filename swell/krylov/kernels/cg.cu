// Fused steps of conjugate gradients on a GPU; cg.cpp has the same kernels for a CPU.
// krylov/slots.py names the scalars s.
#include "judge.cuh"

DEVICE double step_length(double rho, double sigma) { return sigma > 0 ? rho / sigma : 0.0; }

// launch: elements of r, 256 threads, at most 8 blocks per multiprocessor
template <typename T>
__global__ void begin(Context* ctx, const T* r, const T* z, const float* w, T* p, acc_t<T>* s, long long n) {
  if (stopped(ctx)) return;
  double v[2] = {0, 0};
  for (long long i = thread_id(); i < n; i += threads()) {
    acc_t<T> ri(r[i]), zi(z[i]);
    p[i] = z[i];
    v[0] += real(conj_mul(ri, zi));
    v[1] += (w ? w[i] : 1.0) * abs2(ri);
  }
  if (grid_sum(ctx, v)) {
    slot(s, RHO) = acc_t<T>(v[0]);
    slot(s, NORM2) = acc_t<T>(v[1]);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void judge_first(Context* ctx, const acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  const double rho = real(slot(s, RHO));
  judge_start(ctx, real(slot(s, NORM2)));
  if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) residual(Context* ctx, const T* q, T* r, const float* w, acc_t<T>* s,
    long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  long long i = thread_id();
  const long long packs = packs_of<T>(n);
  Pack<T> rs, qs;
  if (i < packs) rs = load(r, i, n), qs = load(q, i, n);        // these loads overlap with the loads of the scalars
  const real_t<T> alpha(step_length(real(slot(s, RHO)), real(slot(s, SIGMA))));
  const bool weighted = w && due(ctx);
  double v[2] = {0, 0};
  while (i < packs) {
#pragma unroll
    for (int e = 0; e < S; ++e) {
      rs.at[e] = rs.at[e] - alpha * qs.at[e];
      double square = abs2(acc_t<T>(rs.at[e]));
      v[0] += square;
      if (weighted && i * S + e < n) v[1] += w[i * S + e] * square;
    }
    store(r, i, n, rs);
    i += threads();
    if (i < packs) rs = load(r, i, n), qs = load(q, i, n);
  }
  if (grid_sum(ctx, v)) {
    slot(s, NEXT_RHO) = acc_t<T>(v[0]);
    slot(s, NORM2) = acc_t<T>(weighted ? v[1] : v[0]);
  }
}

// launch: elements of p, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) direction(Context* ctx, const T* z, T* p, T* x, acc_t<T>* s,
    double* coefficients, long long n, long long coefficients_size) {
  if (stopped(ctx)) return;
  long long i = thread_id();
  const long long packs = packs_of<T>(n);
  Pack<T> xs, ps, zs;
  if (i < packs) xs = load(x, i, n), ps = load(p, i, n), zs = load(z, i, n);
  const double rho = real(slot(s, NEXT_RHO)), sigma = real(slot(s, SIGMA));
  const real_t<T> alpha(step_length(real(slot(s, RHO)), sigma)), beta(rho / real(slot(s, RHO)));
  while (i < packs) {
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      xs.at[e] = xs.at[e] + alpha * ps.at[e];
      ps.at[e] = zs.at[e] + beta * ps.at[e];
    }
    store(x, i, n, xs);
    store(p, i, n, ps);
    i += threads();
    if (i < packs) xs = load(x, i, n), ps = load(p, i, n), zs = load(z, i, n);
  }
  if (last_to_read(ctx)) {
    const long long k = 2 * flag(ctx, ITERATION);
    if (k + 1 < coefficients_size) coefficients[k] = step_length(real(slot(s, RHO)), sigma),
        coefficients[k + 1] = rho / real(slot(s, RHO));
    slot(s, RHO) = acc_t<T>(rho);
    if (!(sigma > 0)) {
      halt(ctx, isfinite(sigma) ? INDEFINITE : NONFINITE);
      return;
    }
    judge(ctx, real(slot(s, NORM2)));
    if (!over(ctx) && !(rho > 0)) halt(ctx, isfinite(rho) ? INDEFINITE : NONFINITE);
  }
}
