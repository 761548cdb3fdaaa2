// Block smoothers on a CPU; block_jacobi.cu has the same kernels for a GPU. A slice of modified SELL is a block.
//
// Arguments of all kernels: `slice_ptr`, `diag`, `entries`, `col_idx`: A in slices of `height` rows
// (formats/modified_sell.py). `b`, `x`: A x = b; `out`: the new x. With `zero` x counts as 0 and is not read. `sweeps`,
// `tolerance`, `omega`: settings of the inner solver. `width`: the largest number of off-diagonals of a row inside its
// block. `held` and `shared` matter on a GPU only.
//
// Rows of the local system are scaled by the diagonal, except for conjugate gradients. Inner sweeps end when the
// squared residual of each row is at most tolerance / height: a GPU needs no sum for this.
#include <vector>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

enum Inner { JACOBI, GAUSS_SEIDEL, CG, EXACT };        // INNER of smoothers/block_jacobi.py

// The system of one block: its diagonal d, its right-hand side r, and its solution y. Row t of its off-diagonals has
// count[t] entries, from place t `width` of `values` and `columns` on.
template <class T> struct System {
  int64_t width, rows = 0;
  const T* d = nullptr;
  std::vector<T> r, y, residual, p, values;
  std::vector<uint16_t> columns;
  std::vector<int32_t> count;

  System(int64_t height, int64_t width)
      : width(width), r(height), y(height), residual(height), p(height), values(height * width),
        columns(height * width), count(height) {}

  // (A_ll − D) v in row t of the block.
  T row(const std::vector<T>& v, int64_t t) const {
    T total(0);
    for (int64_t k = t * width; k < t * width + count[t]; ++k) total += values[k] * v[columns[k]];
    return total;
  }

  double norm2() const {
    double total = 0;
    for (int64_t t = 0; t < rows; ++t) total += abs2(r[t]);
    return total;
  }

  void divide_by_diagonal() {
    for (int64_t t = 0; t < rows; ++t) {
      r[t] = r[t] / d[t];
      for (int64_t k = t * width; k < t * width + count[t]; ++k) values[k] = values[k] / d[t];
    }
  }

  // Solve for y by up to `sweeps` damped Jacobi sweeps, from y = 0.
  void jacobi(double omega, int64_t sweeps, double tolerance) {
    for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
      double worst = 0;
      for (int64_t t = 0; t < rows; ++t) {
        residual[t] = r[t] - y[t] - row(y, t);
        worst = std::max<double>(worst, abs2(d[t] * residual[t]));
      }
      if (worst <= tolerance) return;
      for (int64_t t = 0; t < rows; ++t) y[t] += T(omega * wide(residual[t]));
    }
  }

  // Solve for y by up to `sweeps` forward sweeps, from y = 0.
  void gauss_seidel(int64_t sweeps, double tolerance) {
    for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
      double worst = 0;
      for (int64_t t = 0; t < rows; ++t) worst = std::max<double>(worst, abs2(d[t] * (r[t] - y[t] - row(y, t))));
      if (worst <= tolerance) return;
      for (int64_t t = 0; t < rows; ++t) y[t] = r[t] - row(y, t);
    }
  }

  // Solve for y by up to `sweeps` steps, from y = 0. Overwrites r.
  void conjugate_gradients(int64_t sweeps, double tolerance) {
    std::vector<T>& q = residual;
    std::copy(r.begin(), r.begin() + rows, p.begin());
    double rho = norm2();
    for (int64_t sweep = 0; sweep < sweeps && !(rho <= tolerance); ++sweep) {
      double sigma = 0;
      for (int64_t t = 0; t < rows; ++t) {
        q[t] = d[t] * p[t] + row(p, t);
        sigma += real(conj(p[t]) * q[t]);
      }
      if (!(sigma > 0)) return;
      const double alpha = rho / sigma;
      for (int64_t t = 0; t < rows; ++t) y[t] += T(alpha * wide(p[t])), r[t] -= T(alpha * wide(q[t]));
      const double fresh = norm2(), beta = fresh / rho;
      for (int64_t t = 0; t < rows; ++t) p[t] = T(wide(r[t]) + beta * wide(p[t]));
      rho = fresh;
    }
  }

  // y = the inverse of the block times r; entry (t, j) of the inverse is at place j `height` + t.
  void multiply(const T* inverse, int64_t height) {
    for (int64_t j = 0; j < rows; ++j, inverse += height) {
      const T rj = r[j];
      T* const out = y.data();
#pragma GCC ivdep
      for (int64_t t = 0; t < rows; ++t) out[t] += inverse[t] * rj;
    }
  }
};

