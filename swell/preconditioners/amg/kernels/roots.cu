// The roots of aggregates on a GPU; aggregates.py one folder up describes them. All decisions equal a CPU's, which
// sorts the nodes and takes one after the other.
#include "context.cuh"
#include "hashing.hpp"
#include "waiting.cuh"

// Where the search of a node for roots has got to: entry `link` of its row, and entry `step` of that neighbour's row;
// −1 stands for the neighbour itself.
template <class I> struct Search {
  I link, step;
};

// Continue the search. True if the node is decided. False if a node with a greater key must be decided first.
template <class I>
DEVICE bool decided(const I* indptr, const I* indices, const unsigned char* strong, long long first, I row,
    Search<I>& at, unsigned char* state) {
  const unsigned key = scattered(first + row);
  const I end = indptr[row + 1];
  for (; at.link < end; ++at.link, at.step = -1) {
    if (!strong[at.link]) continue;
    const I neighbour = indices[at.link], last = indptr[neighbour + 1];
    if (at.step < 0) {
      const unsigned char its = peek(state + neighbour);
      if (its == COARSE) return post(state + row, (unsigned char)FINE), true;
      if (its == UNDECIDED && scattered(first + neighbour) > key) return false;
      at.step = indptr[neighbour];
    }
    for (; at.step < last; ++at.step) {
      if (!strong[at.step]) continue;
      const I other = indices[at.step];
      if (other == row) continue;
      const unsigned char its = peek(state + other);
      if (its == COARSE) return post(state + row, (unsigned char)FINE), true;
      if (its == UNDECIDED && scattered(first + other) > key) return false;
    }
  }
  return post(state + row, (unsigned char)COARSE), true;
}

// Decide all nodes. A node waits for nodes within two strong links whose keys are greater. It is FINE as soon as one of
// them is a root, and COARSE, a root, when all are decided otherwise. cursors: two entries a node. A warp visits its
// undecided nodes in turn. All blocks run at once, and the undecided node with the greatest key never waits: so no node
// waits forever.
// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename I>
__global__ void __launch_bounds__(512, 2) choose_roots(Context* ctx, const I* indptr, const I* indices,
    const unsigned char* strong, long long first, I* cursors, unsigned char* state, long long state_size) {
  if (stopped(ctx)) return;
  const long long n = state_size, warps = threads() / 32, share = ((n + warps - 1) / warps + 31) / 32 * 32;
  const long long begin = min(thread_id() / 32 * share, n), last = min(begin + share, n);
  const auto visit = [&](long long row, Search<I> at) {
    const bool done = decided(indptr, indices, strong, first, I(row), at, state);
    if (!done) cursors[2 * row] = at.link, cursors[2 * row + 1] = at.step;
    return done;
  };
  bool open = false;
  for (long long row = begin + threadIdx.x % 32; row < last; row += 32)
    if (state[row] == UNDECIDED && !visit(row, {indptr[row], I(-1)})) open = true;
  while (__any_sync(~0u, open)) {
    open = false;
    for (long long row = begin + threadIdx.x % 32; row < last; row += 32)
      if (peek(state + row) == UNDECIDED && !visit(row, {cursors[2 * row], cursors[2 * row + 1]})) open = true;
  }
}
