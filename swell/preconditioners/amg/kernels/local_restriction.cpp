// Local approximate ideal restriction on a CPU, threads sharing the rows; see local_restriction.py one folder up.
#include <math.h>

#include <memory>
#include <utility>

#include "slots/swell/preconditioners/amg/local_restriction.hpp"

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

constexpr int64_t MOST = 31;           // most unknowns of a local system, as on a GPU
constexpr int64_t WIDTH = MOST + 1;
constexpr double SINGULAR = 1e-12;    // a pivot of at most this times the largest entry of its local system is rounding

template <class I> struct Links {
  Array<const I> indptr, indices;
  Array<const double> data;
  Array<const uint8_t> strong, state;
};

// strong[k] = 1 if |aᵢⱼ| ≥ θ maxₖ |aᵢₖ| > 0 with j, k ≠ i for entry k, else 0.
template <class I>
void strong_moduli(Array<const I> indptr, Array<const I> indices, Array<const double> data, double theta,
                   Array<uint8_t> strong) {
  each(indptr.size - 1, [=](int64_t i) {
    double largest = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      largest = indices[k] != i ? std::max(largest, fabs(data[k])) : largest;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      strong[k] = (indices[k] != i) & (largest > 0) & (fabs(data[k]) >= theta * largest);
  });
}

// parents[i] = the number of row i's strongest coarse column, the first of equal ones; its own number if row i is
// coarse, −1 if no strong link leads to a coarse row. lengths[i] = 0 for −1, else 1. numbers: the number of each coarse
// row on the next level.
template <class I>
void one_point(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const uint8_t> strong,
               Array<const uint8_t> state, Array<const I> numbers, Array<I> parents, Array<int32_t> lengths) {
  each(state.size, [=](int64_t i) {
    I found = -1;
    double largest = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k)
      if (strong[k] && state[indices[k]] == COARSE && fabs(data[k]) > largest)
        found = numbers[indices[k]], largest = fabs(data[k]);
    parents[i] = state[i] == COARSE ? numbers[i] : found;
    lengths[i] = parents[i] >= 0;
  });
}

// indices[indptr[i]] = parents[i] for each row i that has a parent.
template <class I> void place_parents(Array<const I> parents, Array<const I> indptr, Array<I> indices) {
  each(parents.size, [=](int64_t i) {
    if (parents[i] >= 0) indices[indptr[i]] = parents[i];
  });
}

// rows[numbers[i]] = i for each coarse row i.
template <class I> void coarse_rows(Array<const uint8_t> state, Array<const I> numbers, Array<I> rows) {
  each(state.size, [=](int64_t i) {
    if (state[i] == COARSE) rows[numbers[i]] = I(i);
  });
}

// Write the strong fine columns of row i to `found`, the largest |aᵢⱼ| first, at most MOST. Returns their number.
template <class I> int64_t nearest(int64_t i, const Links<I>& A, I* found) {
  double limit = INFINITY;
  int64_t count = 0, after = -1;
  for (; count < MOST; ++count) {
    double best = -1;
    int64_t at = -1;
    for (int64_t k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
      const double size = fabs(A.data[k]);
      const int64_t j = A.indices[k];
      const bool follows = (size < limit) | ((size == limit) & (j > after));
      if (A.strong[k] && A.state[j] != COARSE && follows && size > best) best = size, at = j;
    }
    if (at < 0) break;
    found[count] = I(at), limit = best, after = at;
  }
  return count;
}

// The columns of row r of R in ascending order, to `wide` from place (MOST + 1) r on, and their number to lengths[r]:
// coarse row i = rows[r], and its strong fine neighbours Nᵢ at a distance of 1, or of at most 2.
template <class I>
void neighbourhoods(Array<const I> rows, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                    Array<const uint8_t> strong, Array<const uint8_t> state, int64_t distance, Array<I> wide,
                    Array<int32_t> lengths) {
  const Links<I> A{indptr, indices, data, strong, state};
  each(rows.size, [=](int64_t r) {
    I* const columns = &wide[r * WIDTH];
    const int64_t near = nearest<I>(rows[r], A, columns);
    int64_t count = near;
    for (int64_t t = 0; t < (distance > 1 ? near : 0); ++t)
      for (int64_t k = A.indptr[columns[t]]; k < A.indptr[columns[t] + 1]; ++k) {
        const I column = A.indices[k];
        if (A.strong[k] && A.state[column] != COARSE && count < MOST &&
            std::find(columns, columns + count, column) == columns + count)
          columns[count++] = column;
      }
    columns[count++] = rows[r];
    std::sort(columns, columns + count);
    lengths[r] = int32_t(count);
  });
}

// Copy the columns of row r, which begin at place (MOST + 1) r of `wide`, to indptr[r] of `indices`.
template <class I> void compact_columns(Array<const I> wide, Array<const I> indptr, Array<I> indices) {
  each(indptr.size - 1, [=](int64_t r) {
    for (int64_t k = indptr[r]; k < indptr[r + 1]; ++k) indices[k] = wide[r * WIDTH + k - indptr[r]];
  });
}

