"""Block incomplete LU on the CPU: one block row after the other or by levels, in place, and the fixed-point sweeps.

``lower``, ``upper``, ``indices`` and ``blocks`` are a `BlockFactor` (block_factor.py one folder up). ``blocks``
holds A's blocks, row-major; N of L, the inverse diagonal blocks, and U overwrite them. ``diagonal`` is the place of the
first diagonal block. ``block`` is a tuple with one number for each row of a block, or an empty one.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import CONTRACT, helper, njit, parallel
from swell.preconditioners.kernels.block_triangular import CHUNKS, size_of
from swell.preconditioners.kernels.isai import find

NONE = np.iinfo(np.int64).max                    # no row
NARROW = 16                                      # least block rows of a level for a thread
GPU_ONLY = ("factor_rows",)                      # its block rows wait for one another


@helper
def is_good(pivot, scale, tiny):
    """True if the pivot is finite and larger in modulus than ``tiny`` × ``scale``."""
    return tiny * scale < abs(pivot) < np.inf


@helper
def replaced(pivot, scale, replacement, one):
    """Return the replacement of a tiny pivot: ``scale`` × ``replacement``, with the pivot's sign (or complex phase).
    ``one`` is the sign of a zero pivot: 1 of the matrix's type. Infinite where the replacement underflows to zero, by
    which nothing can be divided."""
    modulus, size = abs(pivot), scale * replacement
    sign = pivot / modulus if 0 < modulus < np.inf else one
    return sign * (size if size > 0 else np.inf)


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


@parallel
def load(indptr, indices, data, place, lower, upper, columns, blocks, block, diagonal):
    """Write A's entries to their places in ``blocks``, which is zero elsewhere. A is in CSR: ``indptr``, ``indices``,
    ``data``. ``place`` has the block row of the factor of each block row of A; empty for equal numbers. ``columns``
    are the factor's block columns."""
    values, size = blocks.reshape(-1), blocks.shape[2]
    for entry_row in prange(indptr.size - 1):
        i, r = np.int64(entry_row) // size, np.int64(entry_row) % size
        i, before, first = place[i] if place.size else i, np.int64(-1), np.int64(0)
        for e in range(indptr[entry_row], indptr[entry_row + 1]):
            j, c = np.int64(indices[e]) // size, np.int64(indices[e]) % size
            if j != before:
                before = j
                j = place[j] if place.size else j
                if j < i:
                    first = np.int64(find(columns, lower[i], lower[i + 1], j))
                elif j > i:
                    first = np.int64(find(columns, upper[i], upper[i + 1], j))
                else:
                    first = diagonal + i
                first = (first * size + r) * size
            values[first + c] = data[e]


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def invert(values, origin, inverses, to, scale, i, order, work, size, tiny, replacement):
    """Write the inverse of block ``origin`` of ``values``, the diagonal block i, to block ``to`` of ``inverses``, by
    Gauss–Jordan elimination. Returns the number of tiny pivots. Both may be the same block.

    The pivot is the entry of a column that is largest relative to its row's ``scale``. A pivot is tiny if it is at most
    ``tiny`` times this scale. It is then replaced by ``replacement`` times the scale. ``order`` and ``work`` are work
    space, ``size`` numbers each."""
    at, count = to * size * size, 0
    kind = inverses.dtype.type
    for e in range(size * size):
        inverses[at + e] = values[origin * size * size + e]
    for r in range(size):
        order[r] = r
    for k in range(size):
        best, most = k, -1.0
        for r in range(k, size):
            modulus = abs(inverses[at + r * size + k]) / scale[i * size + np.uint64(order[r])]
            if modulus > most:
                best, most = r, modulus
        if best != k:
            order[k], order[best] = order[best], order[k]
            for c in range(size):
                a, b = at + k * size + c, at + best * size + c
                inverses[a], inverses[b] = inverses[b], inverses[a]
        pivot, row = inverses[at + k * size + k], np.uint64(order[k])
        if not is_good(pivot, scale[i * size + row], tiny):
            count += 1
            pivot = kind(replaced(pivot, scale[i * size + row], replacement, kind(1)))
        factor = 1 / pivot
        inverses[at + k * size + k] = 1
        for c in range(size):
            inverses[at + k * size + c] *= factor
        for r in range(size):
            if r != k:
                l = inverses[at + r * size + k]
                inverses[at + r * size + k] = 0
                for c in range(size):
                    inverses[at + r * size + c] -= l * inverses[at + k * size + c]
    for r in range(size):                        # row exchanges of the block are column exchanges of the inverse
        for k in range(size):
            work[np.uint64(order[k])] = inverses[at + r * size + k]
        for k in range(size):
            inverses[at + r * size + k] = work[k]
    return count


