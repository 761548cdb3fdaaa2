// In the place of core/kernels/bulk.cuh, whose functions are assembly. A bulk copy is done at once: who copies over what others
// still read is found, who reads before it waited is not. A barrier in shared memory is its bytes to come and, above, its phase.
#pragma once
#include "scalar.cuh"

typedef unsigned long long u64;
typedef unsigned u32;

template <int N> DEVICE void bar_sync(int id) { emulated_named(id, N, true); }
template <int N> DEVICE void bar_arrive(int id) { emulated_named(id, N, false); }
DEVICE void put(u64* to, u64 a) { *(volatile u64*)to = a; }
DEVICE void put(u64* to, u64 a, u64 b) { put(to, a), put(to + 1, b); }
DEVICE void get(const u64* from, u64& a) { a = *(const volatile u64*)from; }
DEVICE void get(const u64* from, u64& a, u64& b) { get(from, a), get(from + 1, b); }
template <class P> DEVICE P* of_block(P* own, int block) { return (P*)emulated_of_block((const void*)own, block); }
DEVICE void cluster_sync() { emulated_cluster(); }
DEVICE void barrier_init(u64* b) { *b = 0; }
DEVICE void barriers_ready() {}
DEVICE void barrier_expect(u64* b, int bytes) { *b += bytes; }
DEVICE void barrier_wait(u64* b, u32 phase) {
  while ((*(volatile u64*)b >> 32 & 1) == phase) emulated_preempt();
}
DEVICE void copy(void* to, const void* from, int bytes, u64* b, u64) {
  __builtin_memcpy(to, from, bytes);
  *b -= bytes;
  if (u32(*b) == 0) *b ^= 1ull << 32;
}
DEVICE u64 evict_first() { return 0; }
DEVICE u64 evict_normal() { return 0; }
