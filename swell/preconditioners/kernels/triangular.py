"""Triangular solves on the CPU; the layout is described in ``swell/preconditioners/triangular.py``.

Rows are visited in the order in which they can be solved, so that one kernel serves lower and upper matrices. The
nearest columns of a row come last, where the sum waits for the row before. Unsigned indices spare Numba's test for
negative ones.
"""
from __future__ import annotations

import numpy as np
from numba import njit, prange

CONTRACT = {"contract"}                          # multiply and add at once; sums keep their order
GPU_ONLY = ("find_levels", "level", "levels", "sync_free")       # a CPU solves row by row and needs no levels


@njit(cache=True)
def in_triangle(i, j, lower):
    """Is entry (i, j) strictly inside the triangle?"""
    return j < i if lower else j > i


@njit(cache=True)
def strict_part(indptr, indices, i, lower):
    """(begin, end) of the strictly triangular entries of row i, whose columns ascend. Of the others none but the next
    is looked at."""
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    one = np.uint64(1)
    if lower:
        middle = begin
        while middle < end and indices[middle] < i:
            middle += one
        return begin, middle
    middle = end
    while middle > begin and indices[middle - one] > i:
        middle -= one
    return middle, end


@njit(parallel=True, cache=True)
def count(indptr, indices, lower, order, rows, lengths):
    """rows[t] = place in the vectors of the row visited as the t-th, lengths[t] = its strictly triangular entries.
    Returns how many rows need the one before them, and the first row of the second half that needs one of the first
    (the number of rows if there is none)."""
    n = lengths.size
    follows, crossing = 0, n
    for t in prange(n):
        i = np.int64(t) if lower else n - 1 - np.int64(t)
        rows[t] = order[i] if order.size else i
        begin, end = strict_part(indptr, indices, i, lower)
        first = n
        if begin < end:
            nearest = indices[end - np.uint64(1)] if lower else indices[begin]
            first = np.int64(indices[begin]) if lower else n - 1 - np.int64(indices[end - np.uint64(1)])
            follows += 1 if abs(i - np.int64(nearest)) == 1 else 0
        lengths[t] = end - begin
        crossing = min(crossing, np.int64(t) if t >= n // 2 and first < n // 2 else n)
    return follows, crossing


@njit(parallel=True, cache=True)
def pack(indptr, indices, data, lower, unit, order, rows, ptr, columns, values, inverse, width):
    """Fill the layout, scaled so that the diagonal is one. Returns the first row whose diagonal is zero, or −1."""
    n = rows.size
    bad = n
    for t in prange(n):
        i = np.int64(t) if lower else n - 1 - np.int64(t)
        begin, end = strict_part(indptr, indices, i, lower)
        d = inverse.dtype.type(1)
        if not unit:
            d = inverse.dtype.type(0)
            if lower and end < np.uint64(indptr[i + 1]) and indices[end] == i:
                d = inverse.dtype.type(data[end])
            elif not lower and begin > np.uint64(indptr[i]) and indices[begin - np.uint64(1)] == i:
                d = inverse.dtype.type(data[begin - np.uint64(1)])
            bad = min(bad, i if d == 0 else n)
            d = 1 / (inverse.dtype.type(1) if d == 0 else d)
        inverse[t] = d
        near, far = np.uint64(np.int64(t) * width), np.uint64(ptr[t])
        wide = np.uint64(width)
        strict = end - begin
        beyond = strict - min(strict, wide)      # entries in front of the ``width`` nearest
        while strict < wide:                     # padding: zero times what the row itself has just written
            columns[near] = rows[t]
            values[near] = 0
            near += np.uint64(1)
            strict += np.uint64(1)
        for step in range(end - begin):
            k = begin + step if lower else end - np.uint64(1) - step
            at = far + step if step < beyond else near + step - beyond
            j = indices[k]
            columns[at] = order[j] if order.size else j
            values[at] = d * data[k]
    return bad if bad < n else -1


@njit(cache=True, fastmath=CONTRACT)
def forward(rows, ptr, columns, values, inverse, b, x, width, chain, begin, end):
    """Rows begin to end of (I + N) x = D⁻¹ b. In a chain nearly every row needs the one before it: that value is taken
    from a register, since memory would give it back too late; elsewhere the test would be mispredicted."""
    far, near, width = np.uint64(ptr[begin]), np.uint64(begin * width), np.uint64(width)
    before, value = np.uint64(rows[begin] if begin < end else 0), inverse.dtype.type(0) * x.dtype.type(0)
    for t in range(begin, end):
        i = np.uint64(rows[t])
        total = inverse[t] * b[i]
        x[i] = total                             # for the padding
        stop = np.uint64(ptr[t + 1])
        while far < stop:
            total -= values[far] * x[np.uint64(columns[far])]
            far += np.uint64(1)
        stop = near + width
        if chain:
            stop -= np.uint64(1)
        while near < stop:
            total -= values[near] * x[np.uint64(columns[near])]
            near += np.uint64(1)
        if chain:
            j = np.uint64(columns[near])
            if j == before:
                total -= values[near] * value
            else:
                total -= values[near] * x[j]
            near += np.uint64(1)
            before, value = i, total
        x[i] = total


@njit(cache=True, fastmath=CONTRACT)
def backward(rows, ptr, columns, values, inverse, x, width, chain, begin, end, w, none):
    """Rows end to begin of (I + Nᴴ) y = b, x = D⁻ᴴ y, in place: a row that is known is taken from those that it is in.
    In a chain, what the next row is to lose stays in a register. Returns (w, x) and (x, x) of these rows if there is
    a w.
    """
    far, near, width = np.uint64(ptr[end]), np.uint64(end * width), np.uint64(width)
    wx, xx = none, 0.0
    lost = inverse.dtype.type(0) * x.dtype.type(0)
    for s in range(end - begin):
        t = end - 1 - s
        i = np.uint64(rows[t])
        y = x[i]
        stop = near - width
        if chain:
            y -= lost
            near -= np.uint64(1)
            j = np.uint64(columns[near])
            lost = np.conj(values[near]) * y
            if t == begin or j != np.uint64(rows[t - 1]):
                x[j] -= lost
                lost *= 0
        while near > stop:
            near -= np.uint64(1)
            x[np.uint64(columns[near])] -= np.conj(values[near]) * y
        stop = np.uint64(ptr[t])
        while far > stop:
            far -= np.uint64(1)
            x[np.uint64(columns[far])] -= np.conj(values[far]) * y
        y *= np.conj(inverse[t])
        x[i] = y
        if w.size:
            wx += np.conj(w[i]) * y
            xx += (np.conj(y) * y).real
    return wx, xx


@njit(cache=True)
def solve(rows, ptr, columns, values, inverse, b, x, width, chain):
    """x = T⁻¹ b."""
    forward(rows, ptr, columns, values, inverse, b, x, width, chain, 0, rows.size)


@njit(cache=True)
def solve_adjoint(rows, ptr, columns, values, inverse, x, w, dots, width, chain):
    """x = T⁻ᴴ x; if there is a w, dots = (w, x) and (x, x)."""
    wx, xx = backward(rows, ptr, columns, values, inverse, x, width, chain, 0, rows.size, w, dots.dtype.type(0))
    if w.size:
        dots[0], dots[1] = wx, xx


@njit(parallel=True, cache=True)
def solve_halves(rows, ptr, columns, values, inverse, cuts, b, x, width, chain):
    """The same where rows cuts[0] to cuts[1] need none before cuts[0]: two threads, then the rest."""
    for part in prange(2):
        begin, end = (0, cuts[0]) if part == 0 else (cuts[0], cuts[1])
        forward(rows, ptr, columns, values, inverse, b, x, width, chain, begin, end)
    forward(rows, ptr, columns, values, inverse, b, x, width, chain, cuts[1], rows.size)


@njit(parallel=True, cache=True)
def solve_adjoint_halves(rows, ptr, columns, values, inverse, cuts, x, w, dots, width, chain):
    """The same backwards: the rest first, then two threads. Sums of parts are added in one order."""
    none = dots.dtype.type(0)
    wx, xx = np.zeros(3, dots.dtype), np.zeros(3)
    wx[2], xx[2] = backward(rows, ptr, columns, values, inverse, x, width, chain, cuts[1], rows.size, w, none)
    for part in prange(2):
        begin, end = (0, cuts[0]) if part == 0 else (cuts[0], cuts[1])
        wx[part], xx[part] = backward(rows, ptr, columns, values, inverse, x, width, chain, begin, end, w, none)
    if w.size:
        dots[0], dots[1] = wx.sum(), xx.sum()


@njit(parallel=True, cache=True)
def sweep(rows, ptr, columns, values, inverse, b, x, y, last):
    """y = b − N x, or D⁻¹ of it in the last sweep. Slices of 32 rows, entry k of row i of a slice at ptr + 32 k + i;
    column −1 is padding."""
    n = rows.size
    for s in prange(ptr.size - 1):
        start = ptr[s]
        for lane in range(min(32, n - 32 * s)):
            t = 32 * s + lane
            i = rows[t]
            total = b[i]
            for at in range(start + lane, ptr[s + 1], 32):
                j = columns[at]
                if j >= 0:
                    total -= values[at] * x[j]
            y[i] = inverse[t] * total if last else total
