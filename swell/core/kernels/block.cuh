// Blocks of k vectors that share one Krylov space, on a GPU; core/native/block.hpp is the CPU version.
//
// ctx is the context of the first right-hand side; the others follow it. While a block method runs, the STOP flags of
// all right-hand sides are equal, so `stopped(ctx)` answers for all. FINAL marks those that have ended.
#pragma once
#include "judge.cuh"
#include "many_sums.cuh"

constexpr double NEGATIVE = 1e-3;      // a pivot below it, relative to its diagonal entry, is no rounding error
constexpr int DENSE = 1024;            // threads of a kernel for small matrices: one for each entry
// Threads that hold entries, in whole warps. The others only add up sums: when they have left, barriers are sooner.
template <int SIDE> constexpr int ENTRIES = SIDE * SIDE < 32 ? 32 : SIDE * SIDE;

DEVICE bool ended(const Context* ctx, int j) { return flag(ctx + j, FINAL) != 0; }

// One thread: make the STOP flags equal, 1 if every right-hand side has ended, else 0. The host sees the flags as the
// judge showed them: a right-hand side that has ended stays so.
DEVICE void go_on(Context* ctx, int count) {
  bool every = true;
  for (int j = 0; j < count; ++j) every = every && ended(ctx, j);
  for (int j = 0; j < count; ++j) flag(ctx + j, STOP) = every;
}

// One thread: end every right-hand side that has not ended.
DEVICE void halt_all(Context* ctx, int count, int code) {
  for (int j = 0; j < count; ++j)
    if (!ended(ctx, j)) halt(ctx + j, code);
  go_on(ctx, count);
}

DEVICE bool finite(double a) { return isfinite(a); }
DEVICE bool finite(complex<double> a) { return isfinite(a.re) && isfinite(a.im); }

// Inner products of I vectors of P with J vectors of Q, which fill a warp: 32 sums.
constexpr int TILE_I = 4;
template <class T> constexpr int TILE_J = 8 / scalar<T>::parts;

// One warp adds conj(P_i) w Q_j over the rows from `from` to `to`, for a tile that begins at vectors i0 and j0. Lane l
// ends with the l-th of the 32 doubles.
template <class T>
DEVICE double tile_sums(const T* P, long long P_stride, int i0, int a, const T* Q, long long Q_stride, int j0, int b,
    const float* w, long long from, long long to) {
  using A = acc_t<T>;
  constexpr int J = TILE_J<T>, parts = scalar<T>::parts;
  A v[TILE_I][J] = {};
  for (long long row = from + threadIdx.x % 32; row < to; row += 32) {
    A p[TILE_I];
#pragma unroll
    for (int i = 0; i < TILE_I; ++i) {
      p[i] = i0 + i < a ? conj(A(P[(i0 + i) * P_stride + row])) : A(0);
      if (w) p[i] = double(w[row]) * p[i];
    }
#pragma unroll
    for (int j = 0; j < J; ++j) {
      const A q = j0 + j < b ? A(Q[(j0 + j) * Q_stride + row]) : A(0);
#pragma unroll
      for (int i = 0; i < TILE_I; ++i) v[i][j] = fused(p[i], q, v[i][j]);
    }
  }
  double flat[32];
#pragma unroll
  for (int i = 0; i < TILE_I; ++i)
#pragma unroll
    for (int j = 0; j < J; ++j) split(flat + (i * J + j) * parts, v[i][j]);
  return scatter_sum(flat);
}

// One block: out[i out_stride + j] = Σ conj(P_i) w Q_j over the rows from `from` to `to`, for a vectors of P and b of
// Q. A warp has a tile, or a part of its rows if there are more warps than tiles. The vectors are read again for each
// tile, from a near cache.
template <class T>
DEVICE void gram_of(const T* P, long long P_stride, int a, const T* Q, long long Q_stride, int b, const float* w,
    long long from, long long to, acc_t<T>* out, int out_stride) {
  constexpr int J = TILE_J<T>, parts = scalar<T>::parts;
  __shared__ double sums[32][32];
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, across = (b + J - 1) / J,
      tiles = (a + TILE_I - 1) / TILE_I * across;
  const int shares = max(1, warps / tiles), together = warps / shares;
  const long long size = (to - from + shares - 1) / shares;
  for (int first = 0; first < tiles; first += together) {
    const int tile = first + warp / shares, share = warp % shares;
    if (warp < together * shares && tile < tiles) {
      const long long begin = from + share * size;
      sums[warp][threadIdx.x % 32] = tile_sums(P, P_stride, tile / across * TILE_I, a, Q, Q_stride, tile % across * J,
          b, w, begin, min(begin + size, to));
    }
    __syncthreads();
    for (int e = threadIdx.x; e < together * 32; e += blockDim.x) {
      const int tile = first + e / 32, i = tile / across * TILE_I + e % 32 / parts / J,
          j = tile % across * J + e % 32 / parts % J;
      double total = 0;
      for (int share = 0; share < shares; ++share) total += tile < tiles ? sums[e / 32 * shares + share][e % 32] : 0.0;
      if (tile < tiles && i < a && j < b)
        reinterpret_cast<double*>(out + i * (long long)out_stride + j)[e % parts] = total;
    }
    __syncthreads();
  }
}

