"""The fronts of the iterative Crout method on the CPU: final entries are not computed again; ``fronts.cu`` is the GPU's
version.

``lu`` is the matrix as a flat array, entry (i, j) at ``i row + j column``. A front has the ``size`` rows and columns
from ``first`` on. Its entry (i, j) belongs to step min(i, j). Its key is 2 j on and below the diagonal (L), 2 i + 1
above (U); it needs only entries of smaller keys. Entries with keys below ``front`` are final; the others hold A less
the contributions of finished fronts.

``estimate``: where the iteration starts, an array like ``lu``, or ``lu`` itself. ``tolerance``: an entry that changed
by no more has settled. ``lower``, ``upper``: bounds of good diagonal elements. ``threads``: on a GPU only.

Many matrices, n * n elements apart, are decomposed together. ``blocks.size`` − 1: their number, times the blocks of a
``cluster`` with ``shared`` bytes of shared memory each on a GPU. ``state`` has one number for each: the columns of its
front that are complete in the rows below the diagonal block.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.dense.kernels.pivoting import pick_pivot, swap_rows


@parallel
def settle(lu, estimate, row, column, first, size, choose, own, x, threads, shared, cluster, tolerance, lower, upper, n,
           state, pivots, counts, below, blocks):
    """Iterate the diagonal blocks of all matrices up to a bad element, then the rows below in the columns up to it.
    With ``choose``, swap the pivot's row; in the estimate too, unless it is ``lu`` (``own``). Go on until there is no
    bad element. Writes ``lu``, ``state`` and ``pivots``. The iterations of each diagonal block are added to ``counts``,
    the iterations of the rows to ``below``, as in ``rest``. Arguments: top of file."""
    across, per, count = -(-(n - first - size) // x), -(-n // x), blocks.size - 1
    found, left = np.zeros((count, 2), np.int64), count
    state[:count] = 0
    while left:
        for k in prange(count):
            if state[k] < size and found[k, 0] < size:
                start = estimate if state[k] == 0 else lu        # after a pivot: the rows as they are now
                settle_block(lu[k * n * n:], start[k * n * n:], row, column, first, size, max(2 * state[k] - 1, 0),
                             state[k], tolerance, lower, upper, found[k])
                counts[k] += found[k, 1]
        for tile in prange(count * across):
            k, top = tile // across, first + size + tile % across * x
            if state[k] < size and found[k, 0] < size:
                start = estimate if state[k] == 0 else lu
                below[k * per + top // x] += rows_of_tile(lu[k * n * n:], start[k * n * n:], row, column, first,
                                                          state[k], found[k, 0] + 1, tolerance, top, min(top + x, n))
        left = 0
        for k in prange(count):
            if state[k] < size and found[k, 0] < size:
                j = first + found[k, 0]
                if choose and j < n - 1:
                    pick_pivot(lu[k * n * n:], row, column, j, np.inf, n, pivots[k * n:])
                    swap_rows(lu[k * n * n:], row, column, j, n, pivots[k * n:])
                    if not own:
                        swap_rows(estimate[k * n * n:], row, column, j, n, pivots[k * n:])
                state[k] = found[k, 0] + 1
                left += state[k] < size


@njit(cache=True)
def settle_block(lu, estimate, row, column, first, size, front, search, tolerance, lower, upper, found):
    """Iterate (1.11) and (1.12) in one diagonal block, from ``estimate``, until all entries are final, or all before a
    bad element; write these to ``lu``. A bad element is a diagonal one, from ``search`` on, with modulus at most
    ``lower``, above ``upper``, or NaN. ``found`` becomes the bad element (``size`` if there is none) and the number of
    iterations. Arguments: top of file."""
    v, a, base = np.zeros((size, size), lu.dtype), np.zeros((size, size), lu.dtype), np.zeros((size, size), lu.dtype)
    for i in range(size):
        for j in range(size):
            at = (first + i) * row + (first + j) * column
            a[i, j] = lu[at]
            v[i, j] = lu[at] if 2 * min(i, j) + (i < j) < front else estimate[at]
    advance(v, base, 0, front, size)
    new = v.copy()
    iterations = 0
    while True:
        bad = size
        for j in range(size - 1, search - 1, -1):
            if not (lower < abs(v[j, j]) <= upper):              # a NaN is bad
                bad = j
        limit = 2 * bad if bad < size else 2 * size - 1
        if front > limit:
            break
        steps, changed = front // 2, 2 * size
        for i in range(size):
            for j in range(size):
                key = 2 * min(i, j) + (i < j)
                if key < front or key > limit:
                    continue
                total = base[i, j]
                for k in range(steps, min(i, j)):
                    total += v[i, k] * v[k, j]
                value = a[i, j] - total                          # (1.11)
                if i < j and v[i, i] != 0:
                    value = value / v[i, i]                      # (1.12)
                if not (abs(value - v[i, j]) <= tolerance):      # a NaN has not settled
                    changed = min(changed, key)
                new[i, j] = value
        v[:] = new
        after = min(max(changed, front + 1), limit + 1)          # the first entry needed final ones only: it is final
        advance(v, base, front, after, size)
        front = after
        iterations += 1
    for i in range(size):
        for j in range(size):
            if 2 * min(i, j) + (i < j) < front:
                lu[(first + i) * row + (first + j) * column] = v[i, j]
    found[0], found[1] = bad, iterations


@njit(cache=True)
def advance(v, base, before, after, size):
    """Add to ``base`` the contributions of the steps that have become final: front ``before`` until now, ``after`` from
    now on. ``v``, ``base``: the block's iterate and the sums of its final terms, shape (size, size)."""
    for k in range(before // 2, after // 2):
        for i in range(k + 1, size):
            for j in range(k + 1, size):
                base[i, j] += v[i, k] * v[k, j]


@njit(cache=True)
def settle_line(a, v, base, entering, divide, front, end, tolerance):
    """Iterate v[c] = (a[c] - Σ v[k] entering[c, k]) / entering[c, c], k < c, in place, for c from ``front`` to ``end``;
    entries before ``front`` are final. It divides only with ``divide``. ``base``: scratch, ``end`` entries. Returns the
    number of iterations."""
    for c in range(front, end):
        base[c] = 0
        for k in range(front):
            base[c] += v[k] * entering[c, k]
    iterations = 0
    while front < end:
        changed = end
        for c in range(end - 1, front - 1, -1):                  # backwards: c must read the last iterate
            total = base[c]
            for k in range(front, c):
                total += v[k] * entering[c, k]
            value = a[c] - total
            if divide and entering[c, c] != 0:
                value = value / entering[c, c]
            if not (abs(value - v[c]) <= tolerance):
                changed = c
            v[c] = value
        after = max(changed, front + 1)
        for c in range(after, end):
            for k in range(front, min(after, c)):
                base[c] += v[k] * entering[c, k]
        front = after
        iterations += 1
    return iterations


@parallel
def rest(lu, estimate, row, column, first, size, x, threads, tolerance, n, state, counts, tiles):
    """Iterate (1.11) in the rows of ``lu`` below the diagonal block, in the columns that ``settle`` has left.
    ``tiles.size`` − 1: number of tiles of ``x`` such rows, of all matrices. ``counts`` has an entry for every ``x``
    rows of each matrix; the iterations of a tile's slowest row are added to it. Arguments: top of file."""
    across, per = -(-(n - first - size) // x), -(-n // x)
    for tile in prange(tiles.size - 1):
        k, top = tile // across, first + size + tile % across * x
        counts[k * per + top // x] += rows_of_tile(lu[k * n * n:], estimate[k * n * n:], row, column, first, state[k],
                                                   size, tolerance, top, min(top + x, n))


@njit(cache=True)
def rows_of_tile(lu, estimate, row, column, first, begin, end, tolerance, top, bottom):
    """Iterate rows ``top`` to ``bottom`` of L, the front's columns ``begin`` to ``end``, in place. Returns the
    iterations of the slowest row. Arguments: top of file."""
    entering = np.zeros((end, end), lu.dtype)
    for c in range(end):
        for k in range(c):
            entering[c, k] = lu[(first + k) * row + (first + c) * column]
    slowest = 0
    a, v, base = np.empty(end, lu.dtype), np.empty(end, lu.dtype), np.empty(end, lu.dtype)
    for i in range(top, bottom):
        for c in range(end):
            at = i * row + (first + c) * column
            a[c], v[c] = lu[at], lu[at] if c < begin else estimate[at]
        slowest = max(slowest, settle_line(a, v, base, entering, False, begin, end, tolerance))
        for c in range(begin, end):
            lu[i * row + (first + c) * column] = v[c]
    return slowest


@parallel
def settle_right(lu, estimate, row, column, first, size, left, right, x, threads, tolerance, n, counts, tiles):
    """Iterate (1.12) in the front's rows, columns ``left`` to ``right``, in place in ``lu``, ``x`` columns a tile;
    ``counts`` and ``tiles`` as in ``rest``. Arguments: top of file."""
    across, per = -(-(right - left) // x), -(-n // x)
    for tile in prange(tiles.size - 1):
        k, begin = tile // across, left + tile % across * x
        counts[k * per + begin // x] += columns_of_tile(lu[k * n * n:], estimate[k * n * n:], row, column, first, size,
                                                        tolerance, begin, min(begin + x, right))


@njit(cache=True)
def columns_of_tile(lu, estimate, row, column, first, size, tolerance, left, end):
    """Iterate columns ``left`` to ``end`` of U in the front's rows, in place. Returns the iterations of the slowest
    column. Arguments: top of file."""
    entering = np.zeros((size, size), lu.dtype)
    for c in range(size):
        for k in range(c + 1):
            entering[c, k] = lu[(first + c) * row + (first + k) * column]
    slowest = 0
    a, v, base = np.empty(size, lu.dtype), np.empty(size, lu.dtype), np.empty(size, lu.dtype)
    for j in range(left, end):
        for c in range(size):
            at = (first + c) * row + j * column
            a[c], v[c] = lu[at], estimate[at]
        slowest = max(slowest, settle_line(a, v, base, entering, True, 0, size, tolerance))
        for c in range(size):
            lu[(first + c) * row + j * column] = v[c]
    return slowest
