"""B⁻¹ for many dense matrices of one size: stored, or by their factors and a dense solver.

A stored inverse is as large as the factors, and an application is one product for all matrices. A solver saves the
inversion, 2 n³ operations of the setup, three times the factorisation; an application is two sequential substitutions.

Both are checked by random probes: ‖(I − B X) V‖ / ‖V‖ is at most MOST_WRONG. A processing tolerance too loose for that
is made smaller, of the decomposer (ICM) and of the solver (IS), with a note. What CG needs beyond, definite.py probes
of all local problems together. A stored inverse is made symmetric, which
CG needs. A solver whose probes differ from the transposed solver's by more than ASYMMETRY is replaced by the mean of
both, with a note. An inexact IS stops after a number of iterations that depends on the right-hand side, so it is no
fixed linear map (``variable``): its right-hand sides are scaled to 1, since its tolerance is absolute.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from swell.core.errors import FactorisationError
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.dense.accuracy import PROBES
from swell.dense.batch import BatchSolver, solve_batch
from swell.dense.condition import norms1
from swell.dense.solver import solve_scaled

MOST_WRONG = 0.1        # largest ‖(I − B X) V‖ / ‖V‖ for random V of an accepted X; definite.py says more about M
ASYMMETRY = 1e-8        # largest asymmetry of Vᵀ X V, over its largest entry, of a solver that is taken as symmetric
DEFAULT = "getrf"       # the decomposer where none is named, and Cholesky is not taken
STORED = "inverse"      # the value of the setting ``dense_solver`` for stored inverses


def invert(space, decomposer, solver, B, mirror="C", estimates=None, border=0):
    """Return (inverse, conditions, notes) for m matrices of one size, B of shape (m, n, n).

    Parameters
    ----------
    decomposer : Decomposer or None
        None: Cholesky on a CPU where it can invert B (`by_cholesky`), else `DEFAULT`.
    solver : DenseSolver or None
        None: a `StoredInverse`; else a `FactoredInverse`.
    mirror : {"C", "T"} or None
        B = Bᴴ, B = Bᵀ, or neither: the symmetry that B⁻¹ must have.
    estimates : list of CroutFactors, optional
        Of each matrix, for a decomposer that takes them.
    border : int
        The last rows and columns of B that are constraints.

    Returns
    -------
    inverse : StoredInverse or FactoredInverse
    conditions : numpy.ndarray, shape (m,)
        The 1-norm condition number of each matrix; of factors, an estimate.
    notes : tuple of str

    Raises
    ------
    FactorisationError
        If a matrix is singular, or exact decomposition gives no inverse either; ``error.index`` is its number.
    """
    if not B.size:
        return StoredInverse([], B, B), np.ones(len(B)), ()
    X = None
    if decomposer is None and solver is None and space.name == "cpu" and mirror == "C":
        X = by_cholesky(B, border)
    taken = decomposer or resolve("decomposer", DEFAULT), solver
    while True:
        try:
            inverse, condition = _inverted(space, *taken, B, mirror, estimates, X)
            if X is None or (condition * np.finfo(float).eps * B.shape[1] < 1).all():
                break
            X = None                             # LU tells whether B is singular
        except FactorisationError:
            if X is not None:
                X = None
                continue
            tighter = tuple(one and one.tightened() for one in taken)
            if not any(tighter):
                raise
            taken = tuple(new or one for new, one in zip(tighter, taken, strict=True))
    inverse.iterations = sum(int(one.metrics.iterations.sum()) for one in inverse.factors
                             if one.metrics.iterations is not None)
    notes = tuple(note for each in inverse.factors for note in each.notes) + inverse.notes
    for before, now in zip((decomposer, solver), taken, strict=True):
        if before is not None and now is not before:
            notes += (f"BDDC: {describe(before)} is too loose to invert local problems: {describe(now)} was taken",)
    if solver is None:
        inverse.factors = []                     # as large as the inverse
    return inverse, condition, notes


def earlier_factors(decomposer, before, numbers, n):
    """Return the factors ``before[k]``, of n rows, for each k of ``numbers``; None unless all are there and the
    decomposer takes estimates."""
    factors = [before.get(k) for k in numbers]
    return factors if decomposer and decomposer.takes_estimates and all(one and one.n == n for one in factors) else None


def by_cholesky(B, border):
    """Return the inverse of each matrix [S Cᴴ; C 0] of a CPU, a new array; None if one S + Cᴴ C is not positive
    definite.

    ``border`` is the number of rows of C. With M = S + Cᴴ C and G = C M⁻¹ Cᴴ, blocks of the inverse are M⁻¹ − Ψ G Ψᴴ,
    Ψ = M⁻¹ Cᴴ G⁻¹ and I − G⁻¹. n³ operations, three eighths of those by LU."""
    from scipy.linalg import get_blas_funcs, get_lapack_funcs
    potrf, potri, trsm = (*get_lapack_funcs(("potrf", "potri"), (B,)), get_blas_funcs("trsm", (B,)))
    X, n = np.empty_like(B), B.shape[1] - border
    for one, inverse in zip(B, X, strict=True):
        C = one[n:, :n]
        L, wrong = potrf(np.asfortranarray(one[:n, :n] + C.conj().T @ C), lower=1, overwrite_a=1)
        if wrong:
            return None
        Y = trsm(1, L, C.conj().T, lower=1)                                     # L⁻¹ Cᴴ; G = Yᴴ Y = R Rᴴ
        R, wrong = potrf(Y.conj().T @ Y, lower=1)
        if wrong:
            return None
        P = trsm(1, L, trsm(1, R, Y, side=1, lower=1, trans_a=2), lower=1, trans_a=2)       # M⁻¹ Cᴴ R⁻ᴴ
        lower, _ = potri(L, lower=1, overwrite_c=1)                             # zero above the diagonal
        np.fill_diagonal(lower, 0.5 * lower.diagonal())
        np.add(lower, lower.conj().T, out=inverse[:n, :n])
        inverse[:n, :n] -= P @ P.conj().T
        inverse[:n, n:] = trsm(1, R, P, side=1, lower=1)                        # Ψ
        inverse[n:, :n] = inverse[:n, n:].conj().T
        Q = trsm(1, R, np.eye(border, dtype=B.dtype), lower=1)
        inverse[n:, n:] = np.eye(border) - Q.conj().T @ Q
    return X


def _inverted(space, decomposer, solver, B, mirror, estimates, X=None):
    """Return (inverse, conditions) by this decomposer and solver, or of the known inverse X. Raises FactorisationError
    if the inverse is wrong."""
    try:
        factors = decomposer.factor_batch(B, space, estimates) if X is None else []
        made = StoredInverse(factors, B, X) if solver is None else FactoredInverse(factors, solver, mirror)
    except FactorisationError as error:          # drop "matrix 3 of 8: ", a number that means nothing here
        raise FactorisationError(str(error).partition(": ")[2], error.singular, error.index) from None
    condition = norms1_of(space, B) * made.norms(space)
    V = probes(space, B)
    wrong = np.sqrt((abs(space.to_host(V - B @ made.times(V))) ** 2).mean(axis=(1, 2)))  # sync
    bad = ~(wrong <= MOST_WRONG)
    if bad.any():
        k = int(bad.argmax())
        raise FactorisationError(f"its computed inverse is wrong: B B⁻¹ differs from I by {wrong[k]:.1e}, expected at "
                                 f"most {MOST_WRONG}; its condition is {condition[k]:.0e}; take dense_lu='getrf'",
                                 not condition[k] * np.finfo(float).eps * B.shape[1] < 1, k)
    return made, condition


def probes(space, B):
    """Return random signs, the same for each matrix of B: a device array of shape (m, n, PROBES) in B's type."""
    signs = np.random.default_rng(0).integers(0, 2, (B.shape[1], PROBES)) * 2 - 1
    return space.from_host(np.broadcast_to(signs.astype(B.dtype), (len(B), *signs.shape)))


