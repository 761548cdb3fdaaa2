// One system of a batch, solved by one block: sums, products, preconditioners, and the verdict on the true residual.
// swell/batch/kernels/system.hpp is the CPU's version.
//
// All vectors are in shared memory. Thread t owns the entries t, t + blockDim.x, …; a product's results are written by
// the first lane of a row's group, so a barrier separates them from their owner.
#pragma once
#include "context.cuh"
#include "doubled.cuh"
#include "modulus.cuh"
#include "verdict.hpp"

constexpr int MOST_WARPS = 16, MOST_SUMS = 7, PLACES = VERDICT_CODE + 1;

DEVICE double larger(double a, double b) { return a > b || isnan(a) ? a : b; }

// The next `count` elements of the block's dynamic shared memory.
template <class T> DEVICE T* take(unsigned char*& memory, long long count) {
  T* taken = reinterpret_cast<T*>(memory);
  memory += count * sizeof(T);
  return taken;
}

DEVICE double* block_parts() {
  __shared__ double parts[2 * MOST_WARPS * MOST_SUMS];
  return parts;
}

// Sums of the first S numbers and maxima of the others, over the block, in every thread, in a fixed order. It has one
// barrier. `turn` alternates between two buffers, so that no second barrier protects the first one's readers.
template <int S, int K> DEVICE void over_block(double (&v)[K], int& turn) {
  static_assert(S <= K && K <= MOST_SUMS, "too many numbers");
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
  for (int o = 16; o; o >>= 1)
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const double other = __shfl_xor_sync(~0u, v[k], o);
      v[k] = k < S ? v[k] + other : larger(v[k], other);
    }
  double* parts = block_parts() + (turn ^= 1) * (MOST_WARPS * MOST_SUMS);
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < K; ++k) parts[warp * K + k] = v[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = parts[k];
  for (int w = 1; w < warps; ++w)
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = k < S ? v[k] + parts[w * K + k] : larger(v[k], parts[w * K + k]);
}

// A matrix: the pattern, which all systems share, and this system's values a. `ell` has the columns of the first
// entries of all rows, then of the second entries, …, so that neighbouring threads read neighbouring numbers.
template <class T> struct System {
  const int *indptr, *indices, *diagonal;
  const unsigned short* ell;
  const T* a;
  int n, lanes;
};

// finish(i, (A v)_i, Σ_j |a_ij|, Σ_j |a_ij v_j|) for each row, in the first of the `lanes` threads that share it; the
// sizes are computed if SIZES is 1. The caller has a barrier between the writing of v and this.
template <int SIZES, class T, class F> DEVICE void each_row(const System<T>& A, const T* v, F finish) {
  const int part = threadIdx.x % A.lanes, group = threadIdx.x / A.lanes, groups = blockDim.x / A.lanes;
  for (int first = 0; first < A.n; first += groups) {
    const int i = first + group;
    T sum = T(0);
    double size = 0, terms = 0;
    if (i < A.n) {
      const int begin = A.indptr[i], length = A.indptr[i + 1] - begin;
#pragma unroll 4
      for (int e = part; e < length; e += A.lanes) {
        const T a = A.a[begin + e];
        const T own = v[A.ell[e * A.n + i]];
        sum = fused(a, own, sum);
        if (SIZES) size += modulus(a), terms += modulus(a) * modulus(own);
      }
    }
    for (int o = A.lanes / 2; o; o >>= 1) {
      sum = sum + shuffle_xor(sum, o);
      if (SIZES) size += shuffle_xor(size, o), terms += shuffle_xor(terms, o);
    }
    if (part == 0 && i < A.n) finish(i, sum, size, terms);
  }
}

// r = b − A x and its norms, by the original values. b has `columns` columns. With `zero`, x is zero: r = b.
template <class T>
DEVICE Norms true_residual(const System<T>& A, const T* b, int columns, const T* x, T* r, bool zero, int& turn) {
  double v[7] = {0, 0, 0, 0, 0, 0, 0};        // ‖r‖², ‖b‖², ‖t‖²; ‖r‖∞, ‖A‖∞, ‖x‖∞, ‖b‖∞
  __syncthreads();
  auto row = [&](int i, T sum, double size, double terms) {
    const T of_b = b[(long long)i * columns], d = of_b - sum;
    r[i] = d;
    terms += modulus(of_b);
    v[0] += double(abs2(d)), v[1] += double(abs2(of_b)), v[2] += terms * terms;
    v[3] = larger(v[3], modulus(d)), v[4] = larger(v[4], size);
    v[5] = larger(v[5], modulus(x[i])), v[6] = larger(v[6], modulus(of_b));
  };
  if (zero)
    for (int i = threadIdx.x; i < A.n; i += blockDim.x) row(i, T(0), 0.0, 0.0);
  else
    each_row<1>(A, x, row);
  over_block<3>(v, turn);
  const double scale = v[4] * v[5] + v[6];
  // Where all squares underflow, ‖·‖∞ stands for ‖·‖₂: a small b is not zero.
  return {larger(sqrt(v[0]), v[3]), larger(sqrt(v[1]), v[6]), v[3] == 0 ? 0 : v[3] / scale, sqrt(v[2])};
}

