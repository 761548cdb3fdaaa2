"""Triangular solves on the CPU; the layout is described in ``swell/preconditioners/triangular.py``.

Rows are visited in the order in which they can be solved, so that one kernel serves lower and upper matrices. The
nearest columns of a row come last, where the sum waits for the row before. Unsigned indices spare Numba's test for
negative ones. ``count`` and ``pack`` run on one thread, as the factorisation before them does.
"""
from __future__ import annotations

import functools

import numpy as np
from numba import njit, prange

from swell.core.compiled import helper, parallel, renamed

CONTRACT = {"contract"}                          # multiply and add at once; sums keep their order
GPU_ONLY = ("find_levels", "level", "levels", "sync_free")       # a CPU solves row by row and needs no levels


@helper
def in_triangle(i, j, lower):
    """Is entry (i, j) strictly inside the triangle?"""
    return j < i if lower else j > i


@helper
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


@njit(cache=True)
def count(indptr, indices, lower, order, middle, lengths):
    """lengths[t] = strictly triangular entries of the row visited as the t-th. Returns how many rows need the one
    before them; of the rows from the ``middle`` on, the first that needs one before it (the number of rows if there is
    none), and one more than the last that they need before it; how far a row is from one that it needs at most."""
    n = lengths.size
    follows, crossing, needed, reach = 0, n, 0, 0
    for t in range(n):
        i = t if lower else n - 1 - t
        begin, end = strict_part(indptr, indices, i, lower)
        place = np.int64(order[i]) if order.size else i
        nearest, last, distance = np.int64(-1), np.int64(-1), np.int64(0)
        for k in range(begin, end):
            j = np.int64(indices[k])
            visited = j if lower else n - 1 - j
            nearest = max(nearest, visited)
            last = max(last, visited if visited < middle else -1)
            distance = max(distance, abs(place - (np.int64(order[j]) if order.size else j)))
        lengths[t] = end - begin
        follows += 1 if nearest >= 0 and nearest == t - 1 else 0
        crossing = min(crossing, t if t >= middle and last >= 0 else n)
        needed = max(needed, last + 1 if t >= middle else 0)
        reach = max(reach, distance)
    return follows, crossing, needed, reach


@njit(cache=True)
def pack(indptr, indices, data, lower, unit, order, ptr, offsets, values, inverse, width):
    """Fill the layout, scaled so that the diagonal is one. Returns the first row whose diagonal is zero, or −1."""
    n = indptr.size - 1
    bad = n
    for t in range(n):
        i = t if lower else n - 1 - t
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
        near, far = np.uint64(t * width), np.uint64(ptr[t])
        wide = np.uint64(width)
        strict = end - begin
        beyond = strict - min(strict, wide)      # entries in front of the ``width`` nearest
        while strict < wide:                     # padding: zero times what the row itself has just written
            offsets[near] = 0
            values[near] = 0
            near += np.uint64(1)
            strict += np.uint64(1)
        place = np.int64(order[i]) if order.size else i
        for step in range(end - begin):
            k = begin + step if lower else end - np.uint64(1) - step
            at = far + step if step < beyond else near + step - beyond
            j = indices[k]
            offsets[at] = (np.int64(order[j]) if order.size else np.int64(j)) - place
            values[at] = d * data[k]
    return bad if bad < n else -1


WIDTH, CHAIN = 0, False     # what ``substitution`` compiles the next functions for; width 0: any


def forward(rows, ptr, offsets, values, inverse, part, b, x, width):
    """The rows of one of ``parts`` of (I + N) x = D⁻¹ b. In a chain nearly every row needs the one before it: that
    value is taken from a register, since memory would give it back too late; elsewhere the test would be
    mispredicted."""
    begin, end, first, step = part
    if WIDTH:
        width = WIDTH
    far, near, wide, longer = np.uint64(ptr[begin]), np.uint64(begin * width), np.uint64(width), ptr[end] > ptr[begin]
    i, before, value = first - step, np.int64(-1), values.dtype.type(0) * x.dtype.type(0)
    for t in range(begin, end):
        i = np.int64(rows[t]) if rows.size else i + step
        total = inverse[t] * b[np.uint64(i)] if inverse.size else b[np.uint64(i)]
        x[np.uint64(i)] = total                  # for the padding
        if longer:
            stop = np.uint64(ptr[t + 1])
            while far < stop:
                total -= values[far] * x[np.uint64(i + offsets[far])]
                far += np.uint64(1)
        stop = near + wide
        if CHAIN:
            stop -= np.uint64(1)
        while near < stop:
            total -= values[near] * x[np.uint64(i + offsets[near])]
            near += np.uint64(1)
        if CHAIN:
            j = i + offsets[near]
            if j == before:
                total -= values[near] * value
            else:
                total -= values[near] * x[np.uint64(j)]
            near += np.uint64(1)
            before, value = i, total
        x[np.uint64(i)] = total


