"""Preconditioned conjugate gradients for a batch, on the CPU: a thread solves a system; ``cg.cu`` is the GPU's version.

``indptr``, ``indices``: the pattern in CSR, which all systems share; ``diagonal``: the entry of each diagonal, or −1.
``ell``: the columns of the first entries of all rows, then of the second, …; ``lower``, ``upper``, ``order``: ILU(0)'s
levels; all four on a GPU only. ``values``: (batch, nnz). ``b``, ``x``: (batch, n, columns); x
holds the starting vectors if ``guess`` is 1. ``record``: (batch, columns, places), with the places of
``slots.Record``. ``size``: n. ``kind``, ``block``: the preconditioner, a ``slots.Kind``, and the rows of a block.
``lanes``, ``held``, ``threads``, ``shared``: the launch on a GPU (placement.py).
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.batch.kernels.system import (
    INDEFINITE,
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
    true_residual,
    verdict,
)
from swell.core.compiled import helper, njit, parallel


@parallel
def cg(indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record, size, columns, lanes, kind,
       block, held, guess, maxiter, rtol, atol, threads, shared):
    """x = A⁻¹ b for each system. Arguments: top of file."""
    for s in prange(values.shape[0]):
        solve(indptr, indices, diagonal, values[s], b[s], x[s], record[s], kind, block, guess,
              maxiter, rtol, atol)


@njit(cache=True)
def solve(indptr, indices, diagonal, a, b, x, record, kind, block, guess, maxiter, rtol, atol):
    """Solve one system, for each of its columns. Arguments: top of file, of this system."""
    n = diagonal.size
    xs, r, p, q, z, rhs = np.empty((6, n), a.dtype)
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
            inner, done = cycle(indptr, indices, diagonal, a, kind, block, store, xs, r, p, q, z, done, maxiter, limits)
            attempt += 1
        leave(now, done, code, xs, record, x, c)


@helper
def cycle(indptr, indices, diagonal, a, kind, block, store, x, r, p, q, z, done, maxiter, limits):
    """Iterate from x with the residual r, until there is a verdict; return it and the number of iterations so far."""
    n = r.size
    apply(indptr, indices, diagonal, kind, block, store, r, z)                 # z = M r
    rho = 0.0
    for i in range(n):
        p[i] = z[i]                                                            # p = z
        rho += (np.conj(r[i]) * z[i]).real                                     # ρ = (r, z)
    while True:
        product(indptr, indices, a, p, q)                                      # q = A p
        sigma = 0.0
        for i in range(n):
            sigma += (np.conj(p[i]) * q[i]).real                               # σ = (p, q)
        if not sigma > 0 or not rho > 0:
            return INDEFINITE if math.isfinite(sigma) and math.isfinite(rho) else NONFINITE, done
        alpha = r.real.dtype.type(rho / sigma)
        norm2 = 0.0
        for i in range(n):
            x[i] += alpha * p[i]                                               # x = x + α p
            r[i] -= alpha * q[i]                                               # r = r − α q
            norm2 += square(r[i])
        apply(indptr, indices, diagonal, kind, block, store, r, z)             # z = M r
        next_rho = 0.0
        for i in range(n):
            next_rho += (np.conj(r[i]) * z[i]).real                            # ρ' = (r, z)
        done += 1
        found = judge(norm2, done, maxiter, limits)
        if found != RUNNING:
            return found, done
        beta = r.real.dtype.type(next_rho / rho)
        rho = next_rho
        for i in range(n):
            p[i] = z[i] + beta * p[i]                                          # p = z + (ρ'/ρ) p
