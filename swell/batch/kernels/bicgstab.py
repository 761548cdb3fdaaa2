"""BiCGSTAB, preconditioned on the right, for a batch, on the CPU; ``bicgstab.cu`` is the GPU's version.

Arguments as in ``cg.py``, and ``shadow``: shadow vectors r̂, one after the other, one for each attempt in turn.
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
from swell.core.kernels.breakdown import quotient, vanishes


@parallel
def bicgstab(indptr, indices, ell, diagonal, lower, upper, order, values, b, x, record, shadow, size, columns,
             lanes, kind, block, held, guess, maxiter, rtol, atol, threads, shared):
    """x = A⁻¹ b for each system. Arguments: top of file."""
    for s in prange(values.shape[0]):
        solve(indptr, indices, diagonal, values[s], b[s], x[s], record[s], shadow, kind, block, guess,
              maxiter, rtol, atol)


@njit(cache=True)
def solve(indptr, indices, diagonal, a, b, x, record, shadow, kind, block, guess, maxiter, rtol, atol):
    """Solve one system, for each of its columns. Arguments: top of file, of this system."""
    n = diagonal.size
    xs, r, p, v, t, ph, sh, rhs = np.empty((8, n), a.dtype)
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
            start = attempt % (shadow.size // n) * n             # another r̂ for each attempt
            inner, done = cycle(indptr, indices, diagonal, a, kind, block, store, shadow[start:start + n], xs, r, p,
                                v, t, ph, sh, done, maxiter, limits)
            attempt += 1
        leave(now, done, code, xs, record, x, c)


@helper
def cycle(indptr, indices, diagonal, a, kind, block, store, rh, x, r, p, v, t, ph, sh, done, maxiter, limits):
    """Iterate from x with the residual r, until there is a verdict; return it and the number of iterations so far."""
    n = r.size
    rho, rr, shadow2 = sum_of(r), 0.0, 0.0
    for i in range(n):
        p[i] = r[i]                                                            # p = r
        rho += np.conj(rh[i]) * r[i]                                           # ρ = (r̂, r)
        rr += square(r[i])
        shadow2 += square(rh[i])
    if vanishes(rho, shadow2, rr):
        return BREAKDOWN, done
    while True:
        apply(indptr, indices, diagonal, kind, block, store, p, ph)            # p̂ = M p
        product(indptr, indices, a, ph, v)                                     # v = A p̂
        gamma, vv = sum_of(r), 0.0
        for i in range(n):
            gamma += np.conj(rh[i]) * v[i]                                     # γ = (r̂, v)
            vv += square(v[i])
        if not math.isfinite(vv):
            return NONFINITE, done
        if vanishes(gamma, shadow2, vv):
            return BREAKDOWN, done
        alpha = quotient(rho, gamma)
        for i in range(n):
            r[i] -= r.dtype.type(alpha) * v[i]                                 # s = r − α v
        apply(indptr, indices, diagonal, kind, block, store, r, sh)            # ŝ = M s
        product(indptr, indices, a, sh, t)                                     # t = A ŝ
        ts, tt = sum_of(r), 0.0
        for i in range(n):
            ts += np.conj(t[i]) * r[i]
            tt += square(t[i])
        omega = quotient(ts, tt)                                               # ω = (t, s)/(t, t)
        next_rho, norm2 = sum_of(r), 0.0
        for i in range(n):
            x[i] += r.dtype.type(alpha) * ph[i] + r.dtype.type(omega) * sh[i]  # x = x + α p̂ + ω ŝ
            r[i] -= r.dtype.type(omega) * t[i]                                 # r = s − ω t
            next_rho += np.conj(rh[i]) * r[i]                                  # ρ' = (r̂, r)
            norm2 += square(r[i])
        done += 1
        found = judge(norm2, done, maxiter, limits)
        if found != RUNNING:
            return found, done
        if omega == 0 or vanishes(next_rho, shadow2, norm2):
            return BREAKDOWN, done
        beta = quotient(next_rho, rho) * quotient(alpha, omega)                # β = (ρ'/ρ)(α/ω)
        rho = next_rho
        for i in range(n):
            p[i] = r[i] + r.dtype.type(beta) * (p[i] - r.dtype.type(omega) * v[i])                 # p = r + β (p − ω v)
