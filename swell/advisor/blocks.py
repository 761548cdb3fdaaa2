"""Block structure: how much a block format would have to fill in, for each size of dense block."""
from __future__ import annotations

SIZES = tuple(range(2, 9))
CHEAP = 1.2             # fill ratio up to which blocks pay: they save most of the column indices


def fill_ratios(A) -> dict[int, float]:
    """Entries that blocks of each size would store, over the entries of A; 1 means that every block is full.

    Parameters
    ----------
    A : CSRMatrix

    Returns
    -------
    dict of int to float
        For the sizes of `SIZES` that divide the number of rows.
    """
    xp, n = A.space.xp, A.shape[0]
    rows, columns = A.rows().astype("int64"), A.indices.astype("int64")
    ratios = {}
    for size in SIZES:
        if A.nnz and n % size == 0:
            blocks = int(xp.unique((rows // size) * (n // size) + columns // size).size)
            ratios[size] = blocks * size**2 / A.nnz
    return ratios


def block_size(ratios: dict[int, float]) -> int:
    """The largest size whose blocks are nearly full; 1 where there is none."""
    return max((size for size, ratio in ratios.items() if ratio <= CHEAP), default=1)
