// Fused steps of block GMRES on a CPU; block_gmres.cu has the same kernels for a GPU. Notation: krylov/block_gmres.py.
//
// `states` are the judge's records of all right-hand sides, and `rows` the bounds of slices, as in
// core/native/block.hpp. `V`, m k vectors: the finished basis vectors. `UW`, 2 k vectors: the candidates U, then
// W = A M U. `sums`, shape ((2 + m) k, 2 k): [U W V]ᴴ [U W]; `partial`: these of every slice. `H`, `R`, shape
// ((m + 1) k, m k): the block
// Hessenberg matrix and its triangular factor; `turns`, m of shape (2 k, 2 k): the unitary matrix that makes each block
// of R triangular; `g`, shape ((m + 1) k, k): the rotated right-hand sides. `small`, k × k each: BlockGMRES of
// krylov/slots.py. columns[0]: number of finished blocks of columns. `norm2`, shape (k, 2): Norms of each residual.
// `j`: number of finished basis blocks. `count` = k; `side`: the power of two that is not below k. `height`: threads of
// a block on a GPU.
#include "slots/swell/krylov/block_gmres.hpp"

#include "../../core/native/block.hpp"
#include "../../core/native/launcher.hpp"

namespace {

// Judge the true residuals at the end of a cycle.
template <class A> void judge_cycles(Contexts* states, Table<const A> norm2, int64_t count) {
  if (all_stopped(states)) return;
  for (int64_t l = 0; l < count; ++l)
    if (Context own = (*states)[l]; !ended(states, l)) judge_cycle(&own, real(norm2[l][JUDGED2]));
  go_on(states);
}

// Start a cycle: U_l = r_l / ‖r_l‖, where U holds the residuals; 0 for the right-hand sides that have ended. The
// first rows of g become diag(‖r_l‖). The loop then goes on for all.
template <class T>
void first(Contexts* states, Table<T> UW, Table<const acc_t<T>> norm2, Table<acc_t<T>> g, Array<int32_t> columns,
           int64_t count) {
  clear(g);
  columns[0] = 0;
  for (int64_t l = 0; l < count; ++l) {
    const double judged2 = real(norm2[l][JUDGED2]), own2 = real(norm2[l][OWN2]);
    const double beta = ended(states, l) ? 0 : sqrt(own2), inverse = beta > 0 ? 1 / beta : 0;
    Context own = (*states)[l];
    if (beta > 0) set_ratio(&own, judged2, own2);
    g[l][l] = acc_t<T>(beta);
    const Array<T> u = UW[l];
    each(u.size, [=](int64_t i) { u[i] = inverse > 0 ? T(inverse * wide(u[i])) : T(0); });
  }
  go_on(states);
}

// α with αᴴ α = Uᴴ U, from the sums of its slices; dependent vectors are left out. The top of g = α g.
template <class A>
void normalise(Contexts* states, Blocks<const A> partial, Table<A> g, Blocks<A> small, double tolerance, int64_t count,
               int64_t side) {
  if (all_stopped(states)) return;
  const auto G = total(partial);
  const auto alpha = matrix(small, ALPHA);
  pivoted_cholesky<A>(G, diagonal<A>(G), tolerance, false, alpha, matrix(small, INVERSE));
  for (int64_t l = 0; l < count; ++l) {
    const A size = g[l][l];
    for (int64_t i = 0; i < count; ++i) g[i][l] = alpha[i][l] * size;
  }
}

// U = U α⁻¹.
template <class T>
void scale(Contexts* states, Table<T> UW, Blocks<const acc_t<T>> small, int64_t count, int64_t side) {
  if (!all_stopped(states)) multiply_block<T>(rows_of(UW, 0, count), coefficients_of<T>(matrix(small, INVERSE)));
}

// partial = [U W V]ᴴ [U W] of each slice, for j basis blocks.
template <class T>
void dots(Contexts* states, Table<const T> V, Table<const T> UW, Blocks<acc_t<T>> partial, Array<const int64_t> rows,
          int64_t j, int64_t count, int64_t height) {
  if (all_stopped(states)) return;
  const int64_t two = 2 * count, many = j * count;
  ranges(rows.size - 1, UW.columns, [=](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const auto own = rows_of(matrix(partial, p), 0, two + many);
      clear(own);
      for (int64_t lo = rows[p]; lo < rows[p + 1]; lo += SHORT_TILE) {
        const int64_t n = min(SHORT_TILE, rows[p + 1] - lo);
        add_gram<T>(UW, UW, {}, lo, n, rows_of(own, 0, two));
        add_gram<T>(rows_of(V, 0, many), UW, {}, lo, n, rows_of(own, two, two + many));
      }
    }
  });
}

