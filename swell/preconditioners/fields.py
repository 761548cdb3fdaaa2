"""Fields: the rows of a matrix divided by index sets, vectors in the order of the fields, and blocks of the matrix.

A field begins at a multiple of 16 bytes in a vector ordered by fields, as kernels need; the elements between two fields
are zero. The order of the rows in a field is the order of the user's index set.
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import InputError
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.renumbering import numbers, renumbered

EXPECTED = ("expected a dict of index arrays, boolean masks or slices, such as {'u': slice(0, 8), 'p': slice(8, 9)}, "
            "the field of each row as an integer array, a number of fields that alternate, or 'saddle_point'")


class Fields:
    """The fields of a matrix.

    Parameters
    ----------
    A : CSRMatrix
    given : dict, int array, int or "saddle_point"
        See `FieldSplit`.

    Attributes
    ----------
    names : list of str
    rows : list of int host arrays
        The rows of A in each field.
    starts : list of int
        Where each field begins in a vector ordered by fields; the last element is the length of such a vector.

    Raises
    ------
    InputError
        If a row is in no field or in two; the message names the first one.
    """

    def __init__(self, A, fields):
        self._space, n = A.space, A.shape[0]
        sets = index_sets(A, fields)
        self.names, self.rows = list(sets), list(sets.values())
        check_cover(self.names, self.rows, n)
        sizes = [A.space.padded(rows.size) for rows in self.rows]
        self.starts = [0, *np.cumsum(sizes).tolist()]
        ordered, places = np.full(self.starts[-1], -1, np.int64), np.empty(n, np.int64)
        for rows, start in zip(self.rows, self.starts):
            ordered[start:start + rows.size] = rows
            places[rows] = start + np.arange(rows.size)
        index = A.indices.dtype
        self._ordered, self._places = (A.space.from_host(array.astype(index)) for array in (ordered, places))
        self._kernels = A.space.kernels("swell.preconditioners", "fields", A.dtype)

    def __len__(self):
        return len(self.names)

    def split(self, x, out):
        """Write x, in the order of the fields, to ``out``."""
        self._kernels.split(x, self._ordered, out)

    def join(self, y, out, alpha, beta):
        """``out = alpha x + beta out`` for x in the order of A; y is x in the order of the fields."""
        kind = out.dtype.type
        self._kernels.join(y, self._places, out, kind(alpha), kind(beta))

    def own(self, i):
        """The slice of field i in a vector ordered by fields."""
        return slice(self.starts[i], self.starts[i] + self.rows[i].size)

    def before(self, i):
        """The slice of all fields before field i."""
        return slice(0, self.starts[i])

    def after(self, i):
        """The slice of all fields after field i."""
        return slice(self.starts[i + 1], self.starts[-1])

    def block(self, A, i, columns):
        """Return the `Block` of A with the rows of field i; ``columns`` is a slice of a vector ordered by fields."""
        xp = self._space.xp
        inside = (self._places >= columns.start) & (self._places < columns.stop)
        numbered = xp.where(inside, self._places - columns.start, -1)
        return Block(A, numbers(self._space, self.rows[i], A.shape[0]), numbered,
                     (self.rows[i].size, columns.stop - columns.start))

    @property
    def nbytes(self):
        return self._ordered.nbytes + self._places.nbytes


class Block:
    """A block of a matrix, as a matrix of its own that takes new values by one gather.

    Parameters
    ----------
    A : CSRMatrix
    rows, columns : int device arrays
        The row and the column of the block for each row and column of A; −1 for none.
    shape : (int, int)

    Attributes
    ----------
    matrix : CSRMatrix
    """

    def __init__(self, A, rows, columns, shape):
        xp = A.space.xp
        pattern = renumbered(A.with_values(xp.arange(A.nnz)), rows, columns, shape)
        self._entries = pattern.data
        self.matrix = CSRMatrix(A.space, pattern.indptr, pattern.indices, A.data[self._entries], shape)

    def update(self, A):
        """Take the values of A, which has the same pattern."""
        self.matrix.data[...] = A.data[self._entries]
        self.matrix.discard_adjoint()

    @property
    def nbytes(self):
        return self.matrix.nbytes + self._entries.nbytes


def index_sets(A, fields) -> dict[str, np.ndarray]:
    """Return a dict from the name of a field to its rows, an int64 host array; ``fields`` as in `FieldSplit`."""
    n = A.shape[0]
    if isinstance(fields, str) and fields == "saddle_point":
        return saddle_point(A)
    if isinstance(fields, Mapping):
        return {str(name): indices(name, rows, n) for name, rows in fields.items()}
    if isinstance(fields, int | np.integer) and not isinstance(fields, bool):
        if fields < 1 or n % fields:
            raise InputError(f"FieldSplit(fields={fields}): {fields} fields that alternate cannot divide the {n} rows "
                             "of A: give the field of each row")
        return {str(k): np.arange(k, n, fields) for k in range(fields)}
    of = host_array(fields, "FieldSplit(fields)")
    if of.dtype.kind not in "iu" or of.shape != (n,):
        raise InputError(f"FieldSplit(fields) has shape {of.shape} and type {of.dtype}: {EXPECTED}")
    of = of.astype(np.int64)
    count = int(of.max(initial=-1)) + 1
    missing = np.flatnonzero(np.bincount(of[of >= 0], minlength=count) == 0)
    if of.min(initial=0) < 0 or missing.size:
        row = int(np.argmax(of < 0))
        what = f"row {row} has field {of[row]}" if of[row] < 0 else f"field {missing[0]} has no row"
        raise InputError(f"FieldSplit(fields): {what}: expected the numbers 0 to {max(count - 1, 1)} without holes")
    return {str(k): np.flatnonzero(of == k) for k in range(count)}


def saddle_point(A) -> dict[str, np.ndarray]:
    """Return {"u": rows with a positive diagonal entry, "p": all others}, host arrays.

    The matrix of a saddle point, [F Bᵀ; B −C], shows its second field so."""
    second = A.space.to_host(A.diagonal()).real <= 0  # sync
    if second.all() or not second.any():
        raise InputError(f"FieldSplit(fields='saddle_point'): {'every' if second.any() else 'no'} diagonal entry of A "
                         f"is zero or negative, so that A shows no second field: {EXPECTED}")
    return {"u": np.flatnonzero(~second), "p": np.flatnonzero(second)}


def indices(name, selection, n) -> np.ndarray:
    """Return the rows of field ``name``, an int64 host array, for an index array, a boolean mask or a slice."""
    if isinstance(selection, slice):
        return np.arange(n)[selection]
    rows = host_array(selection, f"FieldSplit(fields): field {name!r}")
    if rows.dtype.kind == "b" and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise InputError(f"FieldSplit(fields): field {name!r} has shape {rows.shape} and type {rows.dtype}: expected "
                         f"row numbers, a boolean mask of shape ({n},), or a slice")
    outside = (rows < 0) | (rows >= n)
    if outside.any():
        raise InputError(f"FieldSplit(fields): field {name!r} has the row {rows[np.argmax(outside)]}: expected rows "
                         f"from 0 to {n - 1}")
    return rows.astype(np.int64)


def check_cover(names, sets, n):
    """Raise InputError unless every one of n rows is in exactly one of the index sets, and no set is empty."""
    for name, rows in zip(names, sets):
        if not rows.size:
            raise InputError(f"FieldSplit(fields): field {name!r} has no rows: leave it out")
    times = np.bincount(np.concatenate(sets), minlength=n) if sets else np.zeros(n, int)
    wrong = np.flatnonzero(times != 1)
    if not wrong.size:
        return
    row = int(wrong[0])
    inside = [repr(name) for name, rows in zip(names, sets) for _ in range(int((rows == row).sum()))]
    what = "is in no field" if not inside else f"is in {' and '.join(inside)}"
    raise InputError(f"FieldSplit(fields): row {row} {what}: expected each of the {n} rows in one field, once; "
                     f"{wrong.size} rows are wrong")

