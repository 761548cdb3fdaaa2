"""Patterns: where the entries of A lie, in CSR with ascending columns, and where each of a user's values belongs.

Two values of one place are summed, and padding belongs to no entry. Arrays are NumPy's, or CuPy's for indices on a GPU.
"""
from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from swell.batch.pattern import Pattern as HostPattern
from swell.core.errors import InputError

WIDE = 2**31            # sizes and numbers of entries below it have indices of 32 bits


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pattern of an n × n matrix. Patterns with equal contents are equal.

    Attributes
    ----------
    n : int
    indptr, indices : integer arrays
        Columns ascend in each row. Both None for a dense matrix whose zeros are no entries, and may change.
    place : integer array or None
        The entry to which each of the user's values is added; the number of entries for padding. None: one for one.
    stored : tuple of int
        The shape of the user's values; (n, n) for a dense matrix.
    """

    n: int
    indptr: Any
    indices: Any
    place: Any
    stored: tuple[int, ...]

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return self.indices.size

    @cached_property
    def host(self) -> HostPattern:
        """The entries on the host, with their rows, as `swell.prepare_batch` takes them."""
        if self.indptr is None:
            return full(self.n).host
        return HostPattern(self.n, *(part if isinstance(part, np.ndarray) else part.get()
                                     for part in (self.indptr, self.indices)))

    @cached_property
    def transposed(self) -> tuple[Pattern, np.ndarray]:
        """(The pattern of Aᵀ, the entry of A for each entry of Aᵀ), on the host."""
        rows, columns = self.host.rows, self.host.indices
        order = np.lexsort((rows, columns)).astype(np.int32)
        indptr = np.searchsorted(columns[order], np.arange(self.n + 1)).astype(np.int32)
        return Pattern(self.n, indptr, rows[order], None, columns.shape), order

    @property
    def canonical(self) -> Pattern:
        """The same entries, for values in the order of the entries."""
        return Pattern(self.n, self.indptr, self.indices, None, (self.nnz,))

    @property
    def _arrays(self):
        return self.indptr, self.indices, self.place

    def __eq__(self, other):
        return isinstance(other, Pattern) and (self.n, self.stored) == (other.n, other.stored) and all(
            one is two or one is not None and two is not None and one.shape == two.shape and bool((one == two).all())
            for one, two in zip(self._arrays, other._arrays))

    def __hash__(self):
        return self._hash

    @cached_property
    def _hash(self) -> int:
        hasher = hashlib.blake2b(repr((self.n, self.stored, self.place is None)).encode())
        for array in self._arrays:
            if array is not None:
                hasher.update(array)
        return hash(hasher.digest())


def full(n) -> Pattern:
    """Return the pattern of a dense matrix, all of whose numbers are entries."""
    row = np.arange(n, dtype=np.int32)
    return Pattern(n, np.arange(0, n * n + 1, n, dtype=np.int32), np.tile(row, n), None, (n, n))


def from_csr(indptr, indices, stored, padded=False) -> Pattern:
    """Return the pattern that row pointers and columns give.

    Parameters
    ----------
    indptr, indices : integer arrays of NumPy or CuPy
    stored : tuple of int
        The shape of the user's values.
    padded : bool
        Entries after the last row, and columns beyond the last one, are padding.

    Raises
    ------
    InputError
        For row pointers that do not ascend from 0 to the number of entries, and for indices out of range.
    """
    n, count = indptr.size - 1, indices.size
    end = int(indptr[-1])
    if int(indptr[0]) or bool((indptr[1:] < indptr[:-1]).any()) or end > count or end < count and not padded:
        raise InputError(f"A's row pointers are inconsistent: expected {n + 1} ascending integers from 0 to "
                         f"{'at most ' if padded else ''}{count}")
    inside = _check_range(indices, n, padded)
    if inside and end == count and _ascending(indptr, indices):
        return Pattern(n, *(_narrow(part, max(n, count)) for part in (indptr, indices)), None, tuple(stored))
    xp = _library(indices)
    rows = xp.searchsorted(indptr[1:], xp.arange(count), side="right")             # n after the last row
    return from_entries(rows, indices, n, stored, padded)


def from_entries(rows, columns, n, stored, padded=False) -> Pattern:
    """Return the pattern of entries in these rows and columns; `from_csr` documents the rest."""
    xp = _library(rows)
    inside = [_check_range(index, n, padded) for index in (rows, columns)]
    keys = rows.astype(np.int64) * n + columns
    if not all(inside):
        keys = xp.where((rows < n) & (columns < n), keys, np.int64(n) * n)      # padding comes last
    place = None
    if not all(inside) or not bool((keys[1:] > keys[:-1]).all()):
        keys, place = xp.unique(keys, return_inverse=True)
        keys, place = keys[keys < n * n], _narrow(place, keys.size)
    indptr, columns = xp.searchsorted(keys, xp.arange(n + 1) * n), keys % n
    return Pattern(n, *(_narrow(part, max(n, keys.size)) for part in (indptr, columns)), place, tuple(stored))


def _check_range(index, n, padded) -> bool:
    """Return True if all indices are below n; InputError if one is negative, or is not below n and is no padding."""
    if not index.size:
        return True
    least, most = int(index.min()), int(index.max())
    if least < 0 or most >= n and not padded:
        raise InputError(f"A has an index of {least if least < 0 else most}: expected 0 to {n - 1}")
    return most < n


def _ascending(indptr, indices) -> bool:
    """True if the columns ascend strictly in each row."""
    larger = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    larger[starts[(starts > 0) & (starts < indices.size)] - 1] = True
    return bool(larger.all())


def _narrow(index, largest):
    """Return a copy of indices, which a user may change; in 32 bits if ``largest`` allows that."""
    return index.astype(np.int32 if largest < WIDE else np.int64)


def _library(array):
    """Return the library of an array, NumPy or CuPy."""
    if isinstance(array, np.ndarray):
        return np
    import cupy
    return cupy
