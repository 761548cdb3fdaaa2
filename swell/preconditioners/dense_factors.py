"""LU factors of a sparse matrix that is nearly full, by LAPACK on a CPU.

For matrices with entries in more than a tenth of their places: LAPACK multiplies zeros too, but follows no indices.
With the largest pivot of each column. The method ``direct`` takes it by itself (direct.py).

An application: 1 solve with the factors, 2 n² operations. Storage: n² numbers.
"""
from __future__ import annotations

import warnings

import numpy as np

from swell.core.errors import FactorisationError
from swell.core.operator import LinearOperator


SMALL, NEARLY_FULL = 100, 0.1                    # rows, and share of entries, from which LAPACK takes over


def nearly_full(A) -> bool:
    """True for a matrix that is better factored as a full one."""
    n = A.shape[0]
    return n >= SMALL and A.nnz >= NEARLY_FULL * n**2


class DenseFactorsOperator(LinearOperator):
    """A⁻¹ by LAPACK, factored and applied in double precision.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero, or the full matrix does not fit in memory.
    """

    capturable = False
    loose, repairs = False, ()                   # pivots are the largest: there is nothing to repair

    def __init__(self, A):
        super().__init__(A.shape, A.dtype, A.space)
        self.wide = np.result_type(A.dtype, np.float64)
        self.update(A)

    def update(self, A):
        """Factor a new matrix."""
        from scipy.linalg import lu_factor
        n = A.shape[0]
        A.space.check_fits(n * n * self.wide.itemsize, f"a full matrix of {n} rows", "use an iterative method")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # of a zero pivot, which is an error here
            self._factors = lu_factor(A.to_scipy().toarray(order="F").astype(self.wide, copy=False), overwrite_a=True,
                                      check_finite=False)
        if n and not np.diagonal(self._factors[0]).all():
            raise FactorisationError("LAPACK met a zero pivot: the matrix is singular", True)

    def apply(self, x, out, alpha=1, beta=0):
        self._write(x, out, alpha, beta, 0)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._write(x, out, alpha, beta, 2)

    def _write(self, x, out, alpha, beta, trans):
        from scipy.linalg import lu_solve
        y = lu_solve(self._factors, x.astype(self.wide, copy=False), trans, check_finite=False)
        out[...] = alpha * y if beta == 0 else alpha * y + beta * out

    @property
    def nbytes(self):
        return self._factors[0].nbytes

    def describe(self):
        return f"Direct() by LAPACK on a full matrix, {self._factors[0].size} entries in the factors"
