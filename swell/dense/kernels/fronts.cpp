// The fronts of the iterative Crout method on a CPU: final entries are not computed again; fronts.cu is the GPU's
// version.
//
// `lu` is the matrix as a flat array, entry (i, j) at `i row + j column`. A front has the `size` rows and columns from
// `first` on. Its entry (i, j) belongs to step min(i, j). Its key is 2 j on and below the diagonal (L), 2 i + 1 above
// (U); it needs only entries of smaller keys. Entries with keys below `front` are final; the others hold A less the
// contributions of finished fronts.
//
// `estimate`: where the iteration starts, an array like `lu`, or `lu` itself. `tolerance`: an entry that changed by no
// more has settled. `lower`, `upper`: bounds of good diagonal elements. `threads`: on a GPU only.
//
// Many matrices, n² elements apart, are decomposed together. `blocks.size` − 1: their number, times the blocks of a
// `cluster` with `shared` bytes of shared memory each on a GPU. `state` has one number for each: the columns of its
// front that are complete in the rows below the diagonal block.
#include <vector>

#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"
#include "lines.hpp"

namespace {

int64_t key(int64_t i, int64_t j) { return i < j ? 2 * i + 1 : 2 * j; }

struct Found { int64_t bad, iterations; };

// Iterate (1.11) and (1.12) in one diagonal block of `rows` rows, from `estimate`, until all entries are final, or all
// before a bad element; write these to `lu`. A bad element is a diagonal one, from `search` on, with modulus at most
// `lower`, above `upper`, or NaN. Returns the bad element (`rows` if there is none) and the number of iterations.
template <class T>
Found settle_block(DenseMatrix<T> lu, DenseMatrix<const T> estimate, int64_t rows, int64_t front, int64_t search,
                   double tolerance, double lower, double upper) {
  std::vector<T> held(4 * rows * rows + rows, T(0));
  const auto block = [&](int k) { return Table<T>{held.data() + k * rows * rows, rows, rows, rows}; };
  const Table<T> v = block(0), a = block(1), base = block(2), next = block(3);
  T* const sums = block(4).data;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < rows; ++j) a[i][j] = lu(i, j), v[i][j] = key(i, j) < front ? lu(i, j) : estimate(i, j);
  // Add the contributions of the steps that have become final: front `before` until now, `after` from now on.
  const auto advance = [=](int64_t before, int64_t after) {
    for (int64_t i = before / 2 + 1; i < rows; ++i)
      add_products<T>(v, v[i].data, before / 2, std::min(after / 2, i), 0, rows, base[i].data);
  };
  advance(0, front);
  std::copy(v.data, v.data + rows * rows, next.data);
  for (int64_t iterations = 0;; ++iterations) {
    int64_t bad = search;
    while (bad < rows && lower < size(v[bad][bad]) && size(v[bad][bad]) <= upper) ++bad;     // a NaN is bad
    const int64_t limit = bad < rows ? 2 * bad : 2 * rows - 1;
    if (front > limit) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < rows; ++j) if (key(i, j) < front) lu(i, j) = v[i][j];
      return {bad, iterations};
    }
    const int64_t steps = front / 2;
    int64_t changed = 2 * rows;
    for (int64_t i = steps; i < rows; ++i) {
      std::copy(base[i].data, base[i].data + rows, sums);
      add_products<T>(v, v[i].data, steps, i, 0, rows, sums);
      for (int64_t j = steps; j < rows; ++j) {
        const int64_t own = key(i, j);
        if (own < front || own > limit) continue;
        T value = a[i][j] - sums[j];                               // (1.11)
        if (i < j && v[i][i] != T(0)) value = value / v[i][i];     // (1.12)
        if (!(size(value - v[i][j]) <= tolerance)) changed = std::min(changed, own);   // a NaN has not settled
        next[i][j] = value;
      }
    }
    std::copy(next.data, next.data + rows * rows, v.data);
    const int64_t after = std::min(std::max(changed, front + 1), limit + 1);   // the first entry needed final ones only
    advance(front, after);
    front = after;
  }
}

// Iterate rows `top` to `bottom` of L, the front's columns `begin` to `end`, in place. Returns the iterations of the
// slowest row. The front's rows and columns begin at `first`. With `divide`, for the transposed matrix: columns of U.
template <class T>
int64_t settle_lines(DenseMatrix<T> lu, DenseMatrix<const T> estimate, int64_t first, int64_t begin, int64_t end,
                     bool divide, double tolerance, int64_t top, int64_t bottom) {
  if (begin == end) return 0;
  if (end == begin + 1 && !divide) {                               // one column needs final entries only
    complete(lu.transposed(), first + begin, first, top, bottom);
    return 1;
  }
  std::vector<T> held((end + 4) * end);
  const Table<T> e{held.data(), end, end, end};
  T *const a = held.data() + end * end, *const v = a + end, *const scratch = v + end;
  for (int64_t k = 0; k < end; ++k)
    for (int64_t c = k; c < end; ++c) e[k][c] = lu(first + k, first + c);
  int64_t slowest = 0;
  for (int64_t i = top; i < bottom; ++i) {
    for (int64_t c = 0; c < end; ++c) a[c] = lu(i, first + c), v[c] = c < begin ? a[c] : estimate(i, first + c);
    slowest = std::max(slowest, settle_line<T>(a, v, scratch, e, divide, begin, end, tolerance));
    for (int64_t c = begin; c < end; ++c) lu(i, first + c) = v[c];
  }
  return slowest;
}

