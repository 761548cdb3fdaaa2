// Blocks of k vectors that share one Krylov space, on a CPU; core/kernels/block.cuh is the GPU version.
//
// A block is a table of k rows, its vectors. While a block method runs, the STOP flags of all right-hand sides are
// equal, since every vector of the block serves all of them. FINAL marks those that have ended.
//
// Rows of vectors are cut into slices, from rows[p] to rows[p + 1] − 1. Every slice leaves its own sums; `total` adds
// them in order. So a sum has the same bits for any number of threads.
#pragma once
#include <vector>

#include "../kernels/breakdown.hpp"
#include "context.hpp"
#include "products.hpp"

constexpr int64_t LONG_TILE = 1024;    // rows of a tile: tiles of three blocks of 8 vectors fit in the cache of a core
constexpr int64_t SHORT_TILE = 256;    // the same for four blocks, and for U, W and a basis block of GMRES
constexpr int64_t GROUP = 16;          // vectors that a tile's loop handles together
constexpr double NEGATIVE = 1e-3;      // a pivot below −NEGATIVE, relative to its diagonal entry, is no rounding error

// -- the judge's records ----------------------------------------------------------------------------------------------

inline bool ended(const Contexts* states, int64_t j) { return (*states)[j].flags[FINAL] != 0; }
inline bool all_stopped(const Contexts* states) { return states->flags[STOP] != 0; }

// For each right-hand side, whether it has ended.
inline std::vector<char> all_ended(const Contexts* states) {
  std::vector<char> out(states->count);
  for (int64_t j = 0; j < states->count; ++j) out[j] = ended(states, j);
  return out;
}

// Make the STOP flags equal: 1 if every right-hand side has ended, else 0.
inline void go_on(Contexts* states) {
  bool every = true;
  for (int64_t j = 0; j < states->count; ++j) every = every && ended(states, j);
  for (int64_t j = 0; j < states->count; ++j) (*states)[j].flags[STOP] = every;
}

// End every right-hand side that has not ended.
inline void halt_all(Contexts* states, int code) {
  for (int64_t j = 0; j < states->count; ++j)
    if (Context own = (*states)[j]; !ended(states, j)) halt(&own, code);
  go_on(states);
}

// -- small matrices ---------------------------------------------------------------------------------------------------

// A matrix with memory of its own, zero at first.
template <class A> struct Matrix : Table<A> {
  std::vector<A> held;
  Matrix(int64_t rows, int64_t columns) : Table<A>{nullptr, rows, columns, columns}, held(rows * columns, A(0)) {
    this->data = held.data();
  }
  Matrix(Matrix&&) = default;
};

