"""Local approximate ideal restriction on the CPU, threads sharing the rows; see local_restriction.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.preconditioners.amg.slots import State

COARSE = np.uint8(State.COARSE)
MOST = 31               # most unknowns of a local system, as in air.cu
SINGULAR = 1e-12        # a pivot of at most this times the largest entry of its local system is rounding
ONE = np.uint64(1)
CHUNKS = 64             # chunks of coarse rows; each has its own local system


@parallel
def strong_moduli(indptr, indices, data, theta, strong):
    """Write strong[k] = 1 if |aᵢⱼ| ≥ θ maxₖ |aᵢₖ| > 0 with j, k ≠ i for entry k, else 0. ``theta`` is θ."""
    for i in prange(indptr.size - 1):
        largest = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[k])) if indices[k] != i else largest
        for k in range(indptr[i], indptr[i + 1]):
            strong[k] = (indices[k] != i) & (largest > 0) & (abs(data[k]) >= theta * largest)


@parallel
def one_point(indptr, indices, data, strong, state, numbers, parents, lengths):
    """Write parents[i] = the number of row i's strongest coarse column, the first of equal ones; its own number if row
    i is coarse, −1 if no strong link leads to a coarse row. lengths[i] = 0 for −1, else 1.

    ``numbers``: the number of each coarse row on the next level."""
    for i in prange(state.size):
        found, largest = -1, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if strong[k] and state[indices[k]] == COARSE and abs(data[k]) > largest:
                found, largest = numbers[indices[k]], abs(data[k])
        parents[i] = numbers[i] if state[i] == COARSE else found
        lengths[i] = parents[i] >= 0


@parallel
def place_parents(parents, indptr, indices):
    """Write indices[indptr[i]] = parents[i] for each row i that has a parent."""
    for i in prange(parents.size):
        if parents[i] >= 0:
            indices[indptr[i]] = parents[i]


@parallel
def coarse_rows(state, numbers, rows):
    """Write rows[numbers[i]] = i for each coarse row i."""
    for i in prange(state.size):
        if state[i] == COARSE:
            rows[numbers[i]] = i


@njit(cache=True, _nrt=False)
def nearest(i, indptr, indices, data, strong, state, found, begin):
    """Write to ``found``, from place ``begin`` on, the strong fine columns of row i, the largest |aᵢⱼ| first, at most
    `MOST`. Returns their number."""
    count, limit, after = np.uint64(0), np.inf, np.int64(-1)
    while count < MOST:
        best, at = -1.0, np.int64(-1)
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            size, j = abs(data[k]), np.int64(indices[k])
            follows = (size < limit) | ((size == limit) & (j > after))
            if strong[k] and state[np.uint64(j)] != COARSE and follows and size > best:
                best, at = size, j
        if at < 0:
            break
        found[begin + count], limit, after = at, best, at
        count += ONE
    return count


@parallel
def neighbourhoods(rows, indptr, indices, data, strong, state, distance, wide, lengths):
    """Write to ``wide``, from place (MOST + 1) r on, the columns of row r of R in ascending order, and their number to
    lengths[r]: coarse row i = rows[r], and its strong fine neighbours Nᵢ at a ``distance`` of 1, or of at most 2."""
    for r in prange(rows.size):
        begin = np.uint64(r * (MOST + 1))
        count = near = nearest(np.uint64(rows[r]), indptr, indices, data, strong, state, wide, begin)
        for t in range(near if distance > 1 else np.uint64(0)):
            through = np.uint64(wide[begin + t])
            for k in range(np.uint64(indptr[through]), np.uint64(indptr[through + ONE])):
                new = strong[k] != 0 and state[np.uint64(indices[k])] != COARSE and count < MOST
                for c in range(count if new else np.uint64(0)):
                    new &= wide[begin + c] != indices[k]
                if new:
                    wide[begin + count] = indices[k]
                    count += ONE
        wide[begin + count] = rows[r]
        for t in range(ONE, count + ONE):                        # by columns
            column, at = wide[begin + t], begin + t
            while at > begin and wide[at - ONE] > column:
                wide[at] = wide[at - ONE]
                at -= ONE
            wide[at] = column
        lengths[r] = count + ONE


@parallel
def compact_columns(wide, indptr, indices):
    """Copy the columns of row r, which begin at place (MOST + 1) r of ``wide``, to indptr[r] of ``indices``."""
    for r in prange(indptr.size - 1):
        for k in range(indptr[r], indptr[r + 1]):
            indices[k] = wide[r * (MOST + 1) + k - indptr[r]]


@njit(cache=True, forceinline=True, _nrt=False)
def place(columns, count, column):
    """Return the place of ``column`` among the first ``count`` of the ascending ``columns``, ``count`` if it is not
    there."""
    at = np.uint64(0)
    while at < count and columns[at] < column:
        at += ONE
    return at if at < count and columns[at] == column else count


@njit(cache=True, _nrt=False)
def eliminate(matrix, m):
    """Solve the system of ``m`` unknowns in rows 0 to m − 1 of ``matrix``, whose column m is the right-hand side, by
    Gaussian elimination with partial pivoting. The solution replaces column m. An unknown without a pivot is 0."""
    largest, one = 0.0, ONE
    for p in range(m):
        for q in range(m):
            largest = max(largest, abs(matrix[p, q]))
    for p in range(m):
        row = p
        for q in range(p + one, m):
            row = q if abs(matrix[q, p]) > abs(matrix[row, p]) else row
        if not abs(matrix[row, p]) > SINGULAR * largest:
            matrix[p, p] = 0
            continue
        if row != p:
            for c in range(p, m + one):
                matrix[p, c], matrix[row, c] = matrix[row, c], matrix[p, c]
        for q in range(p + one, m):
            if matrix[q, p] != 0:                                # most are 0: upwind rows depend on few others
                factor = matrix[q, p] / matrix[p, p]
                for c in range(p + one, m + one):
                    matrix[q, c] -= factor * matrix[p, c]
    for back in range(m):
        p = m - one - back
        matrix[p, m] = matrix[p, m] / matrix[p, p] if matrix[p, p] != 0 else 0.0
        for q in range(p):
            matrix[q, m] -= matrix[q, p] * matrix[p, m]


@parallel
def ideal_weights(rows, indptr, indices, data, r_indptr, r_indices, r_data):
    """Write ``r_data``, the values of R on its pattern: for coarse row i = rows[r] the solution z of
    Σₖ zₖ aₖⱼ = −aᵢⱼ, j and k in Nᵢ, and 1 in column i."""
    for chunk in prange(CHUNKS):
        matrix = np.empty((MOST, MOST + 1))
        columns = np.empty(MOST, np.int64)
        for r in range(chunk * rows.size // CHUNKS, (chunk + 1) * rows.size // CHUNKS):
            i, m = np.uint64(rows[r]), np.uint64(0)
            begin, end = np.uint64(r_indptr[r]), np.uint64(r_indptr[r + 1])
            for k in range(begin, end):
                if np.uint64(r_indices[k]) != i:
                    columns[m] = r_indices[k]
                    m += ONE
            for q in range(m):
                for p in range(m + ONE):
                    matrix[q, p] = 0
            for p in range(m + ONE):                             # row p of Aₙₙ becomes column p; row i the last one
                source = np.uint64(columns[p]) if p < m else i
                for k in range(np.uint64(indptr[source]), np.uint64(indptr[source + ONE])):
                    q = place(columns, m, indices[k])
                    if q < m:
                        matrix[q, p] = data[k] if p < m else -data[k]
            eliminate(matrix, m)
            at = np.uint64(0)
            for k in range(begin, end):
                own = np.uint64(r_indices[k]) == i
                r_data[k] = 1.0 if own else matrix[at, m]
                at += np.uint64(not own)


@parallel
def mark_kept(indptr, indices, data, share, kept, lengths):
    """Write kept[k] = 1 for the diagonal entry and for entries of at least ``share`` times the row's largest modulus,
    else 0; lengths[i] = the number of kept entries. A row without a diagonal entry keeps all."""
    for i in prange(lengths.size):
        largest, diagonal = 0.0, False
        for k in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(data[k]))
            diagonal |= indices[k] == i
        limit = share * largest if diagonal else 0.0
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            kept[k] = (indices[k] == i) | (abs(data[k]) >= limit)
            count += kept[k]
        lengths[i] = count


@parallel
def keep(indptr, indices, data, kept, to_indptr, to_indices, to_data):
    """Write the kept entries to ``to_indices`` and ``to_data``; add the others to the diagonal entry of their row."""
    for i in prange(to_indptr.size - 1):
        at, own, dropped = to_indptr[i], -1, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if not kept[k]:
                dropped += data[k]
                continue
            to_indices[at], to_data[at] = indices[k], data[k]
            own = at if indices[k] == i else own
            at += 1
        if own >= 0:
            to_data[own] += dropped