// body(k, begin, end, count) for all tiles of x lines from `left` to `right`, of many matrices: matrix k, its lines
// `begin` to `end`, and the number in `counts` of its tile. `counts` has one for every x lines of each matrix.
template <class F>
void each_tile(int64_t matrices, int64_t n, int64_t left, int64_t right, int64_t x, Array<int32_t> counts,
               const F& body) {
  const int64_t across = (right - left + x - 1) / x, per = (n + x - 1) / x;
  ranges(matrices * across, matrices * n * x, [=](int64_t from, int64_t to) {
    for (int64_t tile = from; tile < to; ++tile) {
      const int64_t k = tile / across, begin = left + tile % across * x;
      body(k, begin, std::min(begin + x, right), counts[k * per + begin / x]);
    }
  });
}

// Iterate the diagonal blocks of all matrices up to a bad element, then the rows below in the columns up to it. With
// `choose`, swap the pivot's row; in the estimate too, unless it is `lu` (`own`). Go on until there is no bad element.
// Writes `lu`, `state` and `pivots`. The iterations of each diagonal block are added to `counts`, the iterations of the
// rows to `below`, as in `rest`.
template <class T>
void settle(Array<T> lu, Array<T> estimate, int64_t row, int64_t column, int64_t first, int64_t size, bool choose,
            bool own, int64_t x, int64_t threads, int64_t shared, int64_t cluster, double tolerance, double lower,
            double upper, int64_t n, Array<int32_t> state, Array<int32_t> pivots, Array<int32_t> counts,
            Array<int32_t> below, Array<const int32_t> blocks) {
  const int64_t count = (blocks.size - 1) / cluster;
  std::vector<Found> all(count, Found{0, 0});
  Found* const found = all.data();
  std::fill(state.data, state.data + count, 0);
  const auto of = [=](Array<T> all, int64_t k) { return DenseMatrix<T>{all.data + k * n * n, row, column}; };
  const auto start = [=](int64_t k) { return of(state[k] == 0 ? estimate : lu, k); };  // later: the rows as they are
  const auto active = [=](int64_t k) { return state[k] < size && found[k].bad < size; };
  const auto each_active = [=](const auto& body) {
    ranges(count, count * n * x, [=](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) if (active(k)) body(k);
    });
  };
  for (bool left = true; left;) {
    each_active([=](int64_t k) {
      found[k] = settle_block<T>(of(lu, k).from(first, first), start(k).from(first, first), size,
                                 std::max(2 * state[k] - 1, 0), state[k], tolerance, lower, upper);
      counts[k] += int32_t(found[k].iterations);
    });
    each_tile(count, n, first + size, n, x, below, [=](int64_t k, int64_t top, int64_t bottom, int32_t& iterations) {
      if (active(k))
        iterations += int32_t(settle_lines<T>(of(lu, k), start(k), first, state[k], found[k].bad + 1, false, tolerance,
                                              top, bottom));
    });
    each_active([=](int64_t k) {
      const int64_t j = first + found[k].bad;
      if (choose && j < n - 1) {
        choose_pivot<T>(of(lu, k), j, INFINITY, n, pivots.data + k * n);
        swap_with_pivot(of(lu, k), j, n, pivots.data + k * n);
        if (!own) swap_with_pivot(of(estimate, k), j, n, pivots.data + k * n);
      }
      state[k] = int32_t(found[k].bad + 1);
    });
    left = false;
    for (int64_t k = 0; k < count; ++k) left |= active(k);
  }
}

// Iterate (1.11) in the rows of `lu` below the diagonal block, in the columns that `settle` has left. `tiles.size` − 1:
// number of tiles of `x` such rows, of all matrices. `counts` has an entry for every `x` rows of each matrix; the
// iterations of a tile's slowest row are added to it.
template <class T>
void rest(Array<T> lu, Array<const T> estimate, int64_t row, int64_t column, int64_t first, int64_t size, int64_t x,
          int64_t threads, double tolerance, int64_t n, Array<const int32_t> state, Array<int32_t> counts,
          Array<const int32_t> tiles) {
  each_tile(lu.size / (n * n), n, first + size, n, x, counts,
            [=](int64_t k, int64_t top, int64_t bottom, int32_t& iterations) {
    const DenseMatrix<T> m{lu.data + k * n * n, row, column};
    iterations += int32_t(settle_lines<T>(m, {estimate.data + k * n * n, row, column}, first, state[k], size, false,
                                          tolerance, top, bottom));
  });
}

// Iterate (1.12) in the front's rows, columns `left` to `right`, in place in `lu`, `x` columns a tile; `counts` and
// `tiles` as in `rest`.
template <class T>
void settle_right(Array<T> lu, Array<const T> estimate, int64_t row, int64_t column, int64_t first, int64_t size,
                  int64_t left, int64_t right, int64_t x, int64_t threads, double tolerance, int64_t n,
                  Array<int32_t> counts, Array<const int32_t> tiles) {
  each_tile(lu.size / (n * n), n, left, right, x, counts,
            [=](int64_t k, int64_t begin, int64_t end, int32_t& iterations) {
    const DenseMatrix<T> m{lu.data + k * n * n, column, row};           // transposed
    iterations += int32_t(settle_lines<T>(m, {estimate.data + k * n * n, column, row}, first, 0, size, true, tolerance,
                                          begin, end));
  });
}

}  // namespace

KERNELS("swell.dense.fronts", VALUES(settle), VALUES(rest), VALUES(settle_right))
