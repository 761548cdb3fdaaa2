"""torch's tensors as NumPy, CuPy or SciPy arrays over the same memory; imports torch only when one is there."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import DTYPES
from swell.core.errors import InputError

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def dtype_of(tensor, name) -> np.dtype:
    """The tensor's type as NumPy's.

    Raises
    ------
    InputError
        For types that NumPy does not know or swell does not compute in, such as bfloat16.
    """
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in (*DTYPES, *INTEGERS):
        raise InputError(f"{name} has dtype {dtype}: expected one of {', '.join(DTYPES)}; convert it with "
                         f"{name}.to(torch.float64)")
    return np.dtype(dtype)


def device_of(tensor) -> str:
    """The device where a tensor lives, "cpu" or "cuda:k".

    Raises
    ------
    InputError
        For other devices.
    """
    if tensor.device.type not in ("cpu", "cuda"):
        raise InputError(f"a tensor lies on device {str(tensor.device)!r}: expected cpu or cuda; move it with .cpu()")
    return "cpu" if tensor.device.type == "cpu" else f"cuda:{tensor.device.index or 0}"


def matrix(A):
    """A two-dimensional tensor as a dense array or as a SciPy or CuPy CSR matrix.

    Raises
    ------
    InputError
        For types and layouts that have no such form.
    """
    import torch
    dtype_of(A, "A")
    if A.layout == torch.strided:
        return _shared(A)
    blocks = A.layout in (torch.sparse_bsr, torch.sparse_bsc)
    flat = A.layout in (torch.sparse_csr, torch.sparse_csc) or A.layout == torch.sparse_coo and A.sparse_dim() == 2
    if not (blocks or flat):
        raise InputError(f"A is a tensor of layout {A.layout}: expected a dense one, or sparse COO, CSR, CSC, BSR or "
                         "BSC with two sparse dimensions; convert it with A.to_dense().to_sparse_csr()")
    if blocks:
        A = A.to_sparse_coo()                    # torch has no way from blocks to CSR
    A = A.to_sparse_csr()
    if A.device.type == "cpu":
        import scipy.sparse as sp
    else:
        import cupyx.scipy.sparse as sp
    return sp.csr_matrix(tuple(_shared(part) for part in (A.values(), A.col_indices(), A.crow_indices())),
                         shape=tuple(A.shape))


def vector(v, name):
    """A tensor as a dense array; a sparse one is filled up with zeros."""
    import torch
    dtype_of(v, name)
    return _shared(v if v.layout == torch.strided else v.to_dense())


def _shared(tensor):
    """A dense tensor as a NumPy or CuPy array over the same memory."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.device.type == "cpu":
        return np.from_dlpack(tensor)
    import cupy
    return cupy.from_dlpack(tensor)


def tensor(x):
    """An array of the host or of a GPU as a tensor over the same memory."""
    import torch
    return torch.from_dlpack(x)
