// Gauss–Seidel on a CPU, in natural order and by colours; gauss_seidel.cu has the colours for a GPU.
#include "../../core/native/lanes.hpp"
#include "../../core/native/launcher.hpp"

namespace {

constexpr int64_t SLICE = 32;

// Sweep once over all rows of A x = b, in place in x: upwards if `forward`, else downwards.
//
// `indptr`, `indices`, `data`: A in CSR. `inverse`: 1 / diagonal.
template <class T, class I>
void natural(Array<const I> indptr, Array<const I> indices, Array<const T> data, Array<const T> inverse,
             Array<const T> b, Array<T> x, bool forward) {
  for (int64_t row = 0; row < x.size; ++row) {
    const int64_t i = forward ? row : x.size - 1 - row, end = indptr[i + 1];
    T total = b[i];
    for (int64_t k = indptr[i]; k < end; ++k) total -= data[k] * x[indices[k]];
    x[i] += total * inverse[i];
  }
}

// Solve A x = b for the rows of one colour, which do not couple, in place in x.
//
// `rows`: the row in each place; `inverse`: 1 / its diagonal. Slice s has the places 32 s to 32 s + 31. The k-th
// off-diagonal of place 32 s + t is at ptr[s] + 32 k + t of `columns` and `values`. −1 marks a missing row or column.
template <class T, class I>
void color(Array<const I> rows, Array<const I> ptr, Array<const T> inverse, Array<const I> columns,
           Array<const T> values, Array<const T> b, Array<T> x) {
  ranges(ptr.size - 1, rows.size, [=](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s)
      for (int64_t lane = 0; lane < SLICE; ++lane) {
        const int64_t place = SLICE * s + lane, i = rows[place], stop = ptr[s + 1];
        if (i < 0) continue;
        T total = b[i];
        for (int64_t at = ptr[s] + lane; at < stop && columns[at] >= 0; at += SLICE)
          total -= values[at] * x[columns[at]];
        x[i] = total * inverse[place];
      }
  });
}

}  // namespace

KERNELS("swell.smoothers.gauss_seidel", VALUES_INDICES(natural), VALUES_INDICES(color))
