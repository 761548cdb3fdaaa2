// Fused steps of BiCGSTAB(l) on a GPU; bicgstabl.cpp has the same kernels for a CPU, with the same θ.
// krylov/slots.py names the scalars s.
#include "breakdown.cuh"
#include "judge.cuh"

constexpr double DEPENDENT = 64 * EPS;

// launch: columns of U, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) direction(Context* ctx, const T* R, T* U, acc_t<T>* s, int j, long long R_stride,
    long long U_stride, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  using A = acc_t<T>;
  const double theta = j > 0 ? real(slot(s, THETA)) : 1.0;
  const A rho = j > 0 ? theta * slot(s, PROJECTED) : slot(s, SIGMA),
      before = j > 0 ? slot(s, RHO) : -(slot(s, OMEGA) * slot(s, RHO));
  const bool lost = j > 0 ? vanishes(slot(s, PROJECTED), real(slot(s, SHADOW2)), real(slot(s, PRODUCT2)))
      : vanishes(slot(s, SIGMA), real(slot(s, SHADOW2)), real(slot(s, RR)));
  const A b = lost ? A(0) : slot(s, ALPHA) * quotient(rho, before);
  const T beta(b), fresh_beta(theta * b);
  const real_t<T> fresh(theta);
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
#pragma unroll 4
    for (int k = 0; k < j; ++k) {
      Pack<T> us = load(U + k * U_stride, i, n);
      const Pack<T> rs = load(R + k * R_stride, i, n);
#pragma unroll
      for (int e = 0; e < S; ++e) us.at[e] = rs.at[e] - beta * us.at[e];
      store(U + k * U_stride, i, n, us);
    }
    Pack<T> us = load(U + j * U_stride, i, n);
    const Pack<T> rs = load(R + j * R_stride, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) us.at[e] = fresh * rs.at[e] - fresh_beta * us.at[e];
    store(U + j * U_stride, i, n, us);
  }
  if (last_to_read(ctx)) {
    slot(s, RHO) = rho;
    if (lost) slot(s, LOST) = A(1);
  }
}

// launch: elements of x, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) half(Context* ctx, T* R, const T* U, T* x, acc_t<T>* s, int j, bool add,
    long long R_stride, long long U_stride, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size;
  using A = acc_t<T>;
  const double known = real(slot(s, THETA)), theta = known == 0 ? 1 / magnitude(real(slot(s, UU)) / real(slot(s, RR)))
      : known;
  const bool lost = vanishes(slot(s, GAMMA), real(slot(s, SHADOW2)), real(slot(s, UU)));
  const A a = lost ? A(0) : slot(s, RHO) / (theta * slot(s, GAMMA));
  const T alpha(a), fresh_alpha(theta * a);
  const real_t<T> fresh(j > 0 ? theta : 1.0);
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> xs = {}, us = load(U, i, n);
    if (add) xs = load(x, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) xs.at[e] = xs.at[e] + fresh_alpha * us.at[e];
    store(x, i, n, xs);
#pragma unroll 4
    for (int k = 0; k < j; ++k) {
      Pack<T> rs = load(R + k * R_stride, i, n);
      const Pack<T> after = load(U + (k + 1) * U_stride, i, n);
#pragma unroll
      for (int e = 0; e < S; ++e) rs.at[e] = rs.at[e] - alpha * after.at[e];
      store(R + k * R_stride, i, n, rs);
    }
    Pack<T> rs = load(R + j * R_stride, i, n);
    us = load(U + (j + 1) * U_stride, i, n);
#pragma unroll
    for (int e = 0; e < S; ++e) rs.at[e] = fresh * rs.at[e] - fresh_alpha * us.at[e];
    store(R + j * R_stride, i, n, rs);
  }
  if (last_to_read(ctx)) {
    slot(s, ALPHA) = a;
    slot(s, THETA) = A(theta);
    if (lost) slot(s, LOST) = A(1);
  }
}

constexpr int MOST = 9;                // largest l + 1

