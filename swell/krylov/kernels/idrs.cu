// Fused steps of IDR(s) on a GPU; idrs.cpp has the same kernels for a CPU.
// krylov/slots.py names the scalars. One thread does the dense work.
#include "breakdown.cuh"
#include "judge.cuh"

constexpr double LEAST_COSINE = 0.7;

template <class A> __device__ __noinline__ void solve(const A* PG, const A* f, A* gamma, int k, int s) {
  for (int i = k; i < s; ++i) {
    A left = f[i];
    for (int j = k; j < i; ++j) left = left - PG[i * s + j] * gamma[j];
    gamma[i] = quotient(left, PG[i * s + i]);
  }
}

// On entry alpha holds Pᴴ g_k and (g_k, g_k). Compute α_i, column k of PG, β, and f and γ of the next step.
template <class A> __device__ __noinline__ void next_column(A* PG, A* f, A* gamma, A* alpha, A* small, int k, int s,
    double pp) {
  for (int i = 0; i < k; ++i) {
    for (int m = 0; m < i; ++m) alpha[i] = alpha[i] - alpha[m] * PG[i * s + m];
    alpha[i] = quotient(alpha[i], PG[i * s + i]);
  }
  for (int i = k; i < s; ++i) {
    A entry = alpha[i];
    for (int m = 0; m < k; ++m) entry = entry - alpha[m] * PG[i * s + m];
    PG[i * s + k] = entry;
  }
  if (vanishes(PG[k * s + k], pp, real(alpha[s]))) {
    PG[k * s + k] = A(0);
    slot(small, LOST) = A(1);
  }
  const A beta = quotient(f[k], PG[k * s + k]);
  slot(small, BETA) = beta;
  f[k] = A(0);
  for (int i = k + 1; i < s; ++i) f[i] = f[i] - beta * PG[i * s + k];
  solve(PG, f, gamma, k + 1, s);
}

// ω = (t, r)/(t, t), enlarged if r and t are nearly orthogonal.
template <class A> DEVICE A step_omega(const A* small) {
  const double tt = real(slot(small, TT)), cosine = quotient(modulus(slot(small, RT)),
      sqrt(tt) * sqrt(real(slot(small, RR))));
  const A omega = quotient(conj(slot(small, RT)), A(tt));
  return 0 < cosine && cosine < LEAST_COSINE ? (LEAST_COSINE / cosine) * omega : omega;
}

// Compute ω, and γ of the next step from f = Pᴴ r; judge this iteration.
template <class A> __device__ __noinline__ void conclude(Context* ctx, const A* PG, const A* f, A* gamma, A* small,
    int s) {
  const A omega = step_omega(small);
  solve(PG, f, gamma, 0, s);
  const bool lost = slot(small, LOST) != A(0) || omega == A(0);
  slot(small, OMEGA) = omega;
  slot(small, LOST) = A(0);
  judge(ctx, real(f[s]));
  if (!over(ctx) && lost) halt(ctx, isfinite(real(slot(small, TT))) ? BREAKDOWN : NONFINITE);
}

// Add the products of one pack of y with all S vectors p_k to the S sums.
template <int S, class T>
DEVICE void add_products(acc_t<T> (&sums)[S], const real_t<T>* P, long long P_stride, const Pack<T>& y, long long i,
    long long n) {
#pragma unroll
  for (int k = 0; k < S; ++k)
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      const long long at = i * Pack<T>::size + e;
      if (at < n) sums[k] += double(P[k * P_stride + at]) * acc_t<T>(y.at[e]);
    }
}
template <int S, class A> DEVICE void join_all(A* out, const double* v) {
  for (int k = 0; k < S; ++k) join(out[k], v + k * scalar<A>::parts);
}

// launch: columns of G, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T, int S>
__global__ void __launch_bounds__(256) project(Context* ctx, const real_t<T>* P, const T* G, acc_t<T>* PG, acc_t<T>* f,
    acc_t<T>* gamma, acc_t<T>* alpha, acc_t<T>* small, int k, int s, double pp, bool single_rank, long long P_stride,
    long long G_stride, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int parts = scalar<T>::parts;
  A sums[S] = {};
  double v[S * parts + 1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    const Pack<T> gs = load(G + k * G_stride, i, n);
    add_products<S, T>(sums, P, P_stride, gs, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) v[S * parts] += abs2(A(gs.at[e]));
  }
#pragma unroll
  for (int i = 0; i < S; ++i) split(v + i * parts, sums[i]);
  if (!grid_sum(ctx, v)) return;
  join_all<S>(alpha, v);
  alpha[S] = A(v[S * parts]);
  if (single_rank) next_column(PG, f, gamma, alpha, small, k, s, pp);
}

// launch: one block of 32 threads
template <typename T>
__global__ void column(Context* ctx, acc_t<T>* PG, acc_t<T>* f, acc_t<T>* gamma, acc_t<T>* alpha, acc_t<T>* small,
    int k, int s, double pp) {
  if (stopped(ctx) || threadIdx.x) return;
  next_column(PG, f, gamma, alpha, small, k, s, pp);
}

// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T, int S> __global__ void __launch_bounds__(256) begin(Context* ctx, const real_t<T>* P, const T* r,
    acc_t<T>* f, int s, long long P_stride, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  A sums[S] = {};
  double v[S * scalar<T>::parts] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads())
    add_products<S, T>(sums, P, P_stride, load(r, i, n), i, n);
#pragma unroll
  for (int i = 0; i < S; ++i) split(v + i * scalar<T>::parts, sums[i]);
  if (!grid_sum(ctx, v)) return;
  join_all<S>(f, v);
  f[S] = A(0);
}

