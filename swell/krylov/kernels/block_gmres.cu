// Fused steps of block GMRES on a GPU; block_gmres.cpp has the same kernels for a CPU, with the same arrays.
// SIDE is the power of two that is not below k, the number of right-hand sides.
#include "block.cuh"

// The sums of a step: [U W V]ᴴ [U W].
template <class A> struct Sums {
  const A* sums;
  int k;
  DEVICE A uu(int i, int j) const { return sums[i * 2 * k + j]; }
  DEVICE A uw(int i, int j) const { return sums[i * 2 * k + k + j]; }
  DEVICE A ww(int i, int j) const { return sums[(k + i) * 2 * k + k + j]; }
  DEVICE A s(int l, int j) const { return sums[(2 * k + l) * 2 * k + j]; }
  DEVICE A t(int l, int j) const { return sums[(2 * k + l) * 2 * k + k + j]; }
};

// launch: one block of 32 threads
template <typename T> __global__ void judge_cycles(Context* ctx, const acc_t<T>* norm2, int count) {
  if (stopped(ctx)) return;
  const int l = threadIdx.x;
  if (l < count && !ended(ctx, l)) judge_cycle(ctx + l, real(norm2[2 * l + JUDGED2]));
  __syncthreads();
  if (l == 0) go_on(ctx, count);
}

// launch: columns of UW, 256 threads
template <typename T>
__global__ void first(Context* ctx, T* UW, const acc_t<T>* norm2, acc_t<T>* g, int* columns, int count,
    long long UW_stride, long long g_size, long long n) {
  stopped(ctx);                                        // it waits for the kernel before
  const long long i = thread_id();
  for (int l = 0; l < count; ++l) {
    const double beta = ended(ctx, l) ? 0.0 : sqrt(real(norm2[2 * l + OWN2]));
    if (i < n) UW[l * UW_stride + i] = beta > 0 ? real_t<T>(1 / beta) * UW[l * UW_stride + i] : T(0);
  }
  for (long long e = i; e < g_size; e += threads()) {
    const long long l = e % count;
    g[e] = acc_t<T>(e / count == l && !ended(ctx, l) ? sqrt(real(norm2[2 * l + OWN2])) : 0.0);
  }
  if (i) return;
  columns[0] = 0;
  for (int l = 0; l < count; ++l)
    if (!ended(ctx, l)) set_ratio(ctx + l, real(norm2[2 * l + JUDGED2]), real(norm2[2 * l + OWN2]));
  go_on(ctx, count);
}

// launch: one block of 1024 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(1024) normalise(Context* ctx, const acc_t<T>* partial, acc_t<T>* g, acc_t<T>* small,
    double tolerance, int count, int side, long long partial_size) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  __shared__ Dense<A, SIDE> s;
  const int k = count, i = threadIdx.x / SIDE, j = threadIdx.x % SIDE;
  const bool entry = i < k && j < k;
  total(partial, partial_size, k, s.scratch, s.h);
  own_reference(s, k);
  pivoted_cholesky(s, k, tolerance, false);
  const A size = entry ? g[j * k + j] : A(0);
  __syncthreads();
  if (!entry) return;
  small[(ALPHA * k + i) * k + j] = s.f[i][j];
  small[(INVERSE * k + i) * k + j] = s.h[i][j];
  g[i * k + j] = s.f[i][j] * size;
}

// launch: columns of UW, 256 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(256) scale(Context* ctx, T* UW, const acc_t<T>* small, int count, int side,
    long long UW_stride, long long n) {
  if (!stopped(ctx)) multiply_by<SIDE>(UW, UW_stride, n, small + INVERSE * count * count, count);
}

// launch: a block of height threads for each slice of rows
template <typename T>
__global__ void __launch_bounds__(256, 2) dots(Context* ctx, const T* V, const T* UW, acc_t<T>* partial,
    const long long* rows, int j, int count, int height, long long V_stride, long long UW_stride,
    long long partial_stride) {
  if (stopped(ctx)) return;
  const int two = 2 * count;
  const long long from = rows[blockIdx.x], to = rows[blockIdx.x + 1];
  acc_t<T>* mine = partial + blockIdx.x * partial_stride;
  gram_of<T>(UW, UW_stride, two, UW, UW_stride, two, nullptr, from, to, mine, two);
  if (j) gram_of<T>(V, V_stride, j * count, UW, UW_stride, two, nullptr, from, to, mine + two * two, two);
}

