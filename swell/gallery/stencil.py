"""Matrices with the two stencils of a regular grid, star and box, built without Kronecker products of sparse matrices.

Grid points are numbered in C order: the last axis runs fastest.
"""
import functools
import importlib
import math

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError


def checked_shape(shape):
    """Return `shape` as a tuple of positive integers; raise `InputError` if it is not valid."""
    sizes = tuple(shape) if np.iterable(shape) else ()
    if not sizes or not all(isinstance(size, int | np.integer) and size >= 1 for size in sizes):
        raise InputError(f"shape={shape!r}: expected a positive integer for each axis, such as (32, 32)")
    return tuple(int(size) for size in sizes)


def star(shape, diagonal, lower, upper, xp=np):
    """Build the matrix that couples each grid point with its neighbours along the axes (3, 5 or 7 entries a row).

    Parameters
    ----------
    shape : tuple of int
        Points along each axis.
    diagonal : float or array, shape `shape`
    lower, upper : sequence, one element per axis
        Coupling of a point with the point before it, and after it, on this axis: a number, or an array with one value
        per pair of neighbours (its shape is `shape`, one less on this axis).
    xp : module
        NumPy or CuPy: builds the matrix on the host or on the GPU.

    Returns
    -------
    scipy.sparse.csr_matrix, shape (n, n) with n = prod(shape)
        CuPy's csr_matrix if `xp` is CuPy.
    """
    shape = checked_shape(shape)
    axes, n = len(shape), math.prod(shape)
    width = 2 * axes + 1
    data = xp.empty((*shape, width), np.result_type(diagonal, *lower, *upper, np.float64))
    inside = xp.zeros((*shape, width), bool)
    offsets = np.zeros(width, np.int64)
    data[..., axes], inside[..., axes] = diagonal, True
    for axis in range(axes):
        # The slots of a row ascend by column; axis 0 has the largest stride.
        before, after = axis, width - 1 - axis
        stride = math.prod(shape[axis + 1:])
        offsets[before], offsets[after] = -stride, stride
        head, tail = _slices(axes, axis, slice(None, -1)), _slices(axes, axis, slice(1, None))
        data[(*tail, before)], inside[(*tail, before)] = lower[axis], True
        data[(*head, after)], inside[(*head, after)] = upper[axis], True
    return _compressed(data.reshape(n, width), inside.reshape(n, width), offsets, xp)


def box(terms):
    """Build a sum of Kronecker products of tridiagonal matrices (3, 9 or 27 entries a row).

    Parameters
    ----------
    terms : list of tuples of arrays
        Each term has one array per axis, shape (points, 3): each row's entries before, on and after the diagonal.

    Returns
    -------
    scipy.sparse.csr_matrix, shape (n, n)
    """
    shape = tuple(len(band) for band in terms[0])
    axes, n, width = len(shape), math.prod(shape), 3 ** len(shape)
    data = sum(_outer(term) for term in terms).reshape(n, width)
    inside = _outer([_inside(size) for size in shape]).reshape(n, width)
    strides = [math.prod(shape[axis + 1:]) for axis in range(axes)]
    steps = np.indices((3,) * axes).reshape(axes, width) - 1
    return _compressed(data, inside, np.array(strides) @ steps)


def band(size, before, on, after):
    """Return the (size, 3) array for `box` of a tridiagonal matrix with constant diagonals.

    Each row is (before, on, after): the entries before, on and after the diagonal."""
    return np.tile([before, on, after], (size, 1))


def differences(size):
    """The differences of the inner points across each of ``size`` cells of an axis; the two outer points are zero."""
    return sp.diags_array([np.ones(size - 1), -np.ones(size - 1)], offsets=[0, -1], shape=(size, size - 1))


def kronecker(factors):
    """Return the Kronecker product of sparse matrices, one an axis, as a new CSR matrix."""
    return functools.reduce(lambda a, b: sp.kron(a, b, format="csr"), factors)


def _slices(axes, axis, along):
    """Return an index, a list, for an array with ``axes`` axes: ``along`` on axis ``axis``, all on the others."""
    index = [slice(None)] * axes
    index[axis] = along
    return index


def _inside(size):
    """Return a bool array, shape (size, 3): True for the entries of a tridiagonal matrix that exist."""
    inside = np.ones((size, 3), bool)
    inside[0, 0] = inside[-1, 2] = False
    return inside


def _outer(bands):
    """Return the outer product of one (points, 3) array per axis, shape (points of each axis, then 3 for each axis)."""
    points, slots = "abc"[:len(bands)], "ijk"[:len(bands)]
    operands = ",".join(p + s for p, s in zip(points, slots))
    return np.einsum(f"{operands}->{points}{slots}", *bands)


def _compressed(data, inside, offsets, xp=np):
    """Return the CSR matrix of the entries inside the grid; slot s of row i is in column i + offsets[s].

    ``data``, ``inside``: values and a bool mask, shape (rows, slots). ``xp``: NumPy or CuPy."""
    n = len(data)
    index = np.int32 if inside.size < 2**31 else np.int64
    indptr = xp.zeros(n + 1, index)
    indptr[1:] = xp.cumsum(inside.sum(axis=1))
    columns = (xp.arange(n, dtype=index)[:, None] + xp.asarray(offsets.astype(index)))[inside]
    A = _sparse(xp).csr_matrix((data[inside], columns, indptr), shape=(n, n))
    A.has_canonical_format = True
    return A


def _sparse(xp):
    """The module with sparse matrices: SciPy's for NumPy, or CuPy's."""
    return sp if xp is np else importlib.import_module("cupyx.scipy.sparse")