def backward(rows, ptr, offsets, values, inverse, part, x, width, w, none):
    """The rows of a part of (I + Nᴴ) y = b, x = D⁻ᴴ y, in place, last row first: a row that is known is taken from
    those that it is in. In a chain, what the next row is to lose stays in a register. Returns (w, x) and (x, x) of
    these rows if there is a w."""
    begin, end, first, step = part
    if WIDTH:
        width = WIDTH
    far, near, wide, longer = np.uint64(ptr[end]), np.uint64(end * width), np.uint64(width), ptr[end] > ptr[begin]
    wx, xx = none, 0.0
    lost = values.dtype.type(0) * x.dtype.type(0)
    i = first + step * (end - begin)
    for s in range(end - begin):
        t = end - 1 - s
        i = np.int64(rows[t]) if rows.size else i - step
        y = x[np.uint64(i)]
        stop = near - wide
        if CHAIN:
            y -= lost
            near -= np.uint64(1)
            j = i + offsets[near]
            lost = np.conj(values[near]) * y
            after = np.int64(-1)                 # the next row
            if t > begin:
                after = np.int64(rows[t - 1]) if rows.size else i - step
            if j != after:
                x[np.uint64(j)] -= lost
                lost *= 0
        while near > stop:
            near -= np.uint64(1)
            x[np.uint64(i + offsets[near])] -= np.conj(values[near]) * y
        if longer:
            stop = np.uint64(ptr[t])
            while far > stop:
                far -= np.uint64(1)
                x[np.uint64(i + offsets[far])] -= np.conj(values[far]) * y
        if inverse.size:
            y *= np.conj(inverse[t])
        x[np.uint64(i)] = y
        if w.size:
            wx += np.conj(w[np.uint64(i)]) * y
            xx += (np.conj(y) * y).real
    return wx, xx


def forward_halves(rows, ptr, offsets, values, inverse, parts, first, b, x, width):
    """Part ``first`` and the one behind it, by two threads."""
    for half in prange(2):
        forward(rows, ptr, offsets, values, inverse, parts[first + half], b, x, width)


def backward_halves(rows, ptr, offsets, values, inverse, parts, x, width, w, none, wx, xx):
    """Parts 0 and 1, by two threads, and their sums."""
    for part in prange(2):
        wx[part], xx[part] = backward(rows, ptr, offsets, values, inverse, parts[part], x, width, w, none)


@functools.cache
def substitution(width, chain):
    """(forward, backward, forward_halves, backward_halves) for rows of one width in the rectangle. In a chain two and
    three entries a row, as grids of five and seven points have, are unrolled. Each is compiled at its first call."""
    width = width if chain and width in (2, 3) else 0
    suffix = f"{width}{'_chain' if chain else ''}"
    one, other = (njit(cache=True, _nrt=False)(renamed(f, suffix, {"WIDTH": width, "CHAIN": bool(chain)}))
                  for f in (forward, backward))
    return (one, other, parallel(renamed(forward_halves, suffix, {"forward": one})),
            parallel(renamed(backward_halves, suffix, {"backward": other})))


def solve(rows, ptr, offsets, values, inverse, parts, b, x, width, chain):
    """x = T⁻¹ b, one part after the other."""
    one, *_ = substitution(width, chain)
    for part in parts:
        one(rows, ptr, offsets, values, inverse, part, b, x, width)


def solve_adjoint(rows, ptr, offsets, values, inverse, parts, x, w, dots, width, chain):
    """x = T⁻ᴴ x; if there is a w, dots = (w, x) and (x, x)."""
    _, one, *_ = substitution(width, chain)
    none = dots.dtype.type(0)
    sums = [one(rows, ptr, offsets, values, inverse, part, x, width, w, none) for part in parts[::-1]]
    if w.size:
        dots[0], dots[1] = map(sum, zip(*sums[::-1]))


def solve_halves(rows, ptr, offsets, values, inverse, parts, alone, b, x, width, chain):
    """The same where two of three parts need nothing of one another, and are solved by two threads: the last two
    after the first alone, or the first two before the last."""
    one, _, two, _ = substitution(width, chain)
    if alone == 0:
        one(rows, ptr, offsets, values, inverse, parts[0], b, x, width)
    two(rows, ptr, offsets, values, inverse, parts, 1 if alone == 0 else 0, b, x, width)
    if alone == 2:
        one(rows, ptr, offsets, values, inverse, parts[2], b, x, width)


def solve_adjoint_halves(rows, ptr, offsets, values, inverse, parts, x, w, dots, width, chain):
    """The same backwards: the last, then the first two. Sums of parts are added in one order."""
    _, one, _, two = substitution(width, chain)
    none = dots.dtype.type(0)
    wx, xx = np.zeros(3, dots.dtype), np.zeros(3)
    wx[2], xx[2] = one(rows, ptr, offsets, values, inverse, parts[2], x, width, w, none)
    two(rows, ptr, offsets, values, inverse, parts, x, width, w, none, wx, xx)
    if w.size:
        dots[0], dots[1] = sum(wx), sum(xx)


@parallel
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