// launch: elements of sums, 256 threads
template <typename T> __global__ void collect(Context* ctx, const acc_t<T>* partial, acc_t<T>* sums, int j, int count,
                                              long long partial_size, long long partial_stride, long long n) {
  const long long i = thread_id();
  if (stopped(ctx) || i >= (2ll + j) * count * 2 * count) return;
  acc_t<T> sum(0);
#pragma unroll 32
  for (long long at = i; at < partial_size; at += partial_stride) sum += partial[at];
  sums[i] = sum;
}

// α and its inverse in `small`: αᴴ α = Uᴴ U − Sᴴ S.
template <class A, int SIDE>
DEVICE void second_pass(Dense<A, SIDE>& d, Sums<A> sums, A* small, double tolerance, int j, int k) {
  const int a = threadIdx.x / SIDE, b = threadIdx.x % SIDE;
  const bool entry = a < k && b < k;
  const A ss = adjoint_product(d, k, j * k, [&](int l, int i) { return sums.s(l, i); },
      [&](int l, int i) { return sums.s(l, i); });
  if (entry) d.h[a][b] = sums.uu(a, b) - ss;
  if (threadIdx.x < k) d.reference[threadIdx.x] = real(sums.uu(threadIdx.x, threadIdx.x));
  __syncthreads();
  pivoted_cholesky(d, k, tolerance, false);
  if (entry) {
    small[(ALPHA * k + a) * k + b] = d.f[a][b];
    small[(INVERSE * k + a) * k + b] = d.h[a][b];
  }
  __syncthreads();
}

// Householder reflections of the panel [h; f], which becomes upper triangular, and their product in `turn`.
template <class A, int SIDE> DEVICE void reflect(Dense<A, SIDE>& d, A* turn, int k) {
  __shared__ A v[2 * SIDE];
  const int t = threadIdx.x, two = 2 * k;
  auto panel = [&](int i, int c) -> A& { return i < k ? d.h[i][c] : d.f[i - k][c]; };
  for (int e = t; e < two * two; e += blockDim.x) turn[e] = A(e / two == e % two ? 1.0 : 0.0);
  for (int c = 0; c < k; ++c) {
    __syncthreads();
    if (t < two) v[t] = t < c ? A(0) : panel(t, c);
    __syncthreads();
    double size2 = 0;
    for (int i = c; i < two; ++i) size2 += abs2(v[i]);
    if (size2 == 0) continue;                          // for all threads
    const double size = sqrt(size2), top = sqrt(abs2(v[c])), half = size * (size + top);
    const A image = top > 0 ? (-size / top) * v[c] : A(-size), lead = v[c] - image;
    const int q = c + 1 + t;
    if (q < k + two) {
      auto at = [&](int i) -> A& { return q < k ? panel(i, q) : turn[i * two + q - k]; };
      A along = conj(lead) * at(c);
      for (int i = c + 1; i < two; ++i) along = fused(conj(v[i]), at(i), along);
      along = (-1 / half) * along;
      at(c) = fused(along, lead, at(c));
      for (int i = c + 1; i < two; ++i) at(i) = fused(along, v[i], at(i));
    }
    if (t >= c && t < two) panel(t, c) = t == c ? image : A(0);
  }
  __syncthreads();
}

// One block: both halves of turn [h; f], for one column of each thread's entry (a, b).
template <class A, class Top, class Bottom>
DEVICE void turned(const A* turn, int k, int a, Top&& h, Bottom&& f, A& top, A& bottom) {
  top = A(0), bottom = A(0);
  for (int c = 0; c < k; ++c) {
    const A x = h(c), y = f(c);
    top = fused(turn[a * 2 * k + c], x, fused(turn[a * 2 * k + k + c], y, top));
    bottom = fused(turn[(k + a) * 2 * k + c], x, fused(turn[(k + a) * 2 * k + k + c], y, bottom));
  }
}

