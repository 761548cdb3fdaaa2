"""Triangular solves on the CPU. ``swell/preconditioners/exact.py`` describes the layout, level_schedule.py the slices.

Rows are visited in the order of the solve, so that one kernel serves lower and upper matrices. The nearest columns of a
row come last: their entries of x become known last. Unsigned indices save Numba's test for negative ones. ``count`` and
``pack`` run on one thread, as the factorisation before them does.
"""
from __future__ import annotations

import functools

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel, renamed

CONTRACT = {"contract"}                          # allow fused multiply-add; sums keep their order
GPU_ONLY = ("find_levels", "level", "levels", "sync_free")       # a CPU solves row by row and needs no levels


@helper
def in_triangle(i, j, lower):
    """True if entry (i, j) is strictly inside the triangle: below the diagonal if ``lower``, else above it."""
    return j < i if lower else j > i


@helper
def strict_part(indptr, indices, i, lower):
    """Return (begin, end): the entries of CSR row i strictly inside the triangle are the places begin to end − 1.
    ``lower`` says which triangle. Columns ascend in a row. The search reads these entries and one more."""
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
    """Write lengths[t] = number of strictly triangular entries of the t-th visited row. Returns (follows, crossing,
    needed, reach).

    Rows are visited from the first if ``lower``, else from the last. ``order[i]``: the place of row i in the vectors;
    empty for i. follows: number of rows that need their predecessor. crossing: first row from ``middle`` on that needs
    a row before ``middle``, or n. needed: one more than the last row before ``middle`` that a row from ``middle`` on
    needs. All three count rows in the order of visits. reach: largest modulus of an offset between places in the
    vectors."""
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
    """Fill the layout of exact.py with the rows of one triangle of a CSR matrix. Returns the first row with a zero
    diagonal entry, or −1.

    Writes ``offsets``, ``values`` (rows divided by their diagonal entries) and ``inverse`` (1 / diagonal; not with a
    ``unit`` diagonal). The ``width`` entries of row t nearest the diagonal go to place t ``width``, padded with zeros;
    the other entries go to ptr[t]. ``lower`` and ``order`` are as in `count`."""
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
        beyond = strict - min(strict, wide)      # entries other than the ``width`` nearest
        while strict < wide:                     # padding: zero times the row's own entry of x
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


WIDTH, CHAIN = 0, False     # ``substitution`` compiles the next functions with other values; width 0: any


def forward(rows, ptr, offsets, values, inverse, part, b, x, width):
    """Write x = (I + N)⁻¹ D⁻¹ b in the rows of one part, by forward substitution.

    ``rows``, ``ptr``, ``offsets``, ``values`` and ``inverse`` are the layout of exact.py, which `pack` fills; an empty
    ``rows`` means consecutive rows, an empty ``inverse`` D = I. ``part`` is (begin, end, first row, step) in the order
    of visits.

    In a chain nearly every row needs its predecessor: that value comes from a register, since a load from memory would
    be too slow. Without a chain the test for it would be mispredicted."""
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
    """Solve (I + Nᴴ) y = b, x = D⁻ᴴ y for the rows of one part, last row first. x holds b on entry and is overwritten.

    A solved row is subtracted from the rows that need it. In a chain, a register holds the amount to subtract from the
    next row. Returns these rows' parts of (w, x) and (x, x), if w is not empty. ``none`` is a zero of the type of (w,
    x). See `forward` for the other arguments."""
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
    """Solve part ``first`` and the next one, on two threads, by `forward`. Writes x."""
    for half in prange(2):
        forward(rows, ptr, offsets, values, inverse, parts[first + half], b, x, width)


def backward_halves(rows, ptr, offsets, values, inverse, parts, x, width, w, none, wx, xx):
    """Solve parts 0 and 1 on two threads, by `backward`, in place in x. Writes their two results to ``wx`` and ``xx``.
    """
    for part in prange(2):
        wx[part], xx[part] = backward(rows, ptr, offsets, values, inverse, parts[part], x, width, w, none)


@functools.cache
def substitution(width, chain):
    """Return compiled (forward, backward, forward_halves, backward_halves) for one ``width`` of the rectangle in
    exact.py. Each function is compiled at its first call.

    ``chain``: nearly every row needs its predecessor. Then widths 2 and 3 (grids of five and seven points) are
    unrolled."""
    width = width if chain and width in (2, 3) else 0
    suffix = f"{width}{'_chain' if chain else ''}"
    one, other = (njit(cache=True, _nrt=False)(renamed(f, suffix, {"WIDTH": width, "CHAIN": bool(chain)}))
                  for f in (forward, backward))
    return (one, other, parallel(renamed(forward_halves, suffix, {"forward": one})),
            parallel(renamed(backward_halves, suffix, {"backward": other})))


def solve(rows, ptr, offsets, values, inverse, parts, b, x, width, chain):
    """x = T⁻¹ b, one part after the other. ``parts`` has a row (begin, end, first row, step) for each; see `forward`.
    ``width`` and ``chain`` choose the compiled function, see `substitution`."""
    one, *_ = substitution(width, chain)
    for part in parts:
        one(rows, ptr, offsets, values, inverse, part, b, x, width)


def solve_adjoint(rows, ptr, offsets, values, inverse, parts, x, w, dots, width, chain):
    """x = T⁻ᴴ x, in place. If w is not empty, also dots[0] = (w, x) and dots[1] = (x, x) with the new x. See `solve`
    and `forward` for the other arguments."""
    _, one, *_ = substitution(width, chain)
    none = dots.dtype.type(0)
    sums = [one(rows, ptr, offsets, values, inverse, part, x, width, w, none) for part in parts[::-1]]
    if w.size:
        dots[0], dots[1] = map(sum, zip(*sums[::-1]))


def solve_halves(rows, ptr, offsets, values, inverse, parts, serial_part, b, x, width, chain):
    """x = T⁻¹ b for three parts, two of them independent and solved on two threads. ``serial_part`` (0 or 2): the part
    that one thread solves, before or after the other two. See `solve` for the other arguments."""
    one, _, two, _ = substitution(width, chain)
    if serial_part == 0:
        one(rows, ptr, offsets, values, inverse, parts[0], b, x, width)
    two(rows, ptr, offsets, values, inverse, parts, 1 if serial_part == 0 else 0, b, x, width)
    if serial_part == 2:
        one(rows, ptr, offsets, values, inverse, parts[2], b, x, width)


def solve_adjoint_halves(rows, ptr, offsets, values, inverse, parts, x, w, dots, width, chain):
    """Like `solve_adjoint`, for three parts: the last, then the first two on two threads. The sums are added in a fixed
    order."""
    _, one, _, two = substitution(width, chain)
    none = dots.dtype.type(0)
    wx, xx = np.zeros(3, dots.dtype), np.zeros(3)
    wx[2], xx[2] = one(rows, ptr, offsets, values, inverse, parts[2], x, width, w, none)
    two(rows, ptr, offsets, values, inverse, parts, x, width, w, none, wx, xx)
    if w.size:
        dots[0], dots[1] = sum(wx), sum(xx)


@parallel
def sweep(rows, ptr, columns, values, inverse, b, x, y, last):
    """One Jacobi sweep: y = b − N x; if ``last``, y = D⁻¹ (b − N x). Writes y only.

    rows[t] is the row at place t, ``inverse[t]`` its inverse diagonal entry. N is in slices of 32 rows: entry k of row
    i of slice s is at ptr[s] + 32 k + i of ``columns`` and ``values``; column −1 marks padding."""
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
