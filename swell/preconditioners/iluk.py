"""ILU(k): incomplete LU with fill up to level k. Watts 1981; Saad, Iterative Methods, section 10.3.3.

An entry of A has level 0. Eliminating row m gives entry (i, j) the level lev(i, m) + lev(m, j) + 1, unless its level is
lower already. Entries of level at most k are kept, so k = 0 is ILU(0).

The fill is estimated first. Entry (i, j), j > i, has level at most k if a path of at most k + 1 edges leads from i to j
through rows before i (Hysom and Pothen 2002). A search from a few hundred rows counts these entries, in A for U and in
Aᵀ for L. Factors that would not fit in memory are refused, with the estimate in the message.

The host finds the pattern on every device: a matrix on a GPU sends its pattern there once. The device computes the
values. An application costs as much as with ILU(0), for longer rows.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.library import native_kernels
from swell.core.settings import positive
from swell.core.devices import make_space
from swell.formats.matrix import index_type
from swell.preconditioners.incomplete_lu import PatternLU

SAMPLE = 400                # rows from which the fill is estimated
SYMBOLIC_BYTES = 30         # host memory an entry during the search for the pattern: columns, levels, room to grow


@dataclass(frozen=True)
class ILUK(PatternLU):
    """Incomplete LU with fill up to a level.

    Attributes
    ----------
    level : int
        Fill up to this level is kept; 0 is ILU(0).
    """

    level: int = 1

    def __post_init__(self):
        super().__post_init__()
        positive(self, "level", 0)

    def estimate(self, A) -> int:
        """Return an estimate of the number of entries of L and U together; exact for a matrix of at most 400 rows."""
        return estimated(*(A.space.to_host(a) for a in (A.indptr, A.indices)), self.level)         # sync

    def pattern(self, A, entry_bytes):
        return filled(A, self.level, entry_bytes, f"ILU({self.level})", "entries")


def estimated(indptr, indices, level) -> int:
    """Return an estimate of the number of entries of L and U with fill up to ``level``, from the pattern of A on the
    host."""
    reached = native_kernels("swell.preconditioners", "iluk").reached
    n = indptr.size - 1
    rows = np.unique(np.linspace(0, max(n - 1, 0), min(n, SAMPLE)).astype(np.int64))
    triangles = (indptr, indices), transposed(indptr, indices)
    counts = [reached(*pattern, level, rows) for pattern in triangles]
    return int(n * (1 + sum(counts) / max(rows.size, 1)))


def filled(A, level, entry_bytes, name, unit):
    """Return (indptr, indices) of L and U with fill up to ``level`` for a CSRMatrix A, in its space.

    Parameters
    ----------
    entry_bytes : int
        Bytes that a number, or a block, of L and U takes.
    name, unit : str
        "ILU(2)" and "entries", for the message.

    Raises
    ------
    OutOfMemory
        If the pattern or the factors would not fit.
    """
    space = A.space
    indptr, indices = (space.to_host(a) for a in (A.indptr, A.indices))                  # sync
    entries = estimated(indptr, indices, level)
    factors = f"{name}, its factors of about {entries:.2g} {unit}, {entries / max(A.nnz, 1):.1f} times as many as in A,"
    remedy = "a lower level, or ilut or block_ilut, whose fill is bounded"
    make_space("cpu").check_fits(entries * SYMBOLIC_BYTES, factors, remedy)
    space.check_fits(entries * entry_bytes, factors, remedy)
    pointers, columns = find_fill("iluk", indptr, indices, level, np.empty(indptr.size - 1, np.int64))
    index = index_type(*A.shape, columns.size)
    return space.from_host(pointers.astype(index)), space.from_host(columns.astype(index))


def find_fill(stem, indptr, indices, level, *work):
    """Return (indptr, indices), int64 arrays, that the kernel ``fill`` of file ``stem`` writes.

    ``indptr`` and ``indices`` are the pattern of A on the host, ``work`` arrays between ``ptr`` and ``columns``."""
    fill, n, row = native_kernels("swell.preconditioners", stem).fill, indptr.size - 1, 0
    ptr, columns, levels = np.zeros(n + 1, np.int64), np.empty(indices.size, np.int64), np.empty(indices.size, np.int32)
    while (row := fill(indptr, indices, level, row, ptr, *work, columns, levels)) < n:
        columns, levels = extended(columns), extended(levels)
    return ptr, columns[:ptr[n]]


def extended(array):
    """Return a copy of ``array`` with room for half as many entries more; the added entries are undefined."""
    return np.concatenate([array, np.empty((len(array) // 2 + 1, *array.shape[1:]), array.dtype)])


def transposed(indptr, indices):
    """Return new arrays (indptr, indices) of the transposed pattern, columns ascending, on the host."""
    n = indptr.size - 1
    starts, out = np.zeros_like(indptr), np.empty_like(indices)
    np.cumsum(np.bincount(indices, minlength=n), out=starts[1:])
    visit = np.arange(n, dtype=indptr.dtype)
    native_kernels("swell.orderings", "graph").transpose_graph(indptr, indices, visit, starts, out)
    return starts, out
