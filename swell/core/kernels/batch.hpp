// One system of a batch, for both devices: a `Team` solves it, a block's threads on a GPU (batch.cuh), one thread on a
// CPU (native/batch.hpp). All vectors lie in the system's memory, which is shared memory on a GPU.
//
//     team.take<T>(n)                 the next n numbers of that memory
//     team.each(n, f)                 f(i) for i from 0 to n − 1
//     team.each(n, f, sums...)        the same; returns the sums over 0 to n − 1: dot(a, b), real_dot(a, b), norm2(a)
//     team.sums(n, sums...)           the sums alone
//     team.product(A, v, out, sums...)            out = A v, then the sums
//     team.residual(A, b, x, f)       f(i, (b − A x)_i, Σ_j |a_ij|, |b_i| + Σ_j |a_ij x_j|) for each row
//     team.dots(V, j, w, n, h)        h_i = (V_i, w) for i < j, vectors of n numbers one after the other
//     team.combine(n, w, j, f)        f(i)(k, w_k) for i < j in order, for each k < n
//     team.block_rows(n, s, f)        f(i, first, end) for each row i, in the block of rows first to end − 1
//     team.forward(M, n, f), backward             f(i) for each row after those that L, or U, needs for it
//     team.reduce<S>(v)               v, of all threads: sums of the first S numbers and maxima of the others
//     team.all(x)                     true if x is true in all threads
//     team.once(f)                    f() in one thread
//     team.barrier()                  what other threads wrote can be read after it
//
// Thread t of a block owns the entries t, t + threads, … of a vector: in `each` a thread reads and writes its own
// entries. `product`, `residual`, `dots` and `apply` begin with a barrier, since they read entries of others. Sums,
// `reduce`, `once` and `dots` are the same in all threads, and whatever is written before can be read after them.
#pragma once
#ifdef __CUDACC__
#include "context.cuh"
#endif
#include "array.hpp"
#include "verdict.hpp"

constexpr int PLACES = VERDICT_CODE + 1, MOST_BLOCK = 32;

// A column of b or x: numbers `stride` apart.
template <class T> struct Column {
  T* data;
  int stride;
  DEVICE T& operator[](int64_t i) const { return data[i * stride]; }
};

// A matrix: the pattern, as in `Batch`, and one system's values.
template <class T> struct System {
  const int32_t *indptr, *indices, *diagonal;
  const uint16_t* ell;
  const T* a;
  int n, lanes;
};

// A preconditioner M in `numbers`: the inverse diagonal (n), the inverses of diagonal blocks (n rounded up, times
// block), or the factors of ILU(0) on A's pattern (nnz) with the inverse of U's diagonal. Levels: lower[l] to lower[l +
// 1] are places of `order` whose rows depend on earlier levels only; likewise upper, whose places begin at n. `exists`
// is false if A has no such M.
template <class T> struct Preconditioner {
  int kind, block;
  T* numbers;
  const int32_t *lower, *upper, *order;
  int lower_levels, upper_levels;
  bool exists;
};

template <class T> struct Dot { const T *a, *b; };
template <class T> struct RealDot { const T *a, *b; };
template <class T> DEVICE Dot<T> dot(const T* a, const T* b) { return {a, b}; }              // (a, b), a conjugated
template <class T> DEVICE RealDot<T> real_dot(const T* a, const T* b) { return {a, b}; }     // its real part
template <class T> DEVICE RealDot<T> norm2(const T* a) { return {a, a}; }

DEVICE double larger(double a, double b) { return a < b ? b : a; }

#ifdef __CUDACC__
#include "batch.cuh"
#else
#include "../native/batch.hpp"
#endif

// A batch, as Python gives it: the pattern in CSR, columns ascending, which all systems share, and the entry of each
// diagonal, or −1; for each system a row of values, of b and of x, `columns` numbers for each unknown, and of records,
// PLACES for each column. x holds starting vectors if `guess` is 1. `kind`, `block`: the preconditioner, a Kind, and
// the rows of a block. Only a GPU reads `ell`, the columns of all rows' first entries, then of the second, …, so that
// neighbouring threads read neighbouring numbers; the levels of ILU(0), `lower`, `upper` and `order`; and `lanes`, the
// threads that share a row of a product.
template <class T> struct Batch {
  Array<const int32_t> indptr, indices;
  Array<const uint16_t> ell;
  Array<const int32_t> diagonal, lower, upper, order;
  Table<const T> values, b;
  Table<T> x;
  Table<double> record;
  int size, columns, lanes, kind, block, guess, maxiter;
  double rtol, atol;
};

// System s of a batch. Its values are in the team's memory if HELD.
template <int HELD, class T> DEVICE System<T> system_of(Team& team, const Batch<T>& batch, int64_t s) {
  return {batch.indptr.data, batch.indices.data, batch.diagonal.data, batch.ell.data,
          values_of<HELD>(team, batch.values[s]), batch.size, batch.lanes};
}

