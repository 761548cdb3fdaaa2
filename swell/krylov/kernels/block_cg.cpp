// Fused steps of block CG on a CPU; block_cg.cu has the same kernels for a GPU. Notation: krylov/block_cg.py.
//
// `states` are the judge's records of all right-hand sides, `rows` the bounds of slices, and blocks are tables of k
// vectors, as in core/native/block.hpp. `small` holds the small matrices, k × k, indexed by BlockCG of krylov/slots.py.
// independent[0]: number of independent vectors in R. `partial`, `norms`, `metric`: sums of the slices, k × k each.
// `w`: weights of the tested norm², empty for ones. `tolerance`: a relative pivot below it is a dependent vector.
// `count` = k; `side`: the power of two that is not below k. `height`: threads of a block on a GPU.
#include "slots/swell/krylov/block_cg.hpp"

#include "../../core/native/block.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// R_j = 0 for the right-hand sides that have ended, and C = I for the others; the loop then goes on for all.
template <class T> void begin(Contexts* states, Table<T> R, Blocks<acc_t<T>> small, int64_t count) {
  const auto C = matrix(small, COEFFICIENTS);
  clear(C);
  for (int64_t j = 0; j < count; ++j) {
    const Array<T> r = R[j];
    if (ended(states, j)) each(r.size, [=](int64_t i) { r[i] = T(0); });
    else C[j][j] = acc_t<T>(1);
  }
  go_on(states);
}

// ξ = (Pᴴ A P)⁻¹ from the sums of its slices, and α = ξ C, with zero columns for the right-hand sides that have ended.
// A curvature that is not positive ends the loop.
template <class A>
void step(Contexts* states, Blocks<const A> partial, Blocks<A> small, Array<const int32_t> independent,
          double tolerance, int64_t count, int64_t side) {
  if (all_stopped(states)) return;
  const auto D = total(partial);
  const auto alpha = matrix(small, ALPHA), xi = matrix(small, XI);
  const Matrix<A> inverse(count, count);
  if (!all_finite(D)) return halt_all(states, NONFINITE);
  bool definite = pivoted_cholesky<A>(D, diagonal<A>(D), tolerance, false, alpha, inverse) >= 0;
  for (int64_t j = 0; j < independent[0]; ++j) definite = definite && real(D[j][j]) > 0;
  if (!definite) return halt_all(states, INDEFINITE);
  product<A>(inverse, filled<A>(count, count, [&](int64_t i, int64_t j) { return conj(inverse[j][i]); }), xi);
  product<A>(xi, matrix(small, COEFFICIENTS), alpha);
  for (int64_t j = 0; j < count; ++j)
    if (ended(states, j))
      for (int64_t i = 0; i < count; ++i) alpha[i][j] = A(0);
}

// x += P α;  R = R ζ⁻¹ − Q ξ;  norms = Rᴴ diag(w) R of each slice, and metric = Rᴴ R if there are weights w. Right-hand
// sides that have ended keep their x.
template <class T>
void residual(Contexts* states, Table<T> x, Table<const T> P, Table<T> R, Table<const T> Q, Array<const float> w,
              Blocks<const acc_t<T>> small, Blocks<acc_t<T>> norms, Blocks<acc_t<T>> metric, Array<const int64_t> rows,
              int64_t count, int64_t side, int64_t height) {
  if (all_stopped(states)) return;
  const auto alpha = coefficients_of<T>(matrix(small, ALPHA)), inverse = coefficients_of<T>(matrix(small, INVERSE)),
      xi = coefficients_of<T>(matrix(small, XI), -1);
  const auto frozen = all_ended(states);
  ranges(rows.size - 1, R.columns, [&](int64_t begin, int64_t end) {
    const Matrix<T> made(count, SHORT_TILE);
    for (int64_t p = begin; p < end; ++p) {
      const auto norm2 = matrix(norms, p), own = matrix(metric, p);
      clear(norm2), clear(own);
      for (int64_t lo = rows[p]; lo < rows[p + 1]; lo += SHORT_TILE) {
        const int64_t n = min(SHORT_TILE, rows[p + 1] - lo);
        add_product<T>(P, lo, n, alpha, x, lo, frozen.data());
        clear<T>(made);
        add_product<T>(R, lo, n, inverse, made, 0);
        add_product<T>(Q, lo, n, xi, made, 0);
        copy<T>(made, tile_of(R, lo, n));
        add_gram<T>(R, R, w, lo, n, norm2);
        if (w.size) add_gram<T>(R, R, {}, lo, n, own);
      }
    }
  });
}

