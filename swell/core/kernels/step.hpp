// Steps of an iteration, one text for both devices: step.cuh has the functions for a GPU, native/step.hpp for a CPU.
//
// A step has scalars, then a loop over all elements with sums, then a part that runs once:
//
//     // x += α p;  r −= α q;  ρ = (r, r)
//     template <class T>
//     KERNEL update(Context* ctx, Array<const T> p, Array<const T> q, Array<T> x, Array<T> r, Array<acc_t<T>> s) {
//       step<double>(ctx, vectors(p, q, x, r), [=] {
//         const T alpha(s[ALPHA]);                                         // every thread does this
//         return [=](auto p, auto q, auto& x, auto& r, auto& rho) {        // for packs of neighbouring elements
//           x = x + alpha * p;
//           r = r - alpha * q;
//           rho += abs2(wide(r));
//         };
//       }, [=](double rho) { s[RHO] = rho; });                             // one thread does this, with the sums
//     }
//
// step<types of sums...>(ctx, vectors(...), scalars, last). A vector Array<const T> is loaded, Array<T> loaded
// and stored; out(x) is only stored, and not at all if x is empty; optional(x) is loaded and stored, or 0 if x is
// empty. The first vector decides how long the loop is; it is none that may be empty. weights<T>(w) is w, or 1 if w is
// empty; w.given tells the two apart. `scalars` returns the loop's body. `last` may be left out. Only `last` writes
// scalars, since other threads still read them. Both may keep results in locals, by reference: they run in one thread.
//
//     once(ctx, f)            f() in one thread
//     rows(device, n, f)      f(i) for each row i from 0 to n − 1, a thread each: the launch has that many or more
//     rows<types of the sums...>(device, n, f, last)
//                             f(i, sums...) for each of them, in any number of threads, then last(sums...) in one
//     rows_of_blocks(device, n, block, f)
//                             f(k, size)(r) for each row r of each block k, a thread each: n rows in blocks of `block`,
//                             of which the last may have a smaller size
//     groups(device, n, size, f)    the same for groups of `size` rows: a CPU begins threads for as many rows
//     unfused(a, b, c)        a b + c, rounded after each operation: the same bits on both devices
//     peek(p), post(p, v)     read, write what other threads write and read meanwhile
//     atomic_max(p, v)        *p = max(*p, v) at once; reads of other threads see it later
//
// ROW_KERNEL, not KERNEL, declares a kernel of rows. A kernel whose first parameter is `Device` is called outside
// loops: on a CPU without the judge's record, `ctx`. The other parameters are those by which Python calls it. The line
// `launch:` above it is for a GPU (core/cuda_sources.py).
#pragma once
#ifdef __CUDACC__
#include "step.cuh"
#else
#include "../native/step.hpp"
#endif
