// One system of a batch on a CPU: products, preconditioners, and the verdict on the true residual; a kernel file
// includes its slots first. core/kernels/batch.cuh is the GPU's version.
#pragma once
#include <utility>
#include <vector>

#include "../../core/kernels/verdict.hpp"
#include "../../core/native/products.hpp"
#include "../../formats/kernels/doubled.hpp"
#include "../../formats/kernels/rows.hpp"
#include "../../formats/kernels/sums.hpp"

// A matrix: the pattern in CSR, columns ascending, which all systems share; the entry of each diagonal, or −1; this
// system's values.
template <class T> struct System {
  Array<const int32_t> indptr, indices, diagonal;
  Array<const T> a;
};

// (a, b), with a conjugated: without the chunks of `sums`, which cost more than a short vector.
template <class T> acc_t<T> dot(Array<const T> a, Array<const T> b) {
  const T* const rows[] = {a.data};
  acc_t<T> sum(0);
  add_products<false, 8>(std::integer_sequence<int, 0>(), rows, b.data, b.data, b.size, &sum, &sum);
  return sum;
}

// The real part of (a, b): real and imaginary parts are one real vector.
template <class T> double real_dot(Array<const T> a, Array<const T> b) {
  using R = real_t<T>;
  const auto parts = [](Array<const T> v) {
    return Array<const R>{reinterpret_cast<const R*>(v.data), v.size * scalar<T>::parts};
  };
  return dot<R>(parts(a), parts(b));
}
template <class T> double norm2(Array<const T> v) { return real_dot<T>(v, v); }

// out = A v.
template <class T> void product(const System<T>& A, Array<const T> v, Array<T> out) {
  for (int64_t i = 0; i < out.size; ++i)
    out[i] = row_product(A.indices.data, A.a.data, v.data, A.indptr[i], A.indptr[i + 1]);
}

// r = b − A x and its norms. Where all squares underflow, ‖·‖∞ stands for ‖·‖₂: a small b is not zero.
template <class T>
Norms true_residual(const System<T>& A, Array<const T> b, Array<const T> x, Array<T> r) {
  double r2 = 0, b2 = 0, t2 = 0, most_r = 0, most_a = 0, most_x = 0, most_b = 0;
  product(A, x, r);
  for (int64_t i = 0; i < x.size; ++i) {
    const double of_b = size(b[i]);
    double of_row = 0, terms = of_b;
    for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
      const double of_a = size(A.a[k]);
      of_row += of_a, terms += of_a * size(x[A.indices[k]]);
    }
    r[i] = b[i] - r[i];
    r2 += square(r[i]), b2 += square(b[i]), t2 += terms * terms;
    most_r = std::max<double>(most_r, size(r[i])), most_b = std::max(most_b, of_b);
    most_a = std::max(most_a, of_row), most_x = std::max<double>(most_x, size(x[i]));
  }
  const double scale = most_a * most_x + most_b, backward = most_r == 0 ? 0 : scale > 0 ? most_r / scale : INFINITY;
  const double norm_r = sqrt(r2), norm_b = sqrt(b2);
  return {most_r > norm_r ? most_r : norm_r, most_b > norm_b ? most_b : norm_b, backward, sqrt(t2)};
}

// `now`, the norms of this x and r, with r and its norm in doubled precision where rounding could decide on
// convergence. `threshold`: the norm of convergence.
template <class T>
Norms confirmed(const System<T>& A, Array<const T> b, Array<const T> x, Array<T> r, Norms now, double threshold) {
  if (!uncertain(now, threshold, epsilon_of(T()))) return now;
  double r2 = 0;
  for (int64_t i = 0; i < x.size; ++i) {
    acc_t<T> high(b[i]), rest(0);
    for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
      subtract(high, rest, acc_t<T>(A.a[k]), acc_t<T>(x[A.indices[k]]));
    r2 += square(high + rest);
    r[i] = T(high + rest);
  }
  now.norm = sqrt(r2);
  return now;
}

