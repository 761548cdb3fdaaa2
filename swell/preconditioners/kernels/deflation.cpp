// The two projections of deflation on a CPU; deflation.cu is the GPU's version.
//
// The rows of V, U and W are vectors of type B: T, or single precision. All arithmetic has T's precision; sums are in
// double precision.
#include <vector>

#include "../../core/native/launcher.hpp"
#include "../../core/native/products.hpp"

namespace {

constexpr int64_t TILE = 2048;         // rows of a tile: tiles of a vector and four rows fit in the cache of a core

// Write sums[j] = the product of row j of V with x, Σ V_jk x_k; with `conjugate`, Σ conj(V_jk) x_k.
template <class T, class B>
void dots(Table<const B> V, Array<const T> x, Array<acc_t<T>> sums, bool conjugate) {
  using A = acc_t<T>;
  const int64_t n = x.size, count = sums.size, tiles = (n + TILE - 1) / TILE, parts = std::min(tiles, CHUNKS);
  const bool swap = scalar<T>::parts > 1 && !conjugate;        // Σ V x = conj(Σ conj(V) conj(x))
  std::vector<A> partial(parts * count, A(0));
  A* const all = partial.data();
  parallel_for(n, parts, [=](int64_t part) {
    A* const mine = all + part * count;
    T held[TILE];
    for (int64_t tile = chunk_begin(tiles, part, parts); tile < chunk_begin(tiles, part + 1, parts); ++tile) {
      const int64_t lo = tile * TILE, rows = std::min(n, lo + TILE) - lo;
      if (swap) for (int64_t i = 0; i < rows; ++i) held[i] = conj(x[lo + i]);
      const T* const own = swap ? held : x.data + lo;
      add_row_products<false>(V, 0, count, lo, rows, own, own, mine, mine);
    }
  });
  for (int64_t j = 0; j < count; ++j) {
    A total(0);
    for (int64_t part = 0; part < parts; ++part) total += all[part * count + j];
    sums[j] = swap ? conj(total) : total;
  }
}

// Write y = E⁻¹ s; if `again`, y = y − E⁻¹ s with the y on entry. `inverse` is E⁻¹, k × k; `sums` is s.
template <class A> void coefficients(Table<const A> inverse, Array<const A> sums, Array<A> y, bool again) {
  for (int64_t i = 0; i < y.size; ++i) {
    A total = again ? -y[i] : A(0);
    for (int64_t j = 0; j < y.size; ++j) total += inverse[i][j] * sums[j];
    y[i] = again ? -total : total;
  }
}

// Return `sign` y, or its conjugate. (The sum with conjugate rows is conj(conj(x) + Σ conj(y_j) V_j).)
template <class A> std::vector<A> weights(Array<const A> y, double sign, bool conjugate) {
  std::vector<A> made(y.size);
  for (int64_t j = 0; j < y.size; ++j) made[j] = sign * (conjugate ? conj(y[j]) : y[j]);
  return made;
}

template <class T> void conjugate_all(Array<T> x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = conj(x[i]);
}

// Add Σ y_j V_j to the n rows from `lo` on, which are x; with `conjugate`, Σ conj(y_j V_j).
template <class T, class B, class A>
void add_tile(Table<const B> V, Array<const A> y, int64_t lo, int64_t n, Array<T> x, bool conjugate) {
  if (conjugate) conjugate_all(x, n);
  for (int64_t j = 0; j < y.size; j += 4) {
    const FourRows<T, B> rows(V, j, y.size, lo);
    const Coefficients<T> by(y, j, y.size);
    tile_elements<T>(n, [=](auto i) { store(x, i, load(x, i) + combined(rows, by, i)); });
  }
  if (conjugate) conjugate_all(x, n);
}

// Write out = x − Σ y_j W_j, with the rows W_j of W; with `conjugate`, the conjugates of W_j.
template <class T, class B>
void subtract(Table<const B> W, Array<const acc_t<T>> y, Array<const T> x, Array<T> out, bool conjugate) {
  const bool swap = scalar<T>::parts > 1 && conjugate;
  const auto minus = weights(y, -1, swap);
  const Array<const acc_t<T>> by{minus.data(), y.size};
  tiles(x.size, TILE, [=](int64_t lo, int64_t hi) {
    if (x.data != out.data) std::copy(x.data + lo, x.data + hi, out.data + lo);
    add_tile(W, by, lo, hi - lo, out.from(lo), swap);
  });
}

// Write out = α (z + Σ y_j U_j) + β out, with the rows U_j of U; with `conjugate`, the conjugates of U_j. Overwrites z.
// β = 0 never reads out.
template <class T, class B>
void correct(Table<const B> U, Array<const acc_t<T>> y, Array<T> z, Array<T> out, T alpha, T beta, bool conjugate) {
  const bool swap = scalar<T>::parts > 1 && conjugate;
  const auto given = weights(y, 1, swap);
  const Array<const acc_t<T>> by{given.data(), y.size};
  tiles(z.size, TILE, [=](int64_t lo, int64_t hi) {
    const Array<T> x = z.from(lo), to = out.from(lo);
    add_tile(U, by, lo, hi - lo, x, swap);
    if (beta == T(0)) tile_elements<T>(hi - lo, [=](auto i) { store(to, i, alpha * load(x, i)); });
    else tile_elements<T>(hi - lo, [=](auto i) { store(to, i, alpha * load(x, i) + beta * load(to, i)); });
  });
}

// Write W = P₀ + t P₁ + t² P₂, arrays of one shape; t is a number.
template <class B> void polynomial(Table<const B> P0, Table<const B> P1, Table<const B> P2, double t, Table<B> W) {
  for (int64_t j = 0; j < W.rows; ++j) {
    const Array<const B> p0 = P0[j], p1 = P1[j], p2 = P2[j];
    const Array<B> w = W[j];
    each(w.size, [=](int64_t k) { w[k] = B(wide(p0[k]) + t * (wide(p1[k]) + t * wide(p2[k]))); });
  }
}

}  // namespace

#define SINGLE(f) INSTANCE(f, double, float), INSTANCE(f, float, float), INSTANCE(f, complex<double>, complex<float>), \
    INSTANCE(f, complex<float>, complex<float>)
#define BASES(f) SINGLE(f), INSTANCE(f, double, double), INSTANCE(f, complex<double>, complex<double>)
KERNELS("swell.preconditioners.deflation", BASES(dots), SUMS(coefficients), BASES(subtract), SINGLE(correct),
        INSTANCE(polynomial, float), INSTANCE(polynomial, complex<float>))