// One thread computes the coefficients of the next residual from G = (r̂_i, r̂_j). The lower triangle of G becomes its
// Cholesky factor. The loops must not be unrolled: they would take minutes to compile.
template <class A> __device__ __noinline__ void solve(A (*G)[MOST], A* a, A* b, double* inverse, A* c, A* s, int l,
    double convex) {
  for (int i = 0; i <= l; ++i) a[i] = A(i == 0), b[i] = A(i == l);
  const double last = real(G[l][l]), theta = real(slot(s, THETA));
  for (int i = 1; i < l; ++i) {
    double left = real(G[i][i]);
    a[i] = -conj(G[0][i]);
    b[i] = -G[i][l];
    for (int k = 1; k < i; ++k) {
      A entry = conj(G[k][i]);
      for (int m = 1; m < k; ++m) entry = entry - G[i][m] * conj(G[k][m]);
      G[i][k] = entry = inverse[k] * entry;
      left -= abs2(entry);
      a[i] = a[i] - entry * a[k];
      b[i] = b[i] - entry * b[k];
    }
    inverse[i] = left > DEPENDENT * real(G[i][i]) ? 1 / sqrt(left) : 0.0;
    a[i] = inverse[i] * a[i];
    b[i] = inverse[i] * b[i];
  }
  for (int i = l - 1; i > 0; --i) {
    for (int k = i + 1; k < l; ++k) a[i] = a[i] - conj(G[k][i]) * a[k], b[i] = b[i] - conj(G[k][i]) * b[k];
    a[i] = inverse[i] * a[i];
    b[i] = inverse[i] * b[i];
  }
  A product = conj(G[0][l]), omega(0);
  double of_a = real(G[0][0]), of_b = last, grown = 0;
  for (int i = 1; i < l; ++i) {
    product += conj(G[i][l]) * a[i];
    of_a += real(G[0][i] * a[i]);
    of_b += real(conj(G[i][l]) * b[i]);
  }
  if (of_b > DEPENDENT * last) {
    omega = (1 / of_b) * product;
    const double cosine = of_a > 0 ? modulus(product) / (sqrt(of_a) * sqrt(of_b)) : 1.0;
    if (0 < cosine && cosine < convex) omega = (convex / cosine) * omega;
  }
  for (int i = 0; i <= l; ++i) {
    const A value = a[i] - omega * b[i];
    if (i > 0) c[l + i] = -(theta * value);
    c[i] = i < l ? value : theta * value;
  }
  slot(s, OMEGA) = omega;
  if (omega == A(0)) slot(s, LOST) = A(1);
  for (int i = 1; i <= l; ++i) {
    const double before = real(G[i - 1][i - 1]), after = real(G[i][i]);
    if (before > 0 && after / before > grown) grown = after / before;
  }
  if (grown > 1) slot(s, THETA) = A(theta / magnitude(grown));
}

// One thread computes the coefficients from the inner products of all ranks.
template <class A> __device__ __noinline__ void find(const A* sums, A* c, A* s, int l, double convex) {
  __shared__ A G[MOST][MOST], a[MOST], b[MOST];
  __shared__ double inverse[MOST];
  const double theta = real(slot(s, THETA));
  for (int y = 0, at = 0; y <= l; ++y)
    for (int x = 0; x <= y; ++x, ++at) G[x][y] = (y < l ? 1.0 : x < l ? theta : theta * theta) * sums[at];
  solve(G, a, b, inverse, c, s, l, convex);
}

// launch: one block of 32 threads
template <typename T>
__global__ void coefficients(Context* ctx, const acc_t<T>* sums, acc_t<T>* c, acc_t<T>* s, int l, double convex) {
  if (stopped(ctx) || threadIdx.x) return;
  find(sums, c, s, l, convex);
}

// launch: columns of R, 128 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T, int L>
__global__ void __launch_bounds__(128) polynomial(Context* ctx, const T* R, acc_t<T>* sums, acc_t<T>* c, acc_t<T>* s,
    int l, double convex, bool single_rank, long long R_stride, long long n) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  constexpr int S = Pack<T>::size, P = scalar<T>::parts, PAIRS = (L + 1) * (L + 2) / 2, K = PAIRS * P;
  A own[PAIRS] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs[L + 1];
