// Rows of a CSR matrix whose entries the lanes of a GPU share, for both devices: a thread a row would read a cache line
// for each entry of a long row.
//
//     entries(device, indptr, data.size, [=](auto row) {      // for each row i
//       double largest = 0, total = 0;
//       row.each([&](int64_t k, double& total) {               // for each of its entries k, with any sums
//         largest = max(largest, data[k]), total += data[k];
//       }, total);                                             // in the order of the entries, on both devices
//       out[row.i] = total / row.max(largest);                 // all lanes write the same number
//     });
//
// A GPU's lane sees some of the entries: row.sum(v), row.max(v) and row.any(v) combine what the lanes have; all lanes
// of a row call them. A NaN is the maximum. row.first() is true in one of the lanes.
//
// lines(device, count, length, f) is the same for `count` rows of a dense matrix with `length` entries each, k from 0
// on; the launch has a warp for each.
#pragma once
#include "step.hpp"
#ifdef __CUDACC__
#include "rows.cuh"

struct Entries {
  int64_t i, begin, end;
  int part, lanes;
  unsigned mask;             // the lanes of the row
  template <class F, class... S> DEVICE void each(F f, S&... sums) const {
    for (int64_t first = begin; first < end; first += lanes) {
      List<S...> own{};
      own.apply([&](S&... value) {
        if (first + part < end) f(first + part, value...);
        for (int lane = 0; lane < lanes; ++lane) ((sums += __shfl_sync(mask, value, lane, lanes)), ...);
      });
    }
  }
  DEVICE double sum(double own) const {
    for (int o = lanes / 2; o; o >>= 1) own += __shfl_xor_sync(mask, own, o);
    return own;
  }
  DEVICE complex<double> sum(complex<double> own) const { return {sum(own.re), sum(own.im)}; }
  DEVICE double max(double own) const {
    for (int o = lanes / 2; o; o >>= 1) {
      const double other = __shfl_xor_sync(mask, own, o);
      if (other > own || isnan(other)) own = other;
    }
    return own;
  }
  DEVICE bool any(bool own) const { return __any_sync(mask, own); }
  DEVICE bool first() const { return part == 0; }
};
template <class I, class F> DEVICE void entries(Device ctx, Array<const I> indptr, int64_t count, F f) {
  if (stopped(ctx)) return;
  const int64_t n = indptr.size - 1;
  const int lanes = lanes_for(n, count), shift = threadIdx.x % 32 / lanes * lanes;
  visit_all(indptr.data, n, lanes, [&](const Portion& p) {
    if (p.there) f(Entries{p.row, p.begin, p.end, p.part, lanes, ~0u >> (32 - lanes) << shift});
  });
}
template <class F> DEVICE void lines(Device ctx, int64_t count, int64_t length, F f) {
  if (stopped(ctx)) return;
  const int64_t i = thread_id() / 32;
  if (i < count) f(Entries{i, 0, length, int(threadIdx.x % 32), 32, ~0u});
}
#else

struct Entries {
  int64_t i, begin, end;
  template <class F, class... S> INLINE void each(const F& f, S&... sums) const {
    for (int64_t k = begin; k < end; ++k) f(k, sums...);
  }
  template <class A> A sum(A own) const { return own; }
  double max(double own) const { return own; }
  bool any(bool own) const { return own; }
  bool first() const { return true; }
};
template <class I, class F> void entries(Device, Array<const I> indptr, int64_t, const F& f) {
  each(indptr.size - 1, [=](int64_t i) { f(Entries{i, indptr[i], indptr[i + 1]}); });
}
template <class F> void lines(Device, int64_t count, int64_t length, const F& f) {
  ranges(count, count * length, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(Entries{i, 0, length});
  });
}
#endif
