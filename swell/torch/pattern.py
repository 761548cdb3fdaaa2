"""Patterns: where a tensor's entries lie, in CSR order, and its values in that order, with their graph.

swell's matrices are CSR with ascending columns. Every layout of torch is read once into such a `Pattern`. The values
then follow by torch's own differentiable operations, so a gradient comes back in the layout of the tensor.
"""
from __future__ import annotations

from dataclasses import dataclass

import torch

from swell.core.errors import InputError

LAYOUTS = "dense (torch.strided), torch.sparse_coo, sparse_csr, sparse_csc, sparse_bsr or sparse_bsc"
BY_ROWS = (torch.sparse_csr, torch.sparse_bsr)
BY_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)
BLOCKS = (torch.sparse_bsr, torch.sparse_bsc)
CONSTRUCTOR = "SparseCompressedTensorBackward0"
MOST = 2**31            # sizes and entries below it have indices of 32 bits


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pattern of an n × n matrix.

    Attributes
    ----------
    n : int
    crow, col : integer tensors
        Row pointers, and columns that ascend in each row. Both None for a dense matrix, which has all entries.
    order : tensor or None
        The place of each entry in the values as the user gives them; None if they have this order already.
    stored : tuple of int
        The shape of the user's values.
    """

    n: int
    crow: torch.Tensor | None
    col: torch.Tensor | None
    order: torch.Tensor | None
    stored: tuple[int, ...]

    @property
    def dense(self) -> bool:
        """True for a dense matrix."""
        return self.crow is None

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
        if self.dense:
            return values
        values = values.reshape(*lead, -1)
        return values if self.order is None else values.index_select(-1, self.order)

    def same(self, other: Pattern) -> bool:
        """True if both patterns have the same entries in the same order of values."""
        if self is other:
            return True
        if (self.n, self.dense, self.stored) != (other.n, other.dense, other.stored):
            return False
        return self.dense or all(
            one is two or one is not None and two is not None and one.device == two.device and torch.equal(one, two)
            for one, two in ((self.crow, other.crow), (self.col, other.col), (self.order, other.order)))


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
        rows, col = A.detach().indices()
        return _pattern(n, _compressed(rows, n), col, None, col.shape), A.values()
    if A.layout in BY_ROWS or A.layout in BY_COLUMNS:
        return _compressed_tensor(A, n), values_of(A)
    raise InputError(f"A is a tensor of layout {A.layout} and shape {tuple(A.shape)}: expected {LAYOUTS}, COO with two "
                     "sparse dimensions and without a batch axis; convert it with A.to_dense().to_sparse_csr()")


def values_of(A: torch.Tensor) -> torch.Tensor:
    """The values of a compressed tensor, with their graph.

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
    n = crow.numel() - 1
    if n < 1 or col.numel() != count:
        raise InputError(f"crow has {crow.numel()} entries, col {col.numel()}, and there are {count} values: expected "
                         "n + 1 row pointers, and a column for each value")
    return _pattern(n, crow, col, None, (count,))


def _compressed_tensor(A, n) -> Pattern:
    """The pattern of a tensor in CSR, CSC, BSR or BSC; all systems of a batch must share it."""
    A = A.detach()
    by_rows = A.layout in BY_ROWS
    pointers, index = (A.crow_indices(), A.col_indices()) if by_rows else (A.ccol_indices(), A.row_indices())
    if A.ndim == 3:
        differs = ((pointers != pointers[:1]).any(-1) | (index != index[:1]).any(-1)).nonzero()
        if len(differs):
            raise InputError(f"A is a batch, and its matrix {int(differs[0])} has another pattern than matrix 0: "
                             "expected one pattern for all; store zeros where some matrices have entries")
        pointers, index = pointers[0], index[0]
    stored = tuple(A.values().shape[A.ndim - 2:])
    if A.layout == torch.sparse_csr:
        return _pattern(n, pointers, index, None, stored)
    major = torch.arange(pointers.numel() - 1, device=index.device).repeat_interleave(
        (pointers[1:] - pointers[:-1]).long())
    rows, col = (major, index) if by_rows else (index, major)
    if A.layout in BLOCKS:
        height, width = stored[1:]
        inside = torch.arange(height, device=index.device)[:, None], torch.arange(width, device=index.device)[None]
        rows, col = (part.long()[:, None, None] * size + within
                     for part, size, within in zip((rows, col), (height, width), inside))
        rows, col = (part.reshape(-1) for part in torch.broadcast_tensors(rows, col))
    order = torch.argsort(rows.long() * n + col)
    return _pattern(n, _compressed(rows[order], n), col[order], order, stored)


def _compressed(rows, n):
    """Row pointers from ascending row indices."""
    return torch.searchsorted(rows.contiguous(), torch.arange(n + 1, dtype=rows.dtype, device=rows.device))


def _pattern(n, crow, col, order, stored) -> Pattern:
    """A pattern with indices as narrow as possible, whose columns ascend in each row."""
    starts, ends = crow[:-1], crow[1:]
    if int(crow[0]) != 0 or int(crow[-1]) != col.numel() or bool((ends < starts).any()):
        raise InputError(f"A's row pointers are inconsistent: expected {n + 1} ascending integers from 0 to "
                         f"{col.numel()}")
    if col.numel() and not 0 <= int(col.min()) <= int(col.max()) < n:      # before a type of 32 bits wraps them
        worst = int(col.max()) if int(col.max()) >= n else int(col.min())
        raise InputError(f"A has a column index of {worst}: expected 0 to {n - 1}")
    if max(n, col.numel()) < MOST:
        crow, col = crow.int(), col.int()
    if not _ascending(crow, col):
        rows = torch.arange(n, device=col.device).repeat_interleave((ends - starts).long())
        more = torch.argsort(rows * n + col)
        col, order = col[more], more if order is None else order[more]
        if not _ascending(crow, col):
            raise InputError("A stores an entry twice, so its values have no order: build it by "
                             "torch.sparse_coo_tensor(...).coalesce()")
    return Pattern(n, crow, col, order, tuple(stored))


def _ascending(crow, col) -> bool:
    """True if the columns ascend strictly in each row."""
    larger = col[1:] > col[:-1]
    starts = crow[1:-1].long()
    starts = starts[(starts > 0) & (starts < col.numel())] - 1
    larger[starts] = True
    return bool(larger.all())