// sums = the sum of `partial` over the slices, for j basis blocks.
template <class A>
void collect(Contexts* states, Blocks<const A> partial, Table<A> sums, int64_t j, int64_t count) {
  if (all_stopped(states)) return;
  const int64_t size = (2 + j) * count;
  ranges(size, partial.count * size * partial.columns, [=](int64_t begin, int64_t end) {
    const auto own = rows_of(sums, begin, end);
    clear(own);
    for (int64_t p = 0; p < partial.count; ++p) {
      const auto more = rows_of(matrix(partial, p), begin, end);
      for (int64_t i = 0; i < own.rows; ++i)
        for (int64_t l = 0; l < own.columns; ++l) own[i][l] += more[i][l];
    }
  });
}

// Find the unitary `turn` that makes `panel`, shape (2 k, k), upper triangular, by Householder reflections.
template <class A> void reflect(Table<A> panel, Table<A> turn) {
  const int64_t two = panel.rows, k = panel.columns;
  clear(turn);
  for (int64_t i = 0; i < two; ++i) turn[i][i] = A(1);
  std::vector<A> v(two);
  for (int64_t c = 0; c < k; ++c) {
    double size2 = 0;
    for (int64_t i = c; i < two; ++i) v[i] = panel[i][c], size2 += abs2(v[i]);
    const double size = sqrt(size2), top = modulus(v[c]);
    if (size == 0) continue;
    const A image = -size * (top > 0 ? divided(v[c], top) : A(1));
    v[c] -= image;
    const double half = size * (size + top);     // vᴴ v / 2
    const auto turned = [&](Table<A> of, int64_t q) {
      A along(0);
      for (int64_t i = c; i < two; ++i) along += conj(v[i]) * of[i][q];
      along = divided(along, half);
      for (int64_t i = c; i < two; ++i) of[i][q] -= along * v[i];
    };
    for (int64_t q = c + 1; q < k; ++q) turned(panel, q);
    for (int64_t q = 0; q < two; ++q) turned(turn, q);
    panel[c][c] = image;
    for (int64_t i = c + 1; i < two; ++i) panel[i][c] = A(0);
  }
}

