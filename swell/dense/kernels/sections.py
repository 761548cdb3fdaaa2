"""One iteration of a section in the thesis' form of the iterative Crout method, on the CPU; ``sections.cu`` is the
GPU's version.

``a``, ``lu``, ``next``: A, the last iterate and the new one, as flat arrays; entry (i, j) is at ``i row + j column``. A
box has rows ``top`` to ``bottom`` and columns ``left`` to ``right``. ``bad``: the bad element's row; elements to its
lower right are left out. ``kind``, ``threads``: on a GPU only. ``x``: rows and columns of a tile. tiles.size − 1:
number of tiles.
"""
from __future__ import annotations

from numba import prange

from swell.core.compiled import njit, parallel


@parallel
def compute(kind, a, lu, next, row, column, top, bottom, left, right, bad, x, threads, tolerance, section, flags,
            tiles):
    """Compute ``next`` by (1.11) and (1.12), with whole sums of ``lu``, in the box. ``flags[section]`` becomes 1 if an
    element has changed by more than ``tolerance``. Arguments: top of file."""
    across = -(-(right - left) // x)
    changed = 0
    for tile in prange(tiles.size - 1):
        i, j = top + tile // across * x, left + tile % across * x
        changed += compute_tile(a, lu, next, row, column, i, min(i + x, bottom), j, min(j + x, right), bad, tolerance)
    if changed:
        flags[section] = 1


@njit(cache=True)
def compute_tile(a, lu, next, row, column, top, bottom, left, right, bad, tolerance):
    """Do the work of ``compute`` in a tile of at most x by x. Returns the number of elements that changed by more than
    ``tolerance``. Arguments: top of file."""
    changed = 0
    for i in range(top, bottom):
        for j in range(left, right):
            if i >= bad and j > bad:
                continue
            total = lu.dtype.type(0)
            for k in range(min(i, j)):
                total += lu[i * row + k * column] * lu[k * row + j * column]
            value = a[i * row + j * column] - total              # (1.11)
            if i < j:
                diagonal = lu[i * (row + column)]
                if diagonal != 0:
                    value = value / diagonal                     # (1.12)
            if not (abs(value - lu[i * row + j * column]) <= tolerance):     # a NaN has not settled
                changed += 1
            next[i * row + j * column] = value
    return changed


@parallel
def assign(lu, next, row, column, top, bottom, left, right, bad, x, threads, tiles):
    """Copy the computed elements of the box from ``next`` to ``lu``. Arguments: top of file."""
    for i in prange(top, bottom):
        for j in range(left, right):
            if not (i >= bad and j > bad):
                lu[i * row + j * column] = next[i * row + j * column]


@njit(cache=True)
def find_bad(lu, row, column, search, end, lower, upper, n, flags):
    """Set ``flags[0]`` to the first j from ``search`` to ``end`` outside lower < |l[j, j]| <= upper; to n if there is
    none. A NaN is outside. Arguments: top of file."""
    flags[0] = n
    for j in range(search, end):
        if not (lower < abs(lu[j * (row + column)]) <= upper):
            flags[0] = j
            return
