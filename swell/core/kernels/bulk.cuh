// Primitives for persistent kernels: bulk copies into shared memory by the copy engine of Hopper and later, named
// barriers for a part of a block, and accesses that other blocks see at once. On older devices the Hopper functions are
// compiled but do nothing; the host must refuse such a device.
#pragma once
#include "scalar.cuh"

typedef unsigned long long u64;
typedef unsigned u32;

DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
template <int N> DEVICE void bar_sync(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(N) : "memory"); }
template <int N> DEVICE void bar_arrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(N) : "memory"); }
DEVICE void put(u64* to, u64 a) { asm volatile("st.volatile.u64 [%0], %1;" ::"l"(to), "l"(a) : "memory"); }
DEVICE void put(u64* to, u64 a, u64 b) {
  asm volatile("st.volatile.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}
DEVICE void get(const u64* from, u64& a) { asm volatile("ld.volatile.u64 %0, [%1];" : "=l"(a) : "l"(from) : "memory"); }
DEVICE void get(const u64* from, u64& a, u64& b) {
  asm volatile("ld.volatile.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
}
#if __CUDA_ARCH__ >= 900
// of_block: the address of the same variable in the shared memory of another block of the cluster. cluster_sync: a
// barrier of all threads of the cluster.
template <class P> DEVICE P* of_block(P* own, int block) {
  u64 there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(block));
  return reinterpret_cast<P*>(there);
}
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
DEVICE void barrier_init(u64* b) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory");
}
DEVICE void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
DEVICE void barrier_expect(u64* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}
DEVICE void barrier_wait(u64* b, u32 phase) {
  asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}"
               ::"r"(shared_address(b)), "r"(phase) : "memory");
}
DEVICE void copy(void* to, const void* from, int bytes, u64* b, u64 policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%0], [%1], %2, [%3], %4;"
               ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(b)), "l"(policy) : "memory");
}
DEVICE u64 evict_first() { u64 p; asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p)); return p; }
DEVICE u64 evict_normal() { u64 p; asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p)); return p; }
#else
template <class P> DEVICE P* of_block(P* own, int) { return own; }
DEVICE void cluster_sync() {}
DEVICE void barrier_init(u64*) {}
DEVICE void barriers_ready() {}
DEVICE void barrier_expect(u64*, int) {}
DEVICE void barrier_wait(u64*, u32) {}
DEVICE void copy(void*, const void*, int, u64*, u64) {}
DEVICE u64 evict_first() { return 0; }
DEVICE u64 evict_normal() { return 0; }
#endif
