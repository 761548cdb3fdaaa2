// Aggregates of nodes, for both devices; see aggregates.py one folder up. roots.cu and roots.cpp choose their roots.
#include "entries.hpp"
#include "hashing.hpp"

namespace {

// The row pointers and values of a matrix whose rows have a single entry 1 each.
// launch: elements of indptr, 256 threads
template <class I> ROW_KERNEL unit_rows(Device device, Array<I> indptr, Array<double> data) {
  rows(device, indptr.size, [=](int64_t i) {
    indptr[i] = I(i);
    if (i < data.size) data[i] = 1;
  });
}

// keys[i] = the hash of row number first + i.
// launch: elements of keys, 256 threads
template <class T> ROW_KERNEL hashes(Device device, int64_t first, Array<int64_t> keys) {
  rows(device, keys.size, [=](int64_t i) { keys[i] = scattered(first + i); });
}

// joined[i] = the aggregate of node i if it is a root or a root's strong neighbour, else −1. numbers[i] is the number
// of root i. Among several roots the one with the least entry counts, then the first.
// launch: elements of state, 256 threads
template <class I>
ROW_KERNEL join_roots(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                      Array<const uint8_t> strong, Array<const uint8_t> state, Array<const I> numbers,
                      Array<I> joined) {
  rows(device, state.size, [=](int64_t i) {
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
// launch: elements of joined, 256 threads
template <class I>
ROW_KERNEL join_neighbours(Device device, Array<const I> indptr, Array<const I> indices, Array<const double> data,
                           Array<const uint8_t> strong, Array<const I> joined, Array<I> aggregates) {
  rows(device, joined.size, [=](int64_t i) {
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
// launch: elements of members, 256 threads
template <class I>
ROW_KERNEL of_unknowns(Device device, Array<const I> nodes, Array<const I> aggregates, int64_t count,
                       Array<I> members) {
  rows(device, members.size, [=](int64_t d) {
    const I own = aggregates[nodes.size ? int64_t(nodes[d]) : d];
    members[d] = own >= 0 ? own : I(count);
  });
}

}  // namespace

KERNELS("swell.preconditioners.amg.aggregates", INDICES(unit_rows), INSTANCE(hashes, double), INDICES(join_roots),
        INDICES(join_neighbours), INDICES(of_unknowns))
