"""Stiffness matrices of equal bilinear elements on boxes of a regular grid.

Index arithmetic assembles the blocks of a node's rows, 9 in the plane and 27 in space, from slices of the coefficients.
Storage: these blocks for every node of the box; element matrices are not stored for each element.
"""
from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np


def derivative_products(axes, h) -> dict:
    """Return the matrices ∫ ∂ₐφ ∂ᵦφ over a cube or square of edge h, a dict with keys (a, b).

    The nodes (i, j, k) of the element have the index 4 i + 2 j + k, of a square 2 i + j."""
    stiff, mass = np.array([[1.0, -1], [-1, 1]]) / h, np.array([[2.0, 1], [1, 2]]) * h / 6
    slope = np.array([[-0.5, -0.5], [0.5, 0.5]])                               # ∫ φ' φ
    matrices = {}
    for a, b in product(range(axes), repeat=2):
        factors = [mass if axis not in (a, b) else stiff if a == b else slope if axis == a else slope.T
                   for axis in range(axes)]
        matrices[a, b] = reduce(np.kron, factors)
    return matrices


def stencil_matrix(xp, terms, free, most=1):
    """Assemble the stiffness matrix of a box of elements on its free nodes; return (indptr, indices, data).

    Parameters
    ----------
    xp : module
        The arrays' module, NumPy or CuPy.
    terms : list of (numpy.ndarray, array, int)
        Element matrix of coefficient 1, whose rows are the unknowns of its nodes, node after node; the coefficient in
        every element; and the number of intervals along an edge of an element, 1 or 2.
    free : array of bool
        True for nodes that have unknowns.
    most : int
        The largest number of intervals. Above 1 couplings that are zero are left out.
    """
    axes, offsets = free.ndim, list(product(range(-most, most + 1), repeat=free.ndim))
    size = len(terms[0][0]) // (1 + terms[0][2]) ** axes
    values = xp.zeros((len(offsets), size, size, *free.shape))
    for local, k, step in terms:
        nodes = list(product(range(step + 1), repeat=axes))
        for a, p in enumerate(nodes):
            at = tuple(slice(i, i + step * (count - 1) + 1, step) for i, count in zip(p, k.shape, strict=True))
            for b, q in enumerate(nodes):
                offset = offsets.index(tuple(j - i for i, j in zip(p, q, strict=True)))
                for i, j in product(range(size), repeat=2):
                    entry = float(local[a * size + i, b * size + j])
                    if entry:
                        values[(offset, i, j, *at)] += entry * k
    number = xp.full([count + 2 * most for count in free.shape], -1, np.int64)   # padded by a rim of absent nodes
    number[(slice(most, -most),) * axes][free] = xp.arange(int(free.sum()))
    columns, data = [], []
    for step, offset in enumerate(offsets):
        shifted = number[tuple(slice(most + o, most + o + count) for o, count in zip(offset, free.shape, strict=True))]
        columns.append(shifted[free])
        data.append(values[step][:, :, free])
    del values
    columns, data = xp.stack(columns, axis=1), xp.stack(data, axis=0).transpose(3, 1, 0, 2)
    there = columns >= 0
    if most > 1:
        there &= (data != 0).any(axis=(1, 3))
    indptr = xp.zeros(columns.shape[0] * size + 1, np.int64)
    xp.cumsum(xp.repeat(there.sum(axis=1) * size, size), out=indptr[1:])
    every = xp.broadcast_to(there[:, None, :, None], data.shape)
    indices = xp.broadcast_to((columns[:, :, None] * size + xp.arange(size))[:, None], data.shape)
    return indptr, indices[every], data[every]
