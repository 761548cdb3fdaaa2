// Fronts of a nested dissection on a CPU: assembly of their matrices, and solves with their factors for one vector.
// elimination.py and front_solves.py describe them.
#include <algorithm>
#include <vector>

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// target[rows[i]][columns[j]] -= part[i][j]; with `lower` for j up to i only.
template <class T>
void subtract(Table<T> target, Array<const int64_t> rows, Array<const int64_t> columns, Table<const T> part,
              bool lower) {
  for (int64_t i = 0; i < rows.size; ++i) {
    T* const to = target[rows[i]].data;
    const T* const from = part[i].data;
    const int64_t end = lower ? i + 1 : columns.size;
    for (int64_t j = 0; j < end; ++j) to[columns[j]] -= from[j];
  }
}

// Write the entries of rows `begin` to `end` − 1 of a CSR matrix to a dense one, column columns[j] to column j; with
// `transposed`, to row j. `columns` ascends, and so do the rows of the CSR matrix; other columns are left out.
template <class T, class I>
void fill(Array<const I> indptr, Array<const I> indices, Array<const T> data, int64_t begin, int64_t end,
          Array<const int64_t> columns, Table<T> out, bool transposed) {
  for (int64_t i = begin; i < end; ++i) {
    int64_t j = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      j = std::lower_bound(columns.data + j, columns.data + columns.size, int64_t(indices[k])) - columns.data;
      if (j == columns.size) break;
      if (columns[j] == indices[k]) (transposed ? out[j][i - begin] : out[i - begin][j]) = data[k];
    }
  }
}

// sums += Σᵢ x[i] (row i of a matrix with n columns), or of its conjugate.
template <bool CONJ, class T> void add_rows(const T* matrix, const T* x, int64_t rows, int64_t n, T* sums) {
  const auto value = [](T a) { return CONJ ? conj(a) : a; };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T *const a = matrix + i * n, *const b = a + n, *const c = b + n, *const d = c + n;
    const T p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];
    for (int64_t j = 0; j < n; ++j)
      sums[j] += (value(a[j]) * p + value(b[j]) * q) + (value(c[j]) * r + value(d[j]) * s);
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) sums[j] += value(matrix[i * n + j]) * x[i];
}

// The product of a row of n entries, or of its conjugate, and x.
template <bool CONJ, class T> T times(const T* row, const T* x, int64_t n) {
  constexpr int LANES = 8;
  T lanes[LANES];
  for (int l = 0; l < LANES; ++l) lanes[l] = T(0);
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES)
    for (int l = 0; l < LANES; ++l) lanes[l] += (CONJ ? conj(row[j + l]) : row[j + l]) * x[j + l];
  for (int l = 0; j < n; ++j, ++l) lanes[l] += (CONJ ? conj(row[j]) : row[j]) * x[j];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The solve for one tree, whose first row is `first`.
template <bool CONJ, class T>
void solve_tree(Table<const int64_t> fronts, Array<const int64_t> below, const T* inverses, const T* down, const T* up,
                T* x, int64_t from, int64_t to, std::vector<T>& sums) {
  for (int64_t k = from; k < to; ++k) {
    const int64_t row = fronts[k][0], s = fronts[k][1] - row, at = fronts[k][2], b = fronts[k][3] - at;
    T* const own = x + row;
    sums.assign(std::max(s, b), T(0));
    add_rows<CONJ>(down + fronts[k][5], own, s, b, sums.data());
    for (int64_t j = 0; j < b; ++j) x[below[at + j]] -= sums[j];
    std::fill(sums.begin(), sums.end(), T(0));
    const T* const inverse = inverses + fronts[k][4];
    if (CONJ) for (int64_t i = 0; i < s; ++i) sums[i] = times<CONJ>(inverse + i * s, own, s);
    else add_rows<CONJ>(inverse, own, s, s, sums.data());
    std::copy(sums.begin(), sums.begin() + s, own);
  }
  for (int64_t k = to - 1; k >= from; --k) {
    const int64_t row = fronts[k][0], s = fronts[k][1] - row, at = fronts[k][2], b = fronts[k][3] - at;
    sums.resize(std::max<int64_t>(b, 1));
    for (int64_t j = 0; j < b; ++j) sums[j] = x[below[at + j]];
    for (int64_t i = 0; i < s; ++i) x[row + i] -= times<CONJ>(up + fronts[k][5] + i * b, sums.data(), b);
  }
}

// x ← A⁻¹ x for matrices A with the factors of trees of fronts.
//
// Tree t has the fronts trees[t][0] to trees[t][1] − 1, and the rows of x from trees[t][2] on. For each front `fronts`
// has: its first row in the tree, its end; where its rows of later fronts begin in `below`, and their end; where D⁻ᵀ is
// in `inverses`; where its matrices are in `down` and `up`, (C D⁻¹)ᵀ and E. With `adjoint`: A⁻ᴴ, for swapped matrices.
template <class T>
void solve(Table<const int64_t> trees, Table<const int64_t> fronts, Array<const int64_t> below,
           Array<const T> inverses, Array<const T> down, Array<const T> up, Array<T> x, bool adjoint) {
  ranges(trees.rows, x.size, [=](int64_t begin, int64_t end) {
    std::vector<T> sums;
    for (int64_t t = begin; t < end; ++t) {
      const auto run = adjoint ? solve_tree<true, T> : solve_tree<false, T>;
      run(fronts, below, inverses.data, down.data, up.data, x.data + trees[t][2], trees[t][0], trees[t][1], sums);
    }
  });
}

}  // namespace

KERNELS("swell.preconditioners.bddc.fronts", SUMS(subtract), VALUES(solve), INSTANCE(fill, double, int32_t),
        INSTANCE(fill, double, int64_t), INSTANCE(fill, complex<double>, int32_t),
        INSTANCE(fill, complex<double>, int64_t))
