// Fused steps of GMRES(m) on a CPU; gmres.cu has the same kernels for a GPU. Notation of krylov/restarted.py.
//
// `ctx` is the judge's record. `V`, shape (m, n), holds the finished basis vectors in its rows, of type B: T, or single
// precision. `u` is the candidate, `w` = A M u. `sums`: s from 0 on, t from m on, GMRESSums of krylov/slots.py from 2 m
// on. `H`, `R`: the Hessenberg matrix and its triangular factor, shape (m + 1, m); `rotations`, shape (m, 2): cosine
// and sine of each Givens rotation; `g`: the rotated right-hand side, m + 1 entries. `small`: scalars, indexed by GMRES
// of krylov/slots.py. columns[0]: number of finished columns in this cycle. `norm2`: Norms of the residual. `j`: number
// of finished basis vectors.
#include "slots/swell/krylov/gmres.hpp"

#include <vector>

#include "../../core/kernels/breakdown.hpp"
#include "../../core/native/context.hpp"
#include "../../core/native/launcher.hpp"
#include "../../core/native/products.hpp"

namespace {

constexpr double USELESS = 0x1p-50;    // the new part of a column of R, relative to the rest, taken for rounding
constexpr int64_t TILE = 2048;         // tiles of u, w and four basis vectors fit in the cache of a core

template <class A> int64_t length(Array<A> sums) { return (sums.size - 3) / 2; }

// x −= V s and y −= V t for the basis vectors from `begin` to `end`; x and y are the n rows from `lo` on.
template <class T, class B, class A>
void subtract_tile(Table<const B> V, Array<const A> sums, int64_t begin, int64_t end, int64_t lo, int64_t n, Array<T> x,
                   Array<T> y) {
  for (int64_t k = begin; k < end; k += 4) {
    const FourRows<T, B> rows(V, k, end, lo);
    const Coefficients<T> s(sums, k, end), t(sums.from(length(sums)), k, end);
    tile_elements<T>(n, [=](auto i) {
      store(x, i, load(x, i) - combined(rows, s, i));
      store(y, i, load(y, i) - combined(rows, t, i));
    });
  }
}

// Start a cycle: u = r / ‖r‖, where u holds r on entry;  g = ‖r‖ e₀;  columns[0] = 0.
template <class T>
void first(Context* ctx, Array<T> u, Array<const acc_t<T>> norm2, Array<acc_t<T>> g, Array<int32_t> columns) {
  const double beta = sqrt(real(norm2[OWN2]));
  set_ratio(ctx, real(norm2[JUDGED2]), real(norm2[OWN2]));
  const real_t<T> scale(beta > 0 ? 1 / beta : 0.0);
  elements(u, [=](auto i) { store(u, i, scale * load(u, i)); });
  for (int64_t i = 0; i < g.size; ++i) g[i] = acc_t<T>(i == 0 ? beta : 0.0);
  columns[0] = 0;
}

// s = Vᴴ u and t = Vᴴ w for the basis vectors from `begin` to `end`; if `begin` is 0, also (u, u), (u, w) and (w, w).
// Does nothing after the last iteration: the next basis vector was not written.
template <class T, class B>
void dots(Context* ctx, Table<const B> V, Array<const T> u, Array<const T> w, Array<acc_t<T>> sums, int64_t begin,
          int64_t end) {
  using A = acc_t<T>;
  if (over(ctx)) return;
  const int64_t n = w.size, m = length(sums), many = max<int64_t>(0, end - begin), count = 2 * many + 3;
  const int64_t tiles = (n + TILE - 1) / TILE, parts = min(tiles, CHUNKS);
  std::vector<A> partial(parts * count, A(0));
  A* const all = partial.data();
  parallel_for(n, parts, [=](int64_t part) {
    A *const mine = all + part * count, *const three = mine + 2 * many;
    for (int64_t tile = chunk_begin(tiles, part, parts); tile < chunk_begin(tiles, part + 1, parts); ++tile) {
      const int64_t lo = tile * TILE, rows = min(n, lo + TILE) - lo;
      const T *const x = u.data + lo, *const y = w.data + lo;
      add_row_products<true>(V, begin, end, lo, rows, x, y, mine, mine + many);
      if (begin > 0) continue;
      const T* const both[] = {x, y};
      A of_x[2] = {A(0), A(0)}, of_y[2] = {A(0), A(0)};
      add_products<true, 4>(std::make_integer_sequence<int, 2>(), both, x, y, rows, of_x, of_y);
      three[UU] += of_x[0], three[UW] += of_y[0], three[WW] += of_y[1];
    }
  });
  for (int64_t i = 0; i < many; ++i) sums[begin + i] = sums[m + begin + i] = A(0);
  if (begin == 0) sums[2 * m] = sums[2 * m + 1] = sums[2 * m + 2] = A(0);
  for (int64_t part = 0; part < parts; ++part) {
    const A* const mine = all + part * count;
    for (int64_t i = 0; i < many; ++i) sums[begin + i] += mine[i], sums[m + begin + i] += mine[many + i];
    if (begin == 0)
      for (int64_t i = 0; i < 3; ++i) sums[2 * m + i] += mine[2 * many + i];
  }
}

// u −= V s and w −= V t for the basis vectors from `begin` to `end`; `update` must then skip these vectors.
template <class T, class B>
void subtract(Context* ctx, Table<const B> V, Array<T> u, Array<T> w, Array<const acc_t<T>> sums, int64_t begin,
              int64_t end) {
  tiles(w.size, TILE, [=](int64_t lo, int64_t hi) {
    subtract_tile(V, sums, begin, end, lo, hi - lo, u.from(lo), w.from(lo));
  });
}

// Apply Givens rotations to column k of R, whose entries 0..k+1 are filled, and to g: the k stored ones, then a new
// one, which makes R[k+1, k] zero. Return |g[k+1]|, the residual norm, or −1 if all but rounding errors of the column
// depends on the columns before it.
template <class A> double rotate(Table<A> R, Table<A> rotations, Array<A> g, int64_t k) {
  double norm2 = 0;
  for (int64_t i = 0; i < k; ++i) {
    const double c = real(rotations[i][0]);
    const A sine = rotations[i][1], a = R[i][k], b = R[i + 1][k];
    R[i][k] = c * a + sine * b;
    R[i + 1][k] = c * b - conj(sine) * a;
    norm2 += abs2(R[i][k]);
  }
  const A a = R[k][k], b = R[k + 1][k];
  const double of_a = modulus(a), of_b = modulus(b), size = hypot(of_a, of_b);
  if (size <= USELESS * sqrt(norm2)) return -1;
  const double c = of_a / size;
  const A sine = of_a == 0 ? divided(conj(b), of_b) : divided(divided(a, of_a) * conj(b), size);
  R[k][k] = c * a + sine * b;
  R[k + 1][k] = A(0);
  rotations[k][0] = A(c), rotations[k][1] = sine;
  g[k + 1] = -conj(sine) * g[k];
  g[k] = c * g[k];
  return modulus(g[k + 1]);
}

// α = ‖u − V s‖ by Pythagoras: u was orthogonalised once, so s is small and nothing cancels.
template <class A> double norm_after_pass(Array<const A> sums, int64_t j) {
  double left = real(sums[2 * length(sums) + UU]);
  for (int64_t i = 0; i < j; ++i) left -= abs2(sums[i]);
  return sqrt(max(left, 0.0));
}

// Add the second pass's coefficients to column j − 1 of H, rotate it in R and g, and test the residual norm after j
// steps; columns[0] = j. A zero column stops the cycle as BREAKDOWN.
template <class A>
void finish_column(Context* ctx, Array<const A> sums, Table<A> H, Table<A> R, Table<A> rotations, Array<A> g,
                   Array<A> small, Array<int32_t> columns, int64_t j, double alpha) {
  const int64_t k = j - 1;
  const double gamma = real(small[GAMMA]);
  for (int64_t i = 0; i < j; ++i) H[i][k] += gamma * sums[i];
  H[j][k] = A(gamma * alpha);
  for (int64_t i = 0; i <= j; ++i) R[i][k] = H[i][k];
  const double estimate = rotate(R, rotations, g, k);
  if (estimate < 0) {                              // A is singular on this space: the column is useless
    pause(ctx, BREAKDOWN);
    return;
  }
  columns[0] = int32_t(j);
  judge_inner(ctx, estimate * estimate);
}

// Finish v_j, written to V[j], and column j − 1 of H; set the next candidate u = (A v_j − [V, v_j] h) / γ, and column j
// of H. `subtract` has already handled the basis vectors before `begin`. `flexible`: M varies (FGMRES), so A M is not
// linear.
template <class T, class B>
void update(Context* ctx, Table<B> V, Array<T> u, Array<const T> w, Array<const acc_t<T>> sums, Table<acc_t<T>> H,
            Table<acc_t<T>> R, Table<acc_t<T>> rotations, Array<acc_t<T>> g, Array<acc_t<T>> small,
            Array<int32_t> columns, int64_t begin, int64_t j, bool flexible) {
  using A = acc_t<T>;
  const int64_t m = length(sums);
  const double alpha = norm_after_pass(sums, j);
  if (j > 0) {
    finish_column(ctx, sums, H, R, rotations, g, small, columns, j, alpha);
    if (over(ctx)) return;
  }
  A along = sums[2 * m + UW];                      // v_jᴴ w = ((u, w) − sᴴ t) / α
  double left = real(sums[2 * m + WW]);
  for (int64_t i = 0; i < j; ++i) along -= conj(sums[i]) * sums[m + i], left -= abs2(sums[m + i]);
  along = divided(along, alpha);
  left -= abs2(along);
  const double divisor = flexible ? 1 : alpha;     // a variable M is not linear: no division of A M(u) by α
  for (int64_t i = 0; i <= j; ++i) {
    A correction(0);
    if (!flexible)
      for (int64_t k = max<int64_t>(0, i - 1); k < j; ++k) correction += H[i][k] * sums[k];
    H[i][j] = divided((i < j ? sums[m + i] : along) - correction, divisor);
  }
  const double gamma = sqrt(max(left, 0x1p-104 * real(sums[2 * m + WW]))) / divisor;
  small[GAMMA] = A(gamma);
  const real_t<T> inverse(1 / alpha), scale(gamma > 0 ? 1 / (gamma * divisor) : 0.0);
  const T beta(along);
  tiles(w.size, TILE, [=](int64_t lo, int64_t hi) {
    T held[TILE];                                  // w remains
    const int64_t n = hi - lo;
    const Array<T> x = u.from(lo), y{held, n};
    const Array<B> finished = V[j].from(lo);
    std::copy(w.data + lo, w.data + hi, held);
    subtract_tile<T, B>(V, sums, begin, j, lo, n, x, y);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T v = inverse * x[i];
      finished[i] = B(v);
      x[i] = scale * (y[i] - beta * v);
    }
  });
}

