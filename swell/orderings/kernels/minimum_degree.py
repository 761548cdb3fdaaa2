"""Approximate minimum degree on the host: the quotient graph of Amestoy, Davis and Duff 1996, in their notation.

A remaining variable i has two lists in ``lists``, from ``start[i]`` on: its ``elements[i]`` elements ℰ_i, then its
variables 𝒜_i; together ``length[i]`` numbers. An element e has the list ℒ_e of its variables. ``size[i]`` is |i|, the
number of rows in the supervariable i. It is negative while i is in the current ℒ_p, and after i was a pivot; it is zero
after i was merged or put last. ``degree`` is d_i for a variable and |ℒ_e| for an element. ``w[e]`` is zero after e was
absorbed. In memory variables come first, by index, then elements, by age, so that one pass closes the gaps (`compact`).
"""
from __future__ import annotations

import numpy as np

from swell.core.compiled import helper, njit

WAITING = -2            # value of before[i] while variable i waits, in no degree list


@njit(cache=True)
def symmetrise(indptr, indices, start, length, lists):
    """Write the pattern of A + Aᵀ without its diagonal to ``lists``, row after row, ascending. Returns its length.

    ``indptr`` and ``indices`` are the pattern of A in CSR form. Row i gets ``length[i]`` numbers from ``start[i]`` on;
    both arrays are written. ``lists`` needs room for 2 nnz numbers."""
    n = length.size
    begin = np.zeros(n + 1, indptr.dtype)                        # Aᵀ by counting, so columns ascend in its rows
    transpose = np.empty(indices.size, indices.dtype)
    for k in range(indices.size):
        begin[indices[k] + 1] += 1
    for i in range(n):
        begin[i + 1] += begin[i]
    at = begin[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            transpose[at[j]] = i
            at[j] += 1
    end = 0
    for i in range(n):
        start[i] = end
        k, t = indptr[i], begin[i]
        while k < indptr[i + 1] or t < begin[i + 1]:
            own = indices[k] if k < indptr[i + 1] else n
            theirs = transpose[t] if t < begin[i + 1] else n
            j = min(own, theirs)
            k += own == j
            t += theirs == j
            if j != i:
                lists[end] = j
                end += 1
        length[i] = end - start[i]
    return end


@helper
def link(head, after, before, d, i):
    """Insert variable i in front of the doubly linked list of the variables of degree d.

    head[d] is the first variable, after[i] and before[i] are the neighbours of i in the list, −1 for none; all are
    changed."""
    first = head[d]
    if first >= 0:
        before[first] = i
    after[i], before[i], head[d] = first, -1, i


@helper
def unlink(head, after, before, d, i):
    """Remove variable i from the doubly linked list of degree d; arguments as in `link`, changed in place."""
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[d] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]


@helper
def compact(start, length, lists, size, w, pivots, step):
    """Move the lists in use to the front of ``lists``, and update ``start``. Returns the first free place.

    In use are variables with size > 0, and the first ``step`` elements of ``pivots`` with w > 0. The list of x is
    lists[start[x]:start[x] + length[x]]."""
    free, n = 0, size.size
    for k in range(n + step):
        x = k if k < n else pivots[k - n]
        if (size[x] > 0 if k < n else w[x] > 0):
            first = start[x]
            start[x] = free
            for t in range(first, first + length[x]):
                lists[free] = lists[t]
                free += 1
    return free


@helper
def merge_alike(first, end, start, length, elements, lists, size, w, mark, key, bucket, chain, into):
    """Merge variables of ℒ_p, lists[first:end], with equal lists. Returns the next free mark.

    key[i] is a hash of the list of variable i. bucket[h] and chain[i] are linked lists of the variables with hash h;
    only these are compared. A variable j merged into i gets size[j] = 0 and into[j] = i. w[x] = ``mark`` marks the
    members of a list. The top of this file explains the other arrays."""
    for t in range(first, end):
        if size[lists[t]] == 0:
            continue
        h = key[lists[t]]
        i = bucket[h]
        bucket[h] = -1                                           # the whole bucket is compared now
        while i >= 0 and chain[i] >= 0:
            for k in range(start[i], start[i] + length[i]):
                w[lists[k]] = mark
            previous, j = i, chain[i]
            while j >= 0:
                same = length[j] == length[i] and elements[j] == elements[i]
                k = start[j]
                while same and k < start[j] + length[j]:
                    same = w[lists[k]] == mark
                    k += 1
                if same:
                    size[i] += size[j]                                           # |i| ← |i| + |j|, both negative
                    size[j], into[j] = 0, i
                    chain[previous] = chain[j]
                else:
                    previous = j
                j = chain[j]
            mark += 1
            i = chain[i]
    return mark