// A, and how a block is solved.
template <class T, class I> struct Smoother {
  Array<const I> slice_ptr;
  Array<const T> diag, entries;
  Array<const I> col_idx;
  Blocks<const T> inverse;             // as in `exact`, or empty
  double omega;
  Inner inner;
  int64_t sweeps;
  double tolerance;
  int64_t width, height;

  // r = b − A x in the rows of slice s, and the off-diagonals of its block.
  void assemble(System<T>& block, const T* b, const T* x, bool zero, int64_t s) const {
    const int64_t first = s * height, end = slice_ptr[s + 1];
    for (int64_t t = 0; t < block.rows; ++t) {
      const int64_t i = first + t;
      T total = b[i];
      if (!zero) total -= diag[i] * x[i];
      int64_t place = t * width;
      for (int64_t at = slice_ptr[s] + t; at < end; at += height) {
        const int64_t c = col_idx[at];
        if (c == 0) break;
        if (!zero) total -= entries[at] * x[c < 0 ? first - c - 1 : c - 1];
        if (c < 0 && width) block.values[place] = entries[at], block.columns[place++] = uint16_t(-c - 1);
      }
      block.r[t] = total, block.count[t] = int32_t(place - t * width);
    }
  }

  // Solve the block of slice s for its residual b − A x, and write x + the solution to these rows of `out`.
  void relax(System<T>& block, const T* b, const T* x, T* out, bool zero, int64_t s) const {
    const int64_t first = s * height;
    block.rows = std::min(height, diag.size - first), block.d = diag.data + first;
    std::fill(block.y.begin(), block.y.end(), T(0));
    assemble(block, b, x, zero, s);
    if (inner == JACOBI || inner == GAUSS_SEIDEL) block.divide_by_diagonal();
    switch (inner) {
      case JACOBI: block.jacobi(omega, sweeps, tolerance / height); break;
      case GAUSS_SEIDEL: block.gauss_seidel(sweeps, tolerance / height); break;
      case CG: block.conjugate_gradients(sweeps, tolerance); break;
      case EXACT: block.multiply(inverse[s], height);
    }
    if (zero) std::copy(block.y.data(), block.y.data() + block.rows, out + first);
    else for (int64_t t = 0; t < block.rows; ++t) out[first + t] = x[first + t] + block.y[t];
  }

  // One sweep over all blocks, threads sharing them.
  void sweep(Array<const T> b, Array<const T> x, Array<T> out, bool zero) const {
    ranges(slice_ptr.size - 1, diag.size, [=, *this](int64_t begin, int64_t end) {
      System<T> block(height, width);
      for (int64_t s = begin; s < end; ++s) relax(block, b.data, x.data, out.data, zero, s);
    });
  }
};

// One sweep over all blocks, each solved by inner sweeps of Jacobi. Writes `out`.
template <class T, class I>
void jacobi(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
            Array<const T> b, Array<const T> x, Array<T> out, double omega, int64_t zero, int64_t sweeps,
            double tolerance, int64_t width, int64_t held, int64_t height, int64_t shared) {
  Smoother<T, I>{slice_ptr, diag, entries, col_idx, {}, omega, JACOBI, sweeps, tolerance, width, height}
      .sweep(b, x, out, zero);
}

// One sweep over all blocks, each solved by inner Gauss–Seidel sweeps. Writes `out`.
template <class T, class I>
void gauss_seidel(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
                  Array<const T> b, Array<const T> x, Array<T> out, double omega, int64_t zero, int64_t sweeps,
                  double tolerance, int64_t width, int64_t held, int64_t height, int64_t shared) {
  Smoother<T, I>{slice_ptr, diag, entries, col_idx, {}, omega, GAUSS_SEIDEL, sweeps, tolerance, width, height}
      .sweep(b, x, out, zero);
}

// One sweep over all blocks, each solved by conjugate gradients. Writes `out`.
template <class T, class I>
void conjugate_gradients(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
                         Array<const T> b, Array<const T> x, Array<T> out, double omega, int64_t zero, int64_t sweeps,
                         double tolerance, int64_t width, int64_t held, int64_t height, int64_t shared) {
  Smoother<T, I>{slice_ptr, diag, entries, col_idx, {}, omega, CG, sweeps, tolerance, width, height}
      .sweep(b, x, out, zero);
}

// One sweep over all blocks with their dense inverses; writes `out`. inverse[s, j, t] is entry (t, j) of the inverse of
// block s.
template <class T, class I>
void exact(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
           Blocks<const T> inverse, Array<const T> b, Array<const T> x, Array<T> out, int64_t zero, int64_t height,
           int64_t shared) {
  Smoother<T, I>{slice_ptr, diag, entries, col_idx, inverse, 1, EXACT, 0, 0, 0, height}.sweep(b, x, out, zero);
}

// Block Gauss–Seidel, on a CPU only: solve the blocks one after the other, in place in x: upwards if `forward`, else
// downwards. `inverse`: as in `exact`, or empty. `inner`: an `Inner`.
template <class T, class I>
void in_turn(Array<const I> slice_ptr, Array<const T> diag, Array<const T> entries, Array<const I> col_idx,
             Blocks<const T> inverse, Array<const T> b, Array<T> x, double omega, bool forward, int64_t inner,
             int64_t sweeps, double tolerance, int64_t width, int64_t height) {
  if (inner == EXACT) width = 0;
  const Smoother<T, I> A{slice_ptr, diag, entries, col_idx, inverse, omega, Inner(inner), sweeps, tolerance, width,
                         height};
  System<T> block(height, width);
  const int64_t slices = slice_ptr.size - 1;
  for (int64_t k = 0; k < slices; ++k) A.relax(block, b.data, x.data, x.data, false, forward ? k : slices - 1 - k);
}

}  // namespace

KERNELS("swell.smoothers.block_jacobi", VALUES_INDICES(jacobi), VALUES_INDICES(gauss_seidel),
        VALUES_INDICES(conjugate_gradients), VALUES_INDICES(exact), VALUES_INDICES(in_turn))