// r = b − A x in doubled precision; returns ‖r‖₂. The caller has a barrier between the writing of x and this.
template <class T> __device__ __noinline__ double precise_norm(const System<T>& A, const T* b, int columns, const T* x,
                                                              T* r, int& turn) {
  double v[1] = {0};
  for (int i = threadIdx.x; i < A.n; i += blockDim.x) {
    acc_t<T> high(b[(long long)i * columns]), rest(0);
    for (int k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
      minus_product(high, rest, acc_t<T>(A.a[k]), acc_t<T>(x[A.indices[k]]));
    v[0] += double(abs2(high + rest));
    r[i] = T(high + rest);
  }
  over_block<1>(v, turn);
  return sqrt(v[0]);
}

// `now`, of this x, with r and its norm in doubled precision where rounding could decide on convergence.
template <class T> DEVICE Norms confirmed(const System<T>& A, const T* b, int columns, const T* x, T* r, Norms now,
                                          double threshold, int& turn) {
  if (uncertain(now, threshold, epsilon_of(T()))) now.norm = precise_norm(A, b, columns, x, r, turn);
  return now;
}

// Write a system's record, at once, since it may lie in the host's memory.
DEVICE void leave(double* record, long long system, const Norms& now, int steps, int code) {
  const int t = threadIdx.x;
  if (t >= PLACES) return;
  const double relative = now.rhs > 0 ? now.norm / now.rhs : now.norm;
  record[PLACES * system + t] = t == RESIDUAL ? relative : t == BACKWARD ? now.backward : t == STEPS ? steps : code;
}

// Solve one column: judge the true residual, run a cycle of the method from x, and repeat until there is a verdict.
// cycle(attempt) improves x, has r = b − A x on entry, and returns a verdict on its recursive residual: RUNNING at the
// end of a restarted cycle. Writes x and the record.
template <class T, class F>
DEVICE void solve_column(const System<T>& A, Judge& judge, const T* b, T* x_out, int columns, T* x, T* r, bool guess,
                         double* record, long long place, int& turn, F cycle) {
  for (int i = threadIdx.x; i < A.n; i += blockDim.x) x[i] = guess ? x_out[(long long)i * columns] : T(0);
  double last = NO_LIMIT;
  int inner = RUNNING, code = RUNNING;
  Norms now;
  for (int attempt = 0;; ++attempt) {
    const bool zero = attempt == 0 && !guess;
    now = true_residual(A, b, columns, x, r, zero, turn);
    if (attempt == 0) judge.begin(now);
    if (zero && now.norm <= judge.threshold) now = true_residual(A, b, columns, x, r, false, turn);  // A may have a NaN
    now = confirmed(A, b, columns, x, r, now, judge.threshold, turn);
    code = judge.verdict(now, last, inner, attempt, epsilon_of(T()));
    if (code != RUNNING) break;
    last = now.norm;
    inner = cycle(attempt);
  }
  for (int i = threadIdx.x; i < A.n; i += blockDim.x) x_out[(long long)i * columns] = x[i];
  leave(record, place, now, judge.done, code);
  __syncthreads();
}

// A preconditioner M in `numbers`: the inverse diagonal (n), the inverses of diagonal blocks (n rounded up, times
// block), or the factors of ILU(0) on A's pattern (nnz) with the inverse of U's diagonal. Levels: lower[l] to lower[l +
// 1] are places of `order` whose rows depend on earlier levels only; likewise upper, whose places begin at n.
template <class T> struct Preconditioner {
  int kind, block;
  T* numbers;
  const int *lower, *upper, *order;
  int lower_levels, upper_levels;
};

// Invert the block of `rows` rows at M, whose rows are s apart, in place: Gauss–Jordan with row pivoting. False if
// singular.
template <class T> DEVICE bool invert(T* M, int rows, int s) {
  int from[32];
  for (int k = 0; k < rows; ++k) {
    int p = k;
    for (int i = k + 1; i < rows; ++i) if (modulus(M[i * s + k]) > modulus(M[p * s + k])) p = i;
    from[k] = p;
    const T pivot = M[p * s + k];
    if (!(modulus(pivot) > 0)) return false;
    if (p != k)
      for (int j = 0; j < rows; ++j) {
        const T held = M[k * s + j];
        M[k * s + j] = M[p * s + j], M[p * s + j] = held;
      }
    const T inverse = T(1) / pivot;
    M[k * s + k] = T(1);
    for (int j = 0; j < rows; ++j) M[k * s + j] = M[k * s + j] * inverse;
    for (int i = 0; i < rows; ++i) {
      if (i == k) continue;
      const T l = M[i * s + k];
      M[i * s + k] = T(0);
      for (int j = 0; j < rows; ++j) M[i * s + j] = fused(-l, M[k * s + j], M[i * s + j]);
    }
  }
  for (int k = rows; k--;)
    if (from[k] != k)
      for (int i = 0; i < rows; ++i) {
        const T held = M[i * s + k];
        M[i * s + k] = M[i * s + from[k]], M[i * s + from[k]] = held;
      }
  return true;
}

// Row i of ILU(0), in place in f, which holds A's values: f becomes the row of L and U. False if the pivot vanishes.
template <class T> DEVICE bool eliminate_row(const System<T>& A, T* f, int i) {
  const int end = A.indptr[i + 1], own = A.diagonal[i];
  for (int k = A.indptr[i]; k < own; ++k) {
    const int j = A.indices[k];
    const T l = f[k] * f[A.diagonal[j]];                         // l_ij = a_ij / u_jj
    f[k] = l;
    int at = k + 1;
    for (int m = A.diagonal[j] + 1; m < A.indptr[j + 1]; ++m) {  // a_i: −= l_ij u_j:, where both have an entry
      while (at < end && A.indices[at] < A.indices[m]) ++at;
      if (at < end && A.indices[at] == A.indices[m]) f[at] = fused(-l, f[m], f[at]);
    }
  }
  const T pivot = f[own];
  if (!(modulus(pivot) > 0)) return false;
  f[own] = T(1) / pivot;
  return true;
}

// Build M from A; false, in every thread, if it does not exist.
template <class T> DEVICE bool prepare(const System<T>& A, const Preconditioner<T>& M) {
  const int n = A.n, s = M.block;
  bool good = true;
  if (M.kind == JACOBI)
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const T d = A.a[A.diagonal[i]];
      if (!(modulus(d) > 0)) good = false;
      M.numbers[i] = T(1) / d;
    }
  if (M.kind == BLOCK_JACOBI) {
    for (int b = threadIdx.x; b * s < n; b += blockDim.x) {
      T* own = M.numbers + b * s * s;
      for (int k = 0; k < s * s; ++k) own[k] = T(0);
      const int rows = n - b * s < s ? n - b * s : s;
      for (int i = 0; i < rows; ++i)
        for (int k = A.indptr[b * s + i]; k < A.indptr[b * s + i + 1]; ++k)
          if (A.indices[k] / s == b) own[i * s + A.indices[k] % s] = A.a[k];
      if (!invert(own, rows, s)) good = false;
    }
  }
  if (M.kind == ILU) {
    for (int k = threadIdx.x; k < A.indptr[n]; k += blockDim.x) M.numbers[k] = A.a[k];
    for (int l = 0; l < M.lower_levels; ++l) {
      __syncthreads();
      for (int at = M.lower[l] + threadIdx.x; at < M.lower[l + 1]; at += blockDim.x)
        if (!eliminate_row(A, M.numbers, M.order[at])) good = false;
    }
  }
  return __syncthreads_and(good) != 0;
}