@njit(cache=True, fastmath=CONTRACT, _nrt=False)
def factor_row(i, lower, upper, indices, values, diagonal, scale, size, place, work, order, tiny, replacement):
    """Factor block row i in place in ``values``, in Saad's IKJ order with blocks as entries, and invert its diagonal
    block. Returns the number of its tiny pivots.

    The block rows that it needs must be done. The top of this file explains the pattern; `factor` the work arrays,
    `invert` the treatment of pivots."""
    one, kind, area = np.uint64(1), values.dtype.type, size * size
    begin, middle, own = np.uint64(lower[i]), np.uint64(lower[i + one]), np.uint64(diagonal) + i
    first, end = np.uint64(upper[i]), np.uint64(upper[i + one])
    for k in range(begin, middle):
        place[np.uint64(indices[k])] = k + one
    place[i] = own + one
    for k in range(first, end):
        place[np.uint64(indices[k])] = k + one
    for k in range(begin, middle):
        j = np.uint64(indices[k])
        for e in range(area):
            work[e] = 0
        add_product(values, k, values, np.uint64(diagonal) + j, work, np.uint64(0), size, kind(1))
        for e in range(area):
            values[k * area + e] = work[e]
        for m in range(np.uint64(upper[j]), np.uint64(upper[j + one])):
            to = np.uint64(place[np.uint64(indices[m])])
            if to > 0:
                add_product(work, np.uint64(0), values, m, values, to - one, size, kind(-1))
    for k in range(begin, middle):
        place[np.uint64(indices[k])] = 0
    place[i] = 0
    for k in range(first, end):
        place[np.uint64(indices[k])] = 0
    return invert(values, own, values, own, scale, i, order, work, size, tiny, replacement)


@njit(cache=True, _nrt=False)
def factor(lower, upper, indices, blocks, block, diagonal, scale, place, work, order, tiny, replacement, bad):
    """Overwrite ``blocks``, A's blocks, by L, U and the inverse diagonal blocks with (L U)ᵢⱼ = Aᵢⱼ on the pattern, one
    block row after the other.

    Work arrays: ``place``, a zero for each block row; ``work``, the size of a block; ``order``, a row of it. bad[0]
    becomes the first block row with a tiny pivot, bad[1] the number of tiny pivots; see `invert` for ``scale``,
    ``tiny`` and ``replacement``."""
    size, values = size_of(block, blocks.shape), blocks.reshape(-1)
    for i in range(np.uint64(lower.size - 1)):
        count = factor_row(i, lower, upper, indices, values, diagonal, scale, size, place, work, order, tiny,
                           replacement)
        if count:
            bad[0], bad[1] = min(bad[0], i), bad[1] + count