// launch: one block of 32 threads
template <typename T>
__global__ void prepare(Context* ctx, acc_t<T>* PG, const acc_t<T>* f, acc_t<T>* gamma, acc_t<T>* small, int s) {
  if (stopped(ctx) || threadIdx.x) return;
  using A = acc_t<T>;
  for (int i = 0; i < s * s; ++i) PG[i] = A(i % (s + 1) == 0);
  slot(small, OMEGA) = A(1);
  slot(small, LOST) = A(0);
  solve(PG, f, gamma, 0, s);
}

// launch: elements of r, 512 threads, a pack each, at most 3 blocks per multiprocessor
template <typename T>
__global__ void reduce(Context* ctx, const T* r, const T* G, const acc_t<T>* gamma, T* v, int k, int s,
    long long G_stride, long long n) {
  if (stopped(ctx)) return;
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n);
#pragma unroll 4
    for (int j = k; j < s; ++j) {
      const Pack<T> gs = load(G + j * G_stride, i, n);
      const T c(gamma[j]);
#pragma unroll
      for (int e = 0; e < Pack<T>::size; ++e) rs.at[e] = rs.at[e] - c * gs.at[e];
    }
    store(v, i, n, rs);
  }
}

// launch: elements of hat, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) expand(Context* ctx, const T* hat, const T* G, T* U, const acc_t<T>* gamma,
    const acc_t<T>* small, int k, int s, bool reduced, long long G_stride, long long U_stride, long long n) {
  if (stopped(ctx)) return;
  const T omega(slot(small, OMEGA));
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> hs = load(hat, i, n);
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) hs.at[e] = omega * hs.at[e];
#pragma unroll 2
    for (int j = k; j < s; ++j) {
      const Pack<T> us = load(U + j * U_stride, i, n);
      Pack<T> gs = {};
      if (reduced) gs = load(G + j * G_stride, i, n);
      const T c(gamma[j]);
#pragma unroll
      for (int e = 0; e < Pack<T>::size; ++e) hs.at[e] = hs.at[e] + c * (us.at[e] - omega * gs.at[e]);
    }
    store(U + k * U_stride, i, n, hs);
  }
}

// launch: elements of r, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) update(Context* ctx, T* G, T* U, T* x, T* r, const acc_t<T>* alpha,
    acc_t<T>* small, int k, int s, long long G_stride, long long U_stride, long long n) {
  if (stopped(ctx)) return;
  const T beta(slot(small, BETA));
  double rr[1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> gs = load(G + k * G_stride, i, n), us = load(U + k * U_stride, i, n), rs = load(r, i, n),
        xs = load(x, i, n);
#pragma unroll 2
    for (int j = 0; j < k; ++j) {
      const Pack<T> gj = load(G + j * G_stride, i, n), uj = load(U + j * U_stride, i, n);
      const T c(alpha[j]);
#pragma unroll
      for (int e = 0; e < Pack<T>::size; ++e) gs.at[e] = gs.at[e] - c * gj.at[e], us.at[e] = us.at[e] - c * uj.at[e];
    }
#pragma unroll
    for (int e = 0; e < Pack<T>::size; ++e) {
      rs.at[e] = rs.at[e] - beta * gs.at[e];
      xs.at[e] = xs.at[e] + beta * us.at[e];
      rr[0] += abs2(acc_t<T>(rs.at[e]));
    }
    if (k) store(G + k * G_stride, i, n, gs), store(U + k * U_stride, i, n, us);
    store(r, i, n, rs);
    store(x, i, n, xs);
  }
  if (k == s - 1 && grid_sum(ctx, rr)) slot(small, RR) = acc_t<T>(rr[0]);
}

// launch: elements of r, 256 threads, a pack each, at most 4 blocks per multiprocessor
template <typename T, int S>
__global__ void __launch_bounds__(256) finish(Context* ctx, const real_t<T>* P, const T* hat, const T* t,
    const float* w, T* x, T* r, acc_t<T>* PG, acc_t<T>* f, acc_t<T>* gamma, acc_t<T>* small, int s, bool single_rank,
    long long P_stride, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int parts = scalar<T>::parts, size = Pack<T>::size;
  const T omega(step_omega(small));
  A sums[S] = {};
  double v[S * parts + 1] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(r, i, n), xs = load(x, i, n);
    const Pack<T> hs = hat == r ? rs : load(hat, i, n), ts = load(t, i, n);
#pragma unroll
    for (int e = 0; e < size; ++e) {
      xs.at[e] = xs.at[e] + omega * hs.at[e];
      rs.at[e] = rs.at[e] - omega * ts.at[e];
      const double square = abs2(A(rs.at[e]));
      if (!w || i * size + e < n) v[S * parts] += w ? w[i * size + e] * square : square;
    }
    store(x, i, n, xs);
    store(r, i, n, rs);
    add_products<S, T>(sums, P, P_stride, rs, i, n);
  }
#pragma unroll
  for (int i = 0; i < S; ++i) split(v + i * parts, sums[i]);
  if (!grid_sum(ctx, v)) return;
  join_all<S>(f, v);
  f[S] = A(v[S * parts]);
  if (single_rank) conclude(ctx, PG, f, gamma, small, s);
}

// launch: one block of 32 threads
template <typename T>
__global__ void settle(Context* ctx, const acc_t<T>* PG, const acc_t<T>* f, acc_t<T>* gamma, acc_t<T>* small, int s) {
  if (stopped(ctx) || threadIdx.x) return;
  conclude(ctx, PG, f, gamma, small, s);
}