// End a cycle of j steps: finish the last column if the cycle is full, then solve R y = g by back substitution.
template <class A>
void close(Context* ctx, Array<const A> sums, Table<A> H, Table<A> R, Table<A> rotations, Array<A> g, Array<A> small,
           Array<int32_t> columns, Array<A> y, int64_t j) {
  if (!over(ctx)) finish_column(ctx, sums, H, R, rotations, g, small, columns, j, norm_after_pass(sums, j));
  resume(ctx);
  const int64_t k = columns[0];
  for (int64_t i = 0; i < y.size; ++i) y[i] = A(0);
  for (int64_t i = k - 1; i >= 0; --i) {
    A left = g[i];
    for (int64_t l = i + 1; l < k; ++l) left -= R[i][l] * y[l];
    y[i] = left / R[i][i];
  }
}

// out = Σ y_i V_i over the columns[0] finished columns; out += this sum if `add`.
template <class T, class B>
void combine(Context* ctx, Table<const B> V, Array<const acc_t<T>> y, Array<const int32_t> columns, Array<T> out,
             bool add) {
  const int64_t k = columns[0];
  tiles(out.size, TILE, [=](int64_t lo, int64_t hi) {
    const Array<T> x = out.from(lo);
    if (!add) std::fill(out.data + lo, out.data + hi, T(0));
    for (int64_t i = 0; i < k; i += 4) {
      const FourRows<T, B> rows(V, i, k, lo);
      const Coefficients<T> by(y, i, k);
      tile_elements<T>(hi - lo, [=](auto at) { store(x, at, load(x, at) + combined(rows, by, at)); });
    }
  });
}

// Store z in `row`, a row of Z in lower precision, then set z = `row`: the product then uses the same rounded z as the
// update of x.
template <class T, class B> void compress(Context* ctx, Array<T> z, Array<B> row) {
  tiles(z.size, TILE, [=](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) row[i] = B(z[i]);
    for (int64_t i = lo; i < hi; ++i) z[i] = T(row[i]);          // in one loop GCC 12 takes T(B(z)) for z at its end
  });
}

}  // namespace

#define BASES(f) INSTANCE(f, double, double), INSTANCE(f, double, float), INSTANCE(f, float, float), \
    INSTANCE(f, complex<double>, complex<double>), INSTANCE(f, complex<double>, complex<float>), \
    INSTANCE(f, complex<float>, complex<float>)
KERNELS("swell.krylov.gmres", VALUES(first), BASES(dots), BASES(subtract), BASES(update), SUMS(close), BASES(combine),
        INSTANCE(compress, double, float), INSTANCE(compress, complex<double>, complex<float>))
