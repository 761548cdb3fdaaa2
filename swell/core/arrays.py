"""Checks of the user's arrays: their type, finite values, and conversion to NumPy."""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import DTYPES

NATIVE = frozenset(map(np.dtype, DTYPES))
MOST_DENSE = 2**30      # bytes of a sparse b that become dense unasked


def checked_dtype(dtype, name):
    """The type to compute in, for an array of type ``dtype``: one of `DTYPES`, in this machine's byte order.

    Integers and booleans become double. ``name`` is the array's name in error messages.

    Raises
    ------
    InputError
        For any other type, such as float16, extended precision or objects.
    """
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise InputError(f"dtype={dtype!r}: expected one of {', '.join(DTYPES)}") from None
    if dtype in NATIVE:                          # at once, since NumPy takes long for a name
        return dtype
    if dtype.kind in "iub":
        return np.dtype(np.float64)
    if dtype.name not in DTYPES:
        raise InputError(f"{name} has dtype {dtype.name}: expected one of {', '.join(DTYPES)}; convert it with "
                         f"{name}.astype('float64')")
    return dtype.newbyteorder("=")


def check_finite(name, *arrays, where=""):
    """Raise InputError if any of ``arrays``, of NumPy or CuPy, contains NaN or Inf.

    Parameters
    ----------
    name : str
        Name of the arrays in the message.
    where : str
        Text after the number of bad entries in the message, as in " of this rank's".
    """
    finite = [np.isfinite(array) for array in arrays]            # NumPy's function also takes CuPy's arrays
    if all(bool(one.all()) for one in finite):
        return
    raise not_finite(name, sum(int((~one).sum()) for one in finite), where)


def not_finite(name, bad, where="") -> InputError:
    """Return the InputError for the array ``name`` with ``bad`` entries that are NaN or Inf.

    ``where``: text after their number."""
    return InputError(f"{name} contains NaN or Inf ({bad} entries{where}): a linear system needs finite numbers; look "
                      "where it was assembled")


def stored_size(A) -> int | None:
    """The size of the square blocks of a SciPy BSR matrix; None for other matrices, and for blocks of size 1."""
    rows, columns = getattr(A, "blocksize", (1, 1))
    return rows if rows == columns and rows > 1 else None


def native(array):
    """The array in this machine's byte order, copied only if its byte order differs."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def for_kernels(array, dtype=None):
    """The array as kernels of a CPU read it: contiguous, aligned, in this machine's byte order; copied only if needed.

    ``dtype``: its new type, if that is another one."""
    array = np.ascontiguousarray(array, dtype)
    usable = array.flags.aligned and array.dtype.isnative
    return array if usable else array.astype(array.dtype.newbyteorder("="))


def host_array(array, name: str):
    """Convert an array, a sequence or a number to a NumPy array in this machine's byte order.

    Raises
    ------
    InputError
        For masked entries, ragged sequences, and containers that NumPy could only read element by element.
    """
    masked = np.ma.count_masked(array) if isinstance(array, np.ma.MaskedArray) else 0
    if masked:
        raise InputError(f"{name} is a masked array with {masked} masked entries: expected a number in every place; "
                         f"fill them, as {name}.filled(0) does, or solve for the entries that are not masked")
    if hasattr(array, "shape") and not (hasattr(array, "__array__") or isinstance(array, memoryview)):
        raise InputError(f"{name} is a {type(array).__module__}.{type(array).__name__}, which NumPy cannot read as a "
                         "whole: expected a NumPy, CuPy, torch or JAX array, or a SciPy sparse matrix; convert it")
    try:
        return native(np.asarray(array))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} is no array ({error}): expected shape (n,) or (n, k)") from None


def check_dense(name, shape, itemsize=8):
    """Raise InputError if a sparse array of this shape, several right-hand sides, is too large to become dense by
    itself.

    ``name`` is its name in the message, and ``itemsize`` the bytes of an entry. b and x are dense in every solve."""
    size = itemsize * math.prod(shape)
    if len(shape) > 1 and shape[1] > 1 and size > MOST_DENSE:
        raise InputError(f"{name} is sparse, of shape {tuple(shape)}: a dense copy takes {size / 2**30:.3g} GiB, and "
                         f"x as much; expected at most {MOST_DENSE / 2**30:.3g} GiB. Solve for some columns at a time, "
                         f"by solver = swell.prepare(A) and solver.solve({name}[:, j:j + 64]), or give a dense array")


def by_parts(solve, r, dtype):
    """Return ``solve(r)``, for a linear ``solve`` of vectors of this dtype. If that is real and r is complex, solve for
    the real and the imaginary part."""
    if r.dtype.kind == "c" and dtype.kind != "c":
        return by_parts(solve, r.real, dtype) + 1j * by_parts(solve, r.imag, dtype)
    return solve(r.astype(dtype))