// Invert the block of `rows` rows at M, whose rows are s apart, in place: Gauss–Jordan with row pivoting. `from`:
// scratch. False if it is singular.
template <class T> bool invert(T* M, int64_t rows, int64_t s, int64_t* from) {
  for (int64_t k = 0; k < rows; ++k) {
    int64_t p = k;
    for (int64_t i = k + 1; i < rows; ++i) if (size(M[i * s + k]) > size(M[p * s + k])) p = i;
    from[k] = p;
    if (!(size(M[p * s + k]) > 0)) return false;
    for (int64_t j = 0; j < rows; ++j) std::swap(M[k * s + j], M[p * s + j]);
    const T inverse = T(1) / M[k * s + k];
    M[k * s + k] = T(1);
    for (int64_t j = 0; j < rows; ++j) M[k * s + j] = M[k * s + j] * inverse;
    for (int64_t i = 0; i < rows; ++i) {
      if (i == k) continue;
      const T l = M[i * s + k];
      M[i * s + k] = T(0);
      for (int64_t j = 0; j < rows; ++j) M[i * s + j] -= l * M[k * s + j];
    }
  }
  for (int64_t k = rows; k--;)
    for (int64_t i = 0; i < rows; ++i) std::swap(M[i * s + k], M[i * s + from[k]]);
  return true;
}

// f = the factors of ILU(0) on A's pattern, with the inverse of U's diagonal. False if a pivot vanishes.
template <class T> bool factor(const System<T>& A, Array<T> f) {
  const auto [indptr, indices, diagonal, a] = A;
  std::copy(a.data, a.data + a.size, f.data);
  for (int64_t i = 0; i < diagonal.size; ++i) {
    const int64_t end = indptr[i + 1], own = diagonal[i];
    for (int64_t k = indptr[i]; k < own; ++k) {
      const int64_t j = indices[k];
      f[k] = f[k] * f[diagonal[j]];                                // l_ij = a_ij / u_jj
      int64_t at = k + 1;
      for (int64_t m = diagonal[j] + 1; m < indptr[j + 1]; ++m) {  // a_i: −= l_ij u_j:, where both have an entry
        while (at < end && indices[at] < indices[m]) ++at;
        if (at < end && indices[at] == indices[m]) f[at] -= f[k] * f[m];
      }
    }
    if (!(size(f[own]) > 0)) return false;
    f[own] = T(1) / f[own];
  }
  return true;
}

// A preconditioner M in `numbers`, as batch.cuh describes it. `kind`: a Kind; `block`: the rows of a block.
template <class T> struct Preconditioner {
  int64_t kind, block;
  std::vector<T> numbers;
  std::vector<int64_t> from;           // scratch

  Preconditioner(int64_t kind, int64_t block, int64_t n, int64_t nnz)
      : kind(kind), block(block), numbers(kind == JACOBI ? n : kind == ILU ? nnz : kind == BLOCK_JACOBI
                                          ? (n + block - 1) / block * block * block : 0), from(block) {}

  // Build it from A; false if it does not exist.
  bool prepare(const System<T>& A) {
    const int64_t n = A.diagonal.size;
    if (kind == JACOBI)
      for (int64_t i = 0; i < n; ++i) {
        const T own = A.a[A.diagonal[i]];
        if (!(size(own) > 0)) return false;
        numbers[i] = T(1) / own;
      }
    if (kind == BLOCK_JACOBI) {
      std::fill(numbers.begin(), numbers.end(), T(0));
      for (int64_t i = 0; i < n; ++i)
        for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
          if (A.indices[k] / block == i / block) numbers[i * block + A.indices[k] % block] = A.a[k];
      for (int64_t first = 0; first < n; first += block)
        if (!invert(numbers.data() + first * block, std::min(block, n - first), block, from.data())) return false;
    }
    return kind != ILU || factor(A, Array<T>{numbers.data(), A.a.size});
  }

  // z = M r.
  void apply(const System<T>& A, Array<const T> r, Array<T> z) const {
    const T* const m = numbers.data();
    const int64_t n = r.size, s = block;
    if (kind == PLAIN) std::copy(r.data, r.data + n, z.data);
    if (kind == JACOBI) for (int64_t i = 0; i < n; ++i) z[i] = m[i] * r[i];
    if (kind == BLOCK_JACOBI)
      for (int64_t first = 0; first < n; first += s)
        for (int64_t i = first; i < std::min(first + s, n); ++i) {
          T sum(0);
          for (int64_t j = first; j < std::min(first + s, n); ++j) sum += m[i * s + j - first] * r[j];
          z[i] = sum;
        }
    if (kind != ILU) return;
    const int32_t* const columns = A.indices.data;
    for (int64_t i = 0; i < n; ++i)                                // L y = r
      z[i] = r[i] - row_product(columns, m, z.data, A.indptr[i], A.diagonal[i]);
    for (int64_t i = n; i--;)                                      // U z = y
      z[i] = (z[i] - row_product(columns, m, z.data, A.diagonal[i] + 1, A.indptr[i + 1])) * m[A.diagonal[i]];
  }
};

