// Rows that wait for one another within a launch: no barrier, no flag, no launch between two.
//
// Warps draw their tasks in turn, so that whoever waits waits for a warp that is running. A loop that waits must be left by
// all lanes of a warp together (`while (__any_sync(~0u, !done))`): a lane that has left waits for the others otherwise, and
// they may be waiting for what it has yet to write.
#pragma once
#include "scalar.cuh"

// The next 32 of the elements that the warps of a grid share out, one for each lane.
DEVICE long long draw(int* drawn) {
  int task = 0;
  if (threadIdx.x % 32 == 0) task = atomicAdd(drawn, 1);
  return 32ll * __shfl_sync(~0u, task, 0) + threadIdx.x % 32;
}

// Reading and writing past the caches of a multiprocessor.
template <class R> DEVICE R peek(const R* p) { return *(const volatile R*)p; }
template <class R> DEVICE complex<R> peek(const complex<R>* p) { return {peek(&p->re), peek(&p->im)}; }
template <class R> DEVICE void post(R* p, R v) { *(volatile R*)p = v; }
template <class R> DEVICE void post(complex<R>* p, complex<R> v) { post(&p->re, v.re), post(&p->im, v.im); }

// A value is there as soon as it is not this NaN, all bits set, which `ordinary` keeps out of what is written.
DEVICE bool empty(float v) { return __float_as_uint(v) == 0xFFFFFFFFu; }
DEVICE bool empty(double v) { return __double_as_longlong(v) == -1ll; }
template <class R> DEVICE bool empty(complex<R> v) { return empty(v.re) || empty(v.im); }
DEVICE float nothing(float) { return __uint_as_float(0xFFFFFFFFu); }
DEVICE double nothing(double) { return __longlong_as_double(-1ll); }
template <class R> DEVICE complex<R> nothing(complex<R> v) { return {nothing(v.re), nothing(v.im)}; }
DEVICE float ordinary(float v) { return empty(v) ? __uint_as_float(0x7FFFFFFFu) : v; }
DEVICE double ordinary(double v) { return empty(v) ? __longlong_as_double(0x7FF8000000000000ll) : v; }
template <class R> DEVICE complex<R> ordinary(complex<R> v) { return {ordinary(v.re), ordinary(v.im)}; }