// A matrix whose entry (i, j) is entry(i, j).
template <class A, class F> Matrix<A> filled(int64_t rows, int64_t columns, const F& entry) {
  Matrix<A> out(rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[i][j] = entry(i, j);
  return out;
}

template <class A> void copy(Table<const A> from, Table<A> to) {
  for (int64_t i = 0; i < to.rows; ++i) std::copy(from[i].data, from[i].data + to.columns, to[i].data);
}
template <class A> void clear(Table<A> out) {
  for (int64_t i = 0; i < out.rows; ++i) std::fill(out[i].data, out[i].data + out.columns, A(0));
}

// Rows and columns of a table, each from a first one to the one before the last.
template <class A>
Table<A> part(Table<A> m, int64_t row, int64_t end_row, int64_t column, int64_t end_column) {
  return {m.data + row * m.stride + column, end_row - row, end_column - column, m.stride};
}
template <class A> Table<A> rows_of(Table<A> m, int64_t row, int64_t end) { return part(m, row, end, 0, m.columns); }

template <class A> Table<A> matrix(Blocks<A> blocks, int64_t place) {
  return {blocks[place], blocks.rows, blocks.columns, blocks.columns};
}

// The sum of all blocks, added in order.
template <class A> Matrix<A> total(Blocks<const A> partial) {
  Matrix<A> out(partial.rows, partial.columns);
  for (int64_t p = 0; p < partial.count; ++p)
    for (size_t e = 0; e < out.held.size(); ++e) out.held[e] += partial[p][e];
  return out;
}

template <class A> std::vector<double> diagonal(Table<const A> G) {
  std::vector<double> out(G.rows);
  for (int64_t i = 0; i < G.rows; ++i) out[i] = real(G[i][i]);
  return out;
}

inline bool is_finite(double a) { return isfinite(a); }
inline bool is_finite(complex<double> a) { return isfinite(a.re) && isfinite(a.im); }
template <class A> bool all_finite(const Matrix<A>& G) {
  return std::all_of(G.held.begin(), G.held.end(), [](A a) { return is_finite(a); });
}

// out = X Y; `out` is neither of them. Zeros of X, as a Hessenberg matrix has, are skipped.
template <class A> void product(Table<const A> X, Table<const A> Y, Table<A> out) {
  clear(out);
  for (int64_t i = 0; i < X.rows; ++i)
    for (int64_t l = 0; l < X.columns; ++l)
      if (X[i][l] != A(0))
        for (int64_t j = 0; j < out.columns; ++j) out[i][j] += X[i][l] * Y[l][j];
}

// out = Xᴴ Y; `out` is neither of them.
template <class A> void adjoint_product(Table<const A> X, Table<const A> Y, Table<A> out) {
  clear(out);
  for (int64_t l = 0; l < X.rows; ++l)
    for (int64_t i = 0; i < X.columns; ++i)
      for (int64_t j = 0; j < out.columns; ++j) out[i][j] += conj(X[l][i]) * Y[l][j];
}

// Find `factor` and `inverse` with G = factorᴴ factor and inverseᴴ G inverse = I on the first rows; return the rank, or
// −1 if G is plainly indefinite.
//
// G is Hermitian. `reference`: squares of the sizes relative to which pivots are judged, by which G is scaled first.
// Where every remaining pivot is at most `tolerance`, the vectors are dependent to working precision: rows of `factor`
// and columns of `inverse` are zero from this rank on. With `clamp` such a pivot counts as `tolerance`, so only vectors
// with a reference of 0 are left out.
template <class A>
int64_t pivoted_cholesky(Table<const A> G, const std::vector<double>& reference, double tolerance, bool clamp,
                         Table<A> factor, Table<A> inverse) {
  const int64_t k = G.rows;
  clear(factor), clear(inverse);
  std::vector<double> scale(k);
  std::vector<char> free(k);
  std::vector<int64_t> order(k);
  for (int64_t i = 0; i < k; ++i) {
    if (!clamp && real(G[i][i]) < -NEGATIVE * reference[i]) return -1;
    free[i] = reference[i] > 0;
    scale[i] = free[i] ? sqrt(reference[i]) : 0.0;
  }
  const auto H = filled<A>(k, k, [&](int64_t i, int64_t j) {
    return free[i] && free[j] ? divided(divided(G[i][j], scale[i]), scale[j]) : A(0);
  });
  int64_t rank = 0;
  for (; rank < k; ++rank) {
    int64_t p = -1;
    double most = -INFINITY;
    for (int64_t i = 0; i < k; ++i) {
      if (!free[i]) continue;
      if (!clamp && real(H[i][i]) < -NEGATIVE) return -1;
      if (real(H[i][i]) > most) p = i, most = real(H[i][i]);
    }
    if (p < 0 || (most <= tolerance && !clamp)) break;
    const double pivot = sqrt(max(most, tolerance));
    free[p] = false;
    order[rank] = p;
    factor[rank][p] = A(pivot);
    for (int64_t j = 0; j < k; ++j)
      if (free[j]) factor[rank][j] = divided(H[p][j], pivot);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        if (free[i] && free[j]) H[i][j] -= conj(factor[rank][i]) * factor[rank][j];
  }
  for (int64_t c = 0; c < rank; ++c)             // solve factor y = e_c on the pivots' columns, which are triangular
    for (int64_t i = c; i >= 0; --i) {
      A y(i == c ? 1.0 : 0.0);
      for (int64_t l = i + 1; l <= c; ++l) y -= factor[i][order[l]] * inverse[order[l]][c];
      inverse[order[i]][c] = divided(y, real(factor[i][order[i]]));
    }
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j) {
      factor[i][j] = scale[j] * factor[i][j];
      if (scale[i] > 0) inverse[i][j] = divided(inverse[i][j], scale[i]);
    }
  return rank;
}