// r = b − A x and its norms, by the original values. With `zero`, x is zero and A is not read.
template <class T>
DEVICE Norms true_residual(Team& team, const System<T>& A, Column<const T> b, const T* x, T* r, bool zero) {
  double v[7] = {0, 0, 0, 0, 0, 0, 0};        // ‖r‖², ‖b‖², ‖t‖²; ‖r‖∞, ‖A‖∞, ‖x‖∞, ‖b‖∞
  const auto row = [&](Index i, T left, double of_row, double terms) {
    r[i] = left;
    v[0] += abs2(acc_t<T>(left)), v[1] += abs2(acc_t<T>(b[i])), v[2] += terms * terms;
    v[3] = larger(v[3], size(left)), v[4] = larger(v[4], of_row);
    v[5] = larger(v[5], size(x[i])), v[6] = larger(v[6], size(b[i]));
  };
  if (zero) team.each(A.n, [&](Index i) { row(i, b[i], 0, size(b[i])); });
  else team.residual(A, b, x, row);
  team.reduce<3>(v);
  const double scale = v[4] * v[5] + v[6];
  // Where all squares underflow, ‖·‖∞ stands for ‖·‖₂: a small b is not zero.
  return {larger(sqrt(v[0]), v[3]), larger(sqrt(v[1]), v[6]), v[3] == 0 ? 0 : v[3] / (scale > 0 ? scale : 0),
          sqrt(v[2])};
}

// `now`, the norms of this x and r, with r and its norm in doubled precision where rounding could decide on
// convergence. `threshold`: the norm of convergence.
template <class T>
DEVICE Norms confirmed(Team& team, const System<T>& A, Column<const T> b, const T* x, T* r, Norms now,
                       double threshold) {
  if (!uncertain(now, threshold, epsilon_of(T()))) return now;
  double square[1] = {precise_square(A, b, x, r)};
  team.reduce<1>(square);
  now.norm = sqrt(square[0]);
  return now;
}

// Write a record, at once, since it may lie in the host's memory.
DEVICE void leave(Team& team, double* record, const Norms& now, int done, int code) {
  const double relative = now.rhs > 0 ? now.norm / now.rhs : now.norm;
  team.each(PLACES, [=](Index k) {
    record[k] = k == RESIDUAL ? relative : k == BACKWARD ? now.backward : k == STEPS ? double(done) : double(code);
  });
}

// Solve for all columns of system s, whose preconditioner exists if `factored`: judge the true residual, run a cycle of
// the method from x, and repeat until there is a verdict. cycle(judge, attempt) improves x, has r = b − A x at its
// begin, and returns a verdict on its recursive residual: RUNNING at the end of a restarted cycle. Writes the batch's x
// and record.
template <class T, class F>
DEVICE void solve(Team& team, const Batch<T>& batch, int64_t s, const System<T>& A, bool factored, T* x, T* r,
                  F cycle) {
  for (Index c = 0; c < batch.columns; ++c) {
    const Column<const T> b{batch.b[s].data + c, batch.columns};
    const Column<T> out{batch.x[s].data + c, batch.columns};
    const bool guess = batch.guess;
    team.each(A.n, [=](Index i) { x[i] = guess ? out[i] : T(0); });
    Judge judge{batch.rtol, batch.atol, batch.maxiter};
    Norms now;
    double last = NO_LIMIT;
    int inner = factored ? int(RUNNING) : int(NOT_FACTORED), code = RUNNING;
    for (int attempt = 0;; ++attempt) {
      const bool zero = Team::trusts_zero && attempt == 0 && !guess;
      now = true_residual(team, A, b, x, r, zero);
      if (attempt == 0) judge.begin(now);
      if (zero && (!factored || now.norm <= judge.threshold))
        now = true_residual(team, A, b, x, r, false);                        // A may have a NaN
      now = confirmed(team, A, b, x, r, now, judge.threshold);
      code = judge.verdict(now, last, inner, attempt, epsilon_of(T()));
      if (code != RUNNING) break;
      last = now.norm;
      inner = cycle(judge, attempt);
    }
    team.each(A.n, [=](Index i) { out[i] = x[i]; });
    leave(team, batch.record[s].data + c * PLACES, now, judge.done, code);
  }
}

