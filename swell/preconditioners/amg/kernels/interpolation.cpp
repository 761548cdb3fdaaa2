// Interpolation weights on a CPU, threads sharing the rows; see interpolation.py one folder up.
//
// A thread gathers the weights of a row by coarse column, and keeps the largest. Sums run in the order of the entries,
// so results do not depend on the number of threads.
//
// A processor cannot predict strong links and coarse rows, and a wrong guess costs as much as ten products. So entries
// are picked without a branch: each is written to the next place, and the place advances only past a picked one.
#include <math.h>

#include <memory>
#include <vector>

#include "slots/swell/preconditioners/amg/interpolation.hpp"

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

constexpr int64_t PARTS = 16;          // chunks of rows; each has its own `Weights`
constexpr double CANCELLED = 1e-8;     // a divisor below this times the sum of the row's moduli is rounding
constexpr double LARGEST = 10.0;       // weights beyond this come from cancellation
constexpr double RESCALED = 10.0;      // largest factor, or inverse factor, of rescaling after truncation

// True if entry k is a strong link to a coarse row.
template <class I>
bool is_coarse(int64_t k, Array<const I> indices, Array<const uint8_t> strong, Array<const uint8_t> state) {
  return (strong[k] != 0) & (state[indices[k]] == COARSE);
}

// lengths[i] = the number of strong coarse columns of fine row i; 0 for other rows.
template <class I>
void coarse_lengths(Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong,
                    Array<const uint8_t> state, Array<int32_t> lengths) {
  each(state.size, [=](int64_t i) {
    int32_t count = 0;
    if (state[i] == FINE)
      for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) count += is_coarse(k, indices, strong, state);
    lengths[i] = count;
  });
}

// Write the strong coarse entries of fine rows, columns numbered as on the next level, and sums[i] = βᵢ, the sum of row
// i. c_indptr[i] is where row i begins, the prefix sum of `coarse_lengths`.
template <class I>
void coarse_entries(Array<const I> indptr, Array<const I> indices, Array<const double> data,
                    Array<const uint8_t> strong, Array<const uint8_t> state, Array<const I> numbers,
                    Array<const I> c_indptr, Array<I> c_indices, Array<double> c_data, Array<double> sums) {
  each(state.size, [=](int64_t i) {
    double total = 0;
    for (int64_t at = c_indptr[i], k = indptr[i]; at < c_indptr[i + 1]; ++k) {     // a row must not write past its end
      const bool found = is_coarse(k, indices, strong, state);
      c_indices[at] = numbers[indices[k]], c_data[at] = data[k];
      total += found ? data[k] : 0.0;
      at += found;
    }
    sums[i] = total;
  });
}

template <class I> struct Links {
  Array<const I> indptr, indices;
  Array<const double> data, mirror;
  Array<const uint8_t> strong, state;
  Array<const I> c_indptr, c_indices;
  Array<const double> c_data, sums;
};

// The weights of a row, by coarse column. slots[j] is the place of column j, −1 for none; weights past `count` are 0.
struct Weights {
  std::vector<int32_t> slots;
  std::unique_ptr<int32_t[]> columns;
  std::vector<double> weights;
  int64_t count = 0;

  Weights(int64_t coarse, int64_t most)
      : slots(size_t(coarse), -1), columns(new int32_t[size_t(most)]), weights(size_t(most), 0.0) {}

