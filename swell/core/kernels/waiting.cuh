// Rows that wait for one another within one launch, without barriers or flags.
//
// Warps draw their tasks in order, so a warp waits only for warps that are already running. All lanes of a warp must
// leave a waiting loop together (`while (__any_sync(~0u, !done))`). Otherwise a lane that has left waits for the other
// lanes. These may be waiting for a value that it has yet to write.
#pragma once
#include "scalar.cuh"

// Draw the next 32 elements for this warp; returns this lane's element.
DEVICE long long draw(int* drawn) {
  int task = 0;
  if (threadIdx.x % 32 == 0) task = atomicAdd(drawn, 1);
  return 32ll * __shfl_sync(~0u, task, 0) + threadIdx.x % 32;
}

// Reads and writes that bypass the cache of the multiprocessor.
template <class R> DEVICE R peek(const R* p) { return *(const volatile R*)p; }
template <class R> DEVICE complex<R> peek(const complex<R>* p) { return {peek(&p->re), peek(&p->im)}; }
template <class R> DEVICE void post(R* p, R v) { *(volatile R*)p = v; }
template <class R> DEVICE void post(complex<R>* p, complex<R> v) { post(&p->re, v.re), post(&p->im, v.im); }

// A place that holds the NaN with all bits set (`nothing`) is empty: its value has not been written. Values pass
// through `ordinary` before they are written, which replaces this NaN by another one.
DEVICE bool empty(float v) { return __float_as_uint(v) == 0xFFFFFFFFu; }
DEVICE bool empty(double v) { return __double_as_longlong(v) == -1ll; }
template <class R> DEVICE bool empty(complex<R> v) { return empty(v.re) || empty(v.im); }
DEVICE float nothing(float) { return __uint_as_float(0xFFFFFFFFu); }
DEVICE double nothing(double) { return __longlong_as_double(-1ll); }
template <class R> DEVICE complex<R> nothing(complex<R> v) { return {nothing(v.re), nothing(v.im)}; }
DEVICE float ordinary(float v) { return empty(v) ? __uint_as_float(0x7FFFFFFFu) : v; }
DEVICE double ordinary(double v) { return empty(v) ? __longlong_as_double(0x7FF8000000000000ll) : v; }
template <class R> DEVICE complex<R> ordinary(complex<R> v) { return {ordinary(v.re), ordinary(v.im)}; }
