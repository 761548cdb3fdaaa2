// Steps over vectors in the rows of tables, such as a basis, for both devices. Their number is known at run time only:
// the body gets a place in the vectors, and loops over them.
//
//     // v = r − Σ γ_j g_j
//     packs(ctx, v, [=] {                                     // every thread does this
//       return [=](auto i) {                                  // for places i of neighbouring elements
//         auto value = load(r, i);
//         for (int64_t j = 0; j < G.rows; ++j) value = value - T(gamma[j]) * load(G[j], i);
//         store(v, i, value);
//       };
//     });
//
//     packs<types of sums...>(ctx, v, scalars, last)
//                             as `step`, for the places in the vector v: body(i, sums...)
//     products<S>(ctx, V, y, out, last)
//                             out = (v_k, y) for the S rows v_k of V, and out[S] = (y, y)
//     products<S, types of sums...>(ctx, V, y, out, scalars, last)
//                             the same, after `packs` in y with a body(i, sums...) that returns y at i
//     products(device, V, x, out, conjugate)
//                             out = Σ conj(V_k) x, or, without `conjugate`, Σ V_k x, for out.size rows V_k of V: any
//                             number, in 2 blocks a multiprocessor
//     plus_rows(device, x, sign, y, V, conjugate, f)
//                             f(i, x + sign Σ y_k V_k) for all places i, with y.size rows V_k of V, or their conjugates
//     gram<S>(ctx, V, out, last)
//                             out = (v_j, v_k) for j ≤ k, by k, of the S rows of V
//
// S: a template argument on a GPU, whose sums lie in registers; 0 on a CPU, where tiles of all vectors lie in a cache.
#pragma once
#include "step.hpp"
#ifdef __CUDACC__

template <int N> struct Place { int64_t i, n; };       // pack i of N values of n elements
template <class T, int N> DEVICE auto load(Array<T> x, Place<N> at) {
  return ::load<N>(x.data, at.i, at.n);
}
template <class T, int N> DEVICE void store(Array<T> x, Place<N> at, const Pack<T, N>& value) {
  ::store(x.data, at.i, at.n, value);
}

// Values of type B in the type T.
template <class T, class B, int N> DEVICE auto as(const Pack<B, N>& values) {
  return mapped(values, [](B value) { return T(value); });
}

// N sums of the type A, as one.
template <class A, int N> struct Many { Sum<A> of[N]; };
template <class A, int N> struct scalar<Many<A, N>> { static constexpr int parts = N * scalar<A>::parts; };
template <class A, int N> DEVICE void split(double* v, const Many<A, N>& sums) {
#pragma unroll
  for (int k = 0; k < N; ++k) split(v + k * scalar<A>::parts, sums.of[k].value);
}
template <class A, int N> DEVICE void join(Many<A, N>& sums, const double* v) {
#pragma unroll
  for (int k = 0; k < N; ++k) join(sums.of[k].value, v + k * scalar<A>::parts);
}
template <class A, int N> DEVICE void write(const Many<A, N>& sums, Array<A> out) {
  for (int k = 0; k < N; ++k) out[k] = sums.of[k].value;
}

template <class... S, class T, class Scalars>
DEVICE bool visit_places(Context* ctx, Array<T> x, Scalars scalars, List<Sum<S>...>& sums) {
  if (stopped(ctx)) return false;
  constexpr int N = Pack<T>::size;
  const int64_t n = x.size;
  const auto body = scalars();
  for (int64_t i = thread_id(); i < (n + N - 1) / N; i += threads())
    sums.apply([&](auto&... sum) { body(Place<N>{i, n}, sum...); });
  return true;
}
template <class T, class Scalars> DEVICE void packs(Context* ctx, Array<T> x, Scalars scalars) {
  List<> none;
  visit_places(ctx, x, scalars, none);
}
template <class... S, class T, class Scalars, class Last>
DEVICE void packs(Context* ctx, Array<T> x, Scalars scalars, Last last) {
  List<Sum<S>...> sums{};
  if (!visit_places(ctx, x, scalars, sums)) return;
  if constexpr (sizeof...(S) == 0) {
    if (last_to_read(ctx)) last();
  } else {
    finish(ctx, sums, last);
  }
}