// Two small matrices and the scalars of their factorisation, in shared memory.
template <class A, int SIDE> struct Dense {
  A h[SIDE][SIDE + 1], f[SIDE][SIDE + 1];
  double reference[SIDE], scale[SIDE], pivot, scratch[SIDE < 32 ? DENSE * scalar<A>::parts : DENSE];
  int order[SIDE], free[SIDE], at, bad;
};

// One block: m = the sum of partial over the slices. `size`: number of its entries.
template <class A, int SIDE>
DEVICE void total(const A* partial, long long size, int k, double* scratch, A (&m)[SIDE][SIDE + 1]) {
  constexpr int parts = scalar<A>::parts;
  add_blocks(reinterpret_cast<const double*>(partial), int(size / (k * k)), k * k * parts, scratch,
      [&](int e, double value) {
    reinterpret_cast<double*>(&m[e / parts / k][e / parts % k])[e % parts] = value;
  });
}

// One block: is every entry of the k x k matrix m finite?
template <class A, int SIDE> DEVICE bool all_finite(const A (&m)[SIDE][SIDE + 1], int k, int* bad) {
  const int i = threadIdx.x / SIDE, j = threadIdx.x % SIDE;
  if (threadIdx.x == 0) *bad = 0;
  __syncthreads();
  if (i < k && j < k && !finite(m[i][j])) *bad = 1;
  __syncthreads();
  const bool good = !*bad;
  __syncthreads();
  return good;
}

// One block of DENSE threads: reference = the diagonal of h.
template <class A, int SIDE> DEVICE void own_reference(Dense<A, SIDE>& s, int k) {
  if (threadIdx.x < k) s.reference[threadIdx.x] = real(s.h[threadIdx.x][threadIdx.x]);
  __syncthreads();
}

// One block of DENSE threads: pivoted_cholesky of core/native/block.hpp for the matrix in h. f becomes the factor, h
// the inverse.
template <class A, int SIDE> DEVICE int pivoted_cholesky(Dense<A, SIDE>& s, int k, double tolerance, bool clamp) {
  const int t = threadIdx.x, i = t / SIDE, j = t % SIDE;
  const bool entry = i < k && j < k;
  if (t == 0) s.bad = 0;
  __syncthreads();
  if (t < k) {
    const double size2 = s.reference[t];
    if (!clamp && real(s.h[t][t]) < -NEGATIVE * size2) s.bad = 1;
    s.scale[t] = size2 > 0 ? sqrt(size2) : 0.0;
    s.free[t] = size2 > 0;
  }
  __syncthreads();
  if (entry) {
    const double both = s.scale[i] * s.scale[j];
    s.h[i][j] = both > 0 ? (1 / s.scale[i]) * ((1 / s.scale[j]) * s.h[i][j]) : A(0);
    s.f[i][j] = A(0);
  }
  __syncthreads();
  int rank = 0;
  while (rank < k) {
    if (t < 32) {
      const bool mine = t < k && s.free[t];
      double most = mine ? real(s.h[t][t]) : 0;
      int at = mine ? t : -1;
      if (mine && !clamp && most < -NEGATIVE) s.bad = 1;
#pragma unroll
      for (int o = 16; o; o >>= 1) {
        const double other = __shfl_xor_sync(~0u, most, o);
        const int there = __shfl_xor_sync(~0u, at, o);
        if (there >= 0 && (at < 0 || other > most || (other == most && there < at))) most = other, at = there;
      }
      if (t == 0) s.pivot = most, s.at = at;
    }
    __syncthreads();
    const int p = s.at;
    const double pivot = s.pivot, root = sqrt(max(pivot, tolerance));
    if (s.bad || p < 0 || (!(pivot > tolerance) && !clamp)) break;
    if (i == 0 && j < k) s.f[rank][j] = j == p ? A(root) : s.free[j] ? (1 / root) * s.h[p][j] : A(0);
    __syncthreads();
    if (entry && s.free[i] && s.free[j] && i != p && j != p) s.h[i][j] = s.h[i][j] - conj(s.f[rank][i]) * s.f[rank][j];
    __syncthreads();
    if (t == 0) s.free[p] = 0, s.order[rank] = p;
    __syncthreads();
    ++rank;
  }
  __syncthreads();
  const bool bad = s.bad;
  if (entry) s.h[i][j] = A(0);
  __syncthreads();
  if (t < rank)                                        // solve f y = e_t on the pivots' columns, which are triangular
    for (int row = t; row >= 0; --row) {
      A y(row == t ? 1.0 : 0.0);
      for (int l = row + 1; l <= t; ++l) y = y - s.f[row][s.order[l]] * s.h[s.order[l]][t];
      s.h[s.order[row]][t] = (1 / real(s.f[row][s.order[row]])) * y;
    }
  __syncthreads();
  if (entry) {
    s.f[i][j] = s.scale[j] * s.f[i][j];
    if (s.scale[i] > 0) s.h[i][j] = (1 / s.scale[i]) * s.h[i][j];
  }
  __syncthreads();
  return bad ? -1 : rank;
}

