"""cuBLAS and cuSOLVER of the emulated GPU: the calls that swell makes, by NumPy and SciPy on the device's memory.

cuSOLVER's 64-bit functions, which swell calls by ctypes, are in device/runtime.cpp."""
from __future__ import annotations

import ctypes
import types

import numpy as np
import scipy.linalg

from cupy import cuda

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
UPPER = {0: False, 1: True}                      # CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER


class _At:
    """Memory as NumPy takes it."""

    def __init__(self, address, kind, size):
        self.__array_interface__ = {"shape": (size,), "typestr": np.dtype(kind).str, "data": (int(address), False),
                                    "version": 3}


def _flat(address, kind, size):
    return np.asarray(_At(address, kind, size))


def _matrix(address, kind, rows, columns, distance):
    """A column-major matrix with this leading dimension."""
    if distance < max(rows, 1):
        raise ValueError(f"CUBLAS_STATUS_INVALID_VALUE: leading dimension {distance} of {rows} rows")
    size = np.dtype(kind).itemsize
    return np.lib.stride_tricks.as_strided(_flat(address, kind, distance * max(columns - 1, 0) + rows), (rows, columns),
                                           (size, size * distance))


def _op(operation, M):
    return (M, M.T, M.conj().T)[operation]


def _gemm(kind):
    def gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        alpha, beta = (_flat(at, kind, 1)[0].copy() for at in (alpha, beta))

        def run():
            A = _op(op_a, _matrix(a, kind, *((m, k) if op_a == 0 else (k, m)), lda))
            B = _op(op_b, _matrix(b, kind, *((k, n) if op_b == 0 else (n, k)), ldb))
            C = _matrix(c, kind, m, n, ldc)
            with np.errstate(all="ignore"):
                C[...] = alpha * (A @ B) + (beta * C if beta else 0)
        cuda.get_current_stream().do(run)
    return gemm


def _strided(kind):
    gemm = _gemm(kind)

    def batched(handle, op_a, op_b, m, n, k, alpha, a, lda, per_a, b, ldb, per_b, beta, c, ldc, per_c, count):
        size = np.dtype(kind).itemsize
        for i in range(count):
            gemm(handle, op_a, op_b, m, n, k, alpha, a + i * per_a * size, lda, b + i * per_b * size, ldb, beta,
                 c + i * per_c * size, ldc)
    return batched


def _trsm(kind):
    def trsm(handle, side, fill, operation, diagonal, m, n, alpha, a, lda, b, ldb):
        assert side == 0 and _flat(alpha, kind, 1)[0] == 1

        def run():
            A, B = _matrix(a, kind, m, m, lda), _matrix(b, kind, m, n, ldb)
            with np.errstate(all="ignore"):
                blas = scipy.linalg.get_blas_funcs("trsm", (A, B))
                B[...] = blas(1, A, B, lower=not UPPER[fill], trans_a=operation, diag=diagonal)
        cuda.get_current_stream().do(run)
    return trsm


def _trsm_batched(kind):
    trsm = _trsm(kind)

    def batched(handle, side, fill, operation, diagonal, m, n, alpha, a, lda, b, ldb, count):
        one = _flat(alpha, kind, 1).copy()

        def run():
            for A, B in zip(_flat(a, np.uint64, count), _flat(b, np.uint64, count), strict=True):
                trsm(handle, side, fill, operation, diagonal, m, n, one.ctypes.data, A, lda, B, ldb)
        cuda.get_current_stream().do(run)
    return batched


def _getrf_batched(kind):
    def batched(handle, n, a, lda, pivots, info, count):
        for k, at in enumerate(_flat(a, np.uint64, count)):
            A = _matrix(at, kind, n, n, lda)
            if not pivots:
                raise NotImplementedError("getrfBatched without pivots")
            A[...], found, failed = scipy.linalg.get_lapack_funcs("getrf", (A,))(A.copy())
            _flat(pivots, np.int32, count * n)[k * n:(k + 1) * n] = found + 1
            _flat(info, np.int32, count)[k] = failed
    return batched


cublas = types.SimpleNamespace(
    CUBLAS_OP_N=0, CUBLAS_OP_T=1, CUBLAS_OP_C=2, CUBLAS_SIDE_LEFT=0, CUBLAS_SIDE_RIGHT=1, CUBLAS_FILL_MODE_LOWER=0,
    CUBLAS_FILL_MODE_UPPER=1, CUBLAS_DIAG_NON_UNIT=0, CUBLAS_DIAG_UNIT=1,
    **{letter + name: make(kind) for letter, kind in TYPES.items() for name, make in (
        ("gemm", _gemm), ("gemmStridedBatched", _strided), ("trsm", _trsm), ("trsmBatched", _trsm_batched),
        ("getrfBatched", _getrf_batched))})
device = types.SimpleNamespace(Device=cuda.Device, get_cublas_handle=lambda: 1, get_cusolver_handle=lambda: 1)
assert ctypes.sizeof(ctypes.c_void_p) == 8