template <class A, int SIDE>
DEVICE void finish_block(Context* ctx, Dense<A, SIDE>& d, Sums<A> sums, A* H, A* R, A* turns, A* g, const A* small,
    int* columns, long long stride, int j, int k) {
  const int t = threadIdx.x, a = t / SIDE, b = t % SIDE, at = (j - 1) * k;
  const bool entry = a < k && b < k;
  const A* Gamma = small + SCALE * k * k;
  for (int e = t; e < (j + 1) * k * k; e += blockDim.x) {
    const int i = e / k, c = e % k;
    A value = i < j * k ? H[i * stride + at + c] : A(0);
    for (int l = 0; l < k; ++l)
      value = fused(i < j * k ? sums.s(i, l) : small[(ALPHA * k + i - j * k) * k + l], Gamma[l * k + c], value);
    H[i * stride + at + c] = R[i * stride + at + c] = value;
  }
  __syncthreads();
  if (entry) d.h[a][b] = R[a * stride + at + b];
  A top, bottom;
  for (int i = 0; i < j; ++i) {                        // the window [h; f] moves down the block column
    if (entry) d.f[a][b] = R[((i + 1) * k + a) * stride + at + b];
    __syncthreads();
    if (i == j - 1) break;
    if (entry)
      turned(turns + 4ll * i * k * k, k, a, [&](int c) { return d.h[c][b]; }, [&](int c) { return d.f[c][b]; }, top,
      bottom);
    __syncthreads();
    if (entry) R[(i * k + a) * stride + at + b] = top, d.h[a][b] = bottom;
  }
  A* turn = turns + 4ll * (j - 1) * k * k;
  reflect(d, turn, k);
  A* mine = g + at * k;
  if (entry) {
    R[(at + a) * stride + at + b] = d.h[a][b];
    turned(turn, k, a, [&](int c) { return mine[c * k + b]; }, [&](int c) { return mine[(k + c) * k + b]; }, top,
        bottom);
  }
  __syncthreads();
  if (entry) mine[a * k + b] = top, mine[(k + a) * k + b] = d.f[a][b] = bottom;
  __syncthreads();
  if (t < k && !ended(ctx, t) && flag(ctx + t, VERDICT) == RUNNING) {
    double norm2 = 0;
    for (int i = 0; i < k; ++i) norm2 += abs2(d.f[i][t]);
    judge_inner(ctx + t, norm2);
  }
  __syncthreads();
  if (t == 0) {
    bool every = true;
    for (int l = 0; l < k; ++l) every = every && flag(ctx + l, VERDICT) != RUNNING;
    for (int l = 0; l < k; ++l) flag(ctx + l, STOP) = every;
    columns[0] = j;
  }
  __syncthreads();
}