@njit(cache=True)
def eliminate(start, length, lists, free, dense, weak, size, degree, pivots, into, entries_limit, flops_limit,
              visits_limit):
    """Eliminate all variables with at most ``dense`` neighbours. Returns (number of pivots, entries of L + U, flops,
    left).

    ``start``, ``length``, ``lists`` and ``free``, the first free place, are the result of `symmetrise`; they are
    overwritten. weak[i] is true for a weak variable. It waits until a pivot p that is not weak has it in ℒ_p. Such a
    pivot releases about as many rows of weak variables as it eliminates. Variables that are never released come last.

    Writes ``size``, ``degree``, ``pivots`` and ``into``. On exit ``pivots`` are the principal variables in order, with
    −|p| in ``size`` and |ℒ_p| in ``degree``. ``into[i]`` is the variable that i was merged into; for a pivot, the
    element that absorbed it; −1 at the end of such a chain. The elimination stops as soon as a sum exceeds its limit,
    or after ``visits_limit`` looks at elements of lists. Then ``left`` of the result, the number of variables that were
    not eliminated, is not 0."""
    n = length.size
    head, after, before = np.empty(n + 1, lists.dtype), np.empty(n, lists.dtype), np.empty(n, lists.dtype)
    elements, key = np.zeros(n, lists.dtype), np.empty(n, lists.dtype)
    bucket, chain = np.empty(n, lists.dtype), np.empty(n, lists.dtype)
    w = np.ones(n, np.int64)
    head[:], bucket[:], into[:] = -1, -1, -1
    left, step, least, mark, entries, flops, visits = n, 0, 0, 2, 0.0, 0.0, 0
    for i in range(n):
        size[i], degree[i] = 1, length[i]
    for i in range(n):
        if length[i] > dense:
            size[i] = 0
            left -= 1
            for k in range(start[i], start[i] + length[i]):
                degree[lists[k]] -= 1
    for i in range(n):
        before[i] = WAITING
        if size[i] and not weak[i]:
            link(head, after, before, degree[i], i)
    while left > 0 and entries <= entries_limit and flops <= flops_limit and visits <= visits_limit:
        while least < n and head[least] < 0:
            least += 1
        if least == n:
            for i in range(n):
                if before[i] == WAITING and size[i] > 0:
                    link(head, after, before, degree[i], i)
                    least = min(least, degree[i])
        p = head[least]
        unlink(head, after, before, least, p)
        if free + degree[p] > lists.size:
            free = compact(start, length, lists, size, w, pivots, step)
        # ℒ_p = (𝒜_p ∪ ⋃ ℒ_e) \ {p}, e ∈ ℰ_p
        mass, first, d = size[p], free, 0
        size[p] = 0
        for t in range(start[p], start[p] + elements[p] + 1):
            last = t == start[p] + elements[p]
            if last:
                begin, end = t, start[p] + length[p]
            else:
                e = lists[t]
                begin, end = start[e], start[e] + length[e]
                w[e], into[e] = 0, p                                             # absorbed
            for k in range(begin, end):
                i = lists[k]
                if size[i] > 0:
                    if before[i] != WAITING:
                        unlink(head, after, before, degree[i], i)
                    d += size[i]
                    size[i] = -size[i]
                    lists[free] = i
                    free += 1
        start[p], elements[p] = first, 0
        # w(e) − mark = |ℒ_e \ ℒ_p| for all elements adjacent to ℒ_p
        for t in range(first, free):
            i = lists[t]
            for k in range(start[i], start[i] + elements[i]):
                e = lists[k]
                if w[e] >= mark:
                    w[e] += size[i]
                elif w[e] > 0:
                    w[e] = mark + degree[e] + size[i]
        # prune the lists, bound the degrees, hash
        for t in range(first, free):
            i = lists[t]
            at, outside, h = start[i], 0, p
            for k in range(start[i], start[i] + elements[i]):
                e = lists[k]
                if w[e] > mark:
                    outside += w[e] - mark                                       # Σ |ℒ_e \ ℒ_p|
                    h += e
                    lists[at] = e
                    at += 1
                elif w[e] > 0:
                    w[e], into[e] = 0, p                                         # aggressive absorption
            own = at
            visits += length[i]
            for k in range(start[i] + elements[i], start[i] + length[i]):
                j = lists[k]
                if size[j] > 0:
                    outside += size[j]                                           # |𝒜_i \ ℒ_p|
                    h += j
                    lists[at] = j
                    at += 1
            if outside == 0:                                                     # mass elimination
                mass -= size[i]
                d += size[i]
                size[i], into[i] = 0, p
                continue
            lists[at], lists[own] = lists[own], p                                # p joins ℰ_i
            elements[i], length[i] = own + 1 - start[i], at + 1 - start[i]
            degree[i] = min(degree[i], outside)
            h %= n
            key[i], chain[i], bucket[h] = h, bucket[h], i
        mark = merge_alike(first, free, start, length, elements, lists, size, w, mark + n + 1, key, bucket, chain, into)
        # d_i = min(n − k, d_i + |ℒ_p \ i|, |𝒜_i \ i| + |ℒ_p \ i| + Σ |ℒ_e \ ℒ_p|)
        left -= mass
        end, freed = first, 0 if weak[p] else mass
        for t in range(first, free):
            i = lists[t]
            if size[i]:
                size[i] = -size[i]
                degree[i] = min(left, degree[i] + d) - size[i]
                if before[i] != WAITING or freed > 0:
                    freed -= size[i] if before[i] == WAITING else 0
                    link(head, after, before, degree[i], i)
                    least = min(least, degree[i])
                lists[end] = i
                end += 1
        free, length[p], degree[p], size[p] = end, end - first, d, -mass
        w[p] = 1 if d else 0
        pivots[step] = p
        step += 1
        for below in range(d, d + mass):                                         # entries of a column of L
            entries += 2 * below + 1
            flops += below + 2.0 * below * below
    return step, entries, flops, left