// Invert the block of `rows` rows at M, whose rows are s apart, in place: Gauss–Jordan with row pivoting. False if it
// is singular.
template <class T> DEVICE bool invert(T* M, Index rows, Index s) {
  int from[MOST_BLOCK];
  const auto swap = [](T& a, T& b) {
    const T held = a;
    a = b, b = held;
  };
  for (Index k = 0; k < rows; ++k) {
    Index p = k;
    for (Index i = k + 1; i < rows; ++i) if (size(M[i * s + k]) > size(M[p * s + k])) p = i;
    from[k] = int(p);
    if (!(size(M[p * s + k]) > 0)) return false;
    if (p != k) for (Index j = 0; j < rows; ++j) swap(M[k * s + j], M[p * s + j]);
    const T inverse = T(1) / M[k * s + k];
    M[k * s + k] = T(1);
    for (Index j = 0; j < rows; ++j) M[k * s + j] = M[k * s + j] * inverse;
    for (Index i = 0; i < rows; ++i) {
      if (i == k) continue;
      const T l = M[i * s + k];
      M[i * s + k] = T(0);
      for (Index j = 0; j < rows; ++j) M[i * s + j] = minus_times(M[i * s + j], l, M[k * s + j]);
    }
  }
  for (Index k = rows; k--;)
    if (from[k] != k) for (Index i = 0; i < rows; ++i) swap(M[i * s + k], M[i * s + from[k]]);
  return true;
}

// Row i of ILU(0), in place in f, which holds A's values: f becomes the row of L and U. False if the pivot vanishes.
template <class T> DEVICE bool eliminate_row(const System<T>& A, T* f, Index i) {
  const Index end = A.indptr[i + 1], own = A.diagonal[i];
  for (Index k = A.indptr[i]; k < own; ++k) {
    const Index j = A.indices[k];
    const T l = f[k] = f[k] * f[A.diagonal[j]];                        // l_ij = a_ij / u_jj
    Index at = k + 1;
    for (Index m = A.diagonal[j] + 1; m < A.indptr[j + 1]; ++m) {      // a_i: −= l_ij u_j:, where both have an entry
      while (at < end && A.indices[at] < A.indices[m]) ++at;
      if (at < end && A.indices[at] == A.indices[m]) f[at] = minus_times(f[at], l, f[m]);
    }
  }
  if (!(size(f[own]) > 0)) return false;
  f[own] = T(1) / f[own];
  return true;
}

// Build a batch's preconditioner for the system A.
template <class T> DEVICE Preconditioner<T> prepare(Team& team, const Batch<T>& batch, const System<T>& A) {
  const Index n = A.n, s = batch.block, blocks = (n + s - 1) / s, nnz = batch.values.columns;
  const int kind = batch.kind;
  T* const m = team.take<T>(kind == JACOBI ? n : kind == BLOCK_JACOBI ? blocks * s * s : kind == ILU ? nnz : 0);
  Preconditioner<T> M{kind, batch.block, m, batch.lower.data, batch.upper.data, batch.order.data,
                      int(batch.lower.size - 1), int(batch.upper.size - 1), true};
  bool good = true;
  if (kind == JACOBI) team.each(n, [&](Index i) {
    const T d = A.a[A.diagonal[i]];
    if (!(size(d) > 0)) good = false;
    m[i] = T(1) / d;
  });
  if (kind == BLOCK_JACOBI) team.each(blocks, [&](Index b) {
    T* const own = m + b * s * s;
    const Index first = b * s, rows = first + s < n ? s : n - first;
    for (Index k = 0; k < s * s; ++k) own[k] = T(0);
    for (Index i = 0; i < rows; ++i)
      for (Index k = A.indptr[first + i]; k < A.indptr[first + i + 1]; ++k)
        if (const Index j = A.indices[k] - first; j >= 0 && j < s) own[i * s + j] = A.a[k];
    if (!invert(own, rows, s)) good = false;
  });
  if (kind == ILU) {
    team.each(nnz, [=](Index k) { m[k] = A.a[k]; });
    team.forward(M, n, [&](Index i) { if (!eliminate_row(A, m, i)) good = false; });
  }
  M.exists = team.all(good);
  return M;
}

// z = M r, then the sums. z is r without M, else another vector.
template <class T, class... S>
DEVICE auto apply(Team& team, const System<T>& A, const Preconditioner<T>& M, const T* r, T* z, S... sums) {
  const Index n = A.n, s = M.block;
  const T* const m = M.numbers;
  if (M.kind == JACOBI) return team.each(n, [=](Index i) { z[i] = m[i] * r[i]; }, sums...);
  if (M.kind == BLOCK_JACOBI) {
    team.barrier();
    team.block_rows(n, s, [=](Index i, Index first, Index end) {
      T sum(0);
      for (Index j = first; j < end; ++j) sum = plus_times(sum, m[i * s + j - first], r[j]);
      z[i] = sum;
    });
  }
  if (M.kind == ILU) {
    team.forward(M, n, [=](Index i) {                                  // L y = r
      z[i] = r[i] - row_product(A.indices, m, z, A.indptr[i], A.diagonal[i]);
    });
    team.backward(M, n, [=](Index i) {                                 // U z = y
      z[i] = (z[i] - row_product(A.indices, m, z, A.diagonal[i] + 1, A.indptr[i + 1])) * m[A.diagonal[i]];
    });
    team.barrier();
  }
  return team.sums(n, sums...);
}
