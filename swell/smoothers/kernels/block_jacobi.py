"""Block smoothers on the CPU; ``block_jacobi.cu`` has the same kernels for a GPU. A slice of modified SELL is a block.

Arguments of all kernels: ``slice_ptr``, ``diag``, ``entries``, ``col_idx``: A in slices of ``height`` rows
(formats/modified_sell.py). ``b``, ``x``: A x = b; ``out``: the new x. With ``zero`` x counts as 0 and is not read.
``inner``: the inner solver; ``sweeps``, ``tolerance``, ``omega``: its settings. ``width``: the largest number of
off-diagonals of a row inside its block. ``held`` and ``shared`` matter on a GPU only.

Arguments of one block's functions: ``d``: its diagonal; ``r``: its right-hand side; row t of its off-diagonals has
count[t] entries, values[t, k] in local column columns[t, k]; ``y``: its solution.

Rows of the local system are scaled by the diagonal, except for conjugate gradients. Inner sweeps end when the squared
residual of each row is at most tolerance / height: a GPU needs no sum for this. Parallel loops cast their index to
int64. Without the cast Numba would compile the called function twice: for an index with a sign, and for one without.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel

JACOBI, GAUSS_SEIDEL, CG, EXACT = range(4)


@njit(cache=True)
def _assemble(slice_ptr, diag, entries, col_idx, b, x, zero, s, height, r, values, columns, count):
    """Set r = (b − A x) in the rows of slice s; write its block's off-diagonals to values, columns, count. Arguments:
    top of file."""
    first, local = s * height, values.size > 0
    for t in range(r.size):
        i = first + t
        total = b[i]
        if not zero:
            total -= diag[i] * x[i]
        found = 0
        for at in range(slice_ptr[s] + t, slice_ptr[s + 1], height):
            c = col_idx[at]
            if c == 0:
                break
            if not zero:
                total -= entries[at] * x[first - c - 1 if c < 0 else c - 1]
            if c < 0 and local:
                values[t, found], columns[t, found] = entries[at], -c - 1
                found += 1
        r[t], count[t] = total, found


@njit(cache=True)
def _row(values, columns, count, y, t):
    """Return (A_ll − D) y in row t of the block. Arguments: top of file."""
    total = y.dtype.type(0)
    for k in range(count[t]):
        total += values[t, k] * y[columns[t, k]]
    return total


@njit(cache=True)
def _norm2(r):
    """Return ‖r‖²."""
    total = 0.0
    for t in range(r.size):
        total += (np.conj(r[t]) * r[t]).real
    return total


@njit(cache=True)
def _jacobi(d, r, values, columns, count, omega, sweeps, tolerance, y):
    """Solve the block's system for y by up to ``sweeps`` damped Jacobi sweeps; on entry y = 0. Arguments: top of
    file."""
    residual = np.empty_like(y)
    for _ in range(sweeps):
        worst = 0.0
        for t in range(y.size):
            residual[t] = r[t] - y[t] - _row(values, columns, count, y, t)
            whole = d[t] * residual[t]
            worst = max(worst, (np.conj(whole) * whole).real)
        if worst <= tolerance:
            return
        for t in range(y.size):
            y[t] += y.dtype.type(omega * residual[t])


@njit(cache=True)
def _gauss_seidel(d, r, values, columns, count, sweeps, tolerance, y):
    """Solve the block's system for y by up to ``sweeps`` forward sweeps; on entry y = 0. Arguments: top of file."""
    for _ in range(sweeps):
        worst = 0.0
        for t in range(y.size):
            move = d[t] * (r[t] - y[t] - _row(values, columns, count, y, t))
            worst = max(worst, (np.conj(move) * move).real)
        if worst <= tolerance:
            return
        for t in range(y.size):
            y[t] = r[t] - _row(values, columns, count, y, t)


@njit(cache=True)
def _conjugate_gradients(d, r, values, columns, count, sweeps, tolerance, y):
    """Solve the block's system for y by up to ``sweeps`` steps; on entry y = 0. Overwrites r. Arguments: top of
    file."""
    p, q = r.copy(), np.empty_like(r)
    rho = _norm2(r)
    for _ in range(sweeps):
        if rho <= tolerance:
            return
        sigma = 0.0
        for t in range(y.size):
            q[t] = d[t] * p[t] + _row(values, columns, count, p, t)
            sigma += (np.conj(p[t]) * q[t]).real
        if not sigma > 0:
            return
        alpha = rho / sigma
        for t in range(y.size):
            y[t] += y.dtype.type(alpha * p[t])
            r[t] -= y.dtype.type(alpha * q[t])
        new = _norm2(r)
        for t in range(y.size):
            p[t] = y.dtype.type(r[t] + (new / rho) * p[t])
        rho = new