@parallel
def factor_levels(lower, upper, indices, blocks, block, diagonal, scale, place, work, order, sequence, bounds, tiny,
                  replacement, bad):
    """Like `factor`, and equal to the bit, but the threads share the block rows sequence[bounds[l]:bounds[l + 1]] of
    level l. ``place``, ``work`` and ``order`` have a row for each thread."""
    values, threads = blocks.reshape(-1), place.shape[0]
    found = np.empty((threads, 2), np.int64)
    found[:, 0], found[:, 1] = bad[0], 0
    for level in range(bounds.size - 1):
        begin, rows = bounds[level], bounds[level + 1] - bounds[level]
        share = max((rows + threads - 1) // threads, NARROW)
        for part in prange((rows + share - 1) // share):
            size = size_of(block, blocks.shape)
            for t in range(begin + part * share, begin + min((part + 1) * share, rows)):
                i = sequence[t]
                count = factor_row(np.uint64(i), lower, upper, indices, values, diagonal, scale, size, place[part],
                                   work[part], order[part], tiny, replacement)
                if count:
                    found[part, 0], found[part, 1] = min(found[part, 0], i), found[part, 1] + count
    bad[0], bad[1] = found[:, 0].min(), bad[1] + found[:, 1].sum()


@parallel(fastmath=CONTRACT)
def scale_columns(indices, blocks, block, diagonal, first):
    """Replace the blocks Uᵢⱼ, from place ``first`` on, by N = Uᵢⱼ Uⱼⱼ⁻¹."""
    values, length = blocks.reshape(-1), indices.size - first
    for chunk in prange(CHUNKS):
        size, row = size_of(block, blocks.shape), np.empty(blocks.shape[2], blocks.dtype)
        for k in range(np.uint64(first + chunk * length // CHUNKS), np.uint64(first + (chunk + 1) * length // CHUNKS)):
            right = (np.uint64(diagonal) + np.uint64(indices[k])) * size * size
            for r in range(size):
                at = (k * size + r) * size
                for c in range(size):
                    row[c] = 0
                for t in range(size):
                    for c in range(size):
                        row[c] += values[at + t] * values[right + t * size + c]
                for c in range(size):
                    values[at + c] = row[c]


@parallel
def invert_blocks(blocks, inverse, block, diagonal, scale, tiny, replacement, bad):
    """Write the inverses of the diagonal blocks, from place ``diagonal`` of ``blocks`` on, to ``inverse``, with tiny
    pivots replaced.

    bad[0] becomes the first block row with a tiny pivot, and the number of tiny pivots is added to bad[1]; see `invert`
    for ``scale``, ``tiny`` and ``replacement``."""
    size, values = np.uint64(blocks.shape[2]), blocks.reshape(-1)
    inverses = inverse.reshape(-1)
    first, total = bad[0], bad[1]
    for i in prange(inverse.shape[0]):
        work, order = np.empty(blocks.shape[2], values.dtype), np.empty(blocks.shape[2], np.int64)
        count = invert(values, np.uint64(diagonal + i), inverses, np.uint64(i), scale, np.uint64(i), order, work, size,
                       tiny, replacement)
        first = min(first, np.int64(i) if count else NONE)
        total += count
    bad[0], bad[1] = first, total


@parallel(fastmath=CONTRACT)
def fixed_point(lower, indices, rows, starts, column_rows, places, data, inverse, old, fresh, block):
    """One sweep of Lᵢⱼ = (Aᵢⱼ − Σ Lᵢₘ Uₘⱼ) Uⱼⱼ⁻¹ and Uᵢⱼ = Aᵢⱼ − Σ Lᵢₘ Uₘⱼ, over m < min(i, j), from the old factors
    and inverses to new factors. It merges row i of L and the strict part of column j of U up to min(i, j).

    ``data`` is A, ``old`` and ``fresh`` are the old and new factors on one pattern; ``inverse`` has the blocks Uⱼⱼ⁻¹ of
    the old one. Writes ``fresh`` only. rows[k] is the block row of block k. Column j of U has its block rows and places
    from starts[j] to starts[j + 1] − 1, in ``column_rows`` and ``places``."""
    size, kind = np.uint64(data.shape[2]), data.dtype.type
    given, before, after, inverses = data.reshape(-1), old.reshape(-1), fresh.reshape(-1), inverse.reshape(-1)
    area, none = size * size, np.uint64(0)
    for entry in prange(indices.size):
        k, i, j = np.uint64(entry), rows[entry], indices[entry]
        stop, total = min(i, j), np.empty(data.shape[2]**2, given.dtype)
        for e in range(area):
            total[e] = given[k * area + e]
        p, q, p_end, q_end = lower[i], starts[j], lower[i + 1], starts[j + 1]
        while p < p_end and q < q_end and indices[p] < stop and column_rows[q] < stop:
            a, b = indices[p], column_rows[q]
            if a == b:
                add_product(before, np.uint64(p), before, np.uint64(places[q]), total, none, size, kind(-1))
            p += a <= b
            q += b <= a
        for e in range(area):
            after[k * area + e] = 0 if i > j else total[e]
        if i > j:
            add_product(total, none, inverses, np.uint64(j), after, k, size, kind(1))