// One block of DENSE threads: the entry (i, j) of Xᴴ Y, where x(l, i) and y(l, j) are entries of matrices with L rows.
// Groups of SIDE² threads divide the rows. Valid in the first group.
template <class A, int SIDE, class X, class Y> DEVICE A adjoint_product(Dense<A, SIDE>& s, int k, int L, X&& x, Y&& y) {
  constexpr int groups = DENSE / (SIDE * SIDE), parts = scalar<A>::parts;
  const int t = threadIdx.x, group = t / (SIDE * SIDE), i = t / SIDE % SIDE, j = t % SIDE;
  A sum(0);
  if (i < k && j < k)
    for (int l = group; l < L; l += groups) sum = fused(conj(x(l, i)), y(l, j), sum);
  if constexpr (groups > 1) {
    split(s.scratch + parts * t, sum);
    __syncthreads();
    if (group == 0)
      for (int g = 1; g < groups; ++g) {
        A more(0);
        join(more, s.scratch + parts * (t + g * SIDE * SIDE));
        sum += more;
      }
    __syncthreads();
  }
  return sum;
}

// k x k coefficients in shared memory: out[i][j] = entry(i, j), 0 beyond k.
template <class T, int SIDE, class F> DEVICE void fill(T (&out)[SIDE][SIDE], int k, F entry) {
  for (int e = threadIdx.x; e < SIDE * SIDE; e += blockDim.x) {
    const int i = e / SIDE, j = e % SIDE;
    out[i][j] = i < k && j < k ? T(entry(i, j)) : T(0);
  }
}

// A k x k matrix of global memory as coefficients in shared memory, transposed: out[j][i] = sign m[i][j], 0 beyond k.
template <class T, int SIDE> DEVICE void coefficients_of(const acc_t<T>* m, int k, double sign, T (&out)[SIDE][SIDE]) {
  fill(out, k, [=](int j, int i) { return sign * m[i * k + j]; });
}

// One row of a block: its entries in k vectors, 0 beyond k.
template <int SIDE, class T> DEVICE void load_row(const T* P, long long P_stride, int k, long long row, T (&v)[SIDE]) {
#pragma unroll
  for (int i = 0; i < SIDE; ++i) v[i] = i < k ? P[i * P_stride + row] : T(0);
}

// value + Σ v_i c_i
template <int SIDE, class T> DEVICE T combination(const T (&v)[SIDE], const T (&c)[SIDE], T value) {
#pragma unroll
  for (int i = 0; i < SIDE; ++i) value = fused(v[i], c[i], value);
  return value;
}

// P = P M for a block P of k vectors with n rows and a k x k matrix M. A thread has a row.
template <int SIDE, class T>
DEVICE void multiply_by(T* P, long long P_stride, long long n, const acc_t<T>* M, int k) {
  __shared__ T transposed[SIDE][SIDE];
  coefficients_of(M, k, 1, transposed);
  __syncthreads();
  const long long row = thread_id();
  if (row >= n) return;
  T p[SIDE];
  load_row(P, P_stride, k, row, p);
#pragma unroll 4
  for (int j = 0; j < k; ++j) P[j * P_stride + row] = combination(p, transposed[j], T(0));
}
