"""cuSOLVER's 64-bit LU by ctypes: matrices of more than 2³¹ entries, which the 32-bit functions that CuPy wraps refuse.

The functions are looked up in the library that CuPy's own wrapper is linked with, so both use one cuSOLVER.
"""
import ctypes
from contextlib import contextmanager
from functools import cache

import numpy as np

TYPES = {"f": 0, "d": 1, "F": 4, "D": 5}         # cudaDataType of a NumPy type: CUDA_R_32F, R_64F, C_32F, C_64F
OPERATION = {"N": 0, "T": 1, "C": 2}             # cublasOperation_t
WORD, POINTER = ctypes.c_int64, ctypes.c_void_p
ARGUMENTS = {
    "cusolverDnSetStream": (POINTER, POINTER),
    "cusolverDnCreateParams": (POINTER,),
    "cusolverDnDestroyParams": (POINTER,),
    "cusolverDnXgetrf_bufferSize": (POINTER, POINTER, WORD, WORD, ctypes.c_int, POINTER, WORD, ctypes.c_int, POINTER,
                                    POINTER),
    "cusolverDnXgetrf": (POINTER, POINTER, WORD, WORD, ctypes.c_int, POINTER, WORD, POINTER, ctypes.c_int, POINTER,
                         ctypes.c_size_t, POINTER, ctypes.c_size_t, POINTER),
    "cusolverDnXgetrs": (POINTER, POINTER, ctypes.c_int, WORD, WORD, ctypes.c_int, POINTER, WORD, POINTER, ctypes.c_int,
                         POINTER, WORD, POINTER),
}


@cache
def _function(name):
    """Return a function of cuSOLVER with its argument types."""
    from cupy_backends.cuda.libs import cusolver
    function = getattr(ctypes.CDLL(cusolver.__file__), name)     # also searches the libraries it is linked with
    function.argtypes = ARGUMENTS[name]
    return function


def _call(name, *arguments):
    status = _function(name)(*arguments)
    if status:
        raise RuntimeError(f"{name} returned status {status} of cuSOLVER")


@contextmanager
def _handles():
    """Yield (handle, options): cuSOLVER on CuPy's current stream, and its options for 64-bit calls, at their defaults.
    """
    from cupy.cuda import device, get_current_stream
    handle, options = device.get_cusolver_handle(), POINTER()
    _call("cusolverDnSetStream", handle, get_current_stream().ptr)
    _call("cusolverDnCreateParams", ctypes.addressof(options))
    try:
        yield handle, options
    finally:
        _call("cusolverDnDestroyParams", options)


def getrf(matrices, pivots):
    """Factor column-major matrices in place, one after the other.

    Parameters
    ----------
    matrices : device array, shape (count, n * n)
    pivots : int32 device array, shape (count, n), or None
        Set to the swaps of the rows, counted from 0. None: no pivoting.
    """
    import cupy
    n, kind = int(round(matrices.shape[1] ** 0.5)), TYPES[matrices.dtype.char]
    on_device, on_host = ctypes.c_size_t(), ctypes.c_size_t()
    info, chosen = cupy.empty(1, np.int32), cupy.empty(n, np.int64)
    with _handles() as handles:
        _call("cusolverDnXgetrf_bufferSize", *handles, n, n, kind, matrices.data.ptr, n, kind,
              ctypes.addressof(on_device), ctypes.addressof(on_host))
        scratch = cupy.empty(max(on_device.value, 1), np.uint8)
        host = np.empty(max(on_host.value, 1), np.uint8)
        for k, matrix in enumerate(matrices):
            _call("cusolverDnXgetrf", *handles, n, n, kind, matrix.data.ptr, n,
                  None if pivots is None else chosen.data.ptr, kind, scratch.data.ptr, on_device.value,
                  host.ctypes.data, on_host.value, info.data.ptr)
            if pivots is not None:
                pivots[k] = chosen - 1           # cuSOLVER counts from one, as in Fortran
        if on_host.value:
            cupy.cuda.get_current_stream().synchronize()         # sync: until then cuSOLVER uses the host's array


def getrs(lu, X, trans):
    """Solve op(L U) X = B by column-major factors with the unit diagonal in L; X, column-major, holds B, and then X."""
    import cupy
    n, columns, kind = lu.shape[0], X.shape[1], TYPES[X.dtype.char]
    pivots, info = cupy.arange(1, n + 1), cupy.empty(1, np.int32)
    with _handles() as handles:
        _call("cusolverDnXgetrs", *handles, OPERATION[trans], n, columns, kind, lu.data.ptr, n, pivots.data.ptr,
              kind, X.data.ptr, n, info.data.ptr)
