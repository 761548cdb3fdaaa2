"""Arrays that users bring: where they live, which type they have, and what NumPy makes of them."""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError

DTYPES = ("float32", "float64", "complex64", "complex128")
KINDS = {"cupy": "cupy", "cupyx": "cupy", "torch": "torch", "petsc4py": "petsc", "jax": "jax", "jaxlib": "jax"}


def kind_of(array) -> str:
    """"cupy", "torch", "petsc", "jax" or "host": where an object comes from, without importing anything."""
    roots = (cls.__module__.split(".")[0] for cls in type(array).__mro__)      # PETSc's classes are often derived from
    return next((KINDS[root] for root in roots if root in KINDS), "host")


def checked_dtype(dtype, name):
    """One of the four types, in this machine's byte order; integers become double.

    Raises
    ------
    InputError
        For float16, extended precision, objects.
    """
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise InputError(f"dtype={dtype!r}: expected one of {', '.join(DTYPES)}") from None
    if dtype.kind in "iub":
        return np.dtype(np.float64)
    if dtype.name not in DTYPES:
        raise InputError(f"{name} has dtype {dtype.name}: expected one of {', '.join(DTYPES)}; convert it with "
                         f"{name}.astype('float64')")
    return dtype.newbyteorder("=")


def native(array):
    """The array in this machine's byte order, copied only where its own is the other one."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def host_array(array, name: str):
    """An array, a sequence or a number as a NumPy array in this machine's byte order.

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