def norms1_of(space, B):
    """Return ‖B‖₁ of each of the matrices B, a host array."""
    if space.name != "cpu":
        return space.to_host(abs(B).sum(axis=1).max(axis=1))  # sync
    from scipy.linalg import get_lapack_funcs
    lange = get_lapack_funcs("lange", (B,))
    return np.array([lange("I", one.T) for one in B])            # without a copy; abs(B) would be one


class StoredInverse:
    """B⁻¹ as an array (m, n, n).

    Attributes
    ----------
    factors : list of LUFactors
        Emptied by `invert`.
    iterations : int
        Iterations of ICM, of all matrices; 0 for other decomposers. Set by `invert`.
    """

    notes, iterations = (), 0

    def __init__(self, factors, B, X=None):
        self.factors, self.X = factors, X
        if factors:
            xp = factors[0].space.xp
            self.X = solve_batch(factors, xp.broadcast_to(xp.eye(B.shape[1], dtype=B.dtype), B.shape))

    def norms(self, space):
        """Return ‖B⁻¹‖₁ of each matrix, a host array."""
        return norms1_of(space, self.X)

    def times(self, V):
        """Return B⁻¹ V for each matrix; V has shape (m, n, k)."""
        return self.X @ V

    def columns(self, n):
        """Return the columns of each B⁻¹ from number n on."""
        return self.X[:, :, n:]

    def rows(self, n):
        """Return the rows of each B⁻¹ from number n on."""
        return self.X[:, n:]

    def leading(self, n, scale, mean, dtype):
        """Return the leading n by n block of each B⁻¹ over ``scale``, an array (m, 1, 1), as an operator for vectors of
        ``dtype``; ``mean`` removes rounding errors against its symmetry."""
        return StoredBlock((mean(self.X[:, :n, :n]) * (1 / scale)).astype(dtype, copy=False))


