"""C = C − A B on parts of matrices, in place, by the space's library."""
from __future__ import annotations

import numpy as np


def subtract_product(space, C, A, B):
    """C -= A B.

    Parameters
    ----------
    C, A, B : arrays of the space, 2-D
        Parts of row- or column-major arrays; on a GPU cuBLAS takes them as they lie, without a copy.
    """
    if not (C.size and A.shape[1]):
        return
    if space.name == "cpu":
        C -= A @ B
    elif C.strides[1] == C.itemsize:
        _gemm(C.T, B.T, A.T)                     # row-major: the transposed product, column-major
    else:
        _gemm(C, A, B)


def _gemm(C, A, B):
    """C -= A B by cuBLAS, C column-major."""
    from cupy.cuda import cublas, device
    call = {"f": cublas.sgemm, "d": cublas.dgemm, "F": cublas.cgemm, "D": cublas.zgemm}[C.dtype.char]
    minus, one = np.array(-1, C.dtype), np.array(1, C.dtype)
    (op_a, ld_a), (op_b, ld_b), (_, ld_c) = layout(A), layout(B), layout(C)
    call(device.get_cublas_handle(), op_a, op_b, *C.shape, A.shape[1], minus.ctypes.data, A.data.ptr, ld_a, B.data.ptr,
         ld_b, one.ctypes.data, C.data.ptr, ld_c)


def layout(M):
    """(cuBLAS's operation, leading dimension) by which a part of an array is read column-major."""
    from cupy.cuda import cublas
    if M.strides[0] == M.itemsize:
        return cublas.CUBLAS_OP_N, max(M.strides[1] // M.itemsize, M.shape[0])
    return cublas.CUBLAS_OP_T, max(M.strides[0] // M.itemsize, M.shape[1])
