"""Block incomplete LU on the CPU: one block row after the other or by levels, in place, and the fixed-point sweeps.

``blocks`` holds A's blocks, row-major; L without its identities, and U, overwrite them in one BSR pattern.
``diagonal`` has the places of the diagonal blocks, ``inverse`` receives their inverses. ``block`` is a tuple with one
number for each row of a block, or an empty one; see block_triangular.py.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel
from swell.preconditioners.kernels.block_triangular import size_of
from swell.preconditioners.kernels.ilu import NONE, is_good, replaced
from swell.preconditioners.kernels.triangular import CONTRACT

NARROW = 16                                      # least block rows of a level for a thread
GPU_ONLY = ("factor_rows",)                      # its block rows wait for one another


@njit(cache=True, inline="always", fastmath=CONTRACT)
def add_product(a, p, b, q, c, r, size, sign):
    """Add to block r of c, in place: ``sign`` × (block p of a) × (block q of b). Blocks are row-major, of ``size``
    rows."""
    area = size * size
    for i in range(size):
        left, to = p * area + i * size, r * area + i * size
        for k in range(size):
            l = sign * a[left + k]
            right = q * area + k * size
            for j in range(size):
                c[to + j] += l * b[right + j]


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def invert(values, middle, inverse, i, scale, order, work, size, tiny, replacement):
    """Write the inverse of block ``middle`` of ``values`` to block i of ``inverse``, by Gauss–Jordan elimination.
    Returns the number of tiny pivots.

    The pivot is the entry of a column that is largest relative to its row's ``scale``. A pivot is tiny if it is at most
    ``tiny`` times this scale. It is then replaced by ``replacement`` times the scale, in ``values`` too. ``order`` and
    ``work`` are work space, ``size`` numbers each."""
    at, origin, count = i * size * size, middle * size * size, 0
    kind = inverse.dtype.type
    for e in range(size * size):
        inverse[at + e] = values[origin + e]
    for r in range(size):
        order[r] = r
    for k in range(size):
        best, most = k, -1.0
        for r in range(k, size):
            modulus = abs(inverse[at + r * size + k]) / scale[i * size + np.uint64(order[r])]
            if modulus > most:
                best, most = r, modulus
        if best != k:
            order[k], order[best] = order[best], order[k]
            for c in range(size):
                a, b = at + k * size + c, at + best * size + c
                inverse[a], inverse[b] = inverse[b], inverse[a]
        pivot, row = inverse[at + k * size + k], np.uint64(order[k])
        if not is_good(pivot, scale[i * size + row], tiny):
            count += 1
            better = kind(replaced(pivot, scale[i * size + row], replacement, kind(1)))
            values[origin + row * size + k] += better - pivot
            pivot = better
        factor = 1 / pivot
        inverse[at + k * size + k] = 1
        for c in range(size):
            inverse[at + k * size + c] *= factor
        for r in range(size):
            if r != k:
                l = inverse[at + r * size + k]
                inverse[at + r * size + k] = 0
                for c in range(size):
                    inverse[at + r * size + c] -= l * inverse[at + k * size + c]
    for r in range(size):                        # row exchanges of the block are column exchanges of the inverse
        for k in range(size):
            work[np.uint64(order[k])] = inverse[at + r * size + k]
        for k in range(size):
            inverse[at + r * size + k] = work[k]
    return count


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def factor_row(i, indptr, indices, diagonal, scale, values, inverses, size, place, work, order, tiny, replacement):
    """Factor block row i in place in ``values``, in Saad's IKJ order with blocks as entries; write block i of
    ``inverses``. Returns the number of its tiny pivots.

    The block rows that it needs must be done. The top of this file explains the pattern; `factor` the work arrays,
    `invert` the treatment of pivots."""
    one, kind = np.uint64(1), values.dtype.type
    begin, middle, end = np.uint64(indptr[i]), np.uint64(diagonal[i]), np.uint64(indptr[i + one])
    for k in range(begin, end):
        place[np.uint64(indices[k])] = k + one
    for k in range(begin, middle):
        j = np.uint64(indices[k])
        for e in range(size * size):
            work[e] = 0
        add_product(values, k, inverses, j, work, np.uint64(0), size, kind(1))
        for e in range(size * size):
            values[k * size * size + e] = work[e]
        for m in range(np.uint64(diagonal[j]) + one, np.uint64(indptr[j + one])):
            to = np.uint64(place[np.uint64(indices[m])])
            if to > 0:
                add_product(work, np.uint64(0), values, m, values, to - one, size, kind(-1))
    for k in range(begin, end):
        place[np.uint64(indices[k])] = 0
    return invert(values, middle, inverses, i, scale, order, work, size, tiny, replacement)


@njit(cache=True, _nrt=False)
def factor(indptr, indices, diagonal, scale, blocks, inverse, block, place, work, order, tiny, replacement, bad):
    """Overwrite ``blocks``, A's blocks, by L and U with (L U)ᵢⱼ = Aᵢⱼ on the pattern, one block row after the other.

    Also writes ``inverse``, the inverse diagonal blocks. Work arrays: ``place``, a zero for each block row; ``work``,
    the size of a block; ``order``, a row of it. bad[0] becomes the first block row with a tiny pivot, bad[1] the number
    of tiny pivots; see `invert` for ``scale``, ``tiny`` and ``replacement``."""
    size = size_of(block, blocks.shape)
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    for i in range(np.uint64(diagonal.size)):
        count = factor_row(i, indptr, indices, diagonal, scale, values, inverses, size, place, work, order, tiny,
                           replacement)
        if count:
            bad[0], bad[1] = min(bad[0], i), bad[1] + count


@parallel
def factor_levels(indptr, indices, diagonal, scale, blocks, inverse, block, place, work, order, sequence, bounds, tiny,
                  replacement, bad):
    """Like `factor`, and equal to the bit, but the threads share the block rows sequence[bounds[l]:bounds[l + 1]] of
    level l. ``place``, ``work`` and ``order`` have a row for each thread."""
    values, inverses = blocks.reshape(-1), inverse.reshape(-1)
    threads = place.shape[0]
    found = np.empty((threads, 2), np.int64)
    found[:, 0], found[:, 1] = bad[0], 0
    for level in range(bounds.size - 1):
        begin, rows = bounds[level], bounds[level + 1] - bounds[level]
        share = max((rows + threads - 1) // threads, NARROW)
        for part in prange((rows + share - 1) // share):
            size = size_of(block, blocks.shape)
            for t in range(begin + part * share, begin + min((part + 1) * share, rows)):
                i = sequence[t]
                count = factor_row(np.uint64(i), indptr, indices, diagonal, scale, values, inverses, size, place[part],
                                   work[part], order[part], tiny, replacement)
                if count:
                    found[part, 0], found[part, 1] = min(found[part, 0], i), found[part, 1] + count
    bad[0], bad[1] = found[:, 0].min(), bad[1] + found[:, 1].sum()


@parallel
def invert_blocks(diagonal, scale, blocks, inverse, block, tiny, replacement, bad):
    """Write the inverses of the diagonal blocks of ``blocks`` to ``inverse``; replace their tiny pivots, in ``blocks``
    too.

    ``diagonal`` has the places of the diagonal blocks. bad[0] becomes the first block row with a tiny pivot, and the
    number of tiny pivots is added to bad[1]; see `invert` for ``scale``, ``tiny`` and ``replacement``."""
    size, values = np.uint64(blocks.shape[2]), blocks.reshape(-1)
    inverses = inverse.reshape(-1)
    first, total = bad[0], bad[1]
    for i in prange(diagonal.size):
        work, order = np.empty(blocks.shape[2], values.dtype), np.empty(blocks.shape[2], np.int64)
        count = invert(values, np.uint64(diagonal[i]), inverses, np.uint64(i), scale, order, work, size, tiny,
                       replacement)
        first = min(first, np.int64(i) if count else NONE)
        total += count
    bad[0], bad[1] = first, total


@parallel(fastmath=CONTRACT)
def fixed_point(indptr, indices, entry_rows, starts, column_rows, places, data, inverse, old, fresh, block):
    """One sweep of Lᵢⱼ = (Aᵢⱼ − Σ Lᵢₘ Uₘⱼ) Uⱼⱼ⁻¹ and Uᵢⱼ = Aᵢⱼ − Σ Lᵢₘ Uₘⱼ, over m < min(i, j), from the old factors
    and inverses to new factors. It merges row i and column j up to min(i, j); both have a block there or behind it.

    ``data`` is A, ``old`` and ``fresh`` are the old and new factors on one pattern; ``inverse`` has the blocks Uⱼⱼ⁻¹ of
    the old one. Writes ``fresh`` only. entry_rows[k] is the block row of block k. Column j has its block rows and
    places from starts[j] on, in ``column_rows`` and ``places``."""
    size, kind = np.uint64(data.shape[2]), data.dtype.type
    given, before, after, inverses = data.reshape(-1), old.reshape(-1), fresh.reshape(-1), inverse.reshape(-1)
    area, none = size * size, np.uint64(0)
    for entry in prange(indices.size):
        k, i, j = np.uint64(entry), entry_rows[entry], indices[entry]
        stop, total = min(i, j), np.empty(data.shape[2]**2, given.dtype)
        for e in range(area):
            total[e] = given[k * area + e]
        p, q = indptr[i], starts[j]
        while indices[p] < stop and column_rows[q] < stop:
            a, b = indices[p], column_rows[q]
            if a == b:
                add_product(before, np.uint64(p), before, np.uint64(places[q]), total, none, size, kind(-1))
            p += a <= b
            q += b <= a
        for e in range(area):
            after[k * area + e] = 0 if i > j else total[e]
        if i > j:
            add_product(total, none, inverses, np.uint64(j), after, k, size, kind(1))