typedef double System[MOST][WIDTH];

// Solve the system of m unknowns in rows 0 to m − 1 of `matrix`, whose column m is the right-hand side, by Gaussian
// elimination with partial pivoting. The solution replaces column m. An unknown without a pivot is 0.
void eliminate(System& matrix, int64_t m) {
  double largest = 0;
  for (int64_t p = 0; p < m; ++p)
    for (int64_t q = 0; q < m; ++q) largest = std::max(largest, fabs(matrix[p][q]));
  for (int64_t p = 0; p < m; ++p) {
    int64_t row = p;
    for (int64_t q = p + 1; q < m; ++q) row = fabs(matrix[q][p]) > fabs(matrix[row][p]) ? q : row;
    if (!(fabs(matrix[row][p]) > SINGULAR * largest)) {
      matrix[p][p] = 0;
      continue;
    }
    if (row != p)
      for (int64_t c = p; c <= m; ++c) std::swap(matrix[p][c], matrix[row][c]);
    for (int64_t q = p + 1; q < m; ++q) {
      if (matrix[q][p] == 0) continue;           // most are 0: upwind rows depend on few others
      const double factor = matrix[q][p] / matrix[p][p];
      for (int64_t c = p + 1; c <= m; ++c) matrix[q][c] -= factor * matrix[p][c];
    }
  }
  for (int64_t p = m - 1; p >= 0; --p) {
    matrix[p][m] = matrix[p][p] != 0 ? matrix[p][m] / matrix[p][p] : 0.0;
    for (int64_t q = 0; q < p; ++q) matrix[q][m] -= matrix[q][p] * matrix[p][m];
  }
}

// The values of R on its pattern: for coarse row i = rows[r] the solution z of Σₖ zₖ aₖⱼ = −aᵢⱼ, j and k in Nᵢ, and 1
// in column i.
template <class I>
void ideal_weights(Array<const I> rows, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                   Array<const I> r_indptr, Array<const I> r_indices, Array<double> r_data) {
  each(rows.size, [=](int64_t r) {
    System matrix;
    I columns[MOST];
    const I i = rows[r];
    const int64_t begin = r_indptr[r], end = r_indptr[r + 1];
    int64_t m = 0;
    for (int64_t k = begin; k < end; ++k)
      if (r_indices[k] != i) columns[m++] = r_indices[k];
    for (int64_t q = 0; q < m; ++q) std::fill(matrix[q], matrix[q] + m + 1, 0.0);
    for (int64_t p = 0; p <= m; ++p) {           // row p of Aₙₙ becomes column p; row i the last one
      const int64_t source = p < m ? columns[p] : i;
      for (int64_t k = indptr[source]; k < indptr[source + 1]; ++k) {
        const int64_t q = std::lower_bound(columns, columns + m, indices[k]) - columns;
        if (q < m && columns[q] == indices[k]) matrix[q][p] = p < m ? data[k] : -data[k];
      }
    }
    eliminate(matrix, m);
    for (int64_t k = begin, at = 0; k < end; ++k) r_data[k] = r_indices[k] == i ? 1.0 : matrix[at++][m];
  });
}

// kept[k] = 1 for the diagonal entry and for entries of at least `share` times the row's largest modulus, else 0;
// lengths[i] = the number of kept entries. A row without a diagonal entry keeps all.
template <class I>
void mark_kept(Array<const I> indptr, Array<const I> indices, Array<const double> data, double share,
               Array<uint8_t> kept, Array<int32_t> lengths) {
  each(lengths.size, [=](int64_t i) {
    double largest = 0;
    bool diagonal = false;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      largest = std::max(largest, fabs(data[k]));
      diagonal |= indices[k] == i;
    }
    const double limit = diagonal ? share * largest : 0.0;
    int32_t count = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      kept[k] = (indices[k] == i) | (fabs(data[k]) >= limit);
      count += kept[k];
    }
    lengths[i] = count;
  });
}

// Write the kept entries to to_…; add the others to the diagonal entry of their row.
template <class I>
void keep(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const uint8_t> kept,
          Array<const I> to_indptr, Array<I> to_indices, Array<double> to_data) {
  each(to_indptr.size - 1, [=](int64_t i) {
    int64_t at = to_indptr[i], own = -1;
    double dropped = 0;
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      if (!kept[k]) {
        dropped += data[k];
        continue;
      }
      to_indices[at] = indices[k], to_data[at] = data[k];
      own = indices[k] == i ? at : own;
      ++at;
    }
    if (own >= 0) to_data[own] += dropped;
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.local_restriction", INDICES(strong_moduli), INDICES(one_point),
        INDICES(place_parents), INDICES(coarse_rows), INDICES(neighbourhoods), INDICES(compact_columns),
        INDICES(ideal_weights), INDICES(mark_kept), INDICES(keep))