  void add(int64_t column, double value) {
    const bool fresh = slots[column] < 0;
    const int64_t at = fresh ? count : slots[column];
    slots[column] = int32_t(at);
    columns[at] = int32_t(column);
    weights[at] += value;
    count += fresh;
  }
  void forget() {
    for (int64_t c = 0; c < count; ++c) slots[columns[c]] = -1, weights[c] = 0;
    count = 0;
  }
  // True if weight c is preferred to another one: it is larger in modulus, or equal and has a smaller column.
  bool before(int64_t c, int64_t other) const {
    const double a = fabs(weights[c]), b = fabs(weights[other]);
    return a > b || (a == b && columns[c] < columns[other]);
  }
  // Write the places of the `most` largest weights to `chosen`, sorted by column. Returns how many are written.
  int64_t select(int64_t most, int64_t* chosen) const {
    int64_t kept = 0;
    for (int64_t c = 0; c < count; ++c) {
      if (kept == most && !before(c, chosen[most - 1])) continue;
      int64_t at = kept == most ? kept - 1 : kept++;
      for (; at > 0 && before(c, chosen[at - 1]); --at) chosen[at] = chosen[at - 1];
      chosen[at] = c;
    }
    for (int64_t t = 1; t < kept; ++t) {
      const int64_t c = chosen[t];
      int64_t at = t;
      for (; at > 0 && columns[chosen[at - 1]] > columns[c]; --at) chosen[at] = chosen[at - 1];
      chosen[at] = c;
    }
    return kept;
  }
};

// A strong fine neighbour's strong coarse entries, begin to end − 1, and aᵢⱼ / dᵢⱼ.
struct Through { int64_t begin, end; double share; };

// Compute the weights of fine row i by extended+i interpolation. Returns true if they are usable. `through`: work
// space, as long as a row of A.
template <class I> bool extended_row(int64_t i, const Links<I>& A, Weights& row, Through* through) {
  double total = 0, moduli = 0;
  int64_t fine = 0;
  for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
    const int64_t j = A.indices[k];
    const double value = A.data[k];
    const bool weak = A.strong[k] == 0, picked = !weak & (A.state[j] != COARSE);
    const double back = std::min(A.mirror[k], 0.0);              // aⱼᵢ
    const double divisor = picked ? A.sums[j] + back : 1.0;      // dᵢⱼ: neither term is positive
    const bool empty = divisor == 0;                             // j leads nowhere: aᵢⱼ is lumped
    const double share = value / (empty ? 1.0 : divisor);        // aᵢⱼ / dᵢⱼ
    moduli += fabs(value);
    const double lumped = picked ? empty ? value : share * back : 0.0;
    total += weak ? value : lumped;                              // aᵢᵢ, and γᵢ: weak links are lumped
    through[fine] = {A.c_indptr[j], A.c_indptr[j + 1], share};
    __builtin_prefetch(A.c_indices.data + A.c_indptr[j]);
    __builtin_prefetch(A.c_data.data + A.c_indptr[j]);
    fine += picked;
  }
  for (int64_t at = A.c_indptr[i]; at < A.c_indptr[i + 1]; ++at) row.add(A.c_indices[at], A.c_data[at]);
  for (int64_t f = 0; f < fine; ++f)
    for (int64_t at = through[f].begin; at < through[f].end; ++at)
      row.add(A.c_indices[at], through[f].share * A.c_data[at]);
  if (!(total > CANCELLED * moduli)) return false;
  bool usable = true;
  for (int64_t c = 0; c < row.count; ++c) {
    row.weights[c] /= -total;
    usable &= fabs(row.weights[c]) <= LARGEST;
  }
  return usable;
}

// Compute the weights of fine row i by direct interpolation, from its strong coarse columns.
template <class I> void direct_row(int64_t i, const Links<I>& A, Weights& row) {
  double diagonal = 0, negative = 0;
  for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
    (A.indices[k] != i && A.data[k] < 0 ? negative : diagonal) += A.data[k];   // positive links are lumped
  if (!(diagonal > 0)) return;                                   // nothing is interpolated
  const double factor = -negative / A.sums[i] / diagonal;
  for (int64_t at = A.c_indptr[i]; at < A.c_indptr[i + 1]; ++at) row.add(A.c_indices[at], factor * A.c_data[at]);
}

// whole / kept, the sums of a row's weights before and after truncation: the factor that restores the sum. 1 if it, or
// its inverse, is beyond RESCALED.
double rescale(double whole, double kept) {
  if (whole == kept || !(fabs(whole) <= RESCALED * fabs(kept)) || !(fabs(kept) <= RESCALED * fabs(whole))) return 1.0;
  return whole / kept;
}