class StoredBlock:
    """A block K of each inverse: ``matrices``, an array (m, n, n)."""

    variable, factors = False, ()

    def __init__(self, matrices):
        self.matrices = matrices

    def apply(self, xp, V, out, adjoint=False):
        """Write out = K V, or Kᴴ V, for each matrix; V and out have shape (m, n, k), or (columns, m, n, k)."""
        xp.matmul(self.matrices.conj().swapaxes(1, 2) if adjoint else self.matrices, V, out=out)

    def energies(self):
        """Return vᴴ K v of each K for unit vectors v: its diagonal."""
        return self.matrices.diagonal(axis1=1, axis2=2)

    @property
    def nbytes(self):
        return self.matrices.nbytes

    def describe(self):
        return "the inverse stored"


class FactoredInverse:
    """B⁻¹ by factors and a dense solver.

    Attributes
    ----------
    factors : list of LUFactors
    iterations : int
        As in `StoredInverse`.
    averaged : bool
        B⁻¹ is the mean of itself and its mirror image.
    variable : bool
        The solver stops by a tolerance.
    """

    def __init__(self, factors, solver, mirror):
        for k, one in enumerate(factors):
            try:
                one.require_useful()
            except FactorisationError as error:
                raise FactorisationError(f"matrix {k}: {error}", error.singular, k) from None
        self.factors, self.solver, self.space, self.notes = factors, solver, factors[0].space, ()
        self.variable, self.mirror, self.averaged = solver.tightened() is not None, mirror, False
        self._by = {trans: BatchSolver(factors, solver, trans) for trans in "NTC"}
        self._exact = {trans: BatchSolver(factors, "trsm", trans) for trans in "NC"}
        asymmetry = self._asymmetry() if mirror else 0.0
        if asymmetry > ASYMMETRY:
            self.averaged = True
            self.notes = (f"BDDC: {describe(factors[0].decomposer)} with {describe(solver)} solves local problems with "
                          f"an asymmetry above {ASYMMETRY:.0e}: each application takes the mean with the transposed "
                          "solve, at twice the cost",)

    def _asymmetry(self):
        """Return the largest |G − mirrored G| / |G| for G = Vᵀ B⁻¹ V with random V."""
        V = probes(self.space, np.empty((len(self.factors), self.factors[0].n, 0), self.factors[0].dtype))
        G = self.space.to_host(V.swapaxes(1, 2) @ self.solve(V))  # sync
        mirrored, largest = G.swapaxes(1, 2), abs(G).max(axis=(1, 2))
        mirrored = mirrored.conj() if self.mirror == "C" else mirrored
        return float((abs(G - mirrored).max(axis=(1, 2)) / np.where(largest > 0, largest, 1)).max())

    def solve(self, V, trans="N"):
        """Return op(B)⁻¹ V for each matrix, a new device array."""
        solve = self._by[trans].apply
        return solve_scaled(self.space.xp, solve, V) if self.variable else solve(V)

    def times(self, V, trans="N"):
        """Return op(B)⁻¹ V, the mean of two solutions if ``averaged``; ``trans``: "N" or "C"."""
        X = self.solve(V, trans)
        return 0.5 * (X + self._mirrored(V, trans)) if self.averaged else X

    def _mirrored(self, V, trans):
        """Return the mirrored inverse times V, which is ``solve(V, trans)`` if B⁻¹ has its symmetry; ``trans``: "N" or
        "C"."""
        if self.mirror == "C":
            return self.solve(V, "C" if trans == "N" else "N")
        return self.solve(V, "T") if trans == "N" else self.solve(V.conj(), "N").conj()

    def norms(self, space):
        """Return estimates of ‖B⁻¹‖₁ of each matrix, a host array."""
        one, by = self.factors[0], [self._exact["N"], self._exact["C"]]
        return norms1(self.space, lambda X, adjoint: by[adjoint].apply(X), len(self.factors), one.n, one.dtype)

    def columns(self, n):
        """Return the columns of each B⁻¹ from number n on, by an exact solver: they make the coarse problem."""
        return self._exact["N"].apply(self._units(n))

    def rows(self, n):
        """Return the rows of each B⁻¹ from number n on, by an exact solver."""
        return self._exact["C"].apply(self._units(n)).conj().swapaxes(1, 2)

    def _units(self, n):
        """Return the unit vectors from number n on, for each matrix."""
        one = self.factors[0]
        eye = self.space.xp.eye(one.n, dtype=one.dtype)[:, n:]
        return self.space.xp.broadcast_to(eye, (len(self.factors), *eye.shape))

    def leading(self, n, scale, mean, dtype):
        """Like ``StoredInverse.leading``; ``mean`` is not needed, since ``averaged`` inverses are symmetric."""
        narrow = self
        if dtype != self.factors[0].dtype:
            narrow = FactoredInverse([replace(one, lu=one.lu.astype(dtype)) for one in self.factors], self.solver, None)
            narrow.averaged, narrow.mirror = self.averaged, self.mirror
        return FactoredBlock(narrow, n, scale.astype(dtype))


