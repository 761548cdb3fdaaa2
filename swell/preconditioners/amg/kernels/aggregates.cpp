// Aggregates of nodes on a CPU; see aggregates.py one folder up.
#include <vector>

#include "slots/swell/preconditioners/amg/aggregates.hpp"

#include "../../../core/kernels/hashing.hpp"
#include "../../../core/native/launcher.hpp"
#include "../../../core/native/threads.hpp"

namespace {

// The row pointers and values of a matrix whose rows have a single entry 1 each.
template <class I> void unit_rows(Array<I> indptr, Array<double> data) {
  each(data.size, [=](int64_t i) { indptr[i] = I(i), data[i] = 1.0; });
  indptr[data.size] = I(data.size);
}

// keys[i] = the hash of row number first + i.
void hashes(int64_t first, Array<int64_t> keys) {
  each(keys.size, [=](int64_t i) { keys[i] = scattered(first + i); });
}

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

// joined[i] = the aggregate of node i if it is a root or a root's strong neighbour, else −1. numbers[i] is the number
// of root i. Among several roots the one with the least entry counts, then the first.
template <class I>
void join_roots(Array<const I> indptr, Array<const I> indices, Array<const double> data, Array<const uint8_t> strong,
                Array<const uint8_t> state, Array<const I> numbers, Array<I> joined) {
  each(state.size, [=](int64_t i) {
    I own = -1;
    double largest = 0;
    if (state[i] == COARSE) own = numbers[i];
    else for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
      const int64_t j = indices[k];
      if (strong[k] && state[j] == COARSE && -data[k] > largest) own = numbers[j], largest = -data[k];
    }
    joined[i] = own;
  });
}

// aggregates[i] = joined[i], or, where that is −1, the aggregate of the strong neighbour with the least entry that
// has one; else −1.
template <class I>
void join_neighbours(Array<const I> indptr, Array<const I> indices, Array<const double> data,
                     Array<const uint8_t> strong, Array<const I> joined, Array<I> aggregates) {
  each(joined.size, [=](int64_t i) {
    I own = joined[i];
    double largest = 0;
    if (own < 0)
      for (int64_t k = indptr[i]; k < indptr[i + 1]; ++k) {
        const I at = joined[indices[k]];
        if (strong[k] && at >= 0 && -data[k] > largest) own = at, largest = -data[k];
      }
    aggregates[i] = own;
  });
}

// members[d] = the aggregate of unknown d; `count` if it has none. nodes[d] is its node; if `nodes` is empty, each
// unknown is a node.
template <class I>
void of_unknowns(Array<const I> nodes, Array<const I> aggregates, int64_t count, Array<I> members) {
  each(members.size, [=](int64_t d) {
    const I own = aggregates[nodes.size ? int64_t(nodes[d]) : d];
    members[d] = own >= 0 ? own : I(count);
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.aggregates", INDICES(unit_rows), PLAIN(hashes), INDICES(choose_roots),
        INDICES(join_roots), INDICES(join_neighbours), INDICES(of_unknowns))