// Write column c of a system, of `columns`: x and its record.
template <class T>
void leave(const Norms& now, int64_t done, int code, Array<const T> x, int64_t columns, int64_t c, Array<T> x_out,
           Array<double> record) {
  for (int64_t i = 0; i < x.size; ++i) x_out[i * columns + c] = x[i];
  double* const own = record.data + c * (VERDICT_CODE + 1);
  own[RESIDUAL] = now.rhs > 0 ? now.norm / now.rhs : now.norm;
  own[BACKWARD] = now.backward, own[STEPS] = double(done), own[VERDICT_CODE] = code;
}

// A batch: the pattern as in `System`; for each system a row of values, of b and of x, `columns` numbers for each
// unknown, and of records, with the places of Record for each column. x holds starting vectors if `guess` is true.
template <class T> struct Batch {
  Array<const int32_t> indptr, indices, diagonal;
  Table<const T> values, b;
  Table<T> x;
  Table<double> record;
  int64_t columns;
  double rtol, atol;

  // body(begin, end) for ranges of systems that the threads share.
  template <class F> void each_range(const F& body) const { ranges(values.rows, values.rows * values.columns, body); }
};

// Solve all systems by a Krylov method: judge the true residual, run a cycle of the method from x, and repeat until
// there is a verdict. cycle(A, M, judge, v, attempt) improves x = v[X], has r = b − A x in v[R] on entry, and returns a
// verdict on its recursive residual: RUNNING at the end of a restarted cycle. v[MORE] and on: `more` vectors.
enum { X, B, R, MORE };
template <class T, class F>
void solve_all(const Batch<T>& batch, int64_t kind, int64_t block, bool guess, int64_t maxiter, int64_t more,
               const F& cycle) {
  batch.each_range([=](int64_t begin, int64_t end) {
    const int64_t n = batch.diagonal.size, columns = batch.columns;
    std::vector<T> held((MORE + more) * n);
    const Table<T> v{held.data(), MORE + more, n, n};
    const Array<T> x = v[X], b = v[B], r = v[R];
    Preconditioner<T> M(kind, block, n, batch.values.columns);
    for (int64_t s = begin; s < end; ++s) {
      const System<T> A{batch.indptr, batch.indices, batch.diagonal, batch.values[s]};
      const bool factored = M.prepare(A);
      for (int64_t c = 0; c < columns; ++c) {
        for (int64_t i = 0; i < n; ++i) {
          x[i] = guess ? batch.x[s][i * columns + c] : T(0);
          b[i] = batch.b[s][i * columns + c];
        }
        Judge judge{batch.rtol, batch.atol, int(std::min<int64_t>(maxiter, INT32_MAX))};
        Norms now;
        double last = NO_LIMIT;
        int inner = factored ? RUNNING : int(NOT_FACTORED), code = RUNNING;
        for (int attempt = 0;; ++attempt) {
          now = true_residual<T>(A, b, x, r);
          if (attempt == 0) judge.begin(now);
          now = confirmed<T>(A, b, x, r, now, judge.threshold);
          code = judge.verdict(now, last, inner, attempt, epsilon_of(T()));
          if (code != RUNNING) break;
          last = now.norm;
          inner = cycle(A, M, judge, v, attempt);
        }
        leave<T>(now, judge.done, code, x, columns, c, batch.x[s], batch.record[s]);
      }
    }
  });
}
