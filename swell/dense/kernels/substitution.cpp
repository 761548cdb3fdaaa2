// Forward and backward substitution, one row after the other and as an iteration, on a CPU; substitution.cu is the
// iteration on a GPU.
//
// `lu`: L and U of n rows as a flat array; entry (i, j) is at `i row + j column`. `unit`: 1 if the triangle in question
// has a unit diagonal, which is not stored; else 0. In the iteration `V` is a flat array of `m` right-hand sides, entry
// (i, r) at `i + r n`; the solution overwrites it. With `backward` it solves with U, else with L. In backward
// substitution positions count from the last row. An entry has settled if it changed by at most `tolerance`. `rows`,
// `threads`: on a GPU only.
#include <vector>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "lines.hpp"

namespace {

constexpr int64_t SIDES = 8;           // right-hand sides of a tile

// X[i] = (X[i] − Σ lu(i, j) X[j]) / lu(i, i) over j from `begin` to `end`; without a division if `unit`.
template <class T>
void substitute(DenseMatrix<const T> lu, Table<T> X, int64_t i, int64_t begin, int64_t end, bool unit) {
  T* const x = X[i].data;
  const int64_t m = X.columns;
  if (m == 1) {
    T total = x[0];
    for (int64_t j = begin; j < end; ++j) total -= lu(i, j) * X[j][0];
    x[0] = total;
  } else {
    for (int64_t j = begin; j < end; ++j) {
      const T l = lu(i, j), *const y = X[j].data;
#pragma GCC ivdep
      for (int64_t r = 0; r < m; ++r) x[r] -= l * y[r];
    }
  }
  if (!unit) for (int64_t r = 0; r < m; ++r) x[r] = x[r] / lu(i, i);
}

// Solve L Y = X, then U X = Y, in place in `X`, which has shape (n, m). `unit`: 1 if the unit diagonal is in L, 0 if in
// U.
template <class T>
void forward_backward(Array<const T> lu, int64_t row, int64_t column, int64_t unit, Table<T> X, int64_t n) {
  const DenseMatrix<const T> m{lu.data, row, column};
  for (int64_t i = 0; i < n; ++i) substitute(m, X, i, 0, i, unit);
  for (int64_t i = n; i--;) substitute(m, X, i, i + 1, n, !unit);
}

// Iterate the rows `first` to `first + size` of V until they have settled. `counts` has an entry for every 8 right-hand
// sides, and one more; the iterations of the slowest of the 8 are added to it.
template <class T>
void settle(Array<const T> lu, int64_t row, int64_t column, int64_t first, int64_t size, int64_t backward,
            int64_t unit, int64_t rows, int64_t threads, double tolerance, Array<T> V, int64_t n, int64_t m,
            Array<int32_t> counts) {
  const int64_t start = backward ? first + size - 1 : first, step = backward ? -1 : 1;
  ranges(counts.size - 1, V.size, [=](int64_t begin, int64_t end) {
    std::vector<T> held((size + 4) * size);
    const Table<T> e{held.data(), size, size, size};
    T *const b = held.data() + size * size, *const own = b + size, *const scratch = own + size;
    for (int64_t k = 0; k < size; ++k)
      for (int64_t c = k; c < size; ++c) e[k][c] = lu[(start + step * c) * row + (start + step * k) * column];
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t slowest = 0;
      for (int64_t r = SIDES * tile; r < std::min(SIDES * (tile + 1), m); ++r) {
        T* const v = V.data + r * n + start;
        for (int64_t p = 0; p < size; ++p) own[p] = b[p] = v[step * p];
        slowest = std::max(slowest, settle_line<T>(b, own, scratch, e, !unit, 0, size, tolerance));
        for (int64_t p = 0; p < size; ++p) v[step * p] = own[p];
      }
      counts[tile] += int32_t(slowest);
    }
  });
}

// Do one iteration of all rows, from `now` to `then`, both like V; b: the right-hand sides. changed[0] becomes 1 if an
// entry has not settled. `tiles` matters on a GPU only.
template <class T>
void sweep(Array<const T> lu, int64_t row, int64_t column, int64_t backward, int64_t unit, Array<const T> b,
           Array<const T> now, Array<T> then, int64_t rows, int64_t threads, double tolerance, int64_t n, int64_t m,
           Array<int32_t> changed, Array<const int32_t> tiles) {
  const auto [count] = row_sums<int64_t>(n * m, [=](int64_t t, int64_t& count) {
    const int64_t i = t % n;
    const T *const v = now.data + (t - i), *const l = lu.data + i * row;
    T sum(0);
    for (int64_t k = backward ? i + 1 : 0; k < (backward ? n : i); ++k) sum += l[k * column] * v[k];
    const T value = b[t] - sum, next = unit ? value : value / l[i * column];
    then[t] = next;
    count += !(size(next - now[t]) <= tolerance);                // a NaN has not settled
  });
  if (count) changed[0] = 1;
}

}  // namespace

KERNELS("swell.dense.substitution", VALUES(forward_backward), VALUES(settle), VALUES(sweep))
