// Matrices whose columns are numbered in a window, on a CPU; see amg/window.py one folder up. window.cu has the GPU's
// kernels.
#include <algorithm>

#include "../../core/native/launcher.hpp"
#include "../../core/native/threads.hpp"

namespace {

// Write the rows of a matrix in window order, from its diagonal block and its ghost columns.
//
// `own_...`: the diagonal block in CSR. `rest_...`: the ghost columns in CSR, with row at[i] for row i, −1 for none;
// the first `below` ghosts come before the own columns. `indptr` is given, the prefix sums of the lengths.
template <class T, class I>
void join(Array<const I> own_indptr, Array<const I> own_indices, Array<const T> own_data, Array<const int32_t> at,
          Array<const int32_t> rest_indptr, Array<const int32_t> rest_indices, Array<const T> rest_data, int64_t below,
          Array<const I> indptr, Array<I> indices, Array<T> data) {
  const int64_t rows = at.size;
  each(rows, [=](int64_t i) {
    int64_t k = indptr[i], t = 0, end = 0;
    if (at[i] >= 0) t = rest_indptr[at[i]], end = rest_indptr[at[i] + 1];
    for (; t < end && rest_indices[t] < below; ++t, ++k) indices[k] = I(rest_indices[t]), data[k] = rest_data[t];
    for (int64_t s = own_indptr[i]; s < own_indptr[i + 1]; ++s, ++k)
      indices[k] = I(own_indices[s] + below), data[k] = own_data[s];
    for (; t < end; ++t, ++k) indices[k] = I(rest_indices[t] + rows), data[k] = rest_data[t];
  });
}

// Write counts[i] = the number of entries of row i in columns outside low … high − 1, and touched[i] = 1 if there are
// some, else 0.
template <class I>
void outside(Array<const I> indptr, Array<const I> indices, int64_t low, int64_t high, Array<I> counts,
             Array<uint8_t> touched) {
  each(counts.size, [=](int64_t i) {
    I count = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) count += (indices[k] < low) | (indices[k] >= high);
    counts[i] = count, touched[i] = count > 0;
  });
}

// The number of the ghost in column j; columns low … high − 1 are own ones.
inline int64_t ghost(int64_t j, int64_t low, int64_t high) { return j < low ? j : j - (high - low); }

// Split a CSR matrix into the columns low … high − 1, renumbered from 0, and the others, numbered without them.
//
// `outs` and `places` are the prefix sums of `outside`'s results. Writes `own_indices` and `own_data` at `own_indptr`;
// and for each row with entries outside its number to `rows`, and its entries to `rest_...`.
template <class T, class I>
void split(Array<const I> indptr, Array<const I> indices, Array<const T> data, int64_t low, int64_t high,
           Array<const I> outs, Array<const I> places, Array<const I> own_indptr, Array<I> own_indices,
           Array<T> own_data, Array<int32_t> rows, Array<int32_t> rest_indptr, Array<int32_t> rest_indices,
           Array<T> rest_data) {
  each(own_indptr.size - 1, [=](int64_t i) {
    int64_t own = own_indptr[i], rest = outs[i];
    if (places[i + 1] > places[i]) rows[places[i]] = int32_t(i), rest_indptr[places[i] + 1] = int32_t(outs[i + 1]);
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      if (low <= j && j < high) own_indices[own] = I(j - low), own_data[own++] = data[k];
      else rest_indices[rest] = int32_t(ghost(j, low, high)), rest_data[rest++] = data[k];
    }
  });
}

// Copy the given `rows` of a CSR matrix, one after the other: row rows[r] to starts[r].
template <class T, class I>
void copy_rows(Array<const I> rows, Array<const I> indptr, Array<const I> indices, Array<const T> data,
               Array<const I> starts, Array<I> out_indices, Array<T> out_data) {
  each(rows.size, [=](int64_t r) {
    const int64_t begin = indptr[rows[r]], end = indptr[rows[r] + 1], to = starts[r];
    std::copy(indices.data + begin, indices.data + end, out_indices.data + to);
    std::copy(data.data + begin, data.data + end, out_data.data + to);
  });
}

