"""Restarted GMRES(m), preconditioned on the right, for a batch, on the CPU; ``gmres.cu`` is the GPU's version.

Arguments as in ``cg.py``, and ``restart``: m. Classical Gram–Schmidt is done twice.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.batch.kernels.system import (
    BREAKDOWN,
    NO_LIMIT,
    NONFINITE,
    NOT_FACTORED,
    RUNNING,
    apply,
    begin,
    confirmed,
    epsilon,
    judge,
    leave,
    prepare,
    product,
    square,
    stored,
    sum_of,
    true_residual,
    verdict,
)
from swell.core.compiled import helper, njit, parallel

USELESS = 64.0          # times eps: the new part of a column of R, relative to the rest, that is taken for rounding


@parallel
def gmres(indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record, size, columns, lanes, kind,
          block, held, guess, maxiter, rtol, atol, restart, threads, shared):
    """x = A⁻¹ b for each system. Arguments: top of file."""
    for s in prange(values.shape[0]):
        solve(indptr, indices, diagonal, values[s], b[s], x[s], record[s], kind, block, guess,
              maxiter, rtol, atol, restart)


@njit(cache=True)
def solve(indptr, indices, diagonal, a, b, x, record, kind, block, guess, maxiter, rtol, atol, restart):
    """Solve one system, for each of its columns. Arguments: top of file, of this system."""
    n = diagonal.size
    xs, w, z, rhs = np.empty((4, n), a.dtype)
    V = np.empty((restart + 1, n), a.dtype)
    H = np.empty((restart, restart + 1), np.array([sum_of(a)]).dtype)
    r = V[0]                                                     # the first basis vector, not yet scaled
    store, limits = np.empty(stored(kind, n, block, a.size), a.dtype), np.empty(3)
    factored = prepare(indptr, indices, diagonal, a, kind, block, store, np.empty(block, np.int64))
    for c in range(b.shape[1]):
        for i in range(n):
            xs[i], rhs[i] = x[i, c] if guess else a.dtype.type(0), b[i, c]
        last, inner, attempt = NO_LIMIT, RUNNING if factored else NOT_FACTORED, 0
        done = np.int64(0)                       # a literal would be a type of its own: `cycle` compiled twice
        while True:
            now = true_residual(indptr, indices, a, rhs, xs, r)
            if attempt == 0:
                begin(now, rtol, atol, limits)
            now = confirmed(indptr, indices, a, rhs, xs, r, now, limits[0])
            code = verdict(now, limits, last, inner, attempt, done, maxiter, epsilon(r))
            if code != RUNNING:
                break
            last = now[0]
            inner, done = cycle(indptr, indices, diagonal, a, kind, block, store, xs, V, H, w, z, done, maxiter, limits)
            attempt += 1
        leave(now, done, code, xs, record, x, c)


@helper
def orthogonalise(V, w, h, total, j):
    """h[i] = (V_i, w) for i <= j; then w −= V h, and total[i] += h[i]."""
    for i in range(j + 1):
        h[i] = 0
        for k in range(w.size):
            h[i] += np.conj(V[i, k]) * w[k]
        total[i] += h[i]
    for i in range(j + 1):
        scale = w.dtype.type(h[i])
        for k in range(w.size):
            w[k] -= scale * V[i, k]


@njit(cache=True)
def cycle(indptr, indices, diagonal, a, kind, block, store, x, V, H, w, z, done, maxiter, limits):
    """Iterate from x with the residual V[0]; return a verdict, RUNNING after m steps, and the iterations so far."""
    m, n = H.shape[0], x.size
    g, h, sine, cosine = np.zeros(m + 1, H.dtype), np.zeros(m + 1, H.dtype), np.zeros(m, H.dtype), np.zeros(m)
    beta = length_of(V[0])
    for i in range(n):
        V[0, i] *= V.real.dtype.type(1 / beta)                                 # v₁ = r/‖r‖
    g[0] = beta                                                                # g = ‖r‖ e₁
    j, found = 0, RUNNING
    while j < m and found == RUNNING:
        column, new = H[j], V[j + 1]
        for i in range(m + 1):
            column[i] = 0
        apply(indptr, indices, diagonal, kind, block, store, V[j], z)          # z = M v_j
        product(indptr, indices, a, z, new)                                    # w = A z
        before = length_of(new)
        orthogonalise(V, new, h, column, j)                                    # w = w − V Vᴴ w, twice
        orthogonalise(V, new, h, column, j)
        length = length_of(new)
        ended = not length > epsilon(new) * before                             # the space is invariant
        if ended:
            length = 0.0
        else:
            for i in range(n):
                new[i] *= V.real.dtype.type(1 / length)
        earlier = 0.0
        for i in range(j):                                                     # Givens rotations of the new column
            up, down = column[i], column[i + 1]
            column[i] = cosine[i] * up + sine[i] * down
            column[i + 1] = cosine[i] * down - np.conj(sine[i]) * up
            earlier += square(column[i])
        d = abs(column[j])
        both = math.hypot(d, length)
        if not math.isfinite(before):
            return NONFINITE, done + 1
        if j > 0 and both <= USELESS * epsilon(new) * math.sqrt(earlier):      # only rounding is new in this column
            found = BREAKDOWN
            break
        phase = column[j] / d if d > 0 else H.dtype.type(1)
        cosine[j] = d / both if both > 0 else 0.0                              # a zero column reduces nothing
        sine[j] = phase * (length / both) if both > 0 else phase
        column[j] = phase * both
        g[j + 1] = -np.conj(sine[j]) * g[j]
        g[j] = cosine[j] * g[j]
        done += 1
        found = judge(square(g[j + 1]), done, maxiter, limits)
        j += 1
        if ended and found == RUNNING:
            found = BREAKDOWN
    for i in range(j - 1, -1, -1):                                             # R y = g
        total = g[i]
        for k in range(i + 1, j):
            total -= H[k, i] * h[k]
        h[i] = total / H[i, i] if H[i, i] != 0 else total * 0
    for k in range(n):
        total = x.dtype.type(0)
        for i in range(j):
            total += x.dtype.type(h[i]) * V[i, k]
        w[k] = total                                                           # w = V y
    apply(indptr, indices, diagonal, kind, block, store, w, z)
    for k in range(n):
        x[k] += z[k]                                                           # x = x + M V y
    return found, done


@helper
def length_of(v):
    """‖v‖₂."""
    total = 0.0
    for i in range(v.size):
        total += square(v[i])
    return math.sqrt(total)
