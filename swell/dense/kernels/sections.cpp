// One iteration of a section in the thesis' form of the iterative Crout method, on a CPU; sections.cu is the GPU's
// version.
//
// `a`, `lu`, `next`: A, the last iterate and the new one, as flat arrays; entry (i, j) is at `i row + j column`. A box
// has rows `top` to `bottom` and columns `left` to `right`. `bad`: the bad element's row; elements to its lower right
// are left out. `kind`, `threads`: on a GPU only. `x`: rows and columns of a tile. tiles.size − 1: number of tiles.
#include <vector>

#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "matrix.hpp"

namespace {

// sums(i, j) = Σ m(i, k) m(k, j) over k < min(i, j) in a box, whose first element is sums(0, 0). Rows are contiguous.
template <class T>
void sum_products(DenseMatrix<const T> m, int64_t top, int64_t bottom, int64_t left, int64_t right,
                  DenseMatrix<T> sums) {
  for (int64_t i = top; i < bottom; ++i) {
    T* const row = &sums(i - top, 0);
    std::fill(row, row + (right - left), T(0));
    for (int64_t k = 0; k < std::min(i, right - 1); ++k) {
      const T l = m(i, k), *const u = &m(k, left);
#pragma GCC ivdep
      for (int64_t j = std::max(left, k + 1) - left; j < right - left; ++j) row[j] += l * u[j];
    }
  }
}

// `compute` in a tile. Returns the number of elements that changed by more than `tolerance`. `scratch`: elements, as
// many as a tile has.
template <class T>
int64_t compute_tile(DenseMatrix<const T> a, DenseMatrix<const T> lu, DenseMatrix<T> next, int64_t top, int64_t bottom,
                     int64_t left, int64_t right, int64_t bad, double tolerance, T* scratch) {
  const bool by_rows = lu.column == 1;
  const DenseMatrix<T> sums{scratch, by_rows ? right - left : 1, by_rows ? 1 : bottom - top};
  if (by_rows) sum_products(lu, top, bottom, left, right, sums);
  else sum_products(lu.transposed(), left, right, top, bottom, sums.transposed());
  int64_t changed = 0;
  for (int64_t i = top; i < bottom; ++i) {
    const T diagonal = lu(i, i);
    for (int64_t j = left; j < right; ++j) {
      if (i >= bad && j > bad) continue;
      T value = a(i, j) - sums(i - top, j - left);                 // (1.11)
      if (i < j && diagonal != T(0)) value = value / diagonal;     // (1.12)
      changed += !(size(value - lu(i, j)) <= tolerance);           // a NaN has not settled
      next(i, j) = value;
    }
  }
  return changed;
}

// Compute `next` by (1.11) and (1.12), with whole sums of `lu`, in the box. flags[section] becomes 1 if an element has
// changed by more than `tolerance`.
template <class T>
void compute(int64_t kind, Array<const T> a, Array<const T> lu, Array<T> next, int64_t row, int64_t column,
             int64_t top, int64_t bottom, int64_t left, int64_t right, int64_t bad, int64_t x, int64_t threads,
             double tolerance, int64_t section, Array<int32_t> flags, Array<const int32_t> tiles) {
  const int64_t across = (right - left + x - 1) / x;
  const auto [changed] = in_order<int64_t>(lu.size, tiles.size - 1, [=](int64_t begin, int64_t end) {
    std::vector<T> scratch(x * x);
    int64_t changed = 0;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i = top + tile / across * x, j = left + tile % across * x;
      changed += compute_tile<T>({a.data, row, column}, {lu.data, row, column}, {next.data, row, column}, i,
                                 std::min(i + x, bottom), j, std::min(j + x, right), bad, tolerance,
                                 scratch.data());
    }
    return std::tuple(changed);
  });
  if (changed) flags[section] = 1;
}

// Copy the computed elements of the box from `next` to `lu`.
template <class T>
void assign(Array<T> lu, Array<const T> next, int64_t row, int64_t column, int64_t top, int64_t bottom, int64_t left,
            int64_t right, int64_t bad, int64_t x, int64_t threads, Array<const int32_t> tiles) {
  ranges(bottom - top, (bottom - top) * (right - left), [=](int64_t begin, int64_t end) {
    for (int64_t i = top + begin; i < top + end; ++i)
      for (int64_t j = left; j < (i >= bad ? std::min(bad + 1, right) : right); ++j)
        lu[i * row + j * column] = next[i * row + j * column];
  });
}

// Set flags[0] to the first j from `search` to `end` outside lower < |l[j, j]| <= upper; to n if there is none. NaN is
// outside.
template <class T>
void find_bad(Array<const T> lu, int64_t row, int64_t column, int64_t search, int64_t end, double lower, double upper,
              int64_t n, Array<int32_t> flags) {
  int64_t j = search;
  for (; j < end; ++j)
    if (const double l = size(lu[j * (row + column)]); !(lower < l && l <= upper)) break;
  flags[0] = int32_t(j < end ? j : n);
}

}  // namespace

KERNELS("swell.dense.sections", VALUES(compute), VALUES(assign), VALUES(find_bad))
