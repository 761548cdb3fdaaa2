// Steps on a GPU; step.hpp describes them. A thread has a pack of 16 bytes at a time, in a grid-stride loop.
#pragma once
#include "judge.cuh"
#include "array.hpp"
#include "breakdown.hpp"
#include "list.hpp"
#include "pack.cuh"
#include "waiting.cuh"

// A vector of a step: its pack i of the n elements that all vectors have.
template <class T> struct Read {
  static constexpr int size = Pack<T>::size;
  Array<const T> of;
  Pack<T> value;
  DEVICE void load(int64_t i, int64_t n) { value = ::load(of.data, i, n); }
  DEVICE void store(int64_t i, int64_t n) const {}
};
template <class T> struct Updated {
  static constexpr int size = Pack<T>::size;
  Array<T> of;
  Pack<T> value;
  DEVICE void load(int64_t i, int64_t n) { value = ::load(of.data, i, n); }
  DEVICE void store(int64_t i, int64_t n) const { ::store(of.data, i, n, value); }
};
template <class T> struct Written : Updated<T> {
  DEVICE void load(int64_t i, int64_t n) {}
  DEVICE void store(int64_t i, int64_t n) const {
    if (this->of.size) Updated<T>::store(i, n);
  }
};
template <class T> struct Optional : Written<T> {
  DEVICE void load(int64_t i, int64_t n) {
    this->value = {};
    if (this->of.size) Updated<T>::load(i, n);
  }
};

// Weights of a sum of squares; 1 if there are none, or if the norm of this iteration is not judged.
template <int N> struct Weights {
  Array<const float> of;
  const Context* judged;
  struct Value {
    bool given;
    Pack<float, N> at;
    DEVICE Pack<double, N> operator*(const Pack<double, N>& square) const { return given ? wide(at) * square : square; }
  } value;
  DEVICE void load(int64_t i, int64_t n) {
    if (value.given)
#pragma unroll
      for (int e = 0; e < N; ++e) value.at.at[e] = i * N + e < n ? of[i * N + e] : 0.0f;
  }
  DEVICE void store(int64_t i, int64_t n) const {}
};
template <class V> DEVICE void begin_with(V&) {}
template <int N> DEVICE void begin_with(Weights<N>& w) {
  w.value.given = w.of.size && (!w.judged || due(w.judged));
}

template <class T> DEVICE Read<T> vector(Array<const T> x) { return {x}; }
template <class T> DEVICE Updated<T> vector(Array<T> x) { return {x}; }
template <class V> DEVICE V vector(V operand) { return operand; }
template <class T> DEVICE Written<T> out(Array<T> x) { return {{x}}; }
template <class T> DEVICE Optional<T> optional(Array<T> x) { return {{{x}}}; }
template <class T> DEVICE Weights<Pack<T>::size> weights(Array<const float> w) { return {w, nullptr}; }
// The same in an iteration that is judged; 1 in others, where no one reads the norm.
template <class T> DEVICE Weights<Pack<T>::size> weights_if_due(const Context* ctx, Array<const float> w) {
  return {w, ctx};
}
template <class... V> DEVICE auto vectors(V... operands) { return list(vector(operands)...); }

template <class A> struct Sum {
  A value;
  template <int N> DEVICE void operator+=(const Pack<A, N>& more) {
#pragma unroll
    for (int e = 0; e < N; ++e) value += more.at[e];
  }
  DEVICE void operator+=(A more) { value += more; }
};

// last(the grid's sums...) in one thread.
template <class... S, class Last> DEVICE void finish(Context* ctx, List<Sum<S>...>& sums, Last last) {
  double parts[(scalar<S>::parts + ...)], *at = parts;
  sums.apply([&](auto&... sum) { ((split(at, sum.value), at += scalar<S>::parts), ...); });
  if (!grid_sum(ctx, parts)) return;
  at = parts;
  sums.apply([&](auto&... sum) {
    ((join(sum.value, at), at += scalar<S>::parts), ...);
    last(sum.value...);
  });
}

// The loop of a step over the packs of all vectors. True if it ran. The first packs are loaded before the scalars, for
// their latency, and each next one before the loop's test; more than four vectors would take too many registers.
template <class... S, class V, class... More, class Scalars>
DEVICE bool run(Context* ctx, List<V, More...>& vectors, Scalars scalars, List<Sum<S>...>& sums) {
  constexpr bool ahead = sizeof...(More) < 4;
  if (stopped(ctx)) return false;
  const int64_t n = vectors.first.of.size, packs = (n + V::size - 1) / V::size;
  const auto load = [&](int64_t i) { vectors.apply([=](auto&... v) { (v.load(i, n), ...); }); };
  int64_t i = thread_id();
  vectors.apply([](auto&... v) { (begin_with(v), ...); });
  if (ahead && i < packs) load(i);
  const auto body = scalars();
  while (i < packs) {
    if (!ahead) load(i);
    vectors.apply([&](auto&... v) { sums.apply([&](auto&... sum) { body(v.value..., sum...); }); });
    vectors.apply([=](auto&... v) { (v.store(i, n), ...); });
    i += threads();
    if (ahead && i < packs) load(i);
  }
  return true;
}

template <class... V, class Scalars> DEVICE void step(Context* ctx, List<V...> vectors, Scalars scalars) {
  List<> none;
  run(ctx, vectors, scalars, none);
}
template <class... S, class... V, class Scalars, class Last>
DEVICE void step(Context* ctx, List<V...> vectors, Scalars scalars, Last last) {
  List<Sum<S>...> sums{};
  if (!run(ctx, vectors, scalars, sums)) return;
  if constexpr (sizeof...(S) == 0) {
    if (last_to_read(ctx)) last();
  } else {
    finish(ctx, sums, last);
  }
}

template <class F> DEVICE void once(Context* ctx, F f) {
  if (!stopped(ctx) && thread_id() == 0) f();
}
template <class F> DEVICE void rows(Device ctx, int64_t n, F f) {
  if (stopped(ctx)) return;
  const int64_t i = thread_id();
  if (i < n) f(i);
}
template <class... S, class F, class Last> DEVICE void rows(Device ctx, int64_t n, F f, Last last) {
  if (stopped(ctx)) return;
  List<Sum<S>...> sums{};
  for (int64_t i = thread_id(); i < n; i += threads()) sums.apply([&](auto&... sum) { f(i, sum...); });
  finish(ctx, sums, last);
}
template <class F> DEVICE void rows_of_blocks(Device ctx, int64_t n, int64_t block, F f) {
  rows(ctx, n, [=](int64_t i) {
    const int64_t k = i / block;
    f(k, min(block, n - k * block))(i - k * block);
  });
}
template <class F> DEVICE void groups(Device ctx, int64_t n, int64_t size, F f) { rows(ctx, n, f); }
DEVICE void atomic_max(int64_t* at, int64_t value) {
  if (peek(at) < value) atomicMax(at, value);
}
