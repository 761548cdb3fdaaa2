// Aggregates of nodes on a GPU; aggregates.py one folder up describes them. All decisions equal a CPU's.
#include "rows.cuh"
#include "hashing.hpp"
#include "waiting.cuh"

// The row pointers and values of a matrix whose rows have a single entry 1 each.
// launch: elements of indptr, 256 threads
template <typename I> __global__ void unit_rows(Context* ctx, I* indptr, double* data, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) indptr[i] = I(i);
  if (i < n - 1) data[i] = 1;
}

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

// joined: the aggregate of a root or a root's strong neighbour, else −1. The root with the least entry counts, then
// the first.
// launch: elements of state, 256 threads
template <typename I>
__global__ void join_roots(Context* ctx, const I* indptr, const I* indices, const double* data,
    const unsigned char* strong, const unsigned char* state, const I* numbers, I* joined, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  I own = -1;
  double largest = 0;
  if (state[i] == COARSE) own = numbers[i];
  else
    for (I k = indptr[i]; k < indptr[i + 1]; ++k)
      if (strong[k] && state[indices[k]] == COARSE && -data[k] > largest)
        own = numbers[indices[k]], largest = -data[k];
  joined[i] = own;
}

// aggregates: as joined; where that is −1, the aggregate of the strong neighbour with the least entry that has one,
// else −1.
// launch: elements of joined, 256 threads
template <typename I>
__global__ void join_neighbours(Context* ctx, const I* indptr, const I* indices, const double* data,
    const unsigned char* strong, const I* joined, I* aggregates, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i >= n) return;
  I own = joined[i];
  double largest = 0;
  if (own < 0)
    for (I k = indptr[i]; k < indptr[i + 1]; ++k)
      if (strong[k] && joined[indices[k]] >= 0 && -data[k] > largest)
        own = joined[indices[k]], largest = -data[k];
  aggregates[i] = own;
}

// members[d] = the aggregate of unknown d, of node nodes[d], or of node d if `nodes` is empty; count if it has none.
// launch: elements of members, 256 threads
template <typename I>
__global__ void of_unknowns(Context* ctx, const I* nodes, const I* aggregates, long long count, I* members, long long n,
                            long long nodes_size) {
  if (stopped(ctx)) return;
  const long long d = thread_id();
  if (d >= n) return;
  const I own = aggregates[nodes_size ? nodes[d] : I(d)];
  members[d] = own >= 0 ? own : I(count);
}