template <int S, class... More, class B, class T, class A, class Scalars, class Last>
DEVICE void products(Context* ctx, Table<const B> V, Array<T> y, Array<A> out, Scalars scalars, Last last) {
  packs<Many<A, S>, double, More...>(ctx, y, [&] {
    const auto body = scalars();
    return [=](auto i, auto& products, auto& yy, auto&... more) {
      const auto value = wide(body(i, more...));
#pragma unroll
      for (int k = 0; k < S; ++k) products.value.of[k] += conj(wide(load(V[k], i))) * value;
      yy += abs2(value);
    };
  }, [&](const Many<A, S>& products, double yy, auto... more) {
    write(products, out);
    out[S] = A(yy);
    last(more...);
  });
}
template <int S, class B, class T, class A, class Last>
DEVICE void products(Context* ctx, Table<const B> V, Array<T> y, Array<A> out, Last last) {
  products<S>(ctx, V, y, out, [=] { return [=](auto i) { return load(y, i); }; }, last);
}
template <class T, class A, class B, class F>
DEVICE void plus_rows(Device ctx, Array<const T> x, double sign, Array<const A> y, Table<const B> V, bool conjugate,
                      F f) {
  packs(ctx, x, [=] {
    return [=](auto i) {
      auto sum = load(x, i);
      for (int64_t k = 0; k < y.size; ++k) {
        const auto v = as<T>(load(V[k], i));
        sum = sum + T(sign * y[k]) * (conjugate ? conj(v) : v);
      }
      f(i, sum);
    };
  });
}
// A block has a batch of rows of V and a share of the elements; the last block adds up the shares.
template <class B, class T, class A>
DEVICE void products(Device ctx, Table<const B> V, Array<const T> x, Array<A> out, bool conjugate) {
  if (stopped(ctx)) return;
  constexpr int BATCH = 8, N = Pack<T>::size, P = scalar<A>::parts;
  const int many = out.size, batches = (many + BATCH - 1) / BATCH, shares = max(1, int(gridDim.x) / batches);
  const int64_t places = (x.size + N - 1) / N;
  for (int task = blockIdx.x; task < batches * shares; task += gridDim.x) {
    const int first = task % batches * BATCH, share = task / batches;
    const int64_t to = places * (share + 1) / shares;
    Many<A, BATCH> sums{};
    for (int64_t k = places * share / shares + threadIdx.x; k < to; k += blockDim.x) {
      const Place<N> i{k, x.size};
      const auto value = wide(load(x, i));
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        const auto v = wide(load(V[min(first + b, many - 1)], i));
        sums.of[b] += (conjugate ? conj(v) : v) * value;
      }
    }
    double parts[BATCH * P];
    split(parts, sums);
    block_sum(parts);
    if (threadIdx.x == 0)
      for (int k = 0; k < min(BATCH, many - first) * P; ++k)
        ctx->partials[(int64_t(share) * many + first) * P + k] = parts[k];
    __syncthreads();
  }
  if (!last_block(ctx)) return;
  for (int k = threadIdx.x; k < many; k += blockDim.x) {
    A total(0);
    for (int share = 0; share < shares; ++share) {
      double parts[P];
      for (int p = 0; p < P; ++p) parts[p] = __ldcg(ctx->partials + (int64_t(share) * many + k) * P + p);
      A more;
      join(more, parts);
      total += more;
    }
    out[k] = total;
  }
}
template <int S, class T, class A, class Last>
DEVICE void gram(Context* ctx, Table<const T> V, Array<A> out, Last last) {
  packs<Many<A, S * (S + 1) / 2>>(ctx, V[0], [=] {
    return [=](auto i, auto& sums) {
      decltype(load(V[0], i)) v[S];
#pragma unroll
      for (int k = 0; k < S; ++k) v[k] = load(V[k], i);
#pragma unroll
      for (int k = 0; k < S; ++k)
#pragma unroll
        for (int j = 0; j <= k; ++j) sums.value.of[k * (k + 1) / 2 + j] += conj(wide(v[j])) * wide(v[k]);
    };
  }, [&](const auto& sums) {
    write(sums, out);
    last();
  });
}
#else
#include "../native/products.hpp"

constexpr int64_t TILE = 512;          // tiles of all vectors fit in the cache of a core

// out = (v_k, y) for the rows v_k of V, then (y, y).
template <class T, class B, class A> void row_products(Table<const B> V, Array<const T> y, Array<A> out) {
  const int64_t count = V.rows;
  tile_sums(y.size, TILE, count + 1, out, [=](int64_t lo, int64_t rows, A* sums) {
    const T* const own = y.data + lo;
    add_row_products<false>(V, 0, count, lo, rows, own, own, sums, sums);
    add_products<false, 16 / scalar<A>::parts>(std::integer_sequence<int, 0>(), &own, own, own, rows, sums + count,
                                               sums);
  });
}

