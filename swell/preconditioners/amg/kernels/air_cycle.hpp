// The matrices of AIR's cycle, for both devices; see air_cycle.py one folder up. Setup is in double; V: the cycle's
// type.
#include "entries.hpp"

namespace {

// diagonal[i] = aᵢᵢ, in modulus at least `least` times the row's largest |aᵢⱼ|; 1 for a row without a non-zero entry.
// launch: elements of diagonal, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL relaxed_diagonal(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                            double least, Array<double> diagonal) {
  entries(device, indptr, data.size, [=](auto row) {
    double largest = 0, own = 0;
    row.each([&](int64_t k) {
      largest = max(largest, fabs(data[k]));
      own = indices[k] == row.i ? data[k] : own;
    });
    largest = row.max(largest), own = row.sum(own);
    if (largest == 0) own = 1;
    else if (fabs(own) < least * largest) own = own < 0 ? -least * largest : least * largest;
    diagonal[row.i] = own;
  });
}

// The place of each row in the order of the cycle, and the row at each place: fine rows first, in their order, then
// from `begin` on the coarse rows, each `coarse_places` of its number further on. `rows` must hold −1 beforehand: a
// place may stay empty.
// launch: elements of state, 256 threads
template <class I>
ROW_KERNEL places(Device device, Array<const uint8_t> state, Array<const I> numbers, Array<const I> coarse_places,
                  int64_t begin, Array<I> own_places, Array<I> order) {
  rows(device, state.size, [=](int64_t i) {
    const int64_t at = state[i] == COARSE ? begin + coarse_places[numbers[i]] : i - numbers[i];
    own_places[i] = I(at), order[at] = I(i);
  });
}

// lengths[r] = the number of entries of row order[r] of a CSR matrix; 0 for −1.
// launch: elements of order, 256 threads
template <class I>
ROW_KERNEL picked_lengths(Device device, Array<const I> indptr, Array<const I> order, Array<int32_t> lengths) {
  rows(device, order.size, [=](int64_t r) {
    lengths[r] = order[r] >= 0 ? int32_t(indptr[order[r] + 1] - indptr[order[r]]) : 0;
  });
}

// Row r of a new CSR matrix of `count` entries is row i = order[r] of the given one, nothing for −1: entry k of the new
// one is entry `from` of the given one, and f(i, k, from) writes it.
template <class I, class F>
INLINE void pick(Device device, Array<const I> indptr, Array<const I> order, Array<const I> to_indptr, int64_t count,
                 const F& f) {
  entries(device, to_indptr, count, [=](auto row) {
    const int64_t i = order[row.i];
    if (i < 0) return;
    const int64_t from = indptr[i] - row.begin;
    row.each([&](int64_t k) { f(i, k, from + k); });
  });
}

// Row r of a new CSR pattern: row order[r] of the given one, its columns renumbered by `columns`.
// launch: elements of order, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL pick_columns(Device device, Array<const I> indptr, Array<const I> indices, Array<const I> order,
                        Array<const I> columns, Array<const I> to_indptr, Array<I> to_indices) {
  pick(device, indptr, order, to_indptr, to_indices.size,
       [=](int64_t, int64_t k, int64_t from) { to_indices[k] = columns[indices[from]]; });
}

// The values of row r of a new matrix: eⱼ − row i of the given one divided by diagonal[i], with i = order[r] and eⱼ the
// unit vector of column j = parents[i], nothing for −1.
// launch: elements of order, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class V, class I>
ROW_KERNEL pick_complement(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                           Array<const I> order, Array<const double> diagonal, Array<const I> parents,
                           Array<const I> to_indptr, Array<V> to_data) {
  pick(device, indptr, order, to_indptr, to_data.size, [=](int64_t i, int64_t k, int64_t from) {
    to_data[k] = V((indices[from] == parents[i] ? 1.0 : 0.0) - data[from] / diagonal[i]);
  });
}

// The values of row r of a new matrix: row i = order[r] of the given one, its columns multiplied by `fine` and divided
// by coarse[i].
// launch: elements of order, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class V, class I>
ROW_KERNEL pick_balanced(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                         Array<const I> order, Array<const double> fine, Array<const double> coarse,
                         Array<const I> to_indptr, Array<V> to_data) {
  pick(device, indptr, order, to_indptr, to_data.size, [=](int64_t i, int64_t k, int64_t from) {
    to_data[k] = V(data[from] * fine[indices[from]] / coarse[i]);
  });
}

// y[places[i]] = factor[0] x[i], divided by diagonal[i] if `divide`, in the type of y.
// launch: elements of places, 256 threads
template <class T, class V, class I>
ROW_KERNEL enter(Device device, Array<const T> x, Array<const I> places, Array<const double> diagonal, bool divide,
                 Array<const double> factor, Array<V> y) {
  rows(device, places.size, [=](int64_t i) {
    y[places[i]] = V((divide ? factor[0] / diagonal[i] : factor[0]) * acc_t<T>(x[i]));
  });
}

// out[i] = alpha y[places[i]] / factor[0] + beta out[i], y divided by diagonal[i] too if `divide`; beta = 0 never reads
// out.
// launch: elements of places, 256 threads
template <class T, class V, class I>
ROW_KERNEL leave(Device device, Array<const V> y, Array<const I> places, Array<const double> diagonal, bool divide,
                 Array<const double> factor, Array<T> out, T alpha, T beta) {
  const double inverse = 1 / factor[0];
  rows(device, places.size, [=](int64_t i) {
    const T value = alpha * T((divide ? inverse / diagonal[i] : inverse) * acc_t<V>(y[places[i]]));
    out[i] = beta == T(0) ? value : value + beta * out[i];
  });
}

}  // namespace

#define BOTH(f, T, V) INSTANCE(f, T, V, int32_t), INSTANCE(f, T, V, int64_t)
#define FOUR(f) BOTH(f, double, double), BOTH(f, double, float), BOTH(f, float, float), BOTH(f, float, double)
KERNELS("swell.preconditioners.amg.air_cycle", INDICES(relaxed_diagonal), INDICES(places), INDICES(picked_lengths),
        INDICES(pick_columns), REALS_INDICES(pick_complement), REALS_INDICES(pick_balanced), FOUR(enter), FOUR(leave))
