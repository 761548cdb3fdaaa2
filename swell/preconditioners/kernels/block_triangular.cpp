// Block triangular solves on a CPU; `swell/preconditioners/block_factor.py` describes the factor, block_triangular.cu
// has the kernels of a GPU.
//
// Arguments of the kernels: order[i], the block of the vectors b and out that belongs to block row i; empty for equal
// numbers. ptr[i] to ptr[i + 1] − 1, the places of the blocks N of block row i in `columns` and `blocks`. `size`: rows
// of a block. `diagonal`, the place of the first inverse diagonal block in `blocks`; −1 for D = I. Work vectors have
// whole blocks, and are numbered as the block rows. b counts as zero beyond its end; nothing is written beyond out's.
#include "../../core/native/block_size.hpp"
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// sums += (block) x. Only the last addition of a row waits for the block before.
template <class T, class V, class S> INLINE void add_product(const V* block, const T* x, T* sums, S size) {
  for (int64_t r = 0; r < size; ++r) {
    row_by_row(size);
    T total = T(block[r * size]) * x[0];
    for (int64_t c = 1; c < size; ++c) total += T(block[r * size + c]) * x[c];
    sums[r] += total;
  }
}

// (I + N) D, with blocks of type V, for vectors of type T. S: the type of the size.
template <class T, class V, class I, class S> struct Triangle {
  Array<const I> order, ptr, columns;
  const V* blocks;
  S size;
  int64_t diagonal;

  const V* block(int64_t k) const { return blocks + k * size * size; }

  // The row of b and out where block row i begins.
  int64_t row(int64_t i) const { return (order.size ? int64_t(order[i]) : i) * size; }

  // w = b − N x for block row i, in a work vector's rows. x is numbered by `order` if `mapped`. The sum over the blocks
  // is subtracted at the end: no block waits for another.
  INLINE void reduce(int64_t i, const T* x, bool mapped, Array<const T> b, T* w) const {
    T sums[room<S>];
    for (int64_t r = 0; r < size; ++r) sums[r] = T(0);
    const int64_t begin = ptr[i], end = ptr[i + 1], first = row(i);
    for (int64_t k = begin; k < end; ++k)
      add_product(block(k), x + (mapped ? row(columns[k]) : columns[k] * int64_t(size)), sums, size);
    if (first + size <= b.size) for (int64_t r = 0; r < size; ++r) w[r] = b[first + r] - sums[r];
    else for (int64_t r = 0; r < size; ++r) w[r] = (first + r < b.size ? b[first + r] : T(0)) - sums[r];
  }

  // out = D⁻¹ w for block row i.
  INLINE void divide(int64_t i, const T* w, Array<T> out) const {
    T sums[room<S>];
    for (int64_t r = 0; r < size; ++r) sums[r] = diagonal < 0 ? w[r] : T(0);
    if (diagonal >= 0) add_product(block(diagonal + i), w, sums, size);
    const int64_t first = row(i), rows = std::min<int64_t>(size, out.size - first);
    for (int64_t r = 0; r < rows; ++r) out[first + r] = sums[r];
  }

  // w = D⁻ᴴ b for block row i.
  INLINE void divide_adjoint(int64_t i, Array<const T> b, T* w) const {
    const int64_t first = row(i), rows = std::min<int64_t>(size, b.size - first);
    T sums[room<S>];
    for (int64_t c = 0; c < size; ++c) sums[c] = diagonal < 0 && c < rows ? b[first + c] : T(0);
    if (diagonal >= 0)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < size; ++c) sums[c] += T(conj(block(diagonal + i)[r * size + c])) * b[first + r];
    std::copy(sums, sums + size, w);
  }

  // Subtract the blocksᴴ of block row i, times its part of w, from w. Then out = w for block row i.
  INLINE void scatter(int64_t i, T* w, Array<T> out) const {
    const int64_t begin = ptr[i], end = ptr[i + 1], first = row(i);
    const T* const solved = w + i * size;
    T sums[room<S>];
    for (int64_t k = begin; k < end; ++k) {
      T* const target = w + columns[k] * int64_t(size);
      const V* const values = block(k);
      std::copy(target, target + size, sums);
      for (int64_t r = 0; r < size; ++r) {
        row_by_row(size);
        for (int64_t c = 0; c < size; ++c) sums[c] -= T(conj(values[r * size + c])) * solved[r];
      }
      std::copy(sums, sums + size, target);
    }
    const int64_t rows = std::min<int64_t>(size, out.size - first);
    for (int64_t r = 0; r < rows; ++r) out[first + r] = solved[r];
  }
};

