"""Factors of a banded matrix by LAPACK on a CPU: L Lᴴ by xPBTRF if it is definite, else LU by xGBTRF, with the largest
pivot of each column.

For bands that are mostly full, of one-dimensional problems above all, and for small matrices that have a narrow band,
in their own order or in reverse Cuthill–McKee's. There the analysis of a sparse factorisation takes longer than the
work on the band's zeros. Pivots outside of the diagonal widen the upper band at most by the width of the lower one. The
method ``direct`` chooses these factors by itself (direct.py).

An application: 1 solve with the factors. Storage: n (l + 1) numbers, or n (2 l + u + 1), with l diagonals below the
main one, and u above.
"""
from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from swell.core.errors import FactorisationError
from swell.orderings.cuthill_mckee import bandwidth, reverse_order
from swell.preconditioners.dense_factors import DenseFactorsOperator

EMPTY = 4               # most numbers that a band may take for each stored entry, in a large matrix
FEW = 2000              # rows up to which another order is tried
SMALL = 4e6             # n w² up to which a band of width w is factored in less time than SuperLU takes


class Band(NamedTuple):
    """The order in which a matrix has a narrow band, None for its own, and the bandwidth, max |i − j|."""

    order: Any
    width: int


def narrow_band(A) -> Band | None:
    """Return the band by which the method ``direct`` factors a CSRMatrix of a CPU, kept in ``A.band``; else None."""
    if A.space.name != "cpu" or not A.shape[0]:
        return None
    if A.band is None:
        A.band = _own(A) or _reordered(A) or False
    return A.band or None


def _own(A):
    n, width = A.shape[0], A.facts(search=False).bandwidth
    return Band(None, width) if (3 * width + 1) * n <= EMPTY * A.nnz or n * width**2 <= SMALL else None


def _reordered(A):
    n, widest = A.shape[0], (SMALL / A.shape[0]) ** 0.5
    if n > FEW or A.facts(search=False).longest_row > 2 * widest + 1:
        return None
    order = reverse_order(A)
    width = bandwidth(A, order)
    return Band(order, width) if width <= widest else None


class BandedFactorsOperator(DenseFactorsOperator):
    """A⁻¹ by LAPACK's factors of a band, factored and applied in double precision.

    ``band``: the `Band` of A.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero.
    OutOfMemory
        If the band does not fit in memory.
    """

    def __init__(self, A, band):
        n, rows, columns = A.shape[0], A.rows(), A.indices
        self._order, self._place = band.order, None
        if band.order is not None:
            self._place = np.empty_like(band.order)
            self._place[band.order] = np.arange(n, dtype=band.order.dtype)
            rows, columns = self._place[rows], self._place[columns]
        below = rows - columns
        self._width = lower, upper = (max(int(below.max()), 0), max(-int(below.min()), 0)) if A.nnz else (0, 0)
        self._height = 2 * lower + upper + 1
        self._columns, self._below = columns.astype(np.int64), below
        super().__init__(A)

    def update(self, A):
        """Factor new values of A, and replace the stored factors."""
        size = A.shape[0] * self._height
        A.space.check_fits(size * self.wide.itemsize, f"a band of {size} numbers", "use an iterative method")
        facts = A.facts()
        if facts.hermitian and facts.positive_diagonal:
            factor, info = _lapack(self.wide).pbtrf(self._band(A, 0, self._width[0] + 1), lower=1, overwrite_ab=True)
            if not info:                         # definite
                self._factors = factor, None
                return
        lu, pivots, info = _lapack(self.wide).gbtrf(self._band(A, sum(self._width), self._height), *self._width,
                                                    overwrite_ab=True)
        if info > 0:
            raise FactorisationError("LAPACK met a zero pivot: the matrix is singular", True)
        self._factors = lu, pivots

    def _band(self, A, diagonal, height):
        """Return the entries of A as LAPACK stores a band, with the main diagonal in row ``diagonal`` of ``height``;
        entries above the first row are left out."""
        rows, columns, data = self._below + diagonal, self._columns, A.data
        if not diagonal:
            inside = np.flatnonzero(rows >= 0)
            rows, columns, data = rows[inside], columns[inside], data[inside]
        band = np.zeros((A.shape[0], height), self.wide)
        band.reshape(-1)[columns * height + rows] = data
        return band.T

    def _solved(self, x, trans):
        (factor, pivots), lapack = self._factors, _lapack(self.wide)
        x = x if self._order is None else x[self._order]
        y = lapack.pbtrs(factor, x, lower=1)[0] if pivots is None else lapack.gbtrs(factor, *self._width, x, pivots,
                                                                                    trans=trans)[0]
        return y if self._order is None else y[self._place]

    def describe(self):
        lower, upper = self._width
        order = "" if self._order is None else ", in reverse Cuthill–McKee's order"
        kind = "" if self._factors[1] is not None else "Cholesky factors, "
        return f"Direct() by LAPACK on a band, {kind}{lower} below the diagonal and {upper} above{order}"


@functools.cache
def _lapack(dtype):
    """Return LAPACK's functions of this type for bands, as a namespace."""
    from scipy.linalg import get_lapack_funcs
    names = "gbtrf", "gbtrs", "pbtrf", "pbtrs"
    return SimpleNamespace(**dict(zip(names, get_lapack_funcs(names, dtype=dtype))))
