"""LU factors of a sparse matrix stored as a full one, by LAPACK on a CPU and cuSOLVER on a GPU.

LAPACK multiplies zeros too, but follows no indices: on a CPU it is for matrices with more than a tenth of their entries
stored. On a GPU cuSOLVER factors 4156 rows in 17 ms (benchmarks/notes/dense_lu.md), faster than cuDSS factors the
sparse matrix. Both pivot on the largest entry of each column, so zeros on the diagonal do no harm. The method
``direct`` chooses full factors by itself (direct.py). The user may name a decomposer and a solver of swell.dense.

An application: 1 solve with the factors, 2 n² operations. Storage: n² numbers.
"""
from __future__ import annotations

import warnings

import numpy as np

from swell.core.columns import plain
from swell.core.errors import FactorisationError
from swell.core.settings import describe
from swell.dense.solver import solve_scaled
from swell.preconditioners.factors import Factors

MIN_ROWS, NEARLY_FULL = 100, 0.1  # least rows and share of stored entries of a matrix that is factored as a full one
ON_GPU = 4000                    # most rows of any matrix that a GPU factors as a full one
PIVOTS = 10_000                  # most rows if the diagonal has zeros, since the matrix then needs row exchanges


def nearly_full(A) -> bool:
    """True if the CSRMatrix A has at least `MIN_ROWS` rows, and stores more than a tenth of its n² entries."""
    return A.shape[0] >= MIN_ROWS and A.nnz >= NEARLY_FULL * A.shape[0] ** 2


def factored_full(A) -> bool:
    """True if the method ``direct`` factors the CSRMatrix A as a dense matrix: a nearly full one, or on a GPU a small
    one."""
    if nearly_full(A) or A.space.name == "cpu":
        return nearly_full(A)
    return A.shape[0] <= (PIVOTS if A.facts(search=False).zero_diagonal else ON_GPU)


class DenseFactorsOperator(Factors):
    """A⁻¹ by LAPACK or cuSOLVER, factored and applied in double precision.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero.
    OutOfMemory
        If the full matrix does not fit in memory.
    """

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.space)
        self.wide = np.result_type(A.dtype, np.float64)
        self.update(A)

    def update(self, A):
        """Factor new values of A, and replace the stored factors."""
        n = A.shape[0]
        A.space.check_fits(n * n * self.wide.itemsize, f"a full matrix of {n} rows", "use an iterative method")
        full = self._full(A).astype(self.wide, copy=False)
        self._factors = self._factored(full)

    def _factored(self, full):
        """Return the factors of a full matrix, which may be overwritten."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # the library warns of a zero pivot, which raises an error below
            lu, pivots = self._library.lu_factor(full, overwrite_a=True, check_finite=False)
        if lu.size and not lu.diagonal().all():                  # sync
            raise FactorisationError(f"{self._name} met a zero pivot: the matrix is singular", True)
        return lu, pivots

    def _solved(self, x, trans):
        """Return the solutions for the columns of x, or for one vector x; ``trans``: 0 for A, 2 for Aᴴ."""
        return self._library.lu_solve(self._factors, x, trans, check_finite=False)

    def _full(self, A):
        """Return A as a new dense column-major array, on its device."""
        if self.space.name == "cpu":
            return A.to_scipy().toarray(order="F")
        from cupyx.scipy.sparse import csr_matrix
        return csr_matrix((A.data, A.indices, A.indptr), shape=A.shape).toarray(order="F")

    @property
    def _library(self):
        if self.space.name == "cpu":
            import scipy.linalg
            return scipy.linalg
        import cupyx.scipy.linalg
        return cupyx.scipy.linalg

    @property
    def _name(self):
        return "LAPACK" if self.space.name == "cpu" else "cuSOLVER"

    def apply(self, x, out, alpha=1, beta=0):
        self._write(x, out, alpha, beta, 0)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._write(x, out, alpha, beta, 2)

    def _write(self, x, out, alpha, beta, trans):
        """Write out = alpha y + beta out, y = A⁻¹ x; with ``trans`` = 2, y = A⁻ᴴ x. beta = 0 never reads out."""
        x = plain(x).T.astype(self.wide, copy=False)             # one vector, or k columns
        self.space.combine(alpha, self._solved(x, trans).T, beta, out)

    @property
    def nbytes(self):
        return self._factors[0].nbytes

    def describe(self):
        return f"Direct() by {self._name} on a full matrix, {self._factors[0].size} entries in the factors"


class DecomposedOperator(DenseFactorsOperator):
    """A⁻¹ by a decomposer and a solver of swell.dense, in double precision.

    An update gives ICM the last factors as its estimate. A solver that stops by a tolerance (IS) is no fixed linear map
    (``variable``): its right-hand sides are scaled to 1, since its tolerance is absolute.

    Raises
    ------
    InputError
        If the solver does not take the decomposer's factors, or one of them does not run on the device.
    FactorisationError
        If a pivot is zero, or nothing of A is left in the factors.
    """

    def __init__(self, A, decomposer, solver):
        self._decomposer, self._solver, self._factors = decomposer, solver, None
        super().__init__(A)
        self.variable = solver.tightened() is not None

    def _factored(self, full):
        if self._decomposer.takes_estimates and self._factors is not None:
            factors = self._decomposer.factor(full, self.space, self._factors)
        else:
            factors = self._decomposer.factor(full, self.space)
        factors.require_useful()
        self._bound, self.notes = {0: self._solver.build(factors), 2: self._solver.build(factors, "C")}, factors.notes
        return factors

    def _solved(self, x, trans):
        solve, x2 = self._bound[trans].apply, x.reshape(len(x), -1)
        return (solve_scaled(self.space.xp, solve, x2) if self.variable else solve(x2)).reshape(x.shape)

    @property
    def nbytes(self):
        return self._factors.nbytes

    def describe(self):
        n = self.shape[0]
        return (f"Direct() by {describe(self._decomposer)} and {describe(self._solver)} on a full matrix, {n * n} "
                "entries in the factors")