// launch: one block of 1024 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(1024) coefficients(Context* ctx, const acc_t<T>* sums, acc_t<T>* H, acc_t<T>* R,
    acc_t<T>* turns, acc_t<T>* g, acc_t<T>* small, int* columns, double tolerance, double floor, int j, int count,
    int side, long long H_size, long long H_stride) {
  if (stopped(ctx)) return;
  using A = acc_t<T>;
  __shared__ Dense<A, SIDE> d;
  const int k = count, t = threadIdx.x, a = t / SIDE, b = t % SIDE;
  const bool entry = a < k && b < k;
  const Sums<A> of{sums, k};
  const A *inverse = small + INVERSE * k * k, *beta = small + BETA * k * k;
  second_pass(d, of, small, tolerance, j, k);
  if (j > 0) {
    finish_block(ctx, d, of, H, R, turns, g, small, columns, H_stride, j, k);
    if (over(ctx)) return;
  } else {
    A value(0);
    if (entry)
      for (int c = 0; c < k; ++c) value = fused(small[(ALPHA * k + a) * k + c], g[c * k + b], value);
    __syncthreads();
    if (entry) g[a * k + b] = value;
  }
  const A st = adjoint_product(d, k, j * k, [&](int l, int i) { return of.s(l, i); },
      [&](int l, int i) { return of.t(l, i); });
  const A tt = adjoint_product(d, k, j * k, [&](int l, int i) { return of.t(l, i); },
      [&](int l, int i) { return of.t(l, i); });
  if (entry) d.f[a][b] = of.uw(a, b) - st;
  __syncthreads();
  A value(0);
  if (entry) {                                         // β = α⁻ᴴ (Uᴴ W − Sᴴ T)
    for (int c = 0; c < k; ++c) value = fused(conj(inverse[c * k + a]), d.f[c][b], value);
    small[(BETA * k + a) * k + b] = value;
  }
  __syncthreads();
  if (entry) {                                         // γᴴ γ = Wᴴ W − Tᴴ T − βᴴ β
    A bb(0);
    for (int c = 0; c < k; ++c) bb = fused(conj(beta[c * k + a]), beta[c * k + b], bb);
    d.h[a][b] = of.ww(a, b) - tt - bb;
  }
  if (t < k) d.reference[t] = real(of.ww(t, t));
  __syncthreads();
  pivoted_cholesky(d, k, floor, true);
  if (entry) {                                         // Γ = γ α⁻¹
    value = A(0);
    for (int c = 0; c < k; ++c) value = fused(d.f[a][c], inverse[c * k + b], value);
    small[(SCALE * k + a) * k + b] = value;
    small[(GAMMA_INVERSE * k + a) * k + b] = d.h[a][b];
  }
  // H(:, j) = ([T; β] − H S) α⁻¹. R has room for the bracket; H is zero below its first subdiagonal of blocks.
  for (int e = t; e < (j + 1) * k * k; e += blockDim.x) {
    const int i = e / k, c = e % k;
    A left = i < j * k ? of.t(i, c) : beta[(i - j * k) * k + c];
    for (int l = max(0, i / k - 1) * k; l < j * k; ++l) left -= H[i * H_stride + l] * of.s(l, c);
    R[i * H_stride + j * k + c] = left;
  }
  __syncthreads();
  for (int e = t; e < H_size / H_stride * k; e += blockDim.x) {
    const int i = e / k, c = e % k;
    A value(0);
    if (i < (j + 1) * k)
      for (int l = 0; l < k; ++l) value = fused(R[i * H_stride + j * k + l], inverse[l * k + c], value);
    H[i * H_stride + j * k + c] = value;
  }
}

// launch: columns of UW, 256 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(256) update(Context* ctx, T* V, T* UW, const acc_t<T>* sums, const acc_t<T>* small,
    int j, int count, int side, long long V_stride, long long UW_stride, long long n) {
  if (stopped(ctx)) return;
  __shared__ T left[SIDE][SIDE], right[SIDE][SIDE];
  const int k = count;
  const long long row = thread_id();
  const bool in = row < n;
  T u[SIDE], w[SIDE];
#pragma unroll
  for (int b = 0; b < SIDE; ++b) u[b] = w[b] = T(0);
  if (in) load_row(UW, UW_stride, k, row, u), load_row(UW + k * UW_stride, UW_stride, k, row, w);
  for (int of = 0; of < j; ++of) {                     // one basis block at a time: −S in left, −T in right
    __syncthreads();
    const acc_t<T>* of_block = sums + (2 + of) * k * 2ll * k;
    fill(left, k, [=](int i, int b) { return -of_block[i * 2ll * k + b]; });
    fill(right, k, [=](int i, int b) { return -of_block[i * 2ll * k + k + b]; });
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < k; ++i) {
      const T v = in ? V[(of * k + i) * V_stride + row] : T(0);
#pragma unroll
      for (int b = 0; b < SIDE; ++b) u[b] = fused(v, left[i][b], u[b]), w[b] = fused(v, right[i][b], w[b]);
    }
  }
  __syncthreads();
  coefficients_of(small + INVERSE * k * k, k, 1, left);                         // transposed
  fill(right, k, [=](int i, int b) { return -small[(BETA * k + i) * k + b]; });
  __syncthreads();
  for (int i = 0; i < k; ++i) {                        // V_j = (U − V S) α⁻¹;  W − V T − V_j β
    const T v = combination(u, left[i], T(0));
    if (in) V[(j * k + i) * V_stride + row] = v;
#pragma unroll
    for (int b = 0; b < SIDE; ++b) w[b] = fused(v, right[i][b], w[b]);
  }
  __syncthreads();
  coefficients_of(small + GAMMA_INVERSE * k * k, k, 1, left);
  __syncthreads();
  if (in)
    for (int i = 0; i < k; ++i) UW[i * UW_stride + row] = combination(w, left[i], T(0));
}