// -- tiles of vectors -------------------------------------------------------------------------------------------------

// out_ij += Σ conj(P_i) w Q_j over the n rows from `lo` on, at most LONG_TILE; an empty `w` stands for ones.
template <class T>
void add_gram(Table<const T> P, Table<const T> Q, Array<const float> w, int64_t lo, int64_t n, Table<acc_t<T>> out) {
  using A = acc_t<T>;
  for (int64_t i = 0; i < P.rows; i += GROUP)
    for (int64_t j = 0; j < Q.rows; j += 2) {
      const int64_t end = min(i + GROUP, P.rows);
      const T *const x = Q[j].data + lo, *const y = Q[min(j + 1, Q.rows - 1)].data + lo;
      A of_x[GROUP] = {}, of_y[GROUP] = {};
      if (w.size) {
        A weighted[2][LONG_TILE];
        for (int64_t r = 0; r < n; ++r) {
          const double by = w[lo + r];
          weighted[0][r] = by * wide(x[r]), weighted[1][r] = by * wide(y[r]);
        }
        add_row_products<true>(P, i, end, lo, n, weighted[0], weighted[1], of_x, of_y);
      } else {
        add_row_products<true>(P, i, end, lo, n, x, y, of_x, of_y);
      }
      for (int64_t r = 0; r < end - i; ++r) {
        out[i + r][j] += of_x[r];
        if (j + 1 < Q.rows) out[i + r][j + 1] += of_y[r];
      }
    }
}

// The coefficients sign C of `add_product`, by columns.
template <class T> Matrix<T> coefficients_of(Table<const acc_t<T>> C, double sign = 1) {
  return filled<T>(C.columns, C.rows, [=](int64_t j, int64_t i) { return T(sign * C[i][j]); });
}

// out_j += Σ P_i C_ji for n rows: P's rows begin at `lo`, out's at `begin`. A j with skip[j] is left out.
template <class T>
void add_product(Table<const T> P, int64_t lo, int64_t n, Table<const T> C, Table<T> out, int64_t begin,
                 const char* skip = nullptr) {
  for (int64_t first = 0; first < P.rows; first += GROUP)
    for (int64_t j = 0; j < out.rows; ++j) {
      if (skip && skip[j]) continue;
      const Array<T> x = out[j].from(begin);
      const int64_t end = min(first + GROUP, P.rows);
      for (int64_t i = first; i < end; i += 4) {
        const FourRows<T, T> rows(P, i, end, lo);
        const Coefficients<T> by(C[j], i, end);
        tile_elements<T>(n, [=](auto r) { store(x, r, load(x, r) + combined(rows, by, r)); });
      }
    }
}

// Columns of a block of vectors, as a table.
template <class T> Table<T> tile_of(Table<T> P, int64_t lo, int64_t n) { return part(P, 0, P.rows, lo, lo + n); }

// body(lo, n, made) for tiles of n ≤ SHORT_TILE rows from `lo` on; `made`: room for `count` vectors of a tile.
template <class T, class F> void tiles_with_room(int64_t rows, int64_t count, const F& body) {
  ranges((rows + SHORT_TILE - 1) / SHORT_TILE, rows, [&](int64_t begin, int64_t end) {
    const Matrix<T> made(count, SHORT_TILE);
    for (int64_t lo = begin * SHORT_TILE; lo < min(rows, end * SHORT_TILE); lo += SHORT_TILE)
      body(lo, min(rows - lo, SHORT_TILE), part<T>(made, 0, count, 0, SHORT_TILE));
  });
}

// X = X C, for the coefficients C of `add_product`.
template <class T> void multiply_block(Table<T> X, Table<const T> C) {
  tiles_with_room<T>(X.columns, X.rows, [&](int64_t lo, int64_t n, Table<T> made) {
    clear(made);
    add_product<T>(X, lo, n, C, made, 0);
    copy<T>(made, tile_of(X, lo, n));
  });
}