// Write the rows of P, at most `most` entries in each. If `known`, the pattern of P is given, and only p_data is
// written. Otherwise row i begins at place i × most, and its columns and lengths[i] are written too. extended: use
// extended+i, else direct interpolation. `numbers` has the number of each coarse row on the next level, then their
// count. mirror[k] = aⱼᵢ for entry k, aᵢⱼ; c_… and `sums` are the results of `coarse_entries`.
template <class I, class P>
void interpolate(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const double> mirror,
                 Array<const uint8_t> strong, Array<const uint8_t> state, Array<const I> numbers,
                 Array<const I> c_indptr, Array<const I> c_indices, Array<const double> c_data,
                 Array<const double> sums, bool extended, int64_t most, bool known, Array<const P> p_indptr,
                 Array<P> p_indices, Array<double> p_data, Array<int32_t> lengths) {
  const int64_t n = state.size, coarse = numbers[n], parts = n < SERIAL ? 1 : PARTS;
  const Links<I> A{indptr, indices, data, mirror, strong, state, c_indptr, c_indices, c_data, sums};
  int64_t longest = 0, widest = 0;
  for (int64_t i = 0; i < n; ++i) {
    longest = std::max<int64_t>(longest, indptr[i + 1] - indptr[i]);
    widest = std::max<int64_t>(widest, c_indptr[i + 1] - c_indptr[i]);
  }
  parallel_for(n, parts, [=](int64_t part) {
    Weights row(coarse, std::min(coarse, (longest + 1) * widest) + 1);
    std::vector<Through> through(size_t(longest + 1));
    std::vector<int64_t> chosen(size_t(most), 0);
    for (int64_t i = chunk_begin(n, part, parts); i < chunk_begin(n, part + 1, parts); ++i) {
      const int64_t begin = known ? int64_t(p_indptr[i]) : i * most;
      if (state[i] == COARSE) {
        p_data[begin] = 1;
        if (!known) p_indices[begin] = P(numbers[i]), lengths[i] = 1;
        continue;
      }
      if (state[i] == FINE && !(extended && extended_row(i, A, row, through.data()))) {
        row.forget();
        direct_row(i, A, row);
      }
      double whole = 0, left = 0;
      for (int64_t c = 0; c < row.count; ++c) whole += row.weights[c];
      int64_t kept;
      if (known) {
        kept = p_indptr[i + 1] - begin;
        for (int64_t k = begin; k < begin + kept; ++k) {
          const int64_t at = row.slots[p_indices[k]];
          p_data[k] = at >= 0 ? row.weights[at] : 0.0;
          left += p_data[k];
        }
      } else {
        kept = row.select(most, chosen.data());
        for (int64_t t = 0; t < kept; ++t) {
          p_indices[begin + t] = row.columns[chosen[t]], p_data[begin + t] = row.weights[chosen[t]];
          left += row.weights[chosen[t]];
        }
        lengths[i] = int32_t(kept);
      }
      const double factor = rescale(whole, left);
      for (int64_t t = 0; t < kept; ++t) p_data[begin + t] *= factor;
      row.forget();
    }
  });
}

// Copy row i of P, which begins at place i × most of from_…, to indptr[i], for all rows.
template <class P>
void compact(int64_t most, Array<const P> from_indices, Array<const double> from_data, Array<const P> indptr,
             Array<P> indices, Array<double> data) {
  each(indptr.size - 1, [=](int64_t i) {
    for (int64_t k = indptr[i], from = i * most; k < indptr[i + 1]; ++k, ++from)
      indices[k] = from_indices[from], data[k] = from_data[from];
  });
}

}  // namespace

#define NAMED(name, I, P) launcher::launch<&interpolate<I, P>>::as(name)
#define ALL(name) NAMED(name, int32_t, int32_t), NAMED(name, int64_t, int64_t), NAMED(name, int32_t, int64_t), \
    NAMED(name, int64_t, int32_t)
// A GPU has another kernel for long or few rows, interpolate_long.
KERNELS("swell.preconditioners.amg.interpolation", INDICES(coarse_lengths), INDICES(coarse_entries),
        ALL("interpolate"), ALL("interpolate_long"), INDICES(compact))
