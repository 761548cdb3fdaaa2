"""The dense inverse of the coarsest level on the CPU; see coarsest.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import njit

PANEL = 16              # pivots a step, as in dense.cu


@njit(cache=True)
def scatter(indptr, indices, data, scales, dense):
    """dense = D A D, row by row, with D = diag(scales)."""
    n = scales.size
    for i in range(n):
        row = dense[i * n:i * n + n]
        row[:] = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[np.uint64(k)])
            row[j] = scales[i] * data[np.uint64(k)] * scales[j]


@njit(cache=True, fastmath={"contract", "nsz"})
def invert(matrix, pivots, rows, singular, worst, record):
    """The inverse of a symmetric matrix, in place, by symmetric sweeps: one for each pivot, without exchanges, PANEL
    pivots a step.

    matrix: row by row; pivots, rows: n and 2 PANEL n numbers to work with. Row and column k become zero where pivot k
    is at most ``singular`` times the diagonal entry that it was. worst[0] = the least such ratio, 1 at most.
    ``record`` is for a GPU's blocks.

    Sweeps of a block B = L D Lᵀ turn the rest, A, of the matrix with rows C between them into A − (L⁻¹ C)ᵀ D⁻¹ L⁻¹ C,
    C into B⁻¹ C and B into −B⁻¹. The lower triangle is computed."""
    n, least = pivots.size, 1.0
    for k in range(n):
        pivots[k] = matrix[k * n + k]
    panel, solved = rows[:PANEL * n].reshape(PANEL, n), rows[PANEL * n:].reshape(PANEL, n)
    block, found, inverses = np.empty((PANEL, PANEL)), np.empty((PANEL, PANEL)), np.empty(PANEL)
    for first in range(0, n, PANEL):
        width = min(PANEL, n - first)
        panel[width:] = 0
        for k in range(width):
            row = first + k
            panel[k, :row] = matrix[row * n:row * n + row]
            for j in range(row, n):
                panel[k, j] = matrix[j * n + row]
        least = min(least, _sweep(panel[:, first:first + width], pivots[first:], singular, block, found, inverses))
        _forward(found, inverses, panel, solved)
        for i in range(n):
            _subtract(matrix[i * n:i * n + i + 1], panel[:, i], solved)
        _backward(found, inverses, solved)
        for k in range(width):
            row = first + k
            matrix[row * n:row * n + first] = solved[k, :first]
            matrix[row * n + first:row * n + first + width] = block[k, :width]
            for j in range(first + width, n):
                matrix[j * n + row] = solved[k, j]
    for i in range(n):
        for j in range(i + 1):
            matrix[i * n + j] = matrix[j * n + i] = -matrix[i * n + j]
    worst[0] = least


@njit(cache=True, fastmath={"contract", "nsz"})
def _sweep(panel, pivots, singular, block, found, inverses):
    """Sweep a diagonal block: block = −B⁻¹, found = its rows as their sweeps found them, inverses = of the pivots, 0
    where one is left out. Returns the least ratio of a pivot to its old diagonal entry."""
    width, least = panel.shape[1], 1.0
    found[:], inverses[:] = 0, 0
    block[:width, :width] = panel[:width]
    for k in range(width):
        found[k, :width] = block[k, :width]
        pivot = block[k, k]
        ratio = pivot / pivots[k] if pivots[k] > 0 else min(pivot, 0.0)
        least = min(least, ratio)
        inverse = 1 / pivot if ratio > singular else 0.0
        inverses[k] = inverse
        for r in range(width):
            for c in range(width):
                if r == k or c == k:
                    block[r, c] = -inverse if r == c else 0.0 if inverse == 0 else found[k, r + c - k] * inverse
                elif inverse != 0:
                    block[r, c] -= found[k, r] * found[k, c] * inverse
    return least


@njit(cache=True, fastmath={"contract", "nsz"})
def _forward(found, inverses, panel, solved):
    """panel = L⁻¹ C without the pivots that are left out, solved = D⁻¹ L⁻¹ C."""
    for k in range(PANEL):
        if inverses[k] == 0:
            panel[k], solved[k] = 0, 0
            continue
        for j in range(panel.shape[1]):
            solved[k, j] = panel[k, j] * inverses[k]
        for m in range(k + 1, PANEL):
            factor, own, above = found[k, m], panel[m], solved[k]
            for j in range(own.size):
                own[j] -= factor * above[j]


@njit(cache=True, fastmath={"contract", "nsz"})
def _backward(found, inverses, solved):
    """solved = L⁻ᵀ D⁻¹ L⁻¹ C."""
    for m in range(PANEL - 1, 0, -1):
        for k in range(m):
            factor, own, below = found[k, m] * inverses[k], solved[k], solved[m]
            for j in range(own.size):
                own[j] -= factor * below[j]


@njit(cache=True, fastmath={"contract", "nsz"})
def _subtract(own, factors, solved):
    """own -= the rows of ``solved`` times these factors."""
    for k in range(0, PANEL, 4):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        first, second, third, fourth = solved[k], solved[k + 1], solved[k + 2], solved[k + 3]
        for j in range(own.size):
            own[j] -= a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
