"""Fused steps of BiCGSTAB(l) on the CPU; ``bicgstabl.cu`` has the same kernels for a GPU. Notation of ``bicgstabl.py``.

The recurrences use θ A, but a product writes A v. A kernel that reads a new product multiplies it by θ. The first
kernel that writes the vector stores this result. The correction of x is multiplied by θ too.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``BiCGSTABL`` of krylov/slots.py. ``R``, ``U``: shape (l + 1, n), rows r̂_i and û_i. ``j``: the BiCG step, 0
to l − 1. ``sums``: (r̂_i, r̂_j), i ≤ j, by j. ``c``: l + 1 coefficients of r̂_i and û_i, then the coefficients of r̂_i
in x. ``convex``: see ``BiCGSTABL``. ``w``: weights of norm², empty for all ones. ``shadow``: r̃. Left sides of the
formulas are written in place; nothing is returned.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.breakdown import EPS, magnitude, quotient, vanishes
from swell.core.kernels.judge import halt, judge, stopped
from swell.core.kernels.vector import FAST, total
from swell.core.slots import Code
from swell.krylov.slots import BiCGSTABL as S

KERNELS = ("direction", "half", "polynomial", "coefficients", "combine", "settle")
TILE = 512              # rows in a tile; gmres.py explains tiles
DEPENDENT = 64 * EPS    # r̂_i depends on earlier ones if its squared rest is at most this part of (r̂_i, r̂_i)


@parallel(fastmath=FAST)
def direction(state, R, U, s, j):
    """β = α ρ'/ρ; û_i = r̂_i − β û_i for i ≤ j, in place in ``U``. Arguments: top of file."""
    shadow2 = s[S.SHADOW2].real
    if j == 0:
        rho, theta, before = s[S.SIGMA], 1.0, -s[S.OMEGA] * s[S.RHO]
        lost = vanishes(rho, shadow2, s[S.RR].real)
    else:
        theta = s[S.THETA].real
        rho, before = theta * s[S.PROJECTED], s[S.RHO]
        lost = vanishes(s[S.PROJECTED], shadow2, s[S.PRODUCT2].real)
    b = s[S.ALPHA] * quotient(rho, before)
    if lost:
        b *= 0
    n = U.shape[1]
    beta, fresh_beta, fresh = U.dtype.type(b), U.dtype.type(theta * b), U.dtype.type(theta)
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        for i in range(j):
            r, u = R[i, lo:hi], U[i, lo:hi]
            for k in range(u.size):
                u[k] = r[k] - beta * u[k]
        r, u = R[j, lo:hi], U[j, lo:hi]
        for k in range(u.size):
            u[k] = fresh * r[k] - fresh_beta * u[k]
    s[S.RHO] = rho
    if lost:
        s[S.LOST] = 1


@parallel(fastmath=FAST)
def half(state, R, U, x, s, j, add):
    """α = ρ/γ; r̂_i −= α û_i+1 for i ≤ j; x += α θ û_0 if ``add``, otherwise x = α θ û_0. With an M, ``x`` is the
    correction to which M is applied later. Arguments: top of file."""
    theta = s[S.THETA].real
    if theta == 0:
        theta = 1 / magnitude(s[S.UU].real / s[S.RR].real)
    lost = vanishes(s[S.GAMMA], s[S.SHADOW2].real, s[S.UU].real)
    a = s[S.SIGMA] * 0 if lost else s[S.RHO] / (theta * s[S.GAMMA])
    n = U.shape[1]
    kind = U.dtype.type
    alpha, fresh_alpha, fresh = kind(a), kind(theta * a), kind(theta if j > 0 else 1.0)
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        out, u = x[lo:hi], U[0, lo:hi]
        if add:
            for k in range(u.size):
                out[k] += fresh_alpha * u[k]
        else:
            for k in range(u.size):
                out[k] = fresh_alpha * u[k]
        for i in range(j):
            r, u = R[i, lo:hi], U[i + 1, lo:hi]
            for k in range(u.size):
                r[k] -= alpha * u[k]
        r, u = R[j, lo:hi], U[j + 1, lo:hi]
        for k in range(u.size):
            r[k] = fresh * r[k] - fresh_alpha * u[k]
    s[S.ALPHA] = a
    s[S.THETA] = theta
    if lost:
        s[S.LOST] = 1


