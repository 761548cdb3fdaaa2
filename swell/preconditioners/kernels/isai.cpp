// Sparse approximate inverses of triangular matrices on a CPU, threads sharing the rows; see isai.py one folder up.
// Single entries are blocks of 1. Blocks are row-major; `blocks`, `inverse` and `values` are flat arrays.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"
#include "../../formats/kernels/rows.hpp"
#include "block_lu.hpp"

namespace {

// A triangle T in blocks of `size` rows, and W.
template <class T, class I, class S> struct Inverse {
  Array<const I> indptr, indices;
  Array<const T> blocks, inverse;
  Array<const I> first, last, columns;
  Array<T> values;
  S size;
  bool lower;

  // Write row i of W: from the diagonal outwards, each known entry, at column r, times row r of T is subtracted from
  // the unknown entries.
  void solve_row(int64_t i) const {
    const int64_t begin = first[i], end = last[i], area = size * size;
    std::fill(values.data + begin * area, values.data + end * area, T(0));
    T* const diagonal = values.data + (lower ? end - 1 : begin) * area;
    for (int64_t c = 0; c < size; ++c) diagonal[c * (size + 1)] = T(1);
    for (int64_t step = 0; step < end - begin; ++step) {
      const int64_t k = lower ? end - 1 - step : begin + step, r = columns[k], stop = indptr[r + 1];
      T* const own = values.data + k * area;
      if (inverse.size) multiply(own, inverse.data + r * area, size);
      for (int64_t at = indptr[r]; at < stop; ++at) {
        const int64_t j = indices[at];
        if (lower ? j >= r : j <= r) continue;
        const int64_t place = place_of(columns, begin, end, j);
        if (place < end) add_product<-1>(own, blocks.data + at * area, values.data + place * area, size);
      }
    }
  }
};

// Write `values` = W with (W T)ᵢⱼ = δᵢⱼ on the pattern of W; row i of W has the places first[i] to last[i] − 1 of
// `columns`.
//
// `indptr`, `indices` and `blocks` are T, in blocks of `block` rows; `lower` says which triangle of T is used.
// `inverse`: the inverse diagonal blocks of T; empty for a unit triangle.
template <class T, class I>
void approximate(Array<const I> indptr, Array<const I> indices, Array<const T> blocks, Array<const T> inverse,
                 Array<const I> first, Array<const I> last, Array<const I> columns, Array<T> values, int64_t block,
                 bool lower) {
  const auto rows = [=](auto size) {
    const Inverse<T, I, decltype(size)> W{indptr, indices, blocks, inverse, first, last, columns, values, size, lower};
    each(first.size, [=](int64_t i) { W.solve_row(i); });
  };
  require_size(block);
  if (block == 1) rows(Size<1>());
  else rows(block);
}

}  // namespace

KERNELS("swell.preconditioners.isai", VALUES_INDICES(approximate))