// Write the columns `indices` of one window in the numbers of another one: j + `shift` for own columns j in
// low … high − 1, moved[g] for ghost g.
template <class I>
void renumber(Array<const I> indices, int64_t low, int64_t high, int64_t shift, Array<const I> moved, Array<I> out) {
  each(indices.size, [=](int64_t k) {
    const int64_t j = indices[k];
    out[k] = low <= j && j < high ? I(j + shift) : moved[ghost(j, low, high)];
  });
}

// Set marked[g] = 1 for each ghost g that is a column of an entry; columns low … high − 1 are own ones. Several threads
// may write one byte; all write 1.
template <class I> void mark_ghosts(Array<const I> indices, int64_t low, int64_t high, Array<uint8_t> marked) {
  each(indices.size, [=](int64_t k) {
    const int64_t j = indices[k];
    if (j < low || j >= high) __atomic_store_n(&marked[ghost(j, low, high)], 1, __ATOMIC_RELAXED);
  });
}

// Write the place in a window of each of the global `numbers`: own ones are first … stop − 1, from place `below` on;
// `ghosts` are the others, ascending.
template <class I>
void places(Array<const int64_t> numbers, int64_t first, int64_t stop, int64_t below, Array<const int64_t> ghosts,
            Array<I> out) {
  each(numbers.size, [=](int64_t k) {
    const int64_t g = numbers[k], *const begin = ghosts.data;
    out[k] = I(first <= g && g < stop ? g - first + below
               : std::lower_bound(begin, begin + ghosts.size, g) - begin + (g < first ? 0 : stop - first));
  });
}

// Write the global number at each of the `places` of a window; the inverse of places.
template <class I>
void global_numbers(Array<const I> places, int64_t first, int64_t stop, int64_t below, Array<const int64_t> ghosts,
                    Array<int64_t> out) {
  each(places.size, [=](int64_t k) {
    const int64_t at = places[k], end = below + stop - first;
    out[k] = below <= at && at < end ? at - below + first : ghosts[ghost(at, below, end)];
  });
}

// Write marked[k] = 1 if numbers[k] lies in first … stop − 1, else 0; the reverse if not `inside`.
template <class I>
void mark_range(Array<const I> numbers, int64_t first, int64_t stop, bool inside, Array<uint8_t> marked) {
  each(numbers.size, [=](int64_t k) { marked[k] = (first <= numbers[k] && numbers[k] < stop) == inside; });
}

// Write marked[k] = 1 if numbers[k] is the first of its value among the ascending `numbers`, else 0.
void mark_first(Array<const int64_t> numbers, Array<uint8_t> marked) {
  each(numbers.size, [=](int64_t k) { marked[k] = k == 0 || numbers[k] != numbers[k - 1]; });
}

// Write the marked elements of `values` to `out`; `starts`: the prefix sums of `marked`.
template <class V, class I>
void select(Array<const uint8_t> marked, Array<const I> starts, Array<const V> values, Array<V> out) {
  each(marked.size, [=](int64_t k) { if (marked[k]) out[starts[k]] = values[k]; });
}

}  // namespace

KERNELS("swell.distributed.window", VALUES_INDICES(join), INDICES(outside), VALUES_INDICES(split),
        VALUES_INDICES(copy_rows), INDICES(renumber), INDICES(mark_ghosts), INDICES(places), INDICES(global_numbers),
        INDICES(mark_range), PLAIN(mark_first), VALUES_INDICES(select), INSTANCE(select, int32_t, int32_t),
        INSTANCE(select, int32_t, int64_t), INSTANCE(select, int64_t, int32_t), INSTANCE(select, int64_t, int64_t))
