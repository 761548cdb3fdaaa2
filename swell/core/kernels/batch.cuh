// A system of a batch on a GPU: a block solves it. batch.hpp describes the Team, and has what follows from it.
#pragma once
#include "doubled.cuh"
#include "modulus.cuh"

using Index = int;          // 64-bit numbers would take two registers

constexpr int MOST_WARPS = 16, MOST_SUMS = 7;

template <class T> DEVICE double size(T z) { return modulus<T>(z); }
template <class T> DEVICE T plus_times(T c, T a, T b) { return fused(a, b, c); }         // c + a b
template <class T> DEVICE T minus_times(T c, T a, T b) { return fused(-a, b, c); }       // c − a b

// A sum of a thread, as doubles: how many, its type, and entry i's part of it.
template <class S> struct Summed;
template <class T> struct Summed<Dot<T>> {
  static constexpr int parts = scalar<T>::parts;
  using type = acc_t<T>;
  static DEVICE void add(double* v, Dot<T> of, Index i) {
    type sum;
    join(sum, v);
    split(v, conj_fused(of.a[i], of.b[i], sum));
  }
};
template <class T> struct Summed<RealDot<T>> {
  static constexpr int parts = 1;
  using type = double;
  static DEVICE void add(double* v, RealDot<T> of, Index i) { *v += double(real(conj_mul(of.a[i], of.b[i]))); }
};

template <class... A> struct Values {};
template <class A> struct Values<A> { A a; };
template <class A, class B> struct Values<A, B> { A a; B b; };
template <class A, class B, class C> struct Values<A, B, C> { A a; B b; C c; };

template <class... S> struct Sums {
  double v[(Summed<S>::parts + ...)] = {};
  DEVICE void add(Index i, S... sums) {
    double* at = v;
    ((Summed<S>::add(at, sums, i), at += Summed<S>::parts), ...);
  }
  DEVICE Values<typename Summed<S>::type...> values() const {
    const double* at = v;
    const auto next = [&](auto value, int parts) {
      join(value, at);
      at += parts;
      return value;
    };
    return {next(typename Summed<S>::type(), Summed<S>::parts)...};
  }
};
template <> struct Sums<> {
  DEVICE void add(Index) {}
};

DEVICE double* block_parts() {
  __shared__ double parts[2 * MOST_WARPS * MOST_SUMS];
  return parts;
}

struct Team {
  static constexpr bool trusts_zero = true;      // A x is 0 for x = 0, where no product is needed to see it
  unsigned char* memory;                         // what is left of the block's dynamic shared memory
  int turn;                                      // of two buffers of `reduce`

  template <class T> DEVICE T* take(int64_t count) {
    T* taken = reinterpret_cast<T*>(memory);
    memory += count * sizeof(T);
    return taken;
  }

  DEVICE void barrier() const { __syncthreads(); }
  DEVICE bool all(bool x) const { return __syncthreads_and(x) != 0; }
  template <class F> DEVICE void once(F f) const {
    if (threadIdx.x == 0) f();
    __syncthreads();
  }

  // In a fixed order, with one barrier: buffers alternate, so that no second barrier protects the first one's readers.
  template <int S, int K> DEVICE void reduce(double (&v)[K]) {
    static_assert(S <= K && K <= MOST_SUMS, "too many numbers");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int o = 16; o; o >>= 1)
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const double other = __shfl_xor_sync(~0u, v[k], o);
        v[k] = k < S ? v[k] + other : larger(v[k], other);
      }
    double* parts = block_parts() + (turn ^= 1) * (MOST_WARPS * MOST_SUMS);
    if (lane == 0)
#pragma unroll
      for (int k = 0; k < K; ++k) parts[warp * K + k] = v[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) v[k] = parts[k];
    for (int w = 1; w < warps; ++w)