// What `coefficients` and `close` share.
template <class A> struct Step {
  Contexts* states;
  Table<const A> sums;
  Table<A> H, R;
  Blocks<A> turns;
  Table<A> g;
  Blocks<A> small;
  Array<int32_t> columns;
  int64_t j, k;

  // [S T] = Vᴴ [U W].
  Table<const A> basis(int64_t begin, int64_t end) const { return part(sums, 2 * k, (2 + j) * k, begin, end); }

  // α and its inverse, with αᴴ α = Uᴴ U − Sᴴ S: the norms of the candidates after the second pass, by Pythagoras.
  void second_pass(double tolerance) const {
    const auto U = part(sums, 0, k, 0, k);
    const auto left = difference(U, basis(0, k));
    pivoted_cholesky<A>(left, diagonal<A>(U), tolerance, false, matrix(small, ALPHA), matrix(small, INVERSE));
  }

  // X − Yᴴ Y
  static Matrix<A> difference(Table<const A> X, Table<const A> Y) {
    Matrix<A> out(X.rows, X.columns);
    adjoint_product<A>(Y, Y, out);
    for (int64_t i = 0; i < X.rows; ++i)
      for (int64_t l = 0; l < X.columns; ++l) out[i][l] = X[i][l] - out[i][l];
    return out;
  }

  // Add the second pass's coefficients to block j − 1 of H's columns, make it triangular in R, turn g, and judge each
  // residual norm after j steps. A right-hand side that meets its tolerance pauses; the cycle ends when all have.
  void finish_block() const {
    const int64_t at = (j - 1) * k;
    const Matrix<A> extra(j * k, k), old((j + 1) * k, k), turned(2 * k, k);
    product<A>(basis(0, k), matrix(small, SCALE), extra);
    const auto fresh = part(H, 0, (j + 1) * k, at, at + k);
    for (int64_t i = 0; i < j * k; ++i)
      for (int64_t l = 0; l < k; ++l) fresh[i][l] += extra[i][l];
    product<A>(matrix(small, ALPHA), matrix(small, SCALE), rows_of(fresh, j * k, (j + 1) * k));
    copy<A>(fresh, old);
    for (int64_t i = 0; i < j - 1; ++i) turn(turns, i, rows_of<A>(old, i * k, (i + 2) * k), turned);
    reflect(rows_of<A>(old, at, at + 2 * k), matrix(turns, j - 1));
    copy<A>(old, part(R, 0, (j + 1) * k, at, at + k));
    turn(turns, j - 1, rows_of(g, at, at + 2 * k), turned);
    columns[0] = int32_t(j);
    bool every = true;
    for (int64_t l = 0; l < k; ++l) {
      double norm2 = 0;
      for (int64_t i = 0; i < k; ++i) norm2 += abs2(turned[k + i][l]);
      Context own = (*states)[l];
      if (!ended(states, l) && flag(&own, VERDICT) == RUNNING) judge_inner(&own, norm2);
      every = every && flag(&own, VERDICT) != RUNNING;
    }
    for (int64_t l = 0; l < k; ++l) (*states)[l].flags[STOP] = every;
  }

  // X = turns_i X, also in `turned`.
  static void turn(Blocks<const A> turns, int64_t i, Table<A> X, Table<A> turned) {
    product<A>(matrix(turns, i), X, turned);
    copy<A>(turned, X);
  }
};

// All small matrices of step j: α, the finished block j − 1 of H's columns, β, γ, and block j of H's columns.
template <class A>
void coefficients(Contexts* states, Table<const A> sums, Table<A> H, Table<A> R, Blocks<A> turns, Table<A> g,
                  Blocks<A> small, Array<int32_t> columns, double tolerance, double floor, int64_t j, int64_t count,
                  int64_t side) {
  if (all_stopped(states)) return;
  const int64_t k = count;
  const Step<A> step{states, sums, H, R, turns, g, small, columns, j, k};
  step.second_pass(tolerance);
  const auto inverse = matrix(small, INVERSE), beta = matrix(small, BETA);
  const Matrix<A> top(k, k), both((j + 1) * k, k), correction((j + 1) * k, k);           // both = [T; β]
  if (j > 0) {
    step.finish_block();
    if (all_stopped(states)) return;
  } else {
    product<A>(matrix(small, ALPHA), rows_of(g, 0, k), top);
    copy<A>(top, rows_of(g, 0, k));
  }
  const auto S = step.basis(0, k), T = step.basis(k, 2 * k);
  copy<A>(T, rows_of<A>(both, 0, j * k));
  adjoint_product<A>(S, T, top);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t l = 0; l < k; ++l) top[i][l] = sums[i][k + l] - top[i][l];
  adjoint_product<A>(inverse, top, beta);                                      // β = α⁻ᴴ (Uᴴ W − Sᴴ T)
  copy<A>(beta, rows_of<A>(both, j * k, (j + 1) * k));
  const auto W = part(sums, k, 2 * k, k, 2 * k);
  const auto left = step.difference(W, both);                                  // γᴴ γ = Wᴴ W − Tᴴ T − βᴴ β
  pivoted_cholesky<A>(left, diagonal<A>(W), floor, true, top, matrix(small, GAMMA_INVERSE));
  product<A>(top, inverse, matrix(small, SCALE));                              // Γ = γ α⁻¹
  if (j > 0) product<A>(part(H, 0, (j + 1) * k, 0, j * k), S, correction);
  for (int64_t i = 0; i < both.rows; ++i)
    for (int64_t l = 0; l < k; ++l) both[i][l] -= correction[i][l];
  product<A>(both, inverse, part(H, 0, (j + 1) * k, j * k, (j + 1) * k));      // H(:, j) = ([T; β] − H S) α⁻¹
  clear(part(H, (j + 1) * k, H.rows, j * k, (j + 1) * k));
}

