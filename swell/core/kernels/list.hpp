// A list of values of several types, for both devices: CUDA's run-time compiler has no std::tuple.
#pragma once
#include "scalar.hpp"

template <class... V> struct List {
  template <class F, class... Before> INLINE auto apply(const F& f, Before&... before) { return f(before...); }
};
template <class V, class... More> struct List<V, More...> {
  V first;
  List<More...> more;
  // f(each value of the list)
  template <class F, class... Before> INLINE auto apply(const F& f, Before&... before) {
    return more.apply(f, before..., first);
  }
};
template <class... V> INLINE List<V...> list(V... values) { return {values...}; }