// run(triangle) with a triangle whose size the compiler knows, if it is small.
template <class T, class V, class I, class F>
void with_triangle(Array<const I> order, Array<const I> ptr, Array<const I> columns, Blocks<const V> blocks,
                   int64_t size, int64_t diagonal, const F& run) {
  with_size<I>(size, [&](auto rows) {
    run(Triangle<T, V, I, decltype(rows)>{order, ptr, columns, blocks.data, rows, diagonal});
  });
}

// Write w = (I + N)⁻¹ b and out = D⁻¹ w, one block row after the other, upwards unless `lower`. out may be b.
template <class T, class V, class I>
void solve(Array<const I> order, Array<const I> ptr, Array<const I> columns, Blocks<const V> blocks, Array<const T> b,
           Array<T> w, Array<T> out, int64_t size, int64_t diagonal, bool lower) {
  with_triangle<T>(order, ptr, columns, blocks, size, diagonal, [=](auto triangle) {
    const int64_t count = ptr.size - 1;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t i = lower ? t : count - 1 - t;
      T* const own = w.data + i * triangle.size;
      triangle.reduce(i, w.data, false, b, own);
      triangle.divide(i, own, out);
    }
  });
}

// Write out = (I + N)⁻ᴴ D⁻ᴴ b; w is work space. Each solved block row is subtracted from the block rows that need it.
// `lower` is the triangle of N.
template <class T, class V, class I>
void solve_adjoint(Array<const I> order, Array<const I> ptr, Array<const I> columns, Blocks<const V> blocks,
                   Array<const T> b, Array<T> w, Array<T> out, int64_t size, int64_t diagonal, bool lower) {
  with_triangle<T>(order, ptr, columns, blocks, size, diagonal, [=](auto triangle) {
    const int64_t count = ptr.size - 1;
    for (int64_t i = 0; i < count; ++i) triangle.divide_adjoint(i, b, w.data + i * triangle.size);
    for (int64_t t = 0; t < count; ++t) triangle.scatter(lower ? count - 1 - t : t, w.data, out);
  });
}

// Write fresh = b − N old; if `last`, fresh = D⁻¹ (b − N old). `old` is numbered as b if `first`, `fresh` if `last`;
// else they are work vectors. In-place sweeps pass `old` as `fresh`. `whole` is for a GPU.
template <class T, class V, class I>
void sweep(Array<const I> order, Array<const I> ptr, Array<const I> columns, Blocks<const V> blocks, Array<const T> b,
           Array<const T> old, Array<T> fresh, int64_t size, int64_t diagonal, bool first, bool last, int64_t whole) {
  with_triangle<T>(order, ptr, columns, blocks, size, diagonal, [=](auto triangle) {
    const int64_t count = ptr.size - 1;
    const auto rows = triangle.size;
    ranges(count, count * rows, [=](int64_t begin, int64_t end) {
      T reduced[room<std::remove_const_t<decltype(rows)>>];
      for (int64_t i = begin; i < end; ++i) {
        triangle.reduce(i, old.data, first, b, last ? reduced : fresh.data + i * rows);
        if (last) triangle.divide(i, reduced, fresh);
      }
    });
  });
}

}  // namespace

#define STORED(f, I) INSTANCE(f, double, double, I), INSTANCE(f, double, float, I), INSTANCE(f, float, float, I), \
    INSTANCE(f, complex<double>, complex<double>, I), INSTANCE(f, complex<double>, complex<float>, I), \
    INSTANCE(f, complex<float>, complex<float>, I)
#define ALL(f) STORED(f, int32_t), STORED(f, int64_t)
KERNELS("swell.preconditioners.block_triangular", ALL(solve), ALL(solve_adjoint), ALL(sweep))
