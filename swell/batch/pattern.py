"""The pattern that all systems of a batch share: read once on the host, with the tables that kernels use."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.operator import LinearOperator

MAX_ENTRIES = 2**31 - 1  # entries: kernels count them with 32 bits
ORDERED = ("csr", "csc", "coo", "bsr")      # SciPy's formats whose ``data`` has one number for each entry


@dataclass(frozen=True)
class Pattern:
    """A pattern in CSR on the host, columns ascending.

    Attributes
    ----------
    n : int
    indptr, indices : int32 arrays
    order : int64 array or None
        The place of each entry in the user's values; None if they have this order already.
    """

    n: int
    indptr: np.ndarray
    indices: np.ndarray
    order: np.ndarray | None = None

    @property
    def nnz(self) -> int:
        """Number of entries of a system."""
        return self.indices.size

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The entry of each diagonal element, or −1."""
        places = np.full(self.n, -1, np.int32)
        on = np.flatnonzero(self.rows == self.indices)
        places[self.indices[on]] = on
        return places

    @cached_property
    def ell(self) -> np.ndarray:
        """The columns of the first entries of all rows, then of the second entries, …; zeros fill short rows.

        16 bits suffice, since larger systems do not fit on the chip of a GPU, where alone it is used."""
        lengths = np.diff(self.indptr)
        table = np.zeros((int(lengths.max(initial=1)), self.n), np.uint16)
        table[np.arange(self.nnz) - self.indptr[self.rows], self.rows] = self.indices
        return table.ravel()

    @cached_property
    def places(self) -> np.ndarray:
        """Row and column of each entry in one number, row · 2¹⁶ + column; for at most 2¹⁶ unknowns."""
        return self.rows.astype(np.uint32) << np.uint32(16) | self.indices.astype(np.uint32)

    @cached_property
    def mirror(self) -> np.ndarray:
        """The entry of aⱼᵢ for each aᵢⱼ, or −1."""
        keys = self.rows.astype(np.int64) * self.n + self.indices            # ascending
        wanted = self.indices.astype(np.int64) * self.n + self.rows
        places = np.minimum(np.searchsorted(keys, wanted), max(self.nnz - 1, 0))
        return np.where(keys[places] == wanted, places, -1).astype(np.int32)

    @property
    def symmetric(self) -> bool:
        """True if the pattern has an aⱼᵢ for each aᵢⱼ and a full diagonal."""
        return self.full_diagonal and bool((self.mirror >= 0).all())

    @property
    def full_diagonal(self) -> bool:
        """True if each row has a diagonal entry."""
        return bool((self.diagonal >= 0).all())

    @cached_property
    def levels(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The levels of ILU(0): (starts of L's levels, starts of U's levels, rows in the order of both).

        Rows of one level depend on rows of earlier levels only. U's starts begin at n."""
        lower, upper = _levels(self, 1), _levels(self, -1)
        order = np.concatenate([np.argsort(lower, kind="stable"), np.argsort(upper, kind="stable")])
        starts = [np.concatenate([[0], np.cumsum(np.bincount(level))]) for level in (lower, upper)]
        return starts[0].astype(np.int32), (starts[1] + self.n).astype(np.int32), order.astype(np.int32)

    def same(self, other: Pattern) -> bool:
        """True if both patterns have the same entries."""
        return (self.n == other.n and np.array_equal(self.indptr, other.indptr)
                and np.array_equal(self.indices, other.indices))


def _levels(pattern, step):
    """Return the level of each row in a solve with L (``step`` 1) or U (−1).

    It is one more than the largest level of the rows that the row depends on."""
    level = np.zeros(pattern.n, np.int64)
    pointers, columns = pattern.indptr.tolist(), pattern.indices
    for i in range(pattern.n)[::step]:
        row = columns[pointers[i]:pointers[i + 1]]
        row = row[row < i] if step == 1 else row[row > i]
        if row.size:
            level[i] = level[row].max() + 1
    return level


def read_pattern(A) -> Pattern:
    """Read the pattern of A, of any library.

    Raises
    ------
    InputError
        If A is not square, has no entries of its own, stores an entry twice, or is in a format without an order of
        values.
    """
    if isinstance(A, LinearOperator):
        if not hasattr(A, "to_csr"):
            raise InputError(f"A is a {type(A).__name__} without entries here: expected a matrix on one device, whose "
                             "pattern all systems share")
        csr, host = A.to_csr(), A.space.to_host
        matrix = _csr(host(csr.indptr), host(csr.indices), csr.shape)
    else:
        matrix = _numbered(A)
    if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise InputError(f"A has shape {tuple(matrix.shape)}: expected a square matrix with at least one row")
    csr = matrix.tocsr(copy=True)                # sorted below; the arrays of `matrix` are the user's
    csr.sort_indices()
    if csr.nnz > MAX_ENTRIES:
        raise InputError(f"A has {csr.nnz} entries: a batch takes at most {MAX_ENTRIES} a system; use swell.solve")
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    if ((np.diff(rows) == 0) & (np.diff(csr.indices) == 0)).any() or csr.nnz < matrix.nnz:
        raise InputError("A stores an entry twice, so the order of its values is not clear: call A.sum_duplicates() "
                         "first, and give values in the order of the new A.data")
    order = csr.data.astype(np.int64) - 1
    if (order == np.arange(order.size)).all():
        order = None
    return Pattern(csr.shape[0], csr.indptr.astype(np.int32), csr.indices.astype(np.int32), order)


def _csr(indptr, indices, shape):
    """Return a CSR matrix with this pattern and the values 1, 2, 3, …"""
    import scipy.sparse as sp
    return sp.csr_matrix((np.arange(1.0, indices.size + 1), indices, indptr), shape=shape)


def _numbered(A):
    """Return A as a SciPy matrix on the host whose values are 1, 2, 3, … in the user's order."""
    import scipy.sparse as sp
    guest, name = guest_of(A), type(A).__name__
    A = guest.read_matrix(A)
    if len(getattr(A, "shape", ())) != 2 or (not hasattr(A, "tocsr") and hasattr(A, "matvec")):
        raise InputError(f"A is {name}: expected a matrix with entries, sparse or dense, of two dimensions; for a list "
                         "of matrices leave values out, as in solve_batch([A1, A2], B=[b1, b2])")
    guest_of(A).check(A)
    if not hasattr(A, "tocsr"):
        csr = guest_of(A).csr(A).csr
        return _csr(_host(csr.indptr), _host(csr.indices), csr.shape)
    if A.format not in ORDERED:
        raise InputError(f"A is a {name} in format {A.format!r}: expected one of {', '.join(ORDERED)}, whose A.data "
                         "has one number for each entry; convert it with A.tocsr()")
    if A.format == "coo":
        numbers = np.arange(1.0, A.row.size + 1)
        return sp.coo_matrix((numbers, (_host(A.row), _host(A.col))), shape=A.shape)
    kind = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "bsr": sp.bsr_matrix}[A.format]
    numbers = np.arange(1.0, A.data.size + 1).reshape(A.data.shape)
    return kind((numbers, _host(A.indices), _host(A.indptr)), shape=A.shape)


def _host(array):
    """Return an array of NumPy or CuPy as a NumPy array."""
    return array.get() if type(array).__module__.startswith("cupy") else np.asarray(array)