@njit(cache=True)
def solve(G, c, s, l, convex):
    """Write the coefficients ``c`` and ω from G = (r̂_i, r̂_j), shape (l + 1, l + 1), and adapt θ; ω and θ are in
    ``s``.

    On entry only the upper triangle of G is set; the lower one becomes its Cholesky factor. Arguments: top of file.
    """
    a, b = np.zeros(l + 1, G.dtype), np.zeros(l + 1, G.dtype)    # minimal residual without r̂_l; shortest r̂_l
    inverse = np.zeros(l + 1)
    a[0] = 1
    b[l] = 1
    last = G[l, l].real
    for i in range(1, l):
        left = G[i, i].real
        for k in range(1, i):
            G[i, k] = np.conj(G[k, i])
            for m in range(1, k):
                G[i, k] -= G[i, m] * np.conj(G[k, m])
            G[i, k] *= inverse[k]
            left -= abs(G[i, k]) ** 2
        inverse[i] = 1 / math.sqrt(left) if left > DEPENDENT * G[i, i].real else 0.0
        a[i] = -np.conj(G[0, i])
        b[i] = -G[i, l]
        for k in range(1, i):
            a[i] -= G[i, k] * a[k]
            b[i] -= G[i, k] * b[k]
        a[i] *= inverse[i]
        b[i] *= inverse[i]
    for i in range(l - 1, 0, -1):
        for k in range(i + 1, l):
            a[i] -= np.conj(G[k, i]) * a[k]
            b[i] -= np.conj(G[k, i]) * b[k]
        a[i] *= inverse[i]
        b[i] *= inverse[i]
    product = np.conj(G[0, l])                                   # (b's vector, a's vector), and their squared lengths
    of_a, of_b = G[0, 0].real, last
    for i in range(1, l):
        product += np.conj(G[i, l]) * a[i]
        of_a += (G[0, i] * a[i]).real
        of_b += (np.conj(G[i, l]) * b[i]).real
    omega = product * 0
    if of_b > DEPENDENT * last:
        omega = product / of_b
        cosine = abs(product) / (math.sqrt(max(of_a, 0.0)) * math.sqrt(of_b)) if of_a > 0 else 1.0
        if 0 < cosine < convex:
            omega *= convex / cosine
    theta = s[S.THETA].real
    for i in range(l + 1):
        c[i] = a[i] - omega * b[i]
        if i > 0:
            c[l + i] = -theta * c[i]
    c[l] *= theta
    s[S.OMEGA] = omega
    if omega == 0:
        s[S.LOST] = 1
    grown = 0.0
    for i in range(1, l + 1):
        before, after = G[i - 1, i - 1].real, G[i, i].real
        if before > 0:
            grown = max(grown, after / before)
    if grown > 1:
        s[S.THETA] = theta / magnitude(grown)


@njit(cache=True, fastmath=False)
def coefficients(state, sums, c, s, l, convex):
    """Write the coefficients ``c`` of the residual polynomial, and ω and θ in ``s``, from ``sums``, added up over all
    ranks. Arguments: top of file."""
    G = np.zeros((l + 1, l + 1), s.dtype)
    theta = s[S.THETA].real
    for j in range(l + 1):
        for i in range(j + 1):
            G[i, j] = sums[j * (j + 1) // 2 + i]
    G[:, l] *= theta
    G[l, l] *= theta
    solve(G, c, s, l, convex)


@parallel(fastmath=FAST)
def polynomial(state, R, sums, c, s, l, convex, single_rank):
    """Write all inner products of r̂_0 … r̂_l to ``sums``; if ``single_rank``, then call ``coefficients``. Arguments:
    top of file."""
    n = R.shape[1]
    tiles = (n + TILE - 1) // TILE
    parts = min(tiles, 64)
    partial = np.zeros((parts, l + 1, l + 1), s.dtype)
    for part in prange(parts):
        for tile in range(part * tiles // parts, (part + 1) * tiles // parts):
            lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
            for j in range(l + 1):
                y = R[j, lo:hi]
                for i in range(j + 1):
                    x = R[i, lo:hi]
                    total = s.dtype.type(0)
                    for k in range(y.size):
                        total += np.conj(x[k]) * y[k]
                    partial[part, i, j] += total
    at = 0
    for j in range(l + 1):
        for i in range(j + 1):
            sums[at] = 0
            for part in range(parts):
                sums[at] += partial[part, i, j]
            at += 1
    if single_rank:
        coefficients(state, sums, c, s, l, convex)


@parallel(fastmath=FAST)
def combine(state, R, U, c, shadow, w, x, s, l):
    """r̂_0 = Σ c_i r̂_i; û_0 = Σ c_i û_i; x += Σ c_l+1+i r̂_i; (r̃, r̂_0), (r̂_0, r̂_0), norm² = Σ w |r̂_0|².
    Arguments: top of file."""
    n = R.shape[1]
    kind = R.dtype.type
    tiles = (n + TILE - 1) // TILE
    parts = np.empty((3, tiles), s.dtype)
    for tile in prange(tiles):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        r, u, out, h = R[0, lo:hi], U[0, lo:hi], x[lo:hi], shadow[lo:hi]
        of_x = kind(c[l + 1])
        for k in range(r.size):
            out[k] += of_x * r[k]
        for i in range(1, l + 1):
            ci, of_x = kind(c[i]), kind(c[l + 1 + i]) if i < l else kind(0)
            ri, ui = R[i, lo:hi], U[i, lo:hi]
            for k in range(r.size):
                r[k] += ci * ri[k]
                u[k] += ci * ui[k]
            if i < l:
                for k in range(r.size):
                    out[k] += of_x * ri[k]
        of_rho = s.dtype.type(0)
        of_rr = 0.0
        judged = 0.0
        for k in range(r.size):
            of_rho += np.conj(h[k]) * r[k]
            d2 = (np.conj(r[k]) * r[k]).real
            of_rr += d2
            judged += w[lo + k] * d2 if w.size else d2
        parts[0, tile], parts[1, tile], parts[2, tile] = of_rho, of_rr, judged
    s[S.SIGMA], s[S.RR], s[S.NORM2] = total(parts[0]), total(parts[1]), total(parts[2])


@njit(cache=True)
def settle(state, s):
    """Test this iteration for convergence; after a breakdown (s[LOST]) stop the run. Arguments: top of file."""
    lost = s[S.LOST] != 0
    s[S.LOST] = 0
    judge(state, s[S.NORM2].real)
    if not stopped(state) and lost:
        halt(state, Code.BREAKDOWN if math.isfinite(s[S.UU].real) else Code.NONFINITE)
