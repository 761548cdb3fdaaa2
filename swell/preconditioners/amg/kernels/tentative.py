"""Tentative and smoothed prolongators on the CPU; see aggregation.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import parallel


@parallel
def constants(nodes, width, modes):
    """Write ``modes``, ``width`` numbers a row: 1 in the column that is the unknown's place among the ``width``
    unknowns of its node, else 0. nodes[d] = d // width, also written."""
    for d in prange(nodes.size):
        own = np.int64(d)
        nodes[d] = own // width
        for j in range(width):
            modes[own * width + j] = 1.0 if j == own % width else 0.0


@parallel
def rigid_motions(points, dimensions, modes):
    """Write ``modes``: translations, then rotations about the origin, of displacements in 2 or 3 ``dimensions`` at
    ``points``, stored point after point. Row d·i + a is the displacement of point i along axis a."""
    width = dimensions * (dimensions + 1) // 2
    for d in prange(points.size):
        point, axis = np.int64(d) // dimensions * dimensions, np.int64(d) % dimensions
        row = np.int64(d) * width
        for j in range(dimensions):
            modes[row + j] = 1.0 if j == axis else 0.0
        for j in range(width - dimensions):
            # rotation in the plane of axes j and the next one; in two dimensions there is one plane
            after, value = (j + 1) % dimensions, 0.0
            if axis == j:
                value = -points[point + after]
            elif axis == after:
                value = points[point + j]
            modes[row + dimensions + j] = value


@parallel
def orthonormalise(starts, members, width, dependent, q, coefficients, ranks):
    """Orthonormalise the modes of each aggregate, in place: modified Gram–Schmidt, twice.

    Aggregate g has the unknowns members[starts[g]:starts[g + 1]]. ``q``: ``width`` modes, stored row after row; the
    first ranks[g] columns of an aggregate's rows become its orthonormal basis Q. ``coefficients``, zero before: width²
    numbers for each aggregate, R in B = Q R, row after row. A mode is left out if less than ``dependent`` times its
    norm remains."""
    for g in prange(ranks.size):
        begin, end = starts[g], starts[g + 1]
        rank, R = 0, np.int64(g) * width * width
        for j in range(width):
            before = 0.0
            for m in range(begin, end):
                before += q[members[m] * width + j] ** 2
            for c in range(2 * rank):
                slot, dot = c % rank, 0.0
                for m in range(begin, end):
                    d = members[m] * width
                    dot += q[d + slot] * q[d + j]
                for m in range(begin, end):
                    d = members[m] * width
                    q[d + j] -= dot * q[d + slot]
                coefficients[R + slot * width + j] += dot
            after = 0.0
            for m in range(begin, end):
                after += q[members[m] * width + j] ** 2
            if after > 0 and after > dependent * dependent * before:
                norm = np.sqrt(after)
                for m in range(begin, end):
                    d = members[m] * width
                    q[d + rank] = q[d + j] / norm
                coefficients[R + rank * width + j] = norm
                rank += 1
        ranks[g] = rank


@parallel
def row_lengths(members, ranks, lengths):
    """Write lengths[d]: the rank of the aggregate members[d] of unknown d; 0 if it has none."""
    for d in prange(lengths.size):
        lengths[d] = ranks[members[d]] if members[d] < ranks.size else 0


@parallel
def place(members, first, width, q, indptr, indices, data):
    """Write the columns and values of the tentative prolongator, whose row d is Q's row; first[g] is the first column
    of aggregate g, and members[d] the aggregate of unknown d."""
    for d in prange(members.size):
        row = np.int64(d) * width
        for k in range(indptr[d], indptr[d + 1]):
            c = k - indptr[d]
            indices[k], data[k] = first[members[d]] + c, q[row + c]


@parallel
def coarse_modes(first, width, coefficients, modes, nodes):
    """Write ``modes`` and ``nodes`` of the next level: unknown first[g] + c has node g and row c of its R."""
    for g in prange(first.size - 1):
        R = np.int64(g) * width * width
        for c in range(first[g + 1] - first[g]):
            d = first[g] + c
            nodes[d] = g
            for j in range(width):
                modes[d * width + j] = coefficients[R + c * width + j]


@parallel
def smooth(indptr, indices, data, t_indptr, t_indices, t_data, scales, out):
    """Write ``out``, the values of P = T − diag(scales)² A T on the pattern of A T, which contains T's pattern.

    ``indptr``, ``indices``, ``data``: A T in CSR; ``t_...``: T in CSR."""
    for i in prange(scales.size):
        at = t_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            value = 0.0
            if at < t_indptr[i + 1] and t_indices[at] == indices[k]:
                value = t_data[at]
                at += 1
            out[k] = value - scales[i] * scales[i] * data[k]
