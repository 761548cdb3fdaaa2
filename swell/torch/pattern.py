"""Reading tensors: the pattern of a matrix in any of torch's layouts, and its values with their graph.

Every layout is read once into a `Pattern`. The values follow by torch's own differentiable operations, so a gradient
comes back in the layout of the tensor.
"""
from __future__ import annotations

from typing import NamedTuple

import torch

from swell.autodiff.pattern import Pattern, from_csr, from_entries
from swell.core.errors import InputError
from swell.torch.arrays import array_of, on_torch_stream, tensor_of

LAYOUTS = "dense (torch.strided), torch.sparse_coo, sparse_csr, sparse_csc, sparse_bsr or sparse_bsc"
BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)
BY_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)
CONSTRUCTOR = "SparseCompressedTensorBackward0"


class Index(NamedTuple):
    """A pattern as torch's graphs hold it.

    Attributes
    ----------
    n : int
    stored : tuple of int
        The shape of the user's values.
    crow, col : integer tensors
        Row pointers, and columns that ascend in each row. Both None for a dense matrix.
    order : tensor or None
        The place of each entry in the user's values; None if they have this order already.
    """

    n: int
    stored: tuple[int, ...]
    crow: torch.Tensor | None = None
    col: torch.Tensor | None = None
    order: torch.Tensor | None = None

    def arrange(self, values: torch.Tensor, batched=False) -> torch.Tensor:
        """Return the user's values in the order of the pattern; ``batched``: they have a leading batch axis.

        Raises
        ------
        InputError
            For values of another shape.
        """
        lead = values.shape[:1] if batched else ()
        if tuple(values.shape[len(lead):]) != self.stored:
            expected = ", ".join([*(["m"] if batched else []), *map(str, self.stored)])
            raise InputError(f"values has shape {tuple(values.shape)}: expected ({expected}), the values of A in the "
                             "order in which A stores them")
        if self.crow is None:
            return values
        values = values.reshape(*lead, -1)
        return values if self.order is None else values.index_select(-1, self.order)


def index_of(pattern: Pattern) -> Index:
    """Return a pattern in tensors."""
    order = None if pattern.place is None else tensor_of(pattern.place).argsort()
    return Index(pattern.n, pattern.stored, tensor_of(pattern.indptr), tensor_of(pattern.indices), order)


def read_matrix(A: torch.Tensor) -> tuple[Pattern, torch.Tensor]:
    """Return A's pattern and A's values as A stores them, with their graph.

    A batch (a leading batch axis) must have one pattern.

    Raises
    ------
    InputError
        For something else than a square tensor, a batch whose patterns differ, and an unsupported layout.
    """
    if not isinstance(A, torch.Tensor):
        raise InputError(f"A is a {type(A).__name__}: expected a torch tensor; swell.solve takes arrays and matrices "
                         "of other libraries")
    if A.ndim not in (2, 3) or A.shape[-1] != A.shape[-2] or not A.shape[-1]:
        raise InputError(f"A has shape {tuple(A.shape)}: expected a square matrix (n, n), or a batch (m, n, n)")
    n = A.shape[-1]
    if A.layout == torch.strided:
        return Pattern(n, None, None, None, (n, n)), A
    if A.layout == torch.sparse_coo and A.sparse_dim() == 2 and A.ndim == 2:
        A = A.coalesce()
        return _read(from_entries, A.detach().indices(), n, A.values().shape), A.values()
    if A.layout in BY_ROWS or A.layout in BY_COLUMNS:
        return _of_compressed(A, n), values_of(A)
    raise InputError(f"A is a tensor of layout {A.layout} and shape {tuple(A.shape)}: expected {LAYOUTS}, COO with two "
                     "sparse dimensions and without a batch axis; convert it with A.to_dense().to_sparse_csr()")


def values_of(A: torch.Tensor) -> torch.Tensor:
    """Return the values of a compressed tensor, with their graph.

    For a tensor made by a constructor such as ``torch.sparse_csr_tensor``, these are the values it was made from: the
    constructor's own backward pass makes an n × n dense tensor (torch 2.13)."""
    made = A.grad_fn
    if made is not None and made.name() == CONSTRUCTOR:
        return made._saved_values
    return A.values()


def read_pattern(crow, col, count) -> Pattern:
    """Return the pattern that row pointers and columns give, for ``count`` values.

    Raises
    ------
    InputError
        For other shapes or types, and if an entry is stored twice.
    """
    for name, index in (("crow", crow), ("col", col)):
        if not isinstance(index, torch.Tensor) or index.dtype not in (torch.int32, torch.int64) or index.ndim != 1:
            got = f"{index.dtype} {tuple(index.shape)}" if isinstance(index, torch.Tensor) else type(index).__name__
            raise InputError(f"{name} is {got}: expected a one-dimensional tensor of int32 or int64")
    if crow.numel() < 2 or col.numel() != count:
        raise InputError(f"crow has {crow.numel()} entries, col {col.numel()}, and there are {count} values: expected "
                         "n + 1 row pointers, and a column for each value")
    return _read(from_csr, (crow, col), (count,))


def _of_compressed(A, n) -> Pattern:
    """Return the pattern of a tensor in CSR, CSC, BSR or BSC; all systems of a batch must share it."""
    A, by_rows = A.detach(), A.layout in BY_ROWS
    pointers, index = (A.crow_indices(), A.col_indices()) if by_rows else (A.ccol_indices(), A.row_indices())
    if A.ndim == 3:
        differs = ((pointers != pointers[:1]).any(-1) | (index != index[:1]).any(-1)).nonzero()
        if len(differs):
            raise InputError(f"A is a batch, and its matrix {int(differs[0])} has another pattern than matrix 0: "
                             "expected one pattern for all; store zeros where some matrices have entries")
        pointers, index = pointers[0], index[0]
    stored = A.values().shape[A.ndim - 2:]
    if A.layout == torch.sparse_csr:
        return _read(from_csr, (pointers, index), stored)
    major = torch.arange(pointers.numel() - 1, device=index.device).repeat_interleave(pointers.diff().long())
    places = (major, index) if by_rows else (index, major)
    if len(stored) == 3:                         # blocks
        inside = torch.meshgrid(*(torch.arange(size, device=index.device) for size in stored[1:]), indexing="ij")
        places = tuple((part[:, None, None] * size + within).reshape(-1)
                       for part, size, within in zip(places, stored[1:], inside))
    return _read(from_entries, places, n, stored)


def _read(make, indices, *rest) -> Pattern:
    """Call `from_csr` or `from_entries` with two index tensors; InputError if two values belong to one entry."""
    with on_torch_stream(indices[0].device):
        pattern = make(*map(array_of, indices), *rest)
    if pattern.place is not None and pattern.nnz < pattern.place.size:
        raise InputError("A stores an entry twice, so its values have no order: build it by "
                         "torch.sparse_coo_tensor(...).coalesce()")
    return pattern