// ζᴴ ζ = Rᴴ Z from the sums `metric`; then C = ζ C, and the inverse of ζ that makes R orthonormal. Test each right-hand
// side, of squared norm (Cᴴ norms C)_jj with the old C, for convergence; not if `first`.
template <class A>
void orthonormalise(Contexts* states, Blocks<const A> norms, Blocks<const A> metric, Blocks<A> small,
                    Array<int32_t> independent, double tolerance, bool first, int64_t count, int64_t side) {
  if (all_stopped(states)) return;
  const auto N = total(norms), G = total(metric);
  const Matrix<A> C(count, count), NC(count, count);
  copy<A>(matrix(small, COEFFICIENTS), C);
  product<A>(N, C, NC);
  const bool good = all_finite(G);
  const auto zeta = matrix(small, ZETA), inverse = matrix(small, INVERSE);
  const int64_t rank = good ? pivoted_cholesky<A>(G, diagonal<A>(G), tolerance, false, zeta, inverse) : 0;
  independent[0] = int32_t(rank);
  bool definite = rank >= 0;
  for (int64_t j = 0; j < count; ++j) definite = definite && !(real(N[j][j]) > 0 && real(G[j][j]) <= 0);
  if (good && definite) product<A>(zeta, C, matrix(small, COEFFICIENTS));
  if (!first) {
    for (int64_t j = 0; j < count; ++j) {
      double norm2 = 0;
      for (int64_t i = 0; i < count; ++i) norm2 += real(conj(C[i][j]) * NC[i][j]);
      Context own = (*states)[j];
      if (!ended(states, j)) judge(&own, norm2 < 0 ? 0 : norm2);
    }
    go_on(states);
  }
  if (!all_stopped(states) && !(good && definite && rank > 0))
    halt_all(states, !good ? NONFINITE : !definite ? INDEFINITE : BREAKDOWN);
}

// R = R ζ⁻¹.
template <class T>
void scale(Contexts* states, Table<T> R, Blocks<const acc_t<T>> small, int64_t count, int64_t side) {
  if (!all_stopped(states)) multiply_block<T>(R, coefficients_of<T>(matrix(small, INVERSE)));
}

// P = Z ζ⁻¹ + P ζᴴ, or P = Z ζ⁻¹ if `first`.
template <class T>
void directions(Contexts* states, Table<const T> Z, Table<T> P, Blocks<const acc_t<T>> small, bool first, int64_t count,
                int64_t side) {
  if (all_stopped(states)) return;
  const auto inverse = coefficients_of<T>(matrix(small, INVERSE));
  const auto zeta = matrix(small, ZETA);
  const auto adjoint = filled<T>(count, count, [=](int64_t j, int64_t i) { return T(conj(zeta[j][i])); });
  tiles_with_room<T>(P.columns, count, [&](int64_t lo, int64_t n, Table<T> made) {
    clear(made);
    add_product<T>(Z, lo, n, inverse, made, 0);
    if (!first) add_product<T>(P, lo, n, adjoint, made, 0);
    copy<T>(made, tile_of(P, lo, n));
  });
}

}  // namespace

KERNELS("swell.krylov.block_cg", VALUES(begin), SUMS(step), VALUES(residual), SUMS(orthonormalise), VALUES(scale),
        VALUES(directions))