class FactoredBlock:
    """The leading block K of each inverse, by a `FactoredInverse`, over ``scale``."""

    def __init__(self, inverse, n, scale):
        self.inverse, self.n, self.scale = inverse, n, scale
        self.factors, self.variable = inverse.factors, inverse.variable

    def apply(self, xp, V, out, adjoint=False):
        """Like ``StoredBlock.apply``."""
        columns = V.ndim == 4
        values = xp.moveaxis(V, 0, -1).reshape(*V.shape[1:3], -1) if columns else V
        B = xp.zeros((values.shape[0], self.factors[0].n, values.shape[2]), values.dtype)
        B[:, :self.n] = values
        K = self.inverse.times(B, "C" if adjoint else "N")[:, :self.n] / self.scale
        out[...] = xp.moveaxis(K.reshape(*K.shape[:2], V.shape[3], -1), -1, 0) if columns else K

    def energies(self):
        """Return vᴴ K v of each K for a few random vectors v."""
        xp, one = self.inverse.space.xp, self.factors[0]
        V = probes(self.inverse.space, np.empty((len(self.factors), self.n, 0), one.dtype))
        out = xp.empty_like(V)
        self.apply(xp, V, out)
        return (V.conj() * out).sum(axis=1)

    @property
    def nbytes(self):
        return sum(one.nbytes for one in self.factors)

    def describe(self):
        return f"{describe(self.factors[0].decomposer)} with {describe(self.inverse.solver)}"


def decomposer_of(settings):
    """Return the Decomposer that the field ``dense_lu`` of BDDC's settings names, or None for swell's choice."""
    return None if settings.dense_lu is None else resolve("decomposer", settings.dense_lu)


def solver_of(settings):
    """Return the DenseSolver that the field ``dense_solver`` of BDDC's settings names; None for stored inverses."""
    return None if settings.dense_solver == STORED else resolve("dense_solver", settings.dense_solver)
