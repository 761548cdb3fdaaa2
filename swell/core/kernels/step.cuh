// Steps on a GPU; step.hpp describes them. A thread has a pack of 16 bytes at a time, in a grid-stride loop.
#pragma once
#include "judge.cuh"
#include "array.hpp"
#include "breakdown.hpp"
#include "list.hpp"
#include "pack.cuh"
#include "waiting.cuh"

#define KERNEL __global__ void __launch_bounds__(512)
#define KERNELS(...)        // the list of kernels is for CPUs

using Device = Context*;

template <class T> struct Read {
  static constexpr int size = Pack<T>::size;
  const T* data;
  int64_t n;
  Pack<T> value;
  DEVICE void begin() {}
  DEVICE void load(int64_t i) { value = ::load(data, i, n); }
  DEVICE void store(int64_t i) const {}
};
template <class T> struct Updated {
  static constexpr int size = Pack<T>::size;
  T* data;
  int64_t n;
  Pack<T> value;
  DEVICE void begin() {}
  DEVICE void load(int64_t i) { value = ::load(data, i, n); }
  DEVICE void store(int64_t i) const { ::store(data, i, n, value); }
};
template <class T> struct Written : Updated<T> {
  DEVICE void load(int64_t i) {}
  DEVICE void store(int64_t i) const {
    if (this->n) ::store(this->data, i, this->n, this->value);
  }
};

// Weights of a sum of squares; 1 if `data` is null, or if the norm of this iteration is not judged.
template <int N> struct Weights {
  const float* data;
  int64_t n;
  const Context* judged;
  struct Value {
    bool given;
    Pack<float, N> at;
    DEVICE Pack<double, N> operator*(const Pack<double, N>& square) const { return given ? wide(at) * square : square; }
  } value;
  DEVICE void begin() { value.given = n && (!judged || due(judged)); }
  DEVICE void load(int64_t i) {
    if (value.given)
#pragma unroll
      for (int e = 0; e < N; ++e) value.at.at[e] = i * N + e < n ? data[i * N + e] : 0.0f;
  }
  DEVICE void store(int64_t i) const {}
};

template <class T> DEVICE Read<T> vector(Array<const T> x) { return {x.data, x.size}; }
template <class T> DEVICE Updated<T> vector(Array<T> x) { return {x.data, x.size}; }
template <class V> DEVICE V vector(V operand) { return operand; }
template <class T> DEVICE Written<T> out(Array<T> x) { return {{x.data, x.size}}; }
template <class T> DEVICE Weights<Pack<T>::size> weights(Array<const float> w) { return {w.data, w.size, nullptr}; }
// The same in an iteration that is judged; 1 in others, where no one reads the norm.
template <class T> DEVICE Weights<Pack<T>::size> weights_if_due(const Context* ctx, Array<const float> w) {
  return {w.data, w.size, ctx};
}
template <class... V> DEVICE auto vectors(V... operands) { return list(vector(operands)...); }

template <class A> struct Sum {
  A value;
  template <int N> DEVICE void operator+=(const Pack<A, N>& more) {
#pragma unroll
    for (int e = 0; e < N; ++e) value += more.at[e];
  }
};

// The loop of a step over the packs of all vectors. True if it ran.
template <class... S, class V, class... More, class Scalars>
DEVICE bool run(Context* ctx, List<V, More...>& vectors, Scalars scalars, List<Sum<S>...>& sums) {
  if (stopped(ctx)) return false;
  const int64_t packs = (vectors.first.n + V::size - 1) / V::size;
  const auto load_all = [](int64_t i) { return [=](auto&... v) { (v.load(i), ...); }; };
  int64_t i = thread_id();
  vectors.apply([](auto&... v) { (v.begin(), ...); });
  if (i < packs) vectors.apply(load_all(i));           // these loads overlap with those of the scalars
  const auto body = scalars();
  while (i < packs) {
    vectors.apply([&](auto&... v) { sums.apply([&](auto&... sum) { body(v.value..., sum...); }); });
    vectors.apply([=](auto&... v) { (v.store(i), ...); });
    i += threads();
    if (i < packs) vectors.apply(load_all(i));
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
    double parts[(scalar<S>::parts + ...)], *at = parts;
    sums.apply([&](auto&... sum) { ((split(at, sum.value), at += scalar<S>::parts), ...); });
    if (!grid_sum(ctx, parts)) return;
    at = parts;
    sums.apply([&](auto&... sum) {
      ((join(sum.value, at), at += scalar<S>::parts), ...);
      last(sum.value...);
    });
  }
}

template <class F> DEVICE void once(Context* ctx, F f) {
  if (!stopped(ctx) && thread_id() == 0) f();
}
template <class F> DEVICE void rows(Device ctx, int64_t n, F f) {
  if (stopped(ctx)) return;
  for (int64_t i = thread_id(); i < n; i += threads()) f(i);
}
template <class F> DEVICE void groups(Device ctx, int64_t n, int64_t size, F f) { rows(ctx, n, f); }
DEVICE void atomic_max(int64_t* at, int64_t value) {
  if (peek(at) < value) atomicMax(at, value);
}