#pragma unroll
    for (int k = 0; k <= L; ++k) rs[k] = load(R + k * R_stride, i, n);
#pragma unroll
    for (int y = 0; y <= L; ++y)
#pragma unroll
      for (int x = 0; x <= y; ++x)
#pragma unroll
        for (int e = 0; e < S; ++e)
          own[y * (y + 1) / 2 + x] = conj_fused(rs[x].at[e], rs[y].at[e], own[y * (y + 1) / 2 + x]);
  }
  double v[K];
#pragma unroll
  for (int k = 0; k < PAIRS; ++k) split(v + k * P, own[k]);
  block_sum(v);
  if (threadIdx.x == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) ctx->partials[blockIdx.x * K + k] = v[k];
  if (!last_block(ctx)) return;
  if (threadIdx.x < K) {                 // thread k adds sum k over the blocks, in their order
    double sum = 0;
#pragma unroll 8
    for (int block = 0; block < gridDim.x; ++block) sum += __ldcg(ctx->partials + block * K + threadIdx.x);
    ((double*)sums)[threadIdx.x] = sum;
  }
  __syncthreads();
  if (single_rank && threadIdx.x == 0) find(sums, c, s, l, convex);
}

// launch: elements of x, 512 threads, a pack each, at most 2 blocks per multiprocessor
template <typename T>
__global__ void __launch_bounds__(512) combine(Context* ctx, T* R, T* U, const acc_t<T>* c, const T* shadow,
    const float* w, T* x, acc_t<T>* s, int l, long long R_stride, long long U_stride, long long n) {
  if (stopped(ctx)) return;
  constexpr int S = Pack<T>::size, P = scalar<T>::parts;
  acc_t<T> rho(0);
  double v[P + 2] = {};
  for (long long i = thread_id(); i < packs_of<T>(n); i += threads()) {
    Pack<T> rs = load(R, i, n), us = load(U, i, n), xs = load(x, i, n);
    const Pack<T> hs = load(shadow, i, n);
    T of_x(c[l + 1]);
#pragma unroll
    for (int e = 0; e < S; ++e) xs.at[e] = xs.at[e] + of_x * rs.at[e];
#pragma unroll 4
    for (int k = 1; k <= l; ++k) {
      const Pack<T> rk = load(R + k * R_stride, i, n), uk = load(U + k * U_stride, i, n);
      const T ck(c[k]);
      of_x = k < l ? T(c[l + 1 + k]) : T(0);
#pragma unroll
      for (int e = 0; e < S; ++e) {
        rs.at[e] = rs.at[e] + ck * rk.at[e];
        us.at[e] = us.at[e] + ck * uk.at[e];
        xs.at[e] = xs.at[e] + of_x * rk.at[e];
      }
    }
    store(x, i, n, xs);
    store(R, i, n, rs);
    store(U, i, n, us);
#pragma unroll
    for (int e = 0; e < S; ++e) {
      rho = conj_fused(hs.at[e], rs.at[e], rho);
      const double square = abs2(acc_t<T>(rs.at[e]));
      v[P] += square;
      if (w && i * S + e < n) v[P + 1] += w[i * S + e] * square;
    }
  }
  split(v, rho);
  if (grid_sum(ctx, v)) {
    join(slot(s, SIGMA), v);
    slot(s, RR) = acc_t<T>(v[P]);
    slot(s, NORM2) = acc_t<T>(w ? v[P + 1] : v[P]);
  }
}

// launch: one block of 32 threads
template <typename T> __global__ void settle(Context* ctx, acc_t<T>* s) {
  if (stopped(ctx) || threadIdx.x) return;
  const bool lost = slot(s, LOST) != acc_t<T>(0);
  slot(s, LOST) = acc_t<T>(0);
  judge(ctx, real(slot(s, NORM2)));
  if (!over(ctx) && lost) halt(ctx, isfinite(real(slot(s, UU))) ? BREAKDOWN : NONFINITE);
}
