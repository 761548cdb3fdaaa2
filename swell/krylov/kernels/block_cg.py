"""Fused steps of block CG on the CPU; ``block_cg.cu`` has the same kernels for a GPU. Notation: ``krylov/block_cg.py``.

Arguments of all kernels: ``state`` is the judge's record of all right-hand sides, ``rows`` are the bounds of slices,
and blocks have shape (k, n), as in core/kernels/block.py. ``small``, shape (slots, k, k), holds the small matrices,
indexed by ``BlockCG`` of krylov/slots.py. ``independent[0]``: number of independent vectors in R. ``partial``,
``norms``, ``metric``: sums of the slices, shape (slices, k, k). ``w``: float32 weights of the tested norm², or an empty
array for ones. ``tolerance``: a relative pivot below it is a dependent vector. ``count`` = k; ``side``: the power of
two that is not below k. ``height``: threads of a block on a GPU.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels import block
from swell.core.kernels.block import add_product, all_stopped, clear, copy, ended, go_on, halt_all, own
from swell.core.kernels.judge import judge
from swell.core.kernels.vector import FAST
from swell.core.slots import Code
from swell.krylov.slots import BlockCG as S

KERNELS = ("begin", "step", "residual", "orthonormalise", "scale", "directions")
SHORT = 256             # rows in a tile: the tiles of four blocks fit in the cache of a core


@parallel
def begin(state, R, small, count):
    """Set R_j = 0 for the right-hand sides that have ended, and C = I for the others; the loop then goes on for all.
    Arguments: top of file."""
    k = R.shape[0]
    for j in range(k):
        if ended(state, j):
            row = R[j]
            for i in prange(row.size):
                row[i] = 0
    for i in range(k):
        for j in range(k):
            small[S.COEFFICIENTS, i, j] = 1 if i == j and not ended(state, j) else 0
    go_on(state)


@njit(cache=True)
def step(state, partial, small, independent, tolerance, count, side):
    """ξ = (Pᴴ A P)⁻¹ from the sums of its slices, and α = ξ C, with zero columns for the right-hand sides that have
    ended. A curvature that is not positive ends the loop. Arguments: top of file."""
    if all_stopped(state):
        return
    D = block.total(partial)
    k = D.shape[0]
    inverse = np.empty_like(D)
    if not block.finite(D):
        halt_all(state, Code.NONFINITE)
        return
    definite = block.pivoted_cholesky(D, block.diagonal(D), tolerance, False, small[S.ALPHA], inverse) >= 0
    for j in range(independent[0]):
        definite = definite and D[j, j].real > 0
    if not definite:
        halt_all(state, Code.INDEFINITE)
        return
    block.product(inverse, np.conj(inverse.T), small[S.XI])
    block.product(small[S.XI], small[S.COEFFICIENTS], small[S.ALPHA])
    for j in range(k):
        if ended(state, j):
            small[S.ALPHA, :, j] = 0


@parallel(fastmath=FAST)
def residual(state, x, P, R, Q, w, small, norms, metric, rows, count, side, height):
    """x += P α;  R = R ζ⁻¹ − Q ξ;  norms = Rᴴ diag(w) R of each slice, and metric = Rᴴ R if there are weights w.

    Right-hand sides that have ended keep their x. Arguments: top of file."""
    if all_stopped(state):
        return
    k = R.shape[0]
    frozen, none = np.zeros(k, np.uint8), np.zeros(k, np.uint8)
    ones = np.empty(0, np.float32)
    for j in range(k):
        frozen[j] = ended(state, j)
    for p in prange(rows.size - 1):
        norms[p] = 0
        metric[p] = 0
        made = np.empty((k, SHORT), R.dtype)
        for lo in range(rows[p], rows[p + 1], SHORT):
            hi = min(lo + SHORT, rows[p + 1])
            add_product(P, lo, hi, small[S.ALPHA], 1, x, lo, frozen)
            clear(made, hi - lo)
            add_product(R, lo, hi, small[S.INVERSE], 1, made, 0, none)
            add_product(Q, lo, hi, small[S.XI], -1, made, 0, none)
            copy(made, 0, hi - lo, R, lo)
            block.gram(R, R, w, lo, hi, norms[p])
            if w.size:
                block.gram(R, R, ones, lo, hi, metric[p])


@njit(cache=True)
def orthonormalise(state, norms, metric, small, independent, tolerance, first, count, side):
    """ζᴴ ζ = Rᴴ Z from the sums ``metric``; then C = ζ C, and the inverse of ζ that makes R orthonormal. Test each
    right-hand side, of squared norm (Cᴴ norms C)_jj with the old C, for convergence; not if ``first``.

    Arguments: top of file."""
    if all_stopped(state):
        return
    N, G = block.total(norms), block.total(metric)
    k, C = N.shape[0], small[S.COEFFICIENTS].copy()
    NC = np.empty_like(N)
    block.product(N, C, NC)
    good = block.finite(G)
    independent[0] = 0
    if good:
        independent[0] = block.pivoted_cholesky(G, block.diagonal(G), tolerance, False, small[S.ZETA], small[S.INVERSE])
    definite = independent[0] >= 0
    for j in range(k):
        definite = definite and not (N[j, j].real > 0 and G[j, j].real <= 0)
    if good and definite:
        block.product(small[S.ZETA], C, small[S.COEFFICIENTS])
    if not first:
        for j in range(k):
            norm2 = 0.0
            for i in range(k):
                norm2 += (np.conj(C[i, j]) * NC[i, j]).real
            if not ended(state, j):
                judge(own(state, j), norm2 if not norm2 < 0 else 0.0)
        go_on(state)
    if not all_stopped(state) and not (good and definite and independent[0] > 0):
        halt_all(state, Code.NONFINITE if not good else Code.INDEFINITE if not definite else Code.BREAKDOWN)


@parallel(fastmath=FAST)
def scale(state, R, small, count, side):
    """R = R ζ⁻¹. Arguments: top of file."""
    if all_stopped(state):
        return
    n, none = R.shape[1], np.zeros(count, np.uint8)
    for tile in prange((n + SHORT - 1) // SHORT):
        lo, hi = tile * SHORT, min(n, (tile + 1) * SHORT)
        made = np.empty((count, SHORT), R.dtype)
        clear(made, hi - lo)
        add_product(R, lo, hi, small[S.INVERSE], 1, made, 0, none)
        copy(made, 0, hi - lo, R, lo)


@parallel(fastmath=FAST)
def directions(state, Z, P, small, first, count, side):
    """P = Z ζ⁻¹ + P ζᴴ, or P = Z ζ⁻¹ if ``first``. Arguments: top of file."""
    if all_stopped(state):
        return
    n, adjoint, none = P.shape[1], np.conj(small[S.ZETA].T), np.zeros(count, np.uint8)
    for tile in prange((n + SHORT - 1) // SHORT):
        lo, hi = tile * SHORT, min(n, (tile + 1) * SHORT)
        made = np.empty((count, SHORT), P.dtype)
        clear(made, hi - lo)
        add_product(Z, lo, hi, small[S.INVERSE], 1, made, 0, none)
        if not first:
            add_product(P, lo, hi, adjoint, 1, made, 0, none)
        copy(made, 0, hi - lo, P, lo)
