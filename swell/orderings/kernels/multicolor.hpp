// Colouring, for both devices: the greedy method one vertex after the other, for hosts, and Jones–Plassmann's rounds.
//
// The neighbours of vertex i are neighbours[indptr[i]:indptr[i + 1]]. colors[i] is −1 for a vertex without a colour.
#include "step.hpp"

namespace {

// Return the smallest colour that no neighbour of vertex i has; the search takes 64 colours at a time.
template <class I>
DEVICE int32_t least_free(Array<const I> indptr, Array<const I> neighbours, Array<int32_t> colors, int64_t i) {
  for (int64_t base = 0;; base += 64) {
    uint64_t used = 0;
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t c = peek(&colors[neighbours[k]]) - base;
      if (0 <= c && c < 64) used |= uint64_t(1) << c;
    }
    for (int64_t c = 0; c < 64; ++c, used >>= 1)
      if (!(used & 1)) return int32_t(base + c);
  }
}

// Colour the vertices greedily in the order of `turn`, an array of vertices. Writes `colors`, all −1 on entry.
// launch: one block of 32 threads
template <class I>
KERNEL greedy(Device device, Array<const I> indptr, Array<const I> neighbours, Array<const int64_t> turn,
              Array<int32_t> colors) {
  once(device, [=] {
    for (int64_t t = 0; t < turn.size; ++t) colors[turn[t]] = least_free(indptr, neighbours, colors, turn[t]);
  });
}

// Return the weight of vertex i, a 64-bit number: splitmix64 of i and `seed`. It is a bijection of i, so no two
// vertices have equal weights. To hash again is cheaper than to load.
DEVICE uint64_t weight(int64_t i, int64_t seed) {
  uint64_t z = uint64_t(i) + (uint64_t(seed) + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Do one round: give each vertex whose heavier neighbours all have a colour the smallest free colour.
//
// Changes `colors`. Vertices are compared by `weight` for this `seed`. A neighbour's colour from this round may be seen
// in this round or only in the next. This affects when a vertex is coloured, not its colour.
// launch: elements of colors, 256 threads
template <class I>
ROW_KERNEL jones_plassmann_round(Device device, Array<const I> indptr, Array<const I> neighbours, Array<int32_t> colors,
                                 int64_t seed) {
  rows(device, colors.size, [=](int64_t i) {
    if (colors[i] >= 0) return;
    const uint64_t mine = weight(i, seed);
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = neighbours[k];
      if (peek(&colors[j]) < 0 && weight(j, seed) > mine) return;
    }
    post(&colors[i], least_free(indptr, neighbours, colors, i));
  });
}

}  // namespace

KERNELS("swell.orderings.multicolor", INDICES(greedy), INDICES(jones_plassmann_round))