template <class... S, class D, class T, class Scalars, class Last>
void packs(D, Array<T> x, Scalars scalars, Last last) {
  const auto body = scalars();
  if constexpr (sizeof...(S) == 0) packs(x.size, body), last();
  else std::apply(last, sums<S...>(x.size, [body](auto i, auto&... sum) ALWAYS_INLINE {
    const auto visit = [&](auto... own) ALWAYS_INLINE { body(i, own...); };
    visit(Adding<S, decltype(i)>{sum, i}...);
  }));
}
template <class D, class T, class Scalars> void packs(D device, Array<T> x, Scalars scalars) {
  packs(device, x, scalars, [] {});
}

template <int S, class B, class T, class A, class Last>
void products(Context*, Table<const B> V, Array<T> y, Array<A> out, Last last) {
  row_products<bare<T>>(V, y, out);
  last();
}
template <int S, class... More, class B, class T, class A, class Scalars, class Last>
void products(Context* ctx, Table<const B> V, Array<T> y, Array<A> out, Scalars scalars, Last last) {
  packs<More...>(ctx, y, scalars, [=](auto... more) {
    products<S>(ctx, V, y, out, [=] { last(more...); });
  });
}
constexpr int64_t WIDE_TILE = 2048;    // tiles of a vector and four rows fit in the cache of a core

template <int N> Rows<N> moved(Rows<N> i, int64_t by) { return {i.first + by}; }
inline Tail moved(Tail i, int64_t by) { return {i.first + by, i.count}; }
inline int64_t moved(int64_t i, int64_t by) { return i + by; }

// Four rows of V at a time. With `conjugate`, the sum is conj(conj(x) + Σ conj(y_k) V_k).
template <class T, class A, class B, class F>
void plus_rows(Device, Array<const T> x, double sign, Array<const A> y, Table<const B> V, bool conjugate, F f) {
  const bool swap = scalar<T>::parts > 1 && conjugate;
  std::vector<A> by(y.size);
  for (int64_t k = 0; k < y.size; ++k) by[k] = sign * (swap ? conj(y[k]) : y[k]);
  const Array<const A> factors{by.data(), y.size};
  tiles(x.size, WIDE_TILE, [=](int64_t lo, int64_t hi) {
    const int64_t n = hi - lo;
    T held[WIDE_TILE];
    const Array<T> sum{held, n};
    for (int64_t i = 0; i < n; ++i) held[i] = swap ? conj(x[lo + i]) : x[lo + i];
    for (int64_t k = 0; k < y.size; k += 4) {
      const FourRows<T, B> rows(V, k, y.size, lo);
      const Coefficients<T> c(factors, k, y.size);
      tile_elements<T>(n, [=](auto i) { store(sum, i, load(sum, i) + combined(rows, c, i)); });
    }
    if (swap) for (int64_t i = 0; i < n; ++i) held[i] = conj(held[i]);
    tile_elements<T>(n, [=](auto i) { f(moved(i, lo), load(sum, i)); });
  });
}
template <class B, class T, class A>
void products(Device, Table<const B> V, Array<const T> x, Array<A> out, bool conjugate) {
  const bool swap = scalar<T>::parts > 1 && !conjugate;        // Σ V x = conj(Σ conj(V) conj(x))
  tile_sums(x.size, WIDE_TILE, out.size, out, [=](int64_t lo, int64_t rows, A* sums) {
    T held[WIDE_TILE];
    if (swap) for (int64_t i = 0; i < rows; ++i) held[i] = conj(x[lo + i]);
    const T* const own = swap ? held : x.data + lo;
    add_row_products<false>(V, 0, out.size, lo, rows, own, own, sums, sums);
  });
  if (swap) for (int64_t k = 0; k < out.size; ++k) out[k] = conj(out[k]);
}
template <int S, class T, class A, class Last> void gram(Context*, Table<const T> V, Array<A> out, Last last) {
  tile_sums(V.columns, TILE, V.rows * (V.rows + 1) / 2, out, [=](int64_t lo, int64_t rows, A* sums) {
    for (int64_t k = 0; k < V.rows; ++k) {
      const T* const y = V[k].data + lo;
      A* const own = sums + k * (k + 1) / 2;
      add_row_products<false>(V, 0, k + 1, lo, rows, y, y, own, own);
    }
  });
  last();
}
#endif
