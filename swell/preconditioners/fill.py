"""The pattern of incomplete factors with fill up to level k. Watts 1981; Saad, Iterative Methods, section 10.3.3.

An entry of A has level 0. Eliminating row m gives entry (i, j) the level lev(i, m) + lev(m, j) + 1, unless its level is
lower already. Entries of level at most k are kept, so k = 0 keeps A's pattern. (Some texts take the pattern of Aᵏ,
which is the diagonal for k = 0.) With blocks as entries the graph has n/s rows, so a level costs s² times less there.

The host finds the pattern on every device: a matrix on a GPU sends its pattern there once. For LU the fill is estimated
first. Entry (i, j), j > i, has level at most k if a path of at most k + 1 edges leads from i to j through rows before i
(Hysom and Pothen 2002). A search from a few hundred rows counts these entries, in A for U and in Aᵀ for L. Factors that
would not fit in memory are refused, with the estimate in the message.
"""
from __future__ import annotations

import numpy as np

from swell.core.devices import make_space
from swell.core.library import native_kernels
from swell.formats.matrix import index_type

SAMPLE = 400                # rows from which the fill is estimated
SYMBOLIC_BYTES = 30         # host memory an entry during the search for the pattern: columns, levels, room to grow


def estimated(A, level) -> int:
    """Return an estimate of the number of entries of L and U with fill up to ``level``, for a CSRMatrix A; exact for at
    most 400 rows."""
    indptr, indices = _on_host(A)
    reached = native_kernels("swell.preconditioners", "fill").reached
    n = indptr.size - 1
    rows = np.unique(np.linspace(0, max(n - 1, 0), min(n, SAMPLE)).astype(np.int64))
    triangles = (indptr, indices), _transposed(indptr, indices)
    counts = [reached(*pattern, level, rows) for pattern in triangles]
    return int(n * (1 + sum(counts) / max(rows.size, 1)))


def lu_pattern(A, level, entry_bytes, name, unit):
    """Return (indptr, indices) of L and U with fill up to ``level`` for a CSRMatrix A, in its space.

    Parameters
    ----------
    entry_bytes : int
        Bytes that a number, or a block, of L and U takes, its places in the solves included.
    name, unit : str
        "ILU(2)" and "entries", for the message.

    Raises
    ------
    OutOfMemory
        If the pattern or the factors would not fit.
    """
    entries = estimated(A, level)
    factors = f"{name}, its factors of about {entries:.2g} {unit}, {entries / max(A.nnz, 1):.1f} times as many as in A,"
    remedy = "a lower level, or drop=0.001 and fill=10 in place of the level, which bound the fill"
    make_space("cpu").check_fits(entries * SYMBOLIC_BYTES, factors, remedy)
    A.space.check_fits(entries * entry_bytes, factors, remedy)
    return _in_space(A, *_filled(A, level, False))


def cholesky_pattern(A, level):
    """Return (indptr, indices) of L with fill up to ``level`` for a Hermitian CSRMatrix A, in its space, with the
    diagonal last in each row."""
    return _in_space(A, *_transposed(*_filled(A, level, True)))


def _on_host(A):
    """Return the arrays of A's pattern on the host."""
    return A.space.to_host(A.indptr), A.space.to_host(A.indices)                         # sync


def _in_space(A, indptr, indices):
    """Return the arrays of a pattern on the host, in A's space."""
    index = index_type(*A.shape, indices.size)
    return A.space.from_host(indptr.astype(index)), A.space.from_host(indices.astype(index))


def _filled(A, level, upper):
    """Return (indptr, indices), int64 arrays on the host: the pattern with fill of A; from the diagonal on if
    ``upper``."""
    indptr, indices = _on_host(A)
    fill, n, row = native_kernels("swell.preconditioners", "fill").fill, indptr.size - 1, 0
    ptr, beyond = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    columns, levels = np.empty(indices.size, np.int64), np.empty(indices.size, np.int32)
    while (row := fill(indptr, indices, level, upper, row, ptr, beyond, columns, levels)) < n:
        columns, levels = extended(columns), extended(levels)
    return ptr, columns[:ptr[n]]


def extended(array):
    """Return a copy of ``array`` with room for half as many entries more; the added entries are undefined."""
    return np.concatenate([array, np.empty((len(array) // 2 + 1, *array.shape[1:]), array.dtype)])


def _transposed(indptr, indices):
    """Return new arrays (indptr, indices) of the transposed pattern, columns ascending, on the host."""
    n = indptr.size - 1
    starts, out = np.zeros_like(indptr), np.empty_like(indices)
    np.cumsum(np.bincount(indices, minlength=n), out=starts[1:])
    visit = np.arange(n, dtype=indptr.dtype)
    native_kernels("swell.orderings", "graph").transpose_graph(indptr, indices, visit, starts, out)
    return starts, out
