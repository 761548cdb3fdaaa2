// The roots of aggregates on a CPU, one node after the other; see aggregates.py one folder up. A GPU's nodes wait for
// one another instead.
#include <algorithm>
#include <vector>

#include "slots/swell/preconditioners/amg/roots.hpp"

#include "../../../core/kernels/hashing.hpp"
#include "../../../core/native/launcher.hpp"

namespace {

// True if a root lies within two strong links of node i.
template <class I>
bool root_within_two(int64_t i, Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong,
                     Array<const uint8_t> state) {
  for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
    if (!strong[k]) continue;
    const int64_t j = indices[k];
    if (state[j] == COARSE) return true;
    for (int64_t l = indptr[j]; l < indptr[j + 1]; ++l)
      if (strong[l] && state[indices[l]] == COARSE) return true;
  }
  return false;
}

// Make each undecided node COARSE, a root, unless a root lies within two strong links; then it is FINE. Nodes are asked
// in the order of their keys, the hashes of their row numbers, from the greatest. first: the number of row 0 in the
// whole matrix. `cursors` is a GPU's work space.
template <class I>
void choose_roots(Array<const I> indptr, Array<const I> indices, Array<const uint8_t> strong, int64_t first,
                  Array<const I> cursors, Array<uint8_t> state) {
  std::vector<std::pair<uint32_t, I>> order;
  for (int64_t i = 0; i < state.size; ++i)
    if (state[i] == UNDECIDED) order.push_back({~scattered(first + i), I(i)});
  std::sort(order.begin(), order.end());
  for (const auto& node : order)
    state[node.second] = root_within_two<I>(node.second, indptr, indices, strong, state) ? FINE : COARSE;
}

}  // namespace

KERNELS("swell.preconditioners.amg.roots", INDICES(choose_roots))
