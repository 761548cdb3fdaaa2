"""The guest for torch's tensors, which are read as NumPy, CuPy or SciPy arrays over the same memory."""
import numpy as np

from swell.core.arrays import check_dense
from swell.core.errors import InputError
from swell.core.guests import Guest
from swell.core.settings import DTYPES

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Torch(Guest):
    """Tensors of every layout, on the host or on a CUDA GPU. x is returned as a tensor."""

    def device_of(self, value):
        kind = value.device.type
        if kind not in ("cpu", "cuda"):
            raise InputError(f"a tensor lies on device {str(value.device)!r}: expected cpu or cuda; move it with "
                             ".cpu()")
        return "cpu" if kind == "cpu" else f"cuda:{value.device.index or 0}"

    def dtype_of(self, value, name):
        """Return the NumPy type of the tensor ``value``; ``name``: the tensor in messages.

        Raises
        ------
        InputError
            For types that NumPy or swell does not support, such as bfloat16.
        """
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in (*DTYPES, *INTEGERS):
            raise InputError(f"{name} has dtype {dtype}: expected one of {', '.join(DTYPES)}; convert it with "
                             f"{name}.to(torch.float64)")
        return np.dtype(dtype)

    def read_matrix(self, A):
        """Return a dense tensor as an array, and a sparse one as a CSR matrix of SciPy or CuPy.

        Raises
        ------
        InputError
            For types and layouts that cannot be converted, and for a tensor that requires grad.
        """
        import torch
        self.dtype_of(A, "A")
        _check_no_graph(A, "A")
        if A.layout == torch.strided:
            return _shared(A)
        blocks = A.layout in (torch.sparse_bsr, torch.sparse_bsc)
        flat = A.layout in (torch.sparse_csr, torch.sparse_csc) or A.layout == torch.sparse_coo and A.sparse_dim() == 2
        if not (blocks or flat):
            raise InputError(f"A is a tensor of layout {A.layout}: expected a dense one, or sparse COO, CSR, CSC, BSR "
                             "or BSC with two sparse dimensions; convert it with A.to_dense().to_sparse_csr()")
        if blocks:
            A = A.to_sparse_coo()                # torch cannot convert blocks to CSR directly
        A = A.to_sparse_csr()
        if A.device.type == "cpu":
            import scipy.sparse as sp
        else:
            import cupyx.scipy.sparse as sp
        return sp.csr_matrix(tuple(_shared(part) for part in (A.values(), A.col_indices(), A.crow_indices())),
                             shape=tuple(A.shape))

    def read_vector(self, v, name):
        """Return a tensor as an array over its memory; a sparse one becomes dense. ``name``: the tensor in messages.

        Raises
        ------
        InputError
            For types that cannot be converted, and for a tensor that requires grad.
        """
        import torch
        self.dtype_of(v, name)
        _check_no_graph(v, name)
        if v.layout == torch.strided:
            return _shared(v)
        check_dense(name, v.shape, v.element_size())
        return _shared(v.to_dense())

    def give_back(self, x, like):
        """Return x, an array of NumPy or CuPy, as a tensor over its own memory."""
        import torch
        return torch.from_dlpack(x)


def _check_no_graph(tensor, name):
    """Raise InputError for a tensor that requires grad where torch records a graph: swell's results have none."""
    import torch
    if tensor.requires_grad and torch.is_grad_enabled():
        raise InputError(f"{name} requires grad, and this call returns no graph: use swell.torch.solve(A, b), which is "
                         f"differentiable, or give {name}.detach()")


def _shared(tensor):
    """Return a NumPy or CuPy array over the memory of a dense tensor."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.device.type == "cpu":
        return np.from_dlpack(tensor)
    import cupy
    return cupy.from_dlpack(tensor)
