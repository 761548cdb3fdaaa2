// Steps on a CPU; kernels/step.hpp describes them. The body runs for the lanes of lanes.hpp.
#pragma once
#include "../kernels/breakdown.hpp"
#include "../kernels/list.hpp"
#include "context.hpp"
#include "lanes.hpp"
#include "launcher.hpp"

#define ALWAYS_INLINE __attribute__((always_inline))

template <class T> struct Read {
  using type = T;
  Array<const T> data;
  template <class I> INLINE auto load(I i) const { return ::load(data, i); }
  template <class I, class P> INLINE void store(I, const P&) const {}
};
template <class T> struct Updated {
  using type = T;
  Array<T> data;
  template <class I> INLINE auto load(I i) const { return ::load(data, i); }
  template <class I, class P> INLINE void store(I i, const P& value) const { ::store(data, i, value); }
};
template <class T> struct Written : Updated<T> {
  template <class I> INLINE auto load(I i) const { return decltype(::load(this->data, i)){}; }
  template <class I, class P> INLINE void store(I i, const P& value) const {
    if (this->data.size) ::store(this->data, i, value);
  }
};
template <class T> struct Optional : Written<T> {
  template <class I> INLINE auto load(I i) const {
    return this->data.size ? ::load(this->data, i) : Written<T>::load(i);
  }
};

// Weights of a sum of squares; 1 if they are not given. A loop is compiled for each of the two.
struct Weights { Array<const float> w; };
template <bool GIVEN, int N> struct Weight {
  static constexpr bool given = GIVEN;
  Pack<float, N> at;
  INLINE Pack<double, N> operator*(Pack<double, N> square) const {
    if constexpr (GIVEN) return wide(at) * square;
    else return square;
  }
};
template <bool GIVEN> struct Weighing {
  Array<const float> w;
  template <int N> INLINE Weight<GIVEN, N> load(Rows<N> i) const {
    if constexpr (GIVEN) return {::load(w, i)};
    else return {};
  }
  INLINE Weight<GIVEN, LANES> load(Tail i) const {
    if constexpr (GIVEN) return {::load(w, i)};
    else return {};
  }
  template <class I, class P> INLINE void store(I, const P&) const {}
};
template <class V> bool given(V) { return false; }
inline bool given(Weights weights) { return weights.w.size > 0; }
template <bool GIVEN, class V> V weighing(V vector) { return vector; }
template <bool GIVEN> Weighing<GIVEN> weighing(Weights weights) { return {weights.w}; }

template <class T> Read<T> vector(Array<const T> x) { return {x}; }
template <class T> Updated<T> vector(Array<T> x) { return {x}; }
template <class V> V vector(V operand) { return operand; }
template <class T> Written<T> out(Array<T> x) { return {{x}}; }
template <class T> Optional<T> optional(Array<T> x) { return {{{x}}}; }
template <class T> Weights weights(Array<const float> w) { return {w}; }
template <class T> Weights weights_if_due(const Context* ctx, Array<const float> w) {
  return {due(ctx) ? w : Array<const float>{}};
}
template <class... V> auto vectors(V... operands) { return list(vector(operands)...); }

// A sum during one call of a body, and N lanes of a real sum.
template <class A, class I> struct Adding {
  Sum<A>& sum;
  I i;
  template <class P> INLINE void operator+=(const P& value) { add(sum, i, value); }
};
template <int N> struct AddingLanes {
  Pack<double, N>& lanes;
  INLINE void operator+=(Pack<double, N> value) { lanes = lanes + value; }
};

// body(i, sums...) for rows i; for few of them at a time, so that the body keeps many real vectors in registers.
template <int N, class F, class... P> INLINE void few(Rows<N> i, const F& body, P&... lanes) {
  if constexpr (N > 2 * WORD) {
    few(Rows<N / 2>{i.first}, body, lanes.low...);
    few(Rows<N / 2>{i.first + N / 2}, body, lanes.high...);
  } else {
    body(i, AddingLanes<N>{lanes}...);
  }
}
template <bool FEW, class I, class F, class... A> INLINE void part(I i, const F& body, Sum<A>&... sums) {
  if constexpr (FEW && std::is_same_v<I, Lanes>) few(i, body, sums.lanes...);
  else body(i, Adding<A, I>{sums, i}...);
}

// The loop of a step over all elements; returns its sums.
template <class... S, class V, class... More, class Body>
std::tuple<S...> run(List<V, More...> vectors, Body body) {
  constexpr bool FEW = sizeof...(More) > 3 && scalar<typename V::type>::parts == 1;
  const auto rows = [=](auto i, auto... sums) ALWAYS_INLINE {
    auto own = vectors;
    own.apply([&](auto&... v) ALWAYS_INLINE {
      auto values = list(v.load(i)...);
      values.apply([&](auto&... value) ALWAYS_INLINE {
        body(value..., sums...);
        (v.store(i, value), ...);
      });
    });
  };
  if constexpr (sizeof...(S) == 0) return elements(vectors.first.data, rows), std::tuple<>();
  else return sums<S...>(vectors.first.data.size, [=](auto i, auto&... sums) ALWAYS_INLINE {
    part<FEW>(i, rows, sums...);
  });
}

template <class... S, class D, class... V, class Scalars, class Last>
void step(D, List<V...> vectors, Scalars scalars, Last last) {
  std::apply(last, vectors.apply([&](auto&... v) {
    constexpr bool weighted = (std::is_same_v<V, Weights> || ...);
    if (weighted && (given(v) || ...)) return run<S...>(list(weighing<weighted>(v)...), scalars());
    return run<S...>(list(weighing<false>(v)...), scalars());
  }));
}
template <class D, class... V, class Scalars> void step(D device, List<V...> vectors, Scalars scalars) {
  step(device, vectors, scalars, [] {});
}

template <class F> void once(Context*, F f) { f(); }
template <class F> void once(Device, F f) { f(); }
template <class F> void rows(Device, int64_t count, F f) { each(count, f); }
template <class... S, class F, class Last> void rows(Device, int64_t count, F f, Last last) {
  std::apply(last, row_sums<S...>(count, f));
}
template <class F> void rows_of_blocks(Device, int64_t count, int64_t block, F f) {
  ranges((count + block - 1) / block, count, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t size = min(block, count - k * block);
      const auto row = f(k, size);
      for (int64_t r = 0; r < size; ++r) row(r);
    }
  });
}
template <class F> void groups(Device, int64_t count, int64_t size, F f) {
  ranges(count, count * size, [f](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) f(g);
  });
}

inline double unfused(double a, double b, double c) { return a * b + c; }

template <class T> T peek(const T* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
template <class T> void post(T* at, T value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
inline void atomic_max(int64_t* at, int64_t value) {
  for (int64_t held = peek(at); held < value;)
    if (__atomic_compare_exchange_n(at, &held, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
}
