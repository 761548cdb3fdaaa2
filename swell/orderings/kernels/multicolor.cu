// A round of Jones-Plassmann on a GPU, a thread a vertex. Weights are hashed again each time: this is cheaper than
// loading them.
#include "context.cuh"

DEVICE unsigned long long weight(unsigned long long i, unsigned long long seed) {
  unsigned long long z = i + (seed + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The smallest colour that no neighbour of vertex i has; the search takes 64 colours at a time.
template <class I> DEVICE int least_free(const I* indptr, const I* neighbours, const int* colors, long long i) {
  for (int base = 0;; base += 64) {
    unsigned long long used = 0;
    for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int c = colors[neighbours[k]] - base;
      if (c >= 0 && c < 64) used |= 1ull << c;
    }
    if (~used) return base + __ffsll((long long)~used) - 1;
  }
}

// Give each vertex whose heavier neighbours all have a colour the smallest free colour. A neighbour's colour from this
// round may be seen in this round or only in the next. This affects when a vertex is coloured, not its colour.
// launch: elements of colors, 256 threads
template <typename I>
__global__ void jones_plassmann_round(Context* ctx, const I* indptr, const I* neighbours, int* colors, long long seed,
                                      long long n) {
  wait_for_previous();                     // setup kernels ignore the stop flag
  const long long i = thread_id();
  if (i >= n || colors[i] >= 0) return;
  const unsigned long long mine = weight(i, seed);
  for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
    const I j = neighbours[k];
    if (colors[j] < 0 && weight(j, seed) > mine) return;
  }
  colors[i] = least_free(indptr, neighbours, colors, i);
}
