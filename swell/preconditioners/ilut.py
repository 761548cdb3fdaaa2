"""ILUT: incomplete LU that keeps entries by their size. Saad 1994; Iterative Methods, section 10.4.

Row i is eliminated in full. Entries below ``drop`` ‖aᵢ‖₂ are dropped, entries of L before they are used. Then each side
of the diagonal keeps its largest entries, at most ``fill`` times half the entries of row i of A. ``drop`` = 0 with a
large ``fill`` is the LU factorisation without pivoting.

The pattern depends on the values, row by row. So the host factors: a matrix on a GPU is sent there, and the factors
back. ``update`` factors from the start. incomplete_lu.py describes pivots, shifts and solves.
"""
from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np

from swell.core.library import native_kernels
from swell.core.errors import InputError, OutOfMemory
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.preconditioners.iluk import extended
from swell.preconditioners.incomplete_lu import IncompleteLU, LUOperator, diagonal_places, largest_moduli, shifted
from swell.preconditioners.lu_factorisation import TINY
from swell.transforms.permutation import Permutation

ENTRY_BYTES = 50            # host memory an entry of L and U, with room to grow and to copy


@dataclass(frozen=True)
class ILUT(IncompleteLU):
    """Incomplete LU that keeps entries by their size.

    Attributes
    ----------
    drop : float
        Entries smaller than ``drop`` times the 2-norm of their row of A are dropped.
    fill : float
        A row of L, and of U, keeps at most ``fill`` times half the entries of that row of A: the largest.
    """

    drop: float = 1e-3
    fill: float = 10.0

    def __post_init__(self):
        super().__post_init__()
        for name, value in (("drop", self.drop), ("fill", self.fill)):
            if not isinstance(value, numbers.Real) or isinstance(value, bool) or not value >= 0:
                raise InputError(f"{type(self).__name__}({name}={value!r}): expected a number of at least 0")

    def build(self, A):
        """Return the operator (L U)⁻¹.

        Raises
        ------
        InputError
            If a row has no diagonal entry.
        FactorisationError
            If a pivot stays tiny in spite of ``pivot``, or ``pivot`` is "error".
        OutOfMemory
            If L and U outgrow the memory.
        """
        return ThresholdLUOperator(A, self)


class ThresholdLUOperator(LUOperator):
    """Incomplete LU whose pattern depends on the values."""

    self_adjoint = False                         # a row and the column of the same number keep different entries
    _unit = "entries"

    def _analyse(self, A):
        self._host = make_space("cpu")
        self._builds = 0

    def _load(self, A):
        space = self.space
        ordered = A
        if self.order is not None:
            ordered = Permutation(A, self.order).matrix(A)
        arrays = (space.to_host(a) for a in (ordered.indptr, ordered.indices, ordered.data))       # sync
        self._matrix = CSRMatrix(self._host, *arrays, A.shape)
        self._diagonal = diagonal_places(self._matrix, self._name, self._named)
        ones = np.ones(self.shape[1], self._matrix.data.real.dtype)
        self._scale = largest_moduli(self._matrix.row_maxima(ones))

    def _largest_scale(self):
        return self._host.max_on_host(self._scale)

    def _factorise(self, shift, replacement):
        s, bad = self.settings, np.array([np.iinfo(np.int64).max, 0])
        limit = self._host.memory()[0] // (ENTRY_BYTES * self.block**2)
        self.factor = self._eliminate(shift, float(s.drop), float(s.fill), TINY * float(np.finfo(self.dtype).eps),
                                      replacement, bad, limit)
        first, count = (int(v) for v in bad)
        return self._check_finite(first if count else None, count)

    def _eliminate(self, shift, *rest):
        """Return the factor of A + ``shift`` S; ``rest`` are further arguments of the kernel, the last is ``limit``."""
        A, n, row = self._matrix, self.shape[0], 0
        data = shifted(np, A.data, self._diagonal, self._scale, shift)
        ptr, middle, inverse = np.zeros(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, data.dtype)
        columns, values = np.empty(data.size, np.int64), np.empty_like(data)
        factor = native_kernels("swell.preconditioners", "ilut").factor
        while (row := factor(A.indptr, A.indices, data, self._scale, *rest, row, ptr, middle, inverse, columns,
                             values)) < n:
            if ptr[row] > rest[-1]:
                self._check_memory(ptr[row], row, n)
            columns, values = extended(columns), extended(values)
        columns, values = columns[:ptr[n]], values[:ptr[n]]
        index = index_type(*self.shape, values.size)
        arrays = (self.space.from_host(a) for a in (ptr.astype(index), columns.astype(index), values))
        return CSRMatrix(self.space, *arrays, self.shape)

    def _check_memory(self, entries, row, rows):
        """Raise OutOfMemory if the kernel stopped at ``row``, before the last of ``rows``. ``entries``: their number
        so far, or of blocks."""
        if row < rows:
            needed = entries * ENTRY_BYTES * self.block**2 * rows / max(row, 1)
            raise OutOfMemory(f"{self._name}: L and U have {entries:.2g} {self._unit} after {row} of {rows} rows, "
                              f"about {needed / 2**30:.2g} GiB in all, and {self._host.memory()[0] / 2**30:.2g} GiB "
                              "are free: choose a larger drop or a smaller fill")

    def _refactor(self, A):
        super()._refactor(A)
        if self.space.name != "cpu":
            self.notes = (*self.notes, f"{self._name}: factored on the host, since the entries that a row keeps "
                                       "depend on earlier rows")

    def _solve_with_factor(self):
        self.L = self.U = None                   # the pattern has changed
        self._builds += 1
        super()._solve_with_factor()

    @property
    def revision(self):
        return self._builds

    @property
    def nbytes(self):
        return super().nbytes + self._matrix.nbytes