// z = M r. With block Jacobi and ILU(0) it begins and ends with a barrier; otherwise a thread reads and writes its own
// entries.
template <class T> DEVICE void apply(const System<T>& A, const Preconditioner<T>& M, const T* r, T* z) {
  const int n = A.n, s = M.block;
  if (M.kind == JACOBI)
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[i] = M.numbers[i] * r[i];
  if (M.kind == BLOCK_JACOBI) {
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const int first = i / s * s, end = first + s < n ? first + s : n;
      T sum = T(0);
      for (int j = first; j < end; ++j) sum = fused(M.numbers[i * s + j - first], r[j], sum);
      z[i] = sum;
    }
    __syncthreads();
  }
  if (M.kind != ILU) return;
  for (int l = 0; l < M.lower_levels; ++l) {                     // L y = r
    __syncthreads();
    for (int at = M.lower[l] + threadIdx.x; at < M.lower[l + 1]; at += blockDim.x) {
      const int i = M.order[at];
      T sum = r[i];
      for (int k = A.indptr[i]; k < A.diagonal[i]; ++k) sum = fused(-M.numbers[k], z[A.indices[k]], sum);
      z[i] = sum;
    }
  }
  for (int l = 0; l < M.upper_levels; ++l) {                     // U z = y
    __syncthreads();
    for (int at = M.upper[l] + threadIdx.x; at < M.upper[l + 1]; at += blockDim.x) {
      const int i = M.order[at];
      T sum = z[i];
      for (int k = A.diagonal[i] + 1; k < A.indptr[i + 1]; ++k) sum = fused(-M.numbers[k], z[A.indices[k]], sum);
      z[i] = sum * M.numbers[A.diagonal[i]];
    }
  }
  __syncthreads();
}

// The values of a system: in shared memory if HELD, loaded side by side, else where they are.
template <int HELD, class T> DEVICE const T* values_of(const T* values, int nnz, unsigned char*& memory) {
  if (!HELD) return values;
  T* held = take<T>(memory, nnz);
#pragma unroll 8
  for (int k = threadIdx.x; k < nnz; k += blockDim.x) held[k] = values[k];
  __syncthreads();
  return held;
}
// The elements that a preconditioner takes.
DEVICE int stored(int kind, int n, int block, int nnz) {
  return kind == PLAIN ? 0 : kind == JACOBI ? n : kind == BLOCK_JACOBI ? (n + block - 1) / block * block * block : nnz;
}
