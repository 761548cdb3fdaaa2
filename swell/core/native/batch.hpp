// A system of a batch on a CPU: one thread solves it. kernels/batch.hpp describes the Team, and has what follows.
#pragma once
#include <utility>
#include <vector>

#include "../../formats/kernels/doubled.hpp"
#include "../../formats/kernels/rows.hpp"
#include "../../formats/kernels/sums.hpp"
#include "launcher.hpp"
#include "products.hpp"

// The four value types; HELD is for a GPU.
#define SYSTEMS(f) INSTANCE(f, double, 0), INSTANCE(f, float, 0), INSTANCE(f, complex<double>, 0), \
    INSTANCE(f, complex<float>, 0)

using Index = int64_t;

template <class T> T plus_times(T c, T a, T b) { return c + a * b; }
template <class T> T minus_times(T c, T a, T b) { return c - a * b; }

// Sums over n elements, without the chunks of `sums` in lanes.hpp, which cost more than a short vector. Real and
// imaginary parts are one real vector.
template <class T> acc_t<T> total(Dot<T> of, Index n) {
  acc_t<T> sum(0);
  add_products<false, 8>(std::integer_sequence<int, 0>(), &of.a, of.b, of.b, n, &sum, &sum);
  return sum;
}
template <class T> double total(RealDot<T> of, Index n) {
  using R = real_t<T>;
  const auto parts = [](const T* v) { return reinterpret_cast<const R*>(v); };
  return total(Dot<R>{parts(of.a), parts(of.b)}, n * scalar<T>::parts);
}

class Team {
  std::vector<std::vector<unsigned char>> held;
  size_t taken = 0;

public:
  static constexpr bool trusts_zero = false;

  // The next system takes the same memory.
  void begin() { taken = 0; }
  template <class T> T* take(int64_t count) {
    if (taken == held.size()) held.emplace_back(count * sizeof(T));
    return reinterpret_cast<T*>(held[taken++].data());
  }

  void barrier() const {}
  bool all(bool x) const { return x; }
  template <class F> void once(F f) const { f(); }
  template <int S, int K> void reduce(double (&)[K]) const {}

  template <class... S> auto sums(Index n, S... sums) const {
    return std::tuple<decltype(total(sums, n))...>{total(sums, n)...};
  }
  template <class F, class... S> auto each(Index n, F f, S... sums) const {
    for (Index i = 0; i < n; ++i) f(i);
    return this->sums(n, sums...);
  }
  template <class F> void block_rows(Index n, Index s, F f) const {
    for (Index first = 0; first < n; first += s)
      for (Index i = first, end = std::min(first + s, n); i < end; ++i) f(i, first, end);
  }
  template <class T, class... S> auto product(const System<T>& A, const T* v, T* out, S... sums) const {
    return each(A.n, [=](Index i) { out[i] = row_product(A.indices, A.a, v, A.indptr[i], A.indptr[i + 1]); }, sums...);
  }
  template <class T, class F> void residual(const System<T>& A, Column<const T> b, const T* x, F f) const {
    for (Index i = 0; i < A.n; ++i) {
      double of_row = 0, terms = size(b[i]);
      for (Index k = A.indptr[i]; k < A.indptr[i + 1]; ++k) {
        const double of_a = size(A.a[k]);
        of_row += of_a, terms += of_a * size(x[A.indices[k]]);
      }
      f(i, b[i] - row_product(A.indices, A.a, x, A.indptr[i], A.indptr[i + 1]), of_row, terms);
    }
  }
  template <class T> void dots(const T* V, Index count, const T* w, Index n, acc_t<T>* h) const {
    std::fill(h, h + count, acc_t<T>(0));
    add_row_products<false>(Table<const T>{V, count, n, n}, 0, count, 0, n, w, w, h, h);
  }
  template <class T, class F> void combine(Index n, T* w, Index count, F f) const {
    for (Index i = 0; i < count; ++i) {
      const auto add = f(i);
      for (Index k = 0; k < n; ++k) add(k, w[k]);
    }
  }
  template <class T, class F> void forward(const Preconditioner<T>&, Index n, F f) const { each(n, f); }
  template <class T, class F> void backward(const Preconditioner<T>&, Index n, F f) const {
    for (Index i = n; i--;) f(i);
  }
};

// ‖r‖² for r = b − A x in doubled precision.
template <class T> double precise_square(const System<T>& A, Column<const T> b, const T* x, T* r) {
  double square = 0;
  for (Index i = 0; i < A.n; ++i) {
    acc_t<T> high(b[i]), rest(0);
    for (Index k = A.indptr[i]; k < A.indptr[i + 1]; ++k)
      subtract(high, rest, acc_t<T>(A.a[k]), acc_t<T>(x[A.indices[k]]));
    square += abs2(high + rest);
    r[i] = T(high + rest);
  }
  return square;
}

template <int, class T> const T* values_of(Team&, Array<const T> values) { return values.data; }

// f(team, s) for each system s; threads share the systems.
template <class T, class F> void each_system(Device, const Table<const T>& values, F f) {
  ranges(values.rows, values.rows * values.columns, [=](int64_t begin, int64_t end) {
    Team team;
    for (int64_t s = begin; s < end; ++s) {
      team.begin();
      f(team, s);
    }
  });
}