@njit(cache=True)
def _relax(s, slice_ptr, diag, entries, col_idx, inverse, b, x, out, omega, zero, inner, sweeps, tolerance, width,
           height):
    """Solve the block of slice s for its residual b − A x, and write x + the solution to these rows of ``out``.
    ``inverse``: as in ``exact``, or empty. Arguments: top of file."""
    first = s * height
    rows = min(height, diag.size - first)
    d = diag[first:first + rows]
    r, y = np.empty(rows, b.dtype), np.zeros(rows, b.dtype)
    stored = 0 if inner == EXACT else width
    values, columns = np.empty((rows, stored), b.dtype), np.empty((rows, stored), np.uint16)
    count = np.empty(rows, np.int32)
    _assemble(slice_ptr, diag, entries, col_idx, b, x, zero, s, height, r, values, columns, count)
    if inner == JACOBI or inner == GAUSS_SEIDEL:
        for t in range(rows):
            r[t] /= d[t]
            for k in range(count[t]):
                values[t, k] /= d[t]
    if inner == JACOBI:
        _jacobi(d, r, values, columns, count, omega, sweeps, tolerance / height, y)
    elif inner == GAUSS_SEIDEL:
        _gauss_seidel(d, r, values, columns, count, sweeps, tolerance / height, y)
    elif inner == CG:
        _conjugate_gradients(d, r, values, columns, count, sweeps, tolerance, y)
    else:
        for j in range(rows):
            for t in range(rows):
                y[t] += inverse[s, j, t] * r[j]
    for t in range(rows):
        out[first + t] = y[t] if zero else x[first + t] + y[t]


@parallel
def jacobi(slice_ptr, diag, entries, col_idx, b, x, out, omega, zero, sweeps, tolerance, width, held, height,
           shared):
    """One sweep over all blocks, each solved by inner sweeps of Jacobi. Writes ``out``. Arguments: top of file."""
    inverse = np.empty((0, 0, 0), b.dtype)
    for s in prange(slice_ptr.size - 1):
        _relax(np.int64(s), slice_ptr, diag, entries, col_idx, inverse, b, x, out, omega, zero, JACOBI, sweeps,
               tolerance, width, height)


@parallel
def gauss_seidel(slice_ptr, diag, entries, col_idx, b, x, out, omega, zero, sweeps, tolerance, width, held, height,
                 shared):
    """One sweep over all blocks, each solved by inner Gauss–Seidel sweeps. Writes ``out``. Arguments: top of file."""
    inverse = np.empty((0, 0, 0), b.dtype)
    for s in prange(slice_ptr.size - 1):
        _relax(np.int64(s), slice_ptr, diag, entries, col_idx, inverse, b, x, out, omega, zero, GAUSS_SEIDEL, sweeps,
               tolerance, width, height)


@parallel
def conjugate_gradients(slice_ptr, diag, entries, col_idx, b, x, out, omega, zero, sweeps, tolerance, width, held,
                        height, shared):
    """One sweep over all blocks, each solved by conjugate gradients. Writes ``out``. Arguments: top of file."""
    inverse = np.empty((0, 0, 0), b.dtype)
    for s in prange(slice_ptr.size - 1):
        _relax(np.int64(s), slice_ptr, diag, entries, col_idx, inverse, b, x, out, omega, zero, CG, sweeps, tolerance,
               width, height)


@parallel
def exact(slice_ptr, diag, entries, col_idx, inverse, b, x, out, zero, height, shared):
    """One sweep over all blocks with their dense inverses; writes ``out``. inverse[s, j, t] is entry (t, j) of the
    inverse of block s. Arguments: top of file."""
    for s in prange(slice_ptr.size - 1):
        _relax(np.int64(s), slice_ptr, diag, entries, col_idx, inverse, b, x, out, 1.0, zero, EXACT, 0, 0.0, 0, height)


@njit(cache=True)
def in_turn(slice_ptr, diag, entries, col_idx, inverse, b, x, omega, forward, inner, sweeps, tolerance, width,
            height):
    """Block Gauss–Seidel: solve the blocks one after the other, in place in x: upwards if ``forward``, else downwards.

    On a CPU only. ``inverse``: as in ``exact``, or empty. Arguments: top of file.
    """
    slices = slice_ptr.size - 1
    for k in range(slices):
        s = k if forward else slices - 1 - k
        _relax(s, slice_ptr, diag, entries, col_idx, inverse, b, x, x, omega, 0, inner, sweeps, tolerance, width,
               height)
