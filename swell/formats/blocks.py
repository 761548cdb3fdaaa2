"""Dense blocks in a sparse matrix: detection of the block size, and the position of each entry in the blocks.

A system of PDEs has s unknowns at each vertex, so the entries of A come in dense s × s blocks. A block format fills
incomplete blocks with zeros. The fill ratio is the number of stored values over the number of entries of A.
"""
from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import choose_by_none, positive, switch, without_effect
from swell.formats.matrix import index_type

SIZES = tuple(range(2, 9))
MAX_BLOCK = 32          # block size up to which blocks are detected and stored
CHEAP = 1.2             # fill ratio up to which blocks pay: they save most of the column indices
SAMPLE = 64             # block rows of a sample, which rules out most sizes


def _ratios(A, sizes, sample=None) -> dict[int, float]:
    """Return a dict from block size to fill ratio of the CSRMatrix A: values in all nonempty blocks over entries.

    ``sizes``: block sizes. ``sample``: count only this many evenly spread block rows; None: all block rows. The ratio
    is 1 if these rows have no entries. One host read serves all sizes. Results are kept in ``A.fills``."""
    missing, sums, space = [size for size in sizes if (size, sample) not in A.fills], [], A.space
    kernels = space.kernels("swell.formats", "block_layout", A.dtype)
    for size in missing:
        all_rows = -(-A.shape[0] // size)
        block_rows = min(sample or all_rows, all_rows)
        counts, ends = (space.empty((2, count), np.int64) for count in (block_rows, block_rows + 1))
        kernels.count_blocks(A.indptr, A.indices, size, all_rows, space.empty(A.shape[0], np.int64), *counts)
        for one, end in zip(counts, ends):
            space.prefix_sums(one, end)
        sums += [*ends]
    totals = space.last_entries(*sums) if sums else ()           # sync
    for size, blocks, entries in zip(missing, totals[::2], totals[1::2]):
        A.fills[size, sample] = blocks * size**2 / entries if entries else 1.0
    return {size: A.fills[size, sample] for size in sizes}


def divisors(*counts) -> list[int]:
    """The block sizes from 1 to `MAX_BLOCK` that divide all given counts."""
    return [size for size in range(1, MAX_BLOCK + 1) if all(count % size == 0 for count in counts)]


def fill_ratios(A, sizes=SIZES) -> dict[int, float]:
    """The fill ratio of A for each block size: stored values over entries; 1 means that every block is full.

    Parameters
    ----------
    A : CSRMatrix
    sizes : tuple of int

    Returns
    -------
    dict of int to float
        From block size to fill ratio, for the sizes that divide both the number of rows and of columns.
    """
    fitting = set(divisors(*A.shape))
    return _ratios(A, [size for size in sizes if A.nnz and size in fitting])


def block_size(ratios: dict[int, float]) -> int:
    """The largest key of ``ratios`` whose value, the fill ratio, is at most `CHEAP` (1.2); 1 if there is none."""
    return max((size for size, ratio in ratios.items() if ratio <= CHEAP), default=1)


def detect(A, most=CHEAP, sizes=None) -> int:
    """The largest block size up to `MAX_BLOCK` with a fill ratio of at most ``most``; 1 if there is none.

    A is a CSRMatrix. The fill ratio is the number of values in nonempty blocks over the number of entries.

    ``sizes`` are the sizes to try, ascending from 1; by default all that divide the rows and columns.

    Two cheap tests rule out most sizes before all entries are read. First, the share of entries with a right neighbour:
    E entries at fill f take f E places, of which (s − 1)/s have a right neighbour in the block. Each of the (f − 1) E
    zeros breaks at most two of these pairs. Second, the fill ratio in a sample of block rows.
    """
    if not A.nnz:
        return 1
    adjoining = A.facts(search=False).adjoining
    likely = [size for size in (divisors(*A.shape) if sizes is None else sizes)[1:]
              if adjoining >= most * (size - 1) / size - 2 * (most - 1)]
    sampled = _ratios(A, likely, SAMPLE)
    for size in reversed(likely):
        if sampled[size] <= 1.5 * most and _ratios(A, [size])[size] <= most:
            return size
    return 1


def unknown_by_unknown(A) -> int:
    """The number s of unknowns, 2 to 8, if the rows seem to be numbered unknown by unknown: n / s rows for each, so
    that the unknowns of a vertex are n / s rows apart; 1 otherwise.

    A is a square CSRMatrix. Row i belongs to vertex i mod n / s. The test is the fill ratio of about `SAMPLE` block
    rows of the matrix that is numbered vertex by vertex: at most `CHEAP`."""
    n, xp, rows = A.shape[0], A.space.xp, A.rows().astype(np.int64)
    for size in reversed(SIZES):
        vertices, rest = divmod(n, size)
        if rest or not A.nnz:
            continue
        vertex = rows % vertices
        sampled = vertex % max(vertices // SAMPLE, 1) == 0
        blocks = xp.unique(vertex[sampled] * vertices + A.indices[sampled] % vertices)
        if blocks.size * size**2 <= CHEAP * int(sampled.sum()):  # sync
            return size
    return 1


def checked_block_size(block, n: int) -> int:
    """Check a user's block size for a matrix of n rows; return it as int, or 0 for None (detect the size).

    Raises
    ------
    InputError
        If ``block`` is not a positive integer that divides n.
    """
    if block is None:
        return 0
    if isinstance(block, bool) or not isinstance(block, numbers.Integral) or block < 1:
        raise InputError(f"block={block!r}: expected a number of rows that stay together, 1 or more")
    if n % block:
        raise InputError(f"blocks of {block} rows do not divide the {n} rows of A: give a block that does, or none")
    return int(block)


def chosen_size(A, setting, name: str) -> int:
    """The block size to use: ``setting.block``; if None, the largest divisor, up to `MAX_BLOCK`, of ``A.block_size``.

    Parameters
    ----------
    A : CSRMatrix
    setting : object
        With fields ``block`` and ``pad``.
    name : str
        The format's name, for the error message.

    Raises
    ------
    InputError
        If the size does not divide the rows and columns, and ``pad`` is False.
    """
    if not setting.block:
        return divisors(A.block_size)[-1]
    check_size(setting.block, setting.pad, A.shape, name)
    return setting.block


@dataclass(frozen=True)
class Blocks(ABC):
    """Settings shared by the formats of dense blocks."""

    block: int | None = None
    pad: bool = False

    def __post_init__(self):
        choose_by_none(self, 0, "block")
        check_blocks(self)

    @abstractmethod
    def build(self, csr):
        """Convert a CSR matrix to this format, on its own device.

        Raises
        ------
        InputError
            If the block size does not divide the rows and columns, and ``pad`` is False.
        OutOfMemory
            If the blocks would not fit.
        """


def check_blocks(setting):
    """Raise InputError if ``setting.block`` is neither None nor 1 to `MAX_BLOCK`, or ``setting.pad`` is no bool.

    A True ``pad`` is refused, too, if ``block`` is None (detected) or 1."""
    positive(setting, "block", most=MAX_BLOCK)
    switch(setting, "pad")
    if not setting.block or setting.block < 2:
        size = "blocks of 1, which divide everything" if setting.block else "a detected size, which always divides"
        without_effect(setting, f"with {size}", "name a block size of 2 or more", "pad")


def check_size(block: int, pad: bool, shape, name: str):
    """Raise InputError if ``block`` does not divide both numbers in ``shape``, and ``pad`` is False.

    ``pad``: allow blocks that reach past the matrix. ``name``: the format's name, for the message."""
    if pad or all(count % block == 0 for count in shape):
        return
    size = f"{shape[0]} rows" if shape[0] == shape[1] else f"{shape[0]} rows and {shape[1]} columns"
    fitting = ", ".join(map(str, divisors(*shape)))
    raise InputError(f"{name}(block={block}) cannot divide a matrix of {size}: of the sizes up to {MAX_BLOCK}, these "
                     f"do: {fitting}; choose one, or pad=True, which completes the last block")


class BlockPattern:
    """The nonempty blocks of a CSR matrix for one block size, and the position of each entry in them.

    Attributes
    ----------
    size : int
        Rows and columns of a block.
    rows, columns : int
        Number of block rows and of block columns.
    indptr, indices : arrays of the space
        Block row pointers, and the block column of every block, ascending in each block row.
    positions : int array of the space, shape (nnz,)
        Position of each entry in the array of all blocks, each block row-major.
    """

    def __init__(self, csr, size):
        self.size, self.rows, self.columns = size, *(math.ceil(count / size) for count in csr.shape)
        space, at = csr.space, csr.space.empty(csr.shape[0], np.int64)
        kernels = space.kernels("swell.formats", "block_layout", csr.dtype)
        counts, entries = space.empty((2, self.rows), np.int64)
        kernels.count_blocks(csr.indptr, csr.indices, size, self.rows, at, counts, entries)
        starts = space.empty(self.rows + 1, np.int64)
        space.prefix_sums(counts, starts)
        total = int(starts[-1])  # sync
        index = index_type(self.rows * size, self.columns * size, total * size**2)
        self.indptr = starts.astype(index)
        self.indices, self.positions = space.empty(total, index), space.empty(csr.nnz, index)
        kernels.place_blocks(csr.indptr, csr.indices, size, at, self.indptr, self.indices, self.positions)

    @property
    def place(self):
        """Three integer arrays with one element an entry: index of its block, row in the block, column in the block."""
        block, inside = self.positions // self.size**2, self.positions % self.size**2
        return block, inside // self.size, inside % self.size