@helper
def find_root(root, i):
    """The root of i in a forest, whose paths it shortens."""
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


@njit(cache=True)
def count_unready(start, length, lists, weak, order):
    """Return (the number of weak pivots that elimination in this order may leave without a value, and the number of
    sets of connected weak rows).

    A strong pivot adds at most 1 to the rank of the Schur complement of the weak rows that it is connected with. A set
    of s connected weak rows without a strong neighbour of its own has at most rank s − 1, as a Neumann problem has. A
    weak pivot needs one of these ranks. ``start``, ``length``, ``lists``: the result of `symmetrise`. ``weak``: True
    for weak rows."""
    n = order.size
    root, size, grounded = np.arange(n), np.ones(n, np.int64), np.zeros(n, np.bool_)
    rank, taken, unready, sets = np.zeros(n, np.int64), np.zeros(n, np.int64), 0, weak.sum()
    for p in order:
        if weak[p]:
            r = find_root(root, p)
            unready += min(rank[r], size[r] - (not grounded[r])) <= taken[r]
            taken[r] += 1
            continue
        first, count = -1, 0
        for k in range(start[p], start[p] + length[p]):
            if weak[lists[k]]:
                r = find_root(root, lists[k])
                count += 1
                if first < 0:
                    first = r
                elif r != first:
                    root[r] = first
                    size[first] += size[r]
                    rank[first] += rank[r]
                    taken[first] += taken[r]
                    grounded[first] |= grounded[r]
                    sets -= 1
        if count:
            rank[first] += 1
            grounded[first] |= count == 1
    return unready, sets


@njit(cache=True)
def count_last(ends, beside, group, into, degree):
    """Add to degree[p] = |ℒ_p| the number of rows put last in which the column of L of pivot p has an entry.

    For each such row, these pivots lie on the paths from its neighbours to the roots in the tree of elements, where
    into[p] is the parent of p, −1 for a root. The neighbours of row r end at beside[ends[r]], where those of row r + 1
    begin; group[v] is the pivot of the group of variable v, −1 for none."""
    seen = np.full(degree.size, -1)
    k = 0
    for row in range(ends.size):
        while k < ends[row]:
            p = group[beside[k]]
            while p >= 0 and seen[p] != row:
                seen[p] = row
                degree[p] += 1
                p = into[p]
            k += 1
