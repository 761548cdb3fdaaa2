"""Columns: k vectors of one length, for k right-hand sides that are solved together.

Column j is one contiguous row of an array of shape (k, n), and of shape (k, m, n) for a basis of m vectors. A kernel
that gets `Columns` among its arguments runs once for every column; plain arrays are shared (``cuda_columns.py``,
``cpu_columns.py``). So methods and operators are written for one vector, and their code works on k of them.

Why not interleaved, as the rows of an (n, k) array are: here every kernel for one vector serves k of them and gives
each column the bits of its own solve; a column that is done costs nothing; and direct solvers take this layout.
"""
from __future__ import annotations

import operator


class Columns:
    """k arrays of one shape. The attributes below describe one column, so that it can stand for a vector.

    Parameters
    ----------
    array : array of shape (k, ...)

    Attributes
    ----------
    count : int
        k.
    step : int
        Distance between two columns, in elements; 0 for empty columns.
    """

    __slots__ = ("array",)
    __array_ufunc__ = None                       # NumPy leaves ``array * columns`` to this class

    def __init__(self, array):
        self.array = array

    count = property(lambda self: self.array.shape[0])
    step = property(lambda self: self.array.strides[0] // self.array.itemsize if self.array.size else 0)
    shape = property(lambda self: self.array.shape[1:])
    strides = property(lambda self: self.array.strides[1:])
    ndim = property(lambda self: self.array.ndim - 1)
    dtype = property(lambda self: self.array.dtype)
    itemsize = property(lambda self: self.array.itemsize)
    nbytes = property(lambda self: self.array.nbytes)        # of all columns
    data = property(lambda self: self.array.data)            # of the first column

    @property
    def size(self) -> int:
        """Number of elements of one column."""
        size = 1
        for extent in self.array.shape[1:]:
            size *= extent
        return size

    def column(self, j):
        """Return column j, a plain array that shares memory with this object."""
        return self.array[j]

    def __iter__(self):
        return map(Columns, self.array.swapaxes(0, 1))

    def __getitem__(self, index):
        return Columns(self.array[_every(index)])

    def __setitem__(self, index, value):
        self.array[_every(index)] = plain(value)

    def fill(self, value):
        """Fill every column with the number ``value``."""
        self.array[...] = value

    def reshape(self, *shape):
        """Return `Columns` whose columns have this shape."""
        return Columns(self.array.reshape(self.count, *shape))

    def copy(self):
        """Return a copy."""
        return Columns(self.array.copy())

    def conj(self):
        """Return the complex conjugate."""
        return Columns(self.array.conj())

    def astype(self, dtype, copy=True):
        """Return the columns in another type; without ``copy``, themselves if they have it already."""
        return Columns(self.array.astype(dtype, copy=copy))

    def __rmatmul__(self, matrix):
        return Columns(self.array @ matrix.T)                # (M xⱼ)ᵀ = xⱼᵀ Mᵀ, all columns in one product

    def __neg__(self):
        return Columns(-self.array)

    def __abs__(self):
        return Columns(abs(self.array))


def _every(index):
    """The index into (k, ...) that applies ``index`` to every column."""
    return (slice(None), *index) if isinstance(index, tuple) else (slice(None), index)


def plain(value):
    """Return the array of `Columns`; any other value unchanged."""
    return value.array if isinstance(value, Columns) else value


def column(vectors, j):
    """Return column j of `Columns`; an array, the only column, unchanged."""
    return vectors.array[j] if isinstance(vectors, Columns) else vectors


def _binary(name):
    """The methods of a binary operation: from the left, from the right, in place."""
    function, inplace = getattr(operator, name), getattr(operator, f"i{name}")

    def left(self, other):
        return Columns(function(self.array, plain(other)))

    def right(self, other):
        return Columns(function(other, self.array))

    def changed(self, other):
        self.array = inplace(self.array, plain(other))
        return self
    return left, right, changed


for _name in ("add", "sub", "mul", "truediv"):
    for _prefix, _method in zip(("", "r", "i"), _binary(_name)):
        setattr(Columns, f"__{_prefix}{_name}__", _method)