#pragma unroll
      for (int k = 0; k < K; ++k) v[k] = k < S ? v[k] + parts[w * K + k] : larger(v[k], parts[w * K + k]);
  }
  template <class... S> DEVICE auto reduced(Sums<S...>& sums) {
    if constexpr (sizeof...(S) > 0) {
      reduce<(Summed<S>::parts + ...)>(sums.v);
      return sums.values();
    }
  }

  template <class F, class... S> DEVICE auto each(Index n, F f, S... sums) {
    Sums<S...> own;
    for (Index i = threadIdx.x; i < n; i += blockDim.x) f(i), own.add(i, sums...);
    return reduced(own);
  }
  template <class... S> DEVICE auto sums(Index n, S... sums) {
    if constexpr (sizeof...(S) > 0) return each(n, [](Index) {}, sums...);
  }
  template <class F> DEVICE void block_rows(Index n, Index s, F f) {
    each(n, [=](Index i) { f(i, i / s * s, min(i / s * s + s, n)); });
  }

  // finish(i, (A v)_i, Σ_j |a_ij|, Σ_j |a_ij v_j|) for each row, in the first of the lanes that share it; the sizes are
  // computed if SIZES is 1.
  template <int SIZES, class T, class F> DEVICE void each_row(const System<T>& A, const T* v, F finish) {
    __syncthreads();
    const int part = threadIdx.x % A.lanes, group = threadIdx.x / A.lanes, groups = blockDim.x / A.lanes;
    for (int first = 0; first < A.n; first += groups) {
      const int i = first + group;
      T sum = T(0);
      double of_row = 0, terms = 0;
      if (i < A.n) {
        const int begin = A.indptr[i], length = A.indptr[i + 1] - begin;
#pragma unroll 4
        for (int e = part; e < length; e += A.lanes) {
          const T a = A.a[begin + e];
          const T own = v[A.ell[e * A.n + i]];
          sum = fused(a, own, sum);
          if (SIZES) of_row += size(a), terms += size(a) * size(own);
        }
      }
      for (int o = A.lanes / 2; o; o >>= 1) {
        sum = sum + shuffle_xor(sum, o);
        if (SIZES) of_row += shuffle_xor(of_row, o), terms += shuffle_xor(terms, o);
      }
      if (part == 0 && i < A.n) finish(i, sum, of_row, terms);
    }
  }
  template <class T, class... S> DEVICE auto product(const System<T>& A, const T* v, T* out, S... sums) {
    Sums<S...> own;
    each_row<0>(A, v, [&](Index i, T sum, double, double) { out[i] = sum, own.add(i, sums...); });
    return reduced(own);
  }
  template <class T, class F> DEVICE void residual(const System<T>& A, Column<const T> b, const T* x, F f) {
    each_row<1>(A, x, [&](Index i, T sum, double of_row, double terms) {
      f(i, b[i] - sum, of_row, size(b[i]) + terms);
    });
  }

  // A warp computes a whole inner product.
  template <class T> DEVICE void dots(const T* V, Index count, const T* w, Index n, acc_t<T>* h) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    __syncthreads();
    for (int i = warp; i < count; i += warps) {
      acc_t<T> sum(0);
      for (int k = lane; k < n; k += 32) sum = conj_fused(V[i * n + k], w[k], sum);
      for (int o = 16; o; o >>= 1) sum = sum + shuffle_xor(sum, o);
      if (lane == 0) h[i] = sum;
    }
    __syncthreads();
  }
  template <class T, class F> DEVICE void combine(Index n, T* w, Index count, F f) {
    each(n, [=](Index k) {
      T value = w[k];
      for (Index i = 0; i < count; ++i) f(i)(k, value);
      w[k] = value;
    });
  }

  // Rows of a level are independent; a barrier precedes each level.
  template <class F> DEVICE void level_by_level(const int* levels, int count, const int* order, F f) {
    for (int l = 0; l < count; ++l) {
      __syncthreads();
      for (int at = levels[l] + threadIdx.x; at < levels[l + 1]; at += blockDim.x) f(order[at]);
    }
  }
  template <class T, class F> DEVICE void forward(const Preconditioner<T>& M, Index, F f) {
    level_by_level(M.lower, M.lower_levels, M.order, f);
  }
  template <class T, class F> DEVICE void backward(const Preconditioner<T>& M, Index, F f) {
    level_by_level(M.upper, M.upper_levels, M.order, f);
  }
};

// Σ a_k x_{indices[k]} over the entries k = begin to end − 1.
template <class T> DEVICE T row_product(const int* indices, const T* a, const T* x, Index begin, Index end) {
  T sum(0);
  for (Index k = begin; k < end; ++k) sum = fused(a[k], x[indices[k]], sum);
  return sum;
}

// This thread's part of ‖r‖² for r = b − A x in doubled precision. A call, since it would take registers from the loop.
template <class T>
__device__ __noinline__ double precise_square(const System<T>& A, Column<const T> b, const T* x, T* r) {
  double square = 0;
  for (Index i = threadIdx.x; i < A.n; i += blockDim.x) {
    acc_t<T> high(b[i]), rest(0);
    for (Index k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
      minus_product(high, rest, acc_t<T>(A.a[k]), acc_t<T>(x[A.indices[k]]));
    square += double(abs2(high + rest));
    r[i] = T(high + rest);
  }
  return square;
}

// A system's values: in shared memory if HELD, loaded side by side, else where they are.
template <int HELD, class T> DEVICE const T* values_of(Team& team, Array<const T> values) {
  if (!HELD) return values.data;
  const int nnz = values.size;
  T* held = team.take<T>(nnz);
#pragma unroll 8
  for (int k = threadIdx.x; k < nnz; k += blockDim.x) held[k] = values[k];
  __syncthreads();
  return held;
}

// f(team, s) for each system s, a block each.
template <class T, class F> DEVICE void each_system(Device ctx, const Table<const T>& values, F f) {
  if (stopped(ctx)) return;
  extern __shared__ __align__(16) unsigned char block_memory[];
  Team team{block_memory, 0};
  f(team, int64_t(blockIdx.x));
}