// launch: one block of 1024 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(1024) close(Context* ctx, const acc_t<T>* sums, acc_t<T>* H, acc_t<T>* R,
    acc_t<T>* turns, acc_t<T>* g, acc_t<T>* small, int* columns, acc_t<T>* y, double tolerance, int j, int count,
    int side, long long H_stride) {
  using A = acc_t<T>;
  const bool over_already = stopped(ctx);              // a pause inside the cycle does not stop this kernel
  bool every = true;
  for (int l = 0; l < count; ++l) every = every && ended(ctx, l);
  if (every) return;
  __shared__ Dense<A, SIDE> d;
  const int k = count, t = threadIdx.x;
  __syncthreads();
  if (!over_already) {
    second_pass(d, Sums<A>{sums, k}, small, tolerance, j, k);
    finish_block(ctx, d, Sums<A>{sums, k}, H, R, turns, g, small, columns, H_stride, j, k);
  }
  const int blocks = columns[0], many = blocks * k;
  for (int i = t; i < H_stride; i += blockDim.x) {
    double size2 = 0;
    if (i < many) {
      for (int q = 0; q <= i; ++q) size2 += abs2(R[q * H_stride + i]);
      if (sqrt(abs2(R[i * H_stride + i])) <= 0x1p-52 * sqrt(size2)) R[i * H_stride + i] = A(0);
    }
    for (int l = 0; l < k; ++l) y[i * k + l] = i < many ? g[i * k + l] : A(0);
  }
  __syncthreads();
  for (int block = blocks - 1; block >= 0; --block) {
    const int at = block * k;
    if (t < k)
      for (int i = at + k - 1; i >= at; --i) {
        A left = y[i * k + t];
        for (int q = i + 1; q < at + k; ++q) left -= R[i * H_stride + q] * y[q * k + t];
        const A pivot = R[i * H_stride + i];
        y[i * k + t] = pivot == A(0) ? A(0) : left / pivot;
      }
    __syncthreads();
    for (int e = t; e < at * k; e += blockDim.x) {
      A left = y[e];
      for (int q = at; q < at + k; ++q) left -= R[e / k * H_stride + q] * y[q * k + e % k];
      y[e] = left;
    }
    __syncthreads();
  }
  if (t == 0) go_on(ctx, k);
}

// launch: columns of out, 256 threads
template <typename T, int SIDE>
__global__ void __launch_bounds__(256) combine(Context* ctx, const T* V, const acc_t<T>* y, const int* columns, T* out,
    bool add, int count, int side, long long V_stride, long long out_stride, long long n) {
  if (stopped(ctx)) return;
  __shared__ T c[SIDE][SIDE];
  const int k = count;
  const long long row = thread_id();
  const bool in = row < n;
  T total[SIDE];
#pragma unroll
  for (int b = 0; b < SIDE; ++b) total[b] = add && in && b < k ? out[b * out_stride + row] : T(0);
  for (int of = 0; of < columns[0]; ++of) {
    __syncthreads();
    fill(c, k, [=](int i, int b) { return ended(ctx, b) ? acc_t<T>(0) : y[(of * k + i) * k + b]; });
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < k; ++i) {
      const T v = in ? V[(of * k + i) * V_stride + row] : T(0);
#pragma unroll
      for (int b = 0; b < SIDE; ++b) total[b] = fused(v, c[i][b], total[b]);
    }
  }
#pragma unroll
  for (int b = 0; b < SIDE; ++b)
    if (in && b < k && !(add && ended(ctx, b))) out[b * out_stride + row] = total[b];
}
