"""Block structure: how much a block format would have to fill in for each size of dense block, and where entries go.

Systems of PDEs have one row for each of s unknowns of a vertex, so the entries of A come in dense blocks of s × s.
Blocks that are not quite full are filled with zeros; the fill is what is stored over the entries of the matrix.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import switch, without_effect
from swell.formats.matrix import index_type

SIZES = tuple(range(2, 9))
LARGEST = 32            # block size up to which blocks are detected and stored
CHEAP = 1.2             # fill ratio up to which blocks pay: they save most of the column indices
SAMPLE = 64             # block rows that are looked at before all are


def _run_starts(rows, columns, size):
    """True where an entry of sorted rows is the first of its row in its block."""
    starts = rows != rows                        # all False, where the rows live
    starts[:1] = True
    starts[1:] = (rows[1:] != rows[:-1]) | (columns[1:] // size != columns[:-1] // size)
    return starts


def _ratio(rows, columns, size, width, xp) -> float:
    """Entries that the blocks of these entries would hold, over their number."""
    starts = _run_starts(rows, columns, size)    # every block is met once in each of its rows at least: few are left
    keys = xp.sort((rows[starts] // size) * -(-width // size) + columns[starts] // size, kind="stable")
    return (1 + int(xp.count_nonzero(keys[1:] != keys[:-1]))) * size**2 / rows.size


def _sampled_ratio(A, size) -> float:
    """The ratio in block rows spread evenly over the matrix; 1 if there is nothing in them."""
    xp, count = A.space.xp, A.shape[0] // size
    first = xp.unique(xp.arange(SAMPLE) * count // SAMPLE) * size
    rows = (first[:, None] + xp.arange(size)).reshape(-1)
    begin, lengths = A.indptr[rows].astype("int64"), xp.diff(A.indptr)[rows].astype("int64")
    ends = xp.cumsum(lengths)
    total = int(ends[-1])
    if not total:
        return 1.0
    owner = xp.searchsorted(ends, xp.arange(total), side="right")
    at = begin[owner] + xp.arange(total) - (ends - lengths)[owner]
    return _ratio(rows[owner], A.indices[at].astype("int64"), size, A.shape[1], xp)


def sampled_fills(A, sizes=SIZES) -> dict[int, float]:
    """About the fill of blocks of each size that divides the rows and columns, from some block rows."""
    return {size: _sampled_ratio(A, size) for size in sizes if A.nnz and size in divisors(*A.shape)}


def divisors(*counts) -> list[int]:
    """The block sizes from 1 to `LARGEST` that divide all of these."""
    return [size for size in range(1, LARGEST + 1) if all(count % size == 0 for count in counts)]


def fill_ratios(A, sizes=SIZES) -> dict[int, float]:
    """Entries that blocks of each size would store, over the entries of A; 1 means that every block is full.

    Parameters
    ----------
    A : CSRMatrix
    sizes : tuple of int

    Returns
    -------
    dict of int to float
        For those of the sizes that divide the number of rows and of columns.
    """
    if not A.nnz:
        return {}
    rows, columns = A.rows().astype("int64"), A.indices.astype("int64")
    fitting = set(divisors(*A.shape))
    return {size: _ratio(rows, columns, size, A.shape[1], A.space.xp) for size in sizes if size in fitting}


def block_size(ratios: dict[int, float]) -> int:
    """The largest size whose blocks are nearly full; 1 where there is none."""
    return max((size for size, ratio in ratios.items() if ratio <= CHEAP), default=1)


def detect(A, most=CHEAP) -> int:
    """The largest block size up to `LARGEST` whose fill is at most ``most``; 1 where there is none.

    Most sizes are ruled out before all entries are looked at, by a sample of the block rows, and before that by how
    many entries have a neighbour: with fill f, f (s − 1)/s of E entries' worth of places have one, and each of the
    (f − 1) E places that are no entries takes two away at most.
    """
    if not A.nnz:
        return 1
    for size in reversed(divisors(*A.shape)[1:]):
        if A.adjoining < most * (size - 1) / size - 2 * (most - 1):
            continue
        if _sampled_ratio(A, size) <= 1.5 * most and fill_ratios(A, (size,))[size] <= most:
            return size
    return 1


def chosen_size(A, setting, name: str) -> int:
    """The block size for a matrix: the one that was set, or, where that is 0, the one detected; of that what divides
    the blocks of the other ranks' matrices too.

    Parameters
    ----------
    A : CSRMatrix
    setting : object
        With fields ``block`` and ``pad``.
    name : str
        Of the format, for the message.

    Raises
    ------
    InputError
        If the size does not divide the rows and columns, and padding was not asked for.
    """
    if setting.block == 0:
        return math.gcd(detect(A), A.block_divisor)
    check_size(setting.block, setting.pad, A.shape, name)
    return setting.block


def check_pad(setting):
    """Raise InputError unless ``pad`` is True or False, and False where every block size that is taken divides."""
    switch(setting, "pad")
    if setting.block < 2:
        size = "blocks of 1, which divide everything" if setting.block else "a detected size, which always divides"
        without_effect(setting, f"with {size}", "name a block size of 2 or more", "pad")


def check_size(block: int, pad: bool, shape, name: str):
    """Raise InputError if blocks of this size do not divide the rows and columns, and padding was not asked for."""
    if pad or all(count % block == 0 for count in shape):
        return
    size = f"{shape[0]} rows" if shape[0] == shape[1] else f"{shape[0]} rows and {shape[1]} columns"
    fitting = ", ".join(map(str, divisors(*shape)))
    raise InputError(f"{name}(block={block}) cannot divide a matrix of {size}: of the sizes up to {LARGEST}, these "
                     f"do: {fitting}; choose one, or pad=True, which fills the last block with zeros")


class BlockPattern:
    """Which blocks of a size hold entries of a CSR matrix, and which entry lies where.

    Attributes
    ----------
    size : int
    rows, columns : int
        Of blocks.
    indptr, indices : arrays of the space
        Block row pointers, and the block column of every block, ascending in each block row.
    positions : int array of the space
        Where each entry lies in the blocks, row-major and one after the other.
    """

    def __init__(self, csr, size):
        self.size, self.rows, self.columns = size, *(math.ceil(count / size) for count in csr.shape)
        if csr.space.name == "cpu":
            self._by_rows(csr)
        else:
            self._by_arrays(csr)

    @property
    def place(self):
        """(the block of each entry, its row there, its column there)."""
        block, inside = self.positions // self.size**2, self.positions % self.size**2
        return block, inside // self.size, inside % self.size

    def _by_rows(self, csr):
        """On a CPU: the rows of a block are merged, once to count the blocks and once to place them."""
        from swell.formats.kernels import bsr as kernels
        arrays = csr.indptr, csr.indices, self.size, self.columns + 1
        counts = np.empty(self.rows, np.int64)
        kernels.count_blocks(*arrays, counts)
        total = int(counts.sum())
        index = index_type(self.rows * self.size, self.columns * self.size, total * self.size**2)
        self.indptr = np.zeros(self.rows + 1, index)
        np.cumsum(counts, out=self.indptr[1:])
        self.indices, self.positions = np.empty(total, index), np.empty(csr.nnz, index)
        kernels.place_blocks(*arrays, self.indptr, self.indices, self.positions)

    def _by_arrays(self, csr):
        xp, size = csr.space.xp, self.size
        rows, columns = csr.rows().astype("int64"), csr.indices.astype("int64")
        starts = _run_starts(rows, columns, size)
        keys = (rows[starts] // size) * self.columns + columns[starts] // size
        order = xp.argsort(keys, kind="stable")  # each row's keys ascend already
        keys = keys[order]
        new = keys == keys
        new[1:] = keys[1:] != keys[:-1]
        block = xp.empty_like(order)             # of each run of entries in one row and block
        block[order] = xp.cumsum(new) - 1
        keys = keys[new]
        index = index_type(self.rows * size, self.columns * size, keys.size * size**2)
        self.indptr = xp.zeros(self.rows + 1, index)
        xp.cumsum(xp.bincount(keys // max(self.columns, 1), minlength=self.rows), out=self.indptr[1:])
        self.indices = (keys % max(self.columns, 1)).astype(index)
        self.positions = (block[xp.cumsum(starts) - 1] * size + rows % size) * size + columns % size
