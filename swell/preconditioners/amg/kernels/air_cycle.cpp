// The matrices of AIR's cycle on a CPU, threads sharing the rows; see air_cycle.py one folder up.
#include <math.h>

#include "slots/swell/preconditioners/amg/air_cycle.hpp"

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// diagonal[i] = aᵢᵢ, in modulus at least `least` times the row's largest |aᵢⱼ|; 1 for a row without a non-zero entry.
template <class I>
void relaxed_diagonal(Array<const I> indptr, Array<const I> indices, Array<const double> data, double least,
                      Array<double> diagonal) {
  each(diagonal.size, [=](int64_t i) {
    double largest = 0, own = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      largest = std::max(largest, fabs(data[k]));
      own = indices[k] == i ? data[k] : own;
    }
    if (largest == 0) own = 1;
    else if (fabs(own) < least * largest) own = own < 0 ? -least * largest : least * largest;
    diagonal[i] = own;
  });
}

// The place of each row in the order of the cycle, and the row at each place: fine rows first, in their order, then
// from `begin` on the coarse rows, each `coarse_places` of its number further on. `rows` must hold −1 beforehand: a
// place may stay empty.
template <class I>
void places(Array<const uint8_t> state, Array<const I> numbers, Array<const I> coarse_places, int64_t begin,
            Array<I> own_places, Array<I> rows) {
  each(state.size, [=](int64_t i) {
    const int64_t at = state[i] == COARSE ? begin + coarse_places[numbers[i]] : i - numbers[i];
    own_places[i] = I(at), rows[at] = I(i);
  });
}

// lengths[r] = the number of entries of row rows[r] of a CSR matrix; 0 for −1.
template <class I> void picked_lengths(Array<const I> indptr, Array<const I> rows, Array<int32_t> lengths) {
  each(rows.size, [=](int64_t r) {
    lengths[r] = rows[r] >= 0 ? int32_t(indptr[rows[r] + 1] - indptr[rows[r]]) : 0;
  });
}

// Row r of a new CSR pattern: row rows[r] of the given one, its columns renumbered by `columns`.
template <class I>
void pick_columns(Array<const I> indptr, Array<const I> indices, Array<const I> rows, Array<const I> columns,
                  Array<const I> to_indptr, Array<I> to_indices) {
  each(rows.size, [=](int64_t r) {
    if (rows[r] < 0) return;
    for (int64_t k = to_indptr[r], at = indptr[rows[r]]; k < to_indptr[r + 1]; ++k, ++at)
      to_indices[k] = columns[indices[at]];
  });
}

// The values of row r of a new matrix: eⱼ − row i of the given one divided by diagonal[i], with i = rows[r] and eⱼ the
// unit vector of column j = parents[i], nothing for −1.
template <class S, class I>
void pick_complement(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const I> rows,
                     Array<const double> diagonal, Array<const I> parents, Array<const I> to_indptr,
                     Array<S> to_data) {
  each(rows.size, [=](int64_t r) {
    const int64_t i = rows[r];
    if (i < 0) return;
    for (int64_t k = to_indptr[r], at = indptr[i]; k < to_indptr[r + 1]; ++k, ++at)
      to_data[k] = S((indices[at] == parents[i] ? 1.0 : 0.0) - data[at] / diagonal[i]);
  });
}

// The values of row r of a new matrix: row i = rows[r] of the given one, its columns multiplied by `fine` and divided
// by coarse[i].
template <class S, class I>
void pick_balanced(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const I> rows,
                   Array<const double> fine, Array<const double> coarse, Array<const I> to_indptr, Array<S> to_data) {
  each(rows.size, [=](int64_t r) {
    const int64_t i = rows[r];
    if (i < 0) return;
    for (int64_t k = to_indptr[r], at = indptr[i]; k < to_indptr[r + 1]; ++k, ++at)
      to_data[k] = S(data[at] * fine[indices[at]] / coarse[i]);
  });
}

// y[places[i]] = factor[0] x[i], divided by diagonal[i] if `divide`, in the type of y.
template <class T, class S, class I>
void enter(Array<const T> x, Array<const I> places, Array<const double> diagonal, bool divide,
           Array<const double> factor, Array<S> y) {
  each(places.size, [=](int64_t i) {
    y[places[i]] = S((divide ? factor[0] / diagonal[i] : factor[0]) * x[i]);
  });
}

// out[i] = alpha y[places[i]] / factor[0] + beta out[i], y divided by diagonal[i] too if `divide`; beta = 0 never reads
// out.
template <class T, class S, class I>
void leave(Array<const S> y, Array<const I> places, Array<const double> diagonal, bool divide,
           Array<const double> factor, Array<T> out, T alpha, T beta) {
  const double inverse = 1 / factor[0];
  each(places.size, [=](int64_t i) {
    const T value = alpha * T((divide ? inverse / diagonal[i] : inverse) * y[places[i]]);
    out[i] = beta == T(0) ? value : value + beta * out[i];
  });
}

}  // namespace

#define BOTH(f, T, S) INSTANCE(f, T, S, int32_t), INSTANCE(f, T, S, int64_t)
#define FOUR(f) BOTH(f, double, double), BOTH(f, double, float), BOTH(f, float, float), BOTH(f, float, double)
KERNELS("swell.preconditioners.amg.air_cycle", INDICES(relaxed_diagonal), INDICES(places), INDICES(picked_lengths),
        INDICES(pick_columns), REALS_INDICES(pick_complement), REALS_INDICES(pick_balanced), FOUR(enter), FOUR(leave))