// V_j = (U − V S) α⁻¹;  U = (W − V T − V_j β) γ⁻¹.
template <class T>
void update(Contexts* states, Table<T> V, Table<T> UW, Table<const acc_t<T>> sums, Blocks<const acc_t<T>> small,
            int64_t j, int64_t count, int64_t side) {
  if (all_stopped(states)) return;
  const int64_t k = count;
  const auto of_basis = coefficients_of<T>(rows_of(sums, 2 * k, (2 + j) * k), -1);
  const auto inverse = coefficients_of<T>(matrix(small, INVERSE)), beta = coefficients_of<T>(matrix(small, BETA), -1),
      last = coefficients_of<T>(matrix(small, GAMMA_INVERSE));
  tiles_with_room<T>(UW.columns, 3 * k, [&](int64_t lo, int64_t n, Table<T> made) {
    const auto uw = rows_of(made, 0, 2 * k), u = rows_of(made, 0, k), w = rows_of(made, k, 2 * k),
        v = rows_of(made, 2 * k, 3 * k);
    copy<T>(tile_of(UW, lo, n), part(uw, 0, 2 * k, 0, n));
    add_product<T>(rows_of(V, 0, j * k), lo, n, of_basis, uw, 0);
    clear(v);
    add_product<T>(u, 0, n, inverse, v, 0);
    add_product<T>(v, 0, n, beta, w, 0);
    copy<T>(v, tile_of(rows_of(V, j * k, (j + 1) * k), lo, n));
    clear(u);
    add_product<T>(w, 0, n, last, u, 0);
    copy<T>(u, tile_of(rows_of(UW, 0, k), lo, n));
  });
}

// End a cycle of j steps: finish the last block of H's columns if the cycle is full, then solve R y = g by back
// substitution; an unknown without a pivot is 0.
template <class A>
void close(Contexts* states, Table<const A> sums, Table<A> H, Table<A> R, Blocks<A> turns, Table<A> g, Blocks<A> small,
           Array<int32_t> columns, Table<A> y, double tolerance, int64_t j, int64_t count, int64_t side) {
  if (!all_stopped(states)) {
    const Step<A> step{states, sums, H, R, turns, g, small, columns, j, count};
    step.second_pass(tolerance);
    step.finish_block();
  }
  go_on(states);
  clear(y);
  const int64_t many = columns[0] * count;
  for (int64_t i = 0; i < many; ++i) {
    double size2 = 0;
    for (int64_t q = 0; q <= i; ++q) size2 += abs2(R[q][i]);
    if (modulus(R[i][i]) <= EPS * sqrt(size2)) R[i][i] = A(0);
  }
  for (int64_t i = many - 1; i >= 0; --i)
    for (int64_t l = 0; l < count; ++l) {
      A left = g[i][l];
      for (int64_t q = i + 1; q < many; ++q) left -= R[i][q] * y[q][l];
      y[i][l] = quotient(left, R[i][i]);
    }
}

// out = Σ V_i y_i over the finished blocks, for the right-hand sides that have not ended; out += this sum if `add`.
template <class T>
void combine(Contexts* states, Table<const T> V, Table<const acc_t<T>> y, Array<const int32_t> columns, Table<T> out,
             bool add, int64_t count, int64_t side) {
  if (all_stopped(states)) return;
  const int64_t many = columns[0] * count;
  const auto of_basis = coefficients_of<T>(rows_of(y, 0, many));
  const auto skip = all_ended(states);
  tiles(out.columns, SHORT_TILE, [&](int64_t lo, int64_t hi) {
    if (!add) clear(tile_of(out, lo, hi - lo));
    add_product<T>(rows_of(V, 0, many), lo, hi - lo, of_basis, out, lo, skip.data());
  });
}

}  // namespace

KERNELS("swell.krylov.block_gmres", SUMS(judge_cycles), VALUES(first), SUMS(normalise), VALUES(scale), VALUES(dots),
        SUMS(collect), SUMS(coefficients), VALUES(update), SUMS(close), VALUES(combine))
