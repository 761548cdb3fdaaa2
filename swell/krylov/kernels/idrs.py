"""Fused steps of IDR(s) on the CPU; ``idrs.cu`` has the same kernels for a GPU. Notation of ``idrs.py``.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the dimension;
``k``: the step, 0 to s − 1. ``P``, ``G``, ``U``: shape (s, n), their vectors p_i, g_i and u_i in rows; P is real.
``PG``: Pᴴ G, shape (s, s). ``f``: Pᴴ r, and in f[s] norm² of the tested residual. ``alpha``: Pᴴ g_k, later the α_i, and
in alpha[s] (g_k, g_k): ranks add these up with the other entries. ``gamma``: the γ_i, s entries. ``hat``: v̂.
``small``: scalars, indexed by ``IDRS`` of krylov/slots.py. ``w``: weights of norm², empty for all ones. ``pp``:
expected ‖p_i‖². Left sides of the formulas are written in place. ``begin``, ``project`` and ``finish`` are Python
functions that call kernels.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import halt, judge, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import IDRS as S

KERNELS = ("begin", "prepare", "reduce", "expand", "project", "column", "update", "finish", "settle")
TILE = 512              # rows in a tile; gmres.py explains tiles
LEAST_COSINE = 0.7


@njit(cache=True)
def solve(PG, f, gamma, k, s):
    """Solve the last s − k rows of (Pᴴ G) γ = f, a lower triangle, for γ; writes gamma[k:]."""
    for i in range(k, s):
        left = f[i]
        for j in range(k, i):
            left -= PG[i, j] * gamma[j]
        gamma[i] = quotient(left, PG[i, i])


@parallel(fastmath=FAST)
def sums_of(P, y, sums, s):
    """sums[i] = (p_i, y) for the s rows p_i of P, sums[s] = (y, y). Writes ``sums``, s + 1 entries."""
    n = y.size
    tiles = (n + TILE - 1) // TILE
    parts = min(tiles, 64)
    partial = np.zeros((parts, s + 1), sums.dtype)
    for part in prange(parts):
        for tile in range(part * tiles // parts, (part + 1) * tiles // parts):
            lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
            mine = y[lo:hi]
            for i in range(s):
                row = P[i, lo:hi]
                total = sums.dtype.type(0)
                for k in range(mine.size):
                    total += row[k] * mine[k]
                partial[part, i] += total
            square = 0.0
            for k in range(mine.size):
                square += (np.conj(mine[k]) * mine[k]).real
            partial[part, s] += square
    sums[:] = 0
    for part in range(parts):
        for i in range(s + 1):
            sums[i] += partial[part, i]


def begin(state, P, r, f, s):
    """f = Pᴴ r, and f[s] = (r, r). Arguments: top of file."""
    sums_of(P, r, f, s)


@njit(cache=True)
def prepare(state, PG, f, gamma, small, s):
    """Pᴴ G = I; ω = 1; γ of the first step. Writes PG, ``gamma`` and ``small``. Arguments: top of file."""
    PG[:] = 0
    for i in range(s):
        PG[i, i] = 1
    small[S.OMEGA] = 1
    small[S.LOST] = 0
    solve(PG, f, gamma, 0, s)


@parallel(fastmath=FAST)
def reduce(state, r, G, gamma, v, k, s):
    """v = r − Σ γ_i g_i over i ≥ k. Writes v. Arguments: top of file."""
    n = r.size
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        mine = v[lo:hi]
        given = r[lo:hi]
        for m in range(mine.size):
            mine[m] = given[m]
        for i in range(k, s):
            g, c = G[i, lo:hi], v.dtype.type(gamma[i])
            for m in range(mine.size):
                mine[m] -= c * g[m]


@parallel(fastmath=FAST)
def expand(state, hat, G, U, gamma, small, k, s, reduced):
    """u_k = ω v̂ + Σ γ_i u_i over i ≥ k, where v̂ is ``hat``, or hat − Σ γ_i g_i if ``reduced``. Writes U[k].
    Arguments: top of file."""
    n = hat.size
    omega = hat.dtype.type(small[S.OMEGA])
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        mine, h = U[k, lo:hi], hat[lo:hi]
        own = hat.dtype.type(gamma[k])
        for m in range(mine.size):
            mine[m] = omega * h[m] + own * mine[m]
        for i in range(k + 1, s):
            u, c = U[i, lo:hi], hat.dtype.type(gamma[i])
            for m in range(mine.size):
                mine[m] += c * u[m]
        if reduced:
            for i in range(k, s):
                g, c = G[i, lo:hi], hat.dtype.type(small[S.OMEGA] * gamma[i])
                for m in range(mine.size):
                    mine[m] -= c * g[m]


def project(state, P, G, PG, f, gamma, alpha, small, k, s, pp, single_rank):
    """Write Pᴴ g_k and (g_k, g_k) to ``alpha``; then call ``column``, if ``single_rank``. Arguments: top of file."""
    sums_of(P, G[k], alpha, s)
    if single_rank:
        column(state, PG, f, gamma, alpha, small, k, s, pp)


@njit(cache=True)
def column(state, PG, f, gamma, alpha, small, k, s, pp):
    """Make α_0 … α_k−1 in ``alpha``, column k of Pᴴ G, β in ``small``, and f and γ of the next step.

    On entry ``alpha`` holds Pᴴ g_k, added up over the ranks. Subtracting Σ α_i g_i from g_k will make the first k
    entries of Pᴴ g_k vanish. Arguments: top of file.
    """
    for i in range(k):
        for m in range(i):
            alpha[i] -= alpha[m] * PG[i, m]
        alpha[i] = quotient(alpha[i], PG[i, i])
    for i in range(k, s):
        PG[i, k] = alpha[i]
        for m in range(k):
            PG[i, k] -= alpha[m] * PG[i, m]
    if vanishes(PG[k, k], pp, alpha[s].real):
        PG[k, k] = 0
        small[S.LOST] = 1
    beta = quotient(f[k], PG[k, k])
    small[S.BETA] = beta
    f[k] = 0
    for i in range(k + 1, s):
        f[i] -= beta * PG[i, k]
    solve(PG, f, gamma, k + 1, s)


@parallel(fastmath=FAST)
def update(state, G, U, x, r, alpha, small, k, s):
    """g_k −= Σ α_i g_i and u_k −= Σ α_i u_i over i < k; r −= β g_k; x += β u_k; (r, r) in ``small``. Arguments: top of
    file."""
    n = r.size
    beta = r.dtype.type(small[S.BETA])
    tiles = (n + TILE - 1) // TILE
    squares = np.empty(tiles)
    for tile in prange(tiles):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        g, u, mine, out = G[k, lo:hi], U[k, lo:hi], r[lo:hi], x[lo:hi]
        for i in range(k):
            gi, ui, c = G[i, lo:hi], U[i, lo:hi], r.dtype.type(alpha[i])
            for m in range(mine.size):
                g[m] -= c * gi[m]
                u[m] -= c * ui[m]
        square = 0.0
        for m in range(mine.size):
            mine[m] -= beta * g[m]
            out[m] += beta * u[m]
            square += (np.conj(mine[m]) * mine[m]).real
        squares[tile] = square
    small[S.RR] = total(squares)


@njit(cache=True)
def polynomial(small):
    """Return ω = (t, r)/(t, t) from the sums in ``small``, enlarged if r and t are nearly orthogonal."""
    rt, tt, rr = small[S.RT], small[S.TT].real, small[S.RR].real
    omega = quotient(np.conj(rt), tt)
    cosine = quotient(abs(rt), math.sqrt(tt) * math.sqrt(rr))
    return omega * (LEAST_COSINE / cosine) if 0 < cosine < LEAST_COSINE else omega


@parallel(fastmath=FAST)
def advance(omega, hat, t, w, x, r):
    """x += ω v̂; r −= ω t, in place; return norm² = Σ w |r|². ``omega``: ω; ``hat``: v̂ or r; ``w``: empty for ones."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        weighted = 0.0
        for i in chunk_rows(r.size, c):
            x[i] += omega * hat[i]               # v̂ may be r itself
            d = r[i] - omega * t[i]
            r[i] = d
            d2 = (np.conj(d) * d).real
            weighted += w[i] * d2 if w.size else d2
        parts[c] = weighted
    return total(parts)


def finish(state, P, hat, t, w, x, r, PG, f, gamma, small, s, single_rank):
    """x += ω v̂; r −= ω t; f = Pᴴ r, f[s] = norm²; then call ``settle``, if ``single_rank``. Arguments: top of file."""
    weighted = advance(r.dtype.type(polynomial(small)), hat, t, w, x, r)
    sums_of(P, r, f, s)
    f[s] = weighted
    if single_rank:
        settle(state, PG, f, gamma, small, s)


@njit(cache=True)
def settle(state, PG, f, gamma, small, s):
    """Compute ω in ``small`` and the next γ; then test this iteration for convergence. Arguments: top of file."""
    omega = polynomial(small)
    solve(PG, f, gamma, 0, s)
    lost = small[S.LOST] != 0 or omega == 0
    small[S.OMEGA] = omega
    small[S.LOST] = 0
    judge(state, f[s].real)
    if not stopped(state) and lost:
        halt(state, Code.BREAKDOWN if math.isfinite(small[S.TT].real) else Code.NONFINITE)
