// Tentative and smoothed prolongators, for both devices; see aggregation.py one folder up.
#include "entries.hpp"

namespace {

// modes, `width` numbers a row: 1 in the column that is the unknown's place among the `width` unknowns of its node,
// else 0. nodes[d] = d / width.
// launch: elements of nodes, 256 threads
template <class I> ROW_KERNEL constants(Device device, Array<I> nodes, int64_t width, Array<double> modes) {
  rows(device, nodes.size, [=](int64_t d) {
    const int64_t node = d / width, place = d - node * width;
    nodes[d] = I(node);
    for (int64_t j = 0; j < width; ++j) modes[d * width + j] = j == place;
  });
}

// modes: translations, then rotations about the origin, of displacements in 2 or 3 `dimensions` at `points`, stored
// point after point. Row d·i + a is the displacement of point i along axis a.
// launch: elements of points, 256 threads
template <class T>
ROW_KERNEL rigid_motions(Device device, Array<const double> points, int64_t dimensions, Array<double> modes) {
  const int64_t width = dimensions * (dimensions + 1) / 2;
  rows(device, points.size, [=](int64_t d) {
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
// launch: elements of ranks, 128 threads, a warp each
template <class I>
ROW_KERNEL orthonormalise(Device device, Array<const I> starts, Array<const I> members, int64_t width, double dependent,
                          Array<double> q, Array<double> coefficients, Array<int32_t> ranks) {
  entries(device, Array<const I>{starts.data, ranks.size + 1}, members.size, [=](auto aggregate) {
    const int64_t R = aggregate.i * width * width;
    const auto dot = [=](int64_t a, int64_t b) {
      double total = 0;
      aggregate.each([&](int64_t m) { total += q[members[m] * width + a] * q[members[m] * width + b]; });
      return aggregate.sum(total);
    };
    int64_t rank = 0;
    for (int64_t j = 0; j < width; ++j) {
      const double before = dot(j, j);
      for (int64_t c = 0; c < 2 * rank; ++c) {
        const int64_t slot = c % rank;
        const double part = dot(slot, j);
        aggregate.each([=](int64_t m) { q[members[m] * width + j] -= part * q[members[m] * width + slot]; });
        if (aggregate.first()) coefficients[R + slot * width + j] += part;
      }
      const double after = dot(j, j);
      if (!(after > 0 && after > dependent * dependent * before)) continue;
      const double norm = sqrt(after);
      aggregate.each([=](int64_t m) { q[members[m] * width + rank] = q[members[m] * width + j] / norm; });
      coefficients[R + rank * width + j] = norm;
      ++rank;
    }
    ranks[aggregate.i] = int32_t(rank);
  });
}

// products[d, c] = Σⱼ a_dj q[j, c] over the unknowns j of d's own aggregate, members[d], for each column c of its
// basis Q.
// launch: elements of members, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL within(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                  Array<const I> members, Array<const int32_t> ranks, int64_t width, Array<const double> q,
                  Array<double> products) {
  entries(device, indptr, data.size, [=](auto row) {
    const int64_t own = members[row.i];
    for (int64_t c = 0; own < ranks.size && c < ranks[own]; ++c) {
      double total = 0;
      row.each([&](int64_t k, double& total) {
        const int64_t j = indices[k];
        total += members[j] == own ? data[k] * q[j * width + c] : 0.0;
      }, total);
      products[row.i * width + c] = total;
    }
  });
}

// Make the bases Q orthonormal in energy, (q_a, A q_b) = δ_ab, in place: modified Gram–Schmidt. products: A Q, from
// `within`, overwritten. coefficients: R in B = Q R, changed so that this stays. An energy below `singular` times the
// energy of the diagonal of A is rounding, and counts as this much. The other parameters are those of `orthonormalise`.
// launch: elements of ranks, 128 threads, a warp each
template <class I>
ROW_KERNEL in_energy(Device device, Array<const I> starts, Array<const I> members, int64_t width, double singular,
                     Array<const double> diagonal, Array<const int32_t> ranks, Array<double> q, Array<double> products,
                     Array<double> coefficients) {
  entries(device, Array<const I>{starts.data, ranks.size + 1}, members.size, [=](auto aggregate) {
    const int64_t R = aggregate.i * width * width;
    const auto energy = [=](int64_t a, int64_t b) {
      double total = 0;
      aggregate.each([&](int64_t m) { total += products[members[m] * width + a] * q[members[m] * width + b]; });
      return aggregate.sum(total);
    };
    for (int64_t j = 0; j < ranks[aggregate.i]; ++j) {
      for (int64_t slot = 0; slot < j; ++slot) {
        const double part = energy(slot, j);
        aggregate.each([=](int64_t m) {
          const int64_t row = members[m] * width;
          q[row + j] -= part * q[row + slot], products[row + j] -= part * products[row + slot];
        });
        if (aggregate.first())
          for (int64_t c = 0; c < width; ++c)
            coefficients[R + slot * width + c] += part * coefficients[R + j * width + c];
      }
      double weight = 0;
      aggregate.each([&](int64_t m) {
        const double value = q[members[m] * width + j];
        weight += diagonal[members[m]] * value * value;
      });
      const double least = singular * aggregate.sum(weight), found = energy(j, j), most = found > least ? found : least;
      const double norm = most > 0 ? sqrt(most) : 1.0;
      aggregate.each([=](int64_t m) {
        const int64_t at = members[m] * width + j;
        q[at] /= norm, products[at] /= norm;
      });
      if (aggregate.first())
        for (int64_t c = 0; c < width; ++c) coefficients[R + j * width + c] *= norm;
    }
  });
}

// lengths[d] = the rank of the aggregate members[d] of unknown d; 0 if it has none.
// launch: elements of lengths, 256 threads
template <class I>
ROW_KERNEL row_lengths(Device device, Array<const I> members, Array<const int32_t> ranks, Array<int32_t> lengths) {
  rows(device, lengths.size, [=](int64_t d) { lengths[d] = members[d] < ranks.size ? ranks[members[d]] : 0; });
}

// The columns and values of the tentative prolongator, whose row d is Q's row; first[g] is the first column of
// aggregate g, and members[d] the aggregate of unknown d.
// launch: elements of members, 256 threads
template <class I>
ROW_KERNEL place(Device device, Array<const I> members, Array<const I> first, int64_t width, Array<const double> q,
                 Array<const I> indptr, Array<I> indices, Array<double> data) {
  rows(device, members.size, [=](int64_t d) {
    for (int64_t k = indptr[d], c = 0; k < indptr[d + 1]; ++k, ++c)
      indices[k] = I(first[members[d]] + c), data[k] = q[d * width + c];
  });
}

// modes and nodes of the next level: unknown first[g] + c has node g and row c of its R.
// launch: elements of first, 256 threads
template <class I>
ROW_KERNEL coarse_modes(Device device, Array<const I> first, int64_t width, Array<const double> coefficients,
                        Array<double> modes, Array<I> nodes) {
  rows(device, first.size - 1, [=](int64_t g) {
    for (int64_t d = first[g], from = g * width * width; d < first[g + 1]; ++d, from += width) {
      nodes[d] = I(g);
      for (int64_t j = 0; j < width; ++j) modes[d * width + j] = coefficients[from + j];
    }
  });
}

// out = the values of P = T − diag(scales)² A T on the pattern of A T, which contains T's pattern.
// launch: elements of scales, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I, class P>
ROW_KERNEL smooth(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                  Array<const P> t_indptr, Array<const P> t_indices, Array<const double> t_data,
                  Array<const double> scales, Array<double> out) {
  entries(device, indptr, data.size, [=](auto row) {
    const double weight = scales[row.i] * scales[row.i];
    const P last = t_indptr[row.i + 1];
    P at = t_indptr[row.i];
    row.each([&](int64_t k) {
      while (at < last && t_indices[at] < indices[k]) ++at;
      const bool own = at < last && t_indices[at] == indices[k];
      out[k] = unfused(-weight, data[k], own ? t_data[at] : 0.0);
    });
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.tentative", INDICES(constants), INSTANCE(rigid_motions, double),
        INDICES(orthonormalise), INDICES(within), INDICES(in_energy), INDICES(row_lengths), INDICES(place),
        INDICES(coarse_modes),
        INSTANCE(smooth, int32_t, int32_t), INSTANCE(smooth, int64_t, int64_t), INSTANCE(smooth, int64_t, int32_t),
        INSTANCE(smooth, int32_t, int64_t))
