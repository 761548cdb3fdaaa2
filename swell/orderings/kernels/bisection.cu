// Kernels of bisection along graph distances on a GPU. One block makes a breadth-first search, level by level; two
// levels are separated by __syncthreads only. Searches from several roots run concurrently. The order of the queue
// within a level varies; the distances do not depend on it. Lists of all vertices, one an axis, are sorted once, and
// stay sorted in each group as groups are cut.
#include "context.cuh"

constexpr int THREADS = 1024, BATCH = 8;

DEVICE bool claim(int* at, int value) { return atomicCAS(at, -1, value) == -1; }

// A vertex that is not reached counts as farther than all that are.
DEVICE int length(int distance, int reach) { return distance < 0 ? reach + 1 : distance; }

// The group of place i: the last group that begins at or before i.
template <class P> DEVICE int group_of(const P* start, int groups, long long i) {
  int low = 0, high = groups;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (start[middle] <= i) low = middle; else high = middle;
  }
  return low;
}

// distance = number of edges from each root to each vertex, -1 on entry; reach = the largest; far = the first vertex
// that a root does not reach, or, if it reaches all, the first at the largest distance. For fewer than 2^31 vertices.
// launch: 1 blocks per multiprocessor of 1024 threads
template <typename I>
__global__ void __launch_bounds__(1024) distances(Context* ctx, const I* indptr, const I* neighbours, const int* roots,
    int* distance, int* queue, int* reach, int* far, long long indptr_size, long long roots_size) {
  __shared__ int tail, first;
  wait_for_previous();                                 // setup kernels ignore the stop flag
  const int n = int(indptr_size - 1);
  for (int k = blockIdx.x; k < roots_size; k += gridDim.x) {
    int* const own = distance + (long long)k * n;
    int* const mine = queue + (long long)k * n;
    __syncthreads();
    if (threadIdx.x == 0) {
      tail = 1, first = n;
      mine[0] = roots[k];
      own[roots[k]] = 0;
    }
    int begin = 0, end = 1, last = 0, level = 1;
    for (; begin < end; ++level) {
      __syncthreads();
      for (int p = begin + threadIdx.x; p < end; p += THREADS) {
        const I u = mine[p], stop = indptr[u + 1];
        for (I e = indptr[u]; e < stop; e += BATCH) {
          int v[BATCH], seen[BATCH];                   // all loads before the first use
#pragma unroll
          for (int i = 0; i < BATCH; ++i) v[i] = e + i < stop ? int(neighbours[e + i]) : -1;
#pragma unroll
          for (int i = 0; i < BATCH; ++i) seen[i] = v[i] >= 0 ? __ldcg(own + v[i]) : 0;
#pragma unroll
          for (int i = 0; i < BATCH; ++i)
            if (seen[i] < 0 && claim(own + v[i], level)) mine[atomicAdd(&tail, 1)] = v[i];
        }
      }
      __syncthreads();
      last = begin, begin = end, end = tail;
    }
    if (end < n) {
      for (int v = threadIdx.x; v < n; v += THREADS)
        if (__ldcg(own + v) < 0) {
          atomicMin(&first, v);
          break;
        }
    } else {
      for (int p = last + threadIdx.x; p < end; p += THREADS) atomicMin(&first, mine[p]);
    }
    __syncthreads();
    if (threadIdx.x == 0) reach[k] = level - 2, far[k] = first;
  }
}

// between[i K + j] = the distance of root j from root i, for K roots; behind them, for each root, the distance for "not
// reached".
// launch: elements of between, 256 threads
template <typename K>
__global__ void measure(Context* ctx, const int* roots, const int* distance, const int* reach, K* between,
    long long roots_size, long long distance_size) {
  wait_for_previous();
  const long long i = thread_id() / roots_size, j = thread_id() % roots_size;
  if (i > roots_size) return;
  between[thread_id()] = K(i == roots_size ? reach[j] + 1 : length(distance[i * (distance_size / roots_size)
      + roots[j]], reach[i]));
}

// coordinates = one for each axis and vertex: the difference of the vertex's distances to the two roots of a pair. keys
// sort the vertices by this coordinate, then, if `finer`, by the next axis's coordinate, then by the vertex number.
// launch: elements of keys, 256 threads
template <typename K>
__global__ void locate(Context* ctx, const int* pairs, const int* distance, const int* reach, long long low,
    long long span, bool finer, int* coordinates, K* keys, long long n, long long pairs_size) {
  wait_for_previous();
  const long long axes = pairs_size / 2, vertices = n / axes, v = thread_id() % vertices, axis = thread_id() / vertices;
  if (thread_id() >= n) return;
  const auto along = [&](long long a) {
    const int p = pairs[2 * a], q = pairs[2 * a + 1];
    return (long long)(length(distance[p * vertices + v], reach[p]) - length(distance[q * vertices + v], reach[q]));
  };
  const long long own = along(axis);
  coordinates[thread_id()] = int(own);
  keys[thread_id()] = K((finer ? (own - low) * span + along((axis + 1) % axes) - low : own - low) * vertices + v);
}

// vertices = the vertex of each sorted key.
// launch: elements of sorted, 256 threads
template <typename K> __global__ void list(Context* ctx, const K* sorted, int* vertices, long long n) {
  wait_for_previous();
  const long long i = thread_id();
  if (i < n) vertices[i] = int(sorted[i] % n);
}

// Cut each group in two along its longest axis: second = 1 for the vertices of the second half, which begins at
// `middle`. start: where each group begins, and the end of the last.
// launch: elements of second, 256 threads
template <typename P>
__global__ void cut(Context* ctx, const P* start, const P* middle, const int* coordinates, const int* lists,
    unsigned char* second, long long n, long long middle_size, long long lists_size) {
  wait_for_previous();
  const long long i = thread_id();
  if (i >= n) return;
  const int group = group_of(start, int(middle_size), i);
  const int* along = lists;
  int most = -1;
  for (long long axis = 0; axis < lists_size; axis += n) {
    const int extent = coordinates[axis + lists[axis + start[group + 1] - 1]]
        - coordinates[axis + lists[axis + start[group]]];
    if (extent > most) most = extent, along = lists + axis;
  }
  second[along[i]] = i >= middle[group];
}

// marks = the value of `second` for the vertex at each place of the lists.
// launch: elements of lists, 256 threads
template <typename K>
__global__ void mark(Context* ctx, const K* lists, const unsigned char* second, unsigned char* marks, long long n) {
  wait_for_previous();
  if (thread_id() < n) marks[thread_id()] = second[lists[thread_id()]];
}

// moved = the lists, with the first half of each group before the second half; both keep their order. before: the
// number of marks before each place.
// launch: elements of lists, 256 threads
template <typename P>
__global__ void move(Context* ctx, const P* start, const P* middle, const unsigned char* marks, const int* before,
    const int* lists, int* moved, long long n, long long middle_size, long long start_size) {
  wait_for_previous();
  if (thread_id() >= n) return;
  const long long vertices = start[start_size - 1], list = thread_id() / vertices * vertices, i = thread_id() - list;
  const int group = group_of(start, int(middle_size), i);
  const long long begin = start[group], marked = before[thread_id()] - before[list + begin];
  moved[list + (marks[thread_id()] ? middle[group] + marked : i - marked)] = lists[thread_id()];
}
