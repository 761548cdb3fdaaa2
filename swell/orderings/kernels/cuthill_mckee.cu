// The search of Cuthill and McKee on a GPU: one block does all of it, level by level, with __syncthreads between two
// levels. A level has two passes over its vertices, a thread a vertex. In the first pass each vertex claims its
// neighbours, and the smallest number wins. In the second it counts its children, and a prefix sum over the block
// places them. Values that other threads write by atomics are read past the L1 cache (__ldcg).
#include "context.cuh"

constexpr int THREADS = 1024, BATCH = 8;

DEVICE void least(int* at, int value) { atomicMin(at, value); }
DEVICE void least(long long* at, long long value) { atomicMin(at, value); }

// The sum of the values of all threads before this one; *total = the sum of all.
DEVICE int sum_before(int value, int* total) {
  __shared__ int sums[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int sum = value;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const int other = __shfl_up_sync(~0u, sum, o);
    if (lane >= o) sum += other;
  }
  __syncthreads();                                     // the preceding call's sums have been read
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  int upto = sums[lane];
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const int other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto += other;
  }
  *total = __shfl_sync(~0u, upto, 31);
  const int warps_before = __shfl_sync(~0u, upto, warp ? warp - 1 : 0);
  return sum - value + (warp ? warps_before : 0);
}

// The minimum over the block, in every thread.
template <class I> DEVICE I least_of_block(I value) {
  __shared__ I result;
  __syncthreads();
  if (threadIdx.x == 0) result = value;
  __syncthreads();
  least(&result, value);
  __syncthreads();
  return result;
}

template <class I> struct Graph {
  const I *indptr, *neighbours;
};

template <class I> struct Levels {
  I end, last, count, width;           // end of the component, begin of its last level, levels, largest width
};

// Number the component of `root` from `first` on.
template <class I> DEVICE Levels<I> levels(const Graph<I>& G, I root, I first, I* order, I* parent) {
  if (threadIdx.x == 0) {
    order[first] = root;
    __stcg(parent + root, first);
  }
  I begin = first, end = first + 1, count = 1, width = 1;
  for (;; ++count) {
    __syncthreads();
    for (I p = begin + threadIdx.x; p < end; p += THREADS) {
      const I u = order[p], stop = G.indptr[u + 1];
      for (I k = G.indptr[u]; k < stop; k += BATCH) {
        I v[BATCH], owner[BATCH];                      // all loads before the first use
#pragma unroll
        for (int e = 0; e < BATCH; ++e) v[e] = k + e < stop ? G.neighbours[k + e] : I(-1);
#pragma unroll
        for (int e = 0; e < BATCH; ++e) owner[e] = v[e] >= 0 ? __ldcg(parent + v[e]) : I(-1);
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
          if (owner[e] > p) least(parent + v[e], p);
      }
    }
    __syncthreads();
    I tail = end;
    for (I from = begin; from < end; from += THREADS) {
      const I p = from + threadIdx.x;
      I start = 0, stop = 0;
      int children = 0, total;
      if (p < end) {
        const I u = order[p];
        start = G.indptr[u], stop = G.indptr[u + 1];
        for (I k = start; k < stop; k += BATCH) {
          I v[BATCH];
#pragma unroll
          for (int e = 0; e < BATCH; ++e) v[e] = k + e < stop ? G.neighbours[k + e] : I(-1);
#pragma unroll
          for (int e = 0; e < BATCH; ++e) children += v[e] >= 0 && __ldcg(parent + v[e]) == p;
        }
      }
      I at = tail + sum_before(children, &total);
      for (I k = start; children; ++k)
        if (__ldcg(parent + G.neighbours[k]) == p) {
          order[at++] = G.neighbours[k];
          --children;
        }
      tail += total;
    }
    if (tail == end) break;
    begin = end;
    end = tail;
    width = max(width, end - begin);
  }
  __syncthreads();
  return {end, begin, count, width};
}

// Renumber, from another root, the component that has the numbers `first` to `end` - 1.
template <class I> DEVICE Levels<I> again(const Graph<I>& G, I root, I first, I end, I* order, I* parent, I n) {
  for (I p = first + threadIdx.x; p < end; p += THREADS) __stcg(parent + order[p], n);
  __syncthreads();
  return levels(G, root, first, order, parent);
}

// Number all vertices. The first `lone` of `order` are already set: the vertices without neighbours. `neighbours` are
// sorted by `rank`, the place in `by_degree`; `parent` is filled with n on entry.
// launch: one block of 1024 threads
template <typename I>
__global__ void __launch_bounds__(1024) search(Context* ctx, const I* indptr, const I* neighbours, const I* by_degree,
    const I* rank, I* order, I* parent, long long lone, long long order_size) {
  wait_for_previous();                                 // setup kernels ignore the stop flag
  const Graph<I> G{indptr, neighbours};
  const I n = I(order_size);
  I first = I(lone), seek = first;
  while (first < n) {
    for (;; seek += THREADS) {                         // find the unnumbered vertex of least degree
      const I at = seek + threadIdx.x;
      const I found = least_of_block(at < n && __ldcg(parent + by_degree[at]) == n ? at : n);
      if (found < n) {
        seek = found;
        break;
      }
    }
    I root = by_degree[seek], best = root;
    Levels<I> found = levels(G, root, first, order, parent);
    I least_width = found.width;
    for (I before = 0; found.count > before;) {        // George and Liu
      before = found.count;
      I far = n;
      for (I p = found.last + threadIdx.x; p < found.end; p += THREADS) far = min(far, rank[order[p]]);
      root = by_degree[least_of_block(far)];
      found = again(G, root, first, found.end, order, parent, n);
      if (found.width <= least_width) {
        best = root;
        least_width = found.width;
      }
    }
    if (best != root) again(G, best, first, found.end, order, parent, n);
    first = found.end;
  }
}
