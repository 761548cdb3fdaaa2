// Counting and summing integers on a GPU; on a CPU, NumPy does this. Sums of integers do not depend on their order.
#include "scan.cuh"

DEVICE void atomic_add(long long* at, long long value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)value);
}

// counts[k] += the number of keys equal to k.
// launch: elements of keys, 256 threads
template <typename K> __global__ void count(Context* ctx, const K* keys, long long* counts, long long n) {
  if (stopped(ctx)) return;
  const long long i = thread_id();
  if (i < n) atomic_add(counts + (long long)keys[i], 1);
}

// out[0] = min(out[0], the index of the first nonzero entry of mask); out[1] += the number of nonzero entries.
// launch: elements of mask, 256 threads, at most 8 blocks per multiprocessor
template <typename K> __global__ void find_true(Context* ctx, const K* mask, long long* out, long long n) {
  if (stopped(ctx)) return;
  long long first = n, found = 0;
  for (long long i = thread_id(); i < n; i += threads())
    if (mask[i]) first = min(first, i), ++found;
  for (int o = 16; o; o >>= 1) first = min(first, __shfl_xor_sync(~0u, first, o)),
      found += __shfl_xor_sync(~0u, found, o);
  if (threadIdx.x % 32 || !found) return;
  atomicMin(out, first);
  atomic_add(out + 1, found);
}

// out[0] = max(out[0], the largest key).
// launch: elements of keys, 256 threads, at most 8 blocks per multiprocessor
template <typename K> __global__ void largest(Context* ctx, const K* keys, long long* out, long long n) {
  if (stopped(ctx)) return;
  long long most = keys[0];
  for (long long i = thread_id(); i < n; i += threads()) most = max(most, (long long)keys[i]);
  for (int o = 16; o; o >>= 1) most = max(most, __shfl_xor_sync(~0u, most, o));
  if (threadIdx.x % 32 == 0) atomicMax(out, most);
}

// most[g] = the largest of the keys g size, …, (g + 1) size - 1.
// launch: elements of most, 256 threads, a warp each
template <typename K>
__global__ void group_max(Context* ctx, const K* keys, int size, K* most, long long n, long long keys_size) {
  if (stopped(ctx)) return;
  const long long group = thread_id() / 32;
  if (group >= n) return;
  const long long end = min((group + 1) * size, keys_size);
  long long found = keys[group * size];
  for (long long i = group * size + threadIdx.x % 32; i < end; i += 32) found = max(found, (long long)keys[i]);
  for (int o = 16; o; o >>= 1) found = max(found, __shfl_xor_sync(~0u, found, o));
  if (threadIdx.x % 32 == 0) most[group] = K(found);
}

// out[0] += the number of keys greater than 0.
// launch: elements of keys, 256 threads, at most 8 blocks per multiprocessor
template <typename K> __global__ void count_positive(Context* ctx, const K* keys, long long* out, long long n) {
  if (stopped(ctx)) return;
  long long found = 0;
  for (long long i = thread_id(); i < n; i += threads()) found += keys[i] > K(0);
  for (int o = 16; o; o >>= 1) found += __shfl_xor_sync(~0u, found, o);
  if (threadIdx.x % 32 == 0 && found) atomic_add(out, found);
}

// Exclusive prefix sums: starts[i] = each (counts[0] + … + counts[i - 1]). starts has one entry more than counts.
// launch: one block of 1024 threads
template <typename C, typename P>
__global__ void __launch_bounds__(1024) prefix_sums(Context* ctx, const C* counts, long long each, P* starts,
    long long counts_size) {
  if (stopped(ctx)) return;
  const long long all = scan(counts_size, [&](long long i) { return (long long)counts[i]; },
                             [&](long long i, long long sum) { starts[i] = P(each * sum); });
  if (threadIdx.x == 0) starts[counts_size] = P(each * all);
}

// Like prefix_sums, by all blocks: each sums its part of the counts and, after a barrier, adds the sums of the blocks
// before it. scratch[0] is the barrier's counter, 0 before the first launch; one entry for each block's sum follows.
// launch: 2 blocks per multiprocessor of 512 threads, all at once
template <typename C, typename P>
__global__ void __launch_bounds__(512, 2) grid_prefix_sums(Context* ctx, const C* counts, long long each, P* starts,
    long long* scratch, long long counts_size) {
  if (stopped(ctx)) return;
  const long long n = counts_size, part = (n + gridDim.x * 32ll - 1) / (gridDim.x * 32ll) * 32;        // whole accesses
  const long long begin = min(n, blockIdx.x * part), end = min(n, begin + part);
  long long sum = 0, before = 0;
#pragma unroll 8
  for (long long i = begin + threadIdx.x; i < end; i += blockDim.x) sum += counts[i];
  sum = block_total(sum);
  if (threadIdx.x == 0) scratch[1 + blockIdx.x] = sum;
  grid_wait(reinterpret_cast<unsigned long long*>(scratch));
  for (int block = threadIdx.x; block < blockIdx.x; block += blockDim.x) before += __ldcg(scratch + 1 + block);
  const long long all = scan(begin, end, block_total(before), [&](long long i) { return (long long)counts[i]; },
                             [&](long long i, long long sum) { starts[i] = P(each * sum); });
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) starts[n] = P(each * all);
}
