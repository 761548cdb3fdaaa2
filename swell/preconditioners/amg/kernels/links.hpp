// Strong links between nodes, for both devices; see aggregates.py one folder up.
#include "entries.hpp"

namespace {

// out[k] = aᵢⱼ Σ_c bᵢ_c bⱼ_c for each entry k of A; modes: b, `width` numbers a row.
// launch: elements of indptr, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL energies(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                    Array<const double> modes, int64_t width, Array<double> out) {
  entries(device, indptr, data.size, [=](auto row) {
    row.each([&](int64_t k) {
      const int64_t own = row.i * width, other = int64_t(indices[k]) * width;
      double total = 0;
      for (int64_t c = 0; c < width; ++c) total = unfused(modes[own + c], modes[other + c], total);
      out[k] = data[k] * total;
    });
  });
}

// bounds[i] = √(θᵢ maxⱼ(−gᵢⱼ)), j ≠ i: the root of the least strong link of node i; 0 without negative entries. θᵢ is
// twice the sum of the positive over the sum of the negative off-diagonal entries, but at least `least` and at most
// `most`.
// launch: elements of bounds, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL link_bounds(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                       double least, double most, Array<double> bounds) {
  entries(device, indptr, data.size, [=](auto row) {
    double positive = 0, negative = 0, largest = 0;
    row.each([&](int64_t k, double& positive, double& negative) {
      const double value = indices[k] == row.i ? 0.0 : data[k];
      positive += value > 0 ? value : 0.0;
      negative += value < 0 ? -value : 0.0;
      largest = -value > largest ? -value : largest;
    }, positive, negative);
    largest = row.max(largest);
    const double ratio = negative > 0 ? 2 * positive / negative : most;
    bounds[row.i] = sqrt((ratio < least ? least : ratio > most ? most : ratio) * largest);
  });
}

// strong[k] = 1 if entry k links two different nodes strongly: −gᵢⱼ ≥ bounds[i] bounds[j] and −gᵢⱼ > 0, else 0.
// state[i]: ISOLATED for a node without strong links, else UNDECIDED.
// launch: elements of state, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL strong_pairs(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                        Array<const double> bounds, Array<uint8_t> strong, Array<uint8_t> state) {
  entries(device, indptr, data.size, [=](auto row) {
    bool linked = false;
    row.each([&](int64_t k) {
      const int64_t j = indices[k];
      const bool found = (j != row.i) & (data[k] < 0) & (-data[k] >= bounds[row.i] * bounds[j]);
      strong[k] = found;
      linked |= found;
    });
    state[row.i] = row.any(linked) ? UNDECIDED : ISOLATED;
  });
}

// crossing[i] = 1 if node i has a strong link to a node of another aggregate, or is in none itself, else 0.
// launch: elements of crossing, 256 threads, a warp each, at most 16 blocks per multiprocessor
template <class I>
ROW_KERNEL crossings(Device device, Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong,
                     Array<const I> aggregates, Array<uint8_t> crossing) {
  entries(device, indptr, indices.size, [=](auto row) {
    bool found = aggregates[row.i] < 0;
    row.each([&](int64_t k) { found |= strong[k] && aggregates[indices[k]] != aggregates[row.i]; });
    crossing[row.i] = row.any(found);
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.links", INDICES(energies), INDICES(link_bounds), INDICES(strong_pairs),
        INDICES(crossings))
