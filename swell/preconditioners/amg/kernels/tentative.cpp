// Tentative and smoothed prolongators on a CPU; see aggregation.py one folder up.
#include <math.h>

#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// modes, `width` numbers a row: 1 in the column that is the unknown's place among the `width` unknowns of its node,
// else 0. nodes[d] = d / width.
template <class I> void constants(Array<I> nodes, int64_t width, Array<double> modes) {
  each(nodes.size, [=](int64_t d) {
    const int64_t node = d / width, place = d - node * width;
    nodes[d] = I(node);
    for (int64_t j = 0; j < width; ++j) modes[d * width + j] = j == place;
  });
}

// modes: translations, then rotations about the origin, of displacements in 2 or 3 `dimensions` at `points`, stored
// point after point. Row d·i + a is the displacement of point i along axis a.
void rigid_motions(Array<const double> points, int64_t dimensions, Array<double> modes) {
  const int64_t width = dimensions * (dimensions + 1) / 2;
  each(points.size, [=](int64_t d) {
    const int64_t point = d / dimensions * dimensions, axis = d % dimensions, row = d * width;
    for (int64_t j = 0; j < dimensions; ++j) modes[row + j] = j == axis;
    for (int64_t j = 0; j < width - dimensions; ++j) {
      // rotation in the plane of axes j and the next one; in two dimensions there is one plane
      const int64_t after = (j + 1) % dimensions;
      modes[row + dimensions + j] = axis == j ? -points[point + after] : axis == after ? points[point + j] : 0.0;
    }
  });
}

// Orthonormalise the modes of each aggregate, in place: modified Gram–Schmidt, twice. Aggregate g has the unknowns
// members[starts[g]] to members[starts[g + 1] − 1]. q: `width` modes, stored row after row; the first ranks[g] columns
// of an aggregate's rows become its orthonormal basis Q. coefficients, zero before: width² numbers for each aggregate,
// R in B = Q R, row after row. A mode is left out if less than `dependent` times its norm remains.
template <class I>
void orthonormalise(Array<const I> starts, Array<const I> members, int64_t width, double dependent, Array<double> q,
                    Array<double> coefficients, Array<int32_t> ranks) {
  each(ranks.size, [=](int64_t g) {
    const Array<const I> rows = members.from(starts[g]);
    const int64_t count = starts[g + 1] - starts[g], R = g * width * width;
    const auto dot = [=](int64_t a, int64_t b) {
      double total = 0;
      for (int64_t m = 0; m < count; ++m) total += q[rows[m] * width + a] * q[rows[m] * width + b];
      return total;
    };
    int64_t rank = 0;
    for (int64_t j = 0; j < width; ++j) {
      const double before = dot(j, j);
      for (int64_t c = 0; c < 2 * rank; ++c) {
        const int64_t slot = c % rank;
        const double part = dot(slot, j);
        for (int64_t m = 0; m < count; ++m) q[rows[m] * width + j] -= part * q[rows[m] * width + slot];
        coefficients[R + slot * width + j] += part;
      }
      const double after = dot(j, j);
      if (!(after > 0 && after > dependent * dependent * before)) continue;
      const double norm = sqrt(after);
      for (int64_t m = 0; m < count; ++m) q[rows[m] * width + rank] = q[rows[m] * width + j] / norm;
      coefficients[R + rank * width + j] = norm;
      ++rank;
    }
    ranks[g] = int32_t(rank);
  });
}

// lengths[d] = the rank of the aggregate members[d] of unknown d; 0 if it has none.
template <class I> void row_lengths(Array<const I> members, Array<const int32_t> ranks, Array<int32_t> lengths) {
  each(lengths.size, [=](int64_t d) { lengths[d] = members[d] < ranks.size ? ranks[members[d]] : 0; });
}

// The columns and values of the tentative prolongator, whose row d is Q's row; first[g] is the first column of
// aggregate g, and members[d] the aggregate of unknown d.
template <class I>
void place(Array<const I> members, Array<const I> first, int64_t width, Array<const double> q, Array<const I> indptr,
           Array<I> indices, Array<double> data) {
  each(members.size, [=](int64_t d) {
    for (int64_t k = indptr[d], c = 0; k < indptr[d + 1]; ++k, ++c)
      indices[k] = I(first[members[d]] + c), data[k] = q[d * width + c];
  });
}

// modes and nodes of the next level: unknown first[g] + c has node g and row c of its R.
template <class I>
void coarse_modes(Array<const I> first, int64_t width, Array<const double> coefficients, Array<double> modes,
                  Array<I> nodes) {
  each(first.size - 1, [=](int64_t g) {
    for (int64_t d = first[g], from = g * width * width; d < first[g + 1]; ++d, from += width) {
      nodes[d] = I(g);
      for (int64_t j = 0; j < width; ++j) modes[d * width + j] = coefficients[from + j];
    }
  });
}

// out = the values of P = T − diag(scales)² A T on the pattern of A T, which contains T's pattern.
template <class I, class J>
void smooth(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const J> t_indptr,
            Array<const J> t_indices, Array<const double> t_data, Array<const double> scales, Array<double> out) {
  each(scales.size, [=](int64_t i) {
    int64_t at = t_indptr[i];
    for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const bool own = at < t_indptr[i + 1] && t_indices[at] == indices[k];
      out[k] = (own ? t_data[at] : 0.0) - scales[i] * scales[i] * data[k];
      at += own;
    }
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.tentative", INDICES(constants), PLAIN(rigid_motions), INDICES(orthonormalise),
        INDICES(row_lengths), INDICES(place), INDICES(coarse_modes), INSTANCE(smooth, int32_t, int32_t),
        INSTANCE(smooth, int64_t, int64_t), INSTANCE(smooth, int64_t, int32_t), INSTANCE(smooth, int32_t, int64_t))
