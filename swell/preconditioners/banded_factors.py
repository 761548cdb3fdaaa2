"""LU factors of a banded matrix by LAPACK on a CPU: xGBTRF, with the largest pivot of each column.

For bands that are mostly full, of one-dimensional problems above all. There is no order to find, and pivots outside of
the diagonal widen the upper band at most by the width of the lower one. The method ``direct`` chooses them by itself
(direct.py).

An application: 1 solve with the factors. Storage: n (2 l + u + 1) numbers, with l diagonals below the main one, and u
above.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError
from swell.preconditioners.dense_factors import DenseFactorsOperator

EMPTY = 4               # most numbers that a band may take for each stored entry


def factored_banded(A) -> bool:
    """True if the method ``direct`` factors the CSRMatrix A by its band: one that is mostly full, on a CPU."""
    width = A.facts(search=False).bandwidth
    return A.space.name == "cpu" and 0 < (3 * width + 1) * A.shape[0] <= EMPTY * A.nnz


class BandedFactorsOperator(DenseFactorsOperator):
    """A⁻¹ by LAPACK's banded LU, factored and applied in double precision.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero.
    OutOfMemory
        If the band does not fit in memory.
    """

    def update(self, A):
        """Factor new values of A, and replace the stored factors."""
        from scipy.linalg import get_lapack_funcs
        below = A.rows() - A.indices
        lower, upper = max(int(below.max()), 0), max(-int(below.min()), 0)
        size = A.shape[0] * (2 * lower + upper + 1)
        A.space.check_fits(size * self.wide.itemsize, f"a band of {size} numbers", "use an iterative method")
        band = np.zeros((2 * lower + upper + 1, A.shape[0]), self.wide, order="F")
        band[lower + upper + below, A.indices] = A.data
        factor, self._substitute = get_lapack_funcs(("gbtrf", "gbtrs"), (band,))
        lu, pivots, info = factor(band, lower, upper, overwrite_ab=True)
        if info > 0:
            raise FactorisationError("LAPACK met a zero pivot: the matrix is singular", True)
        self._factors, self._width = (lu, pivots), (lower, upper)

    def _solved(self, x, trans):
        (lu, pivots), (lower, upper) = self._factors, self._width
        return self._substitute(lu, lower, upper, x, pivots, trans=trans)[0]

    def describe(self):
        lower, upper = self._width
        return f"Direct() by LAPACK on a band, {lower} below the diagonal and {upper} above"
