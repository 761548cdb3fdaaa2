"""Fused steps of block GMRES on the CPU; ``block_gmres.cu`` has the same kernels for a GPU. Notation of
``krylov/block_gmres.py``.

Arguments of all kernels: ``state`` is the judge's record of all right-hand sides, and ``rows`` are the bounds of
slices, as in core/kernels/block.py. ``V``, shape (m k, n): the finished basis vectors. ``UW``, shape (2 k, n): the
candidates U, then W = A M U. ``sums``, shape ((2 + m) k, 2 k): [U W V]ᴴ [U W]; ``partial``: these of every slice.
``H``, ``R``, shape ((m + 1) k, m k): the block Hessenberg matrix and its triangular factor; ``turns``, shape
(m, 2 k, 2 k): the unitary matrix that makes each block of R triangular; ``g``, shape ((m + 1) k, k): the rotated
right-hand sides. ``small``, shape (slots, k, k): ``BlockGMRES`` of krylov/slots.py. ``columns[0]``: number of finished
blocks of columns. ``norm2``, shape (k, 2): ``Norms`` of each residual. ``j``: number of finished basis blocks.
``count`` = k; ``side``: the power of two that is not below k. ``height``: threads of a block on a GPU.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels import block
from swell.core.kernels.block import add_product, all_stopped, clear, copy, ended, go_on, own
from swell.core.kernels.judge import judge_cycle, judge_inner, set_ratio
from swell.core.kernels.vector import FAST
from swell.core.slots import Code, Flag, Norms
from swell.krylov.slots import BlockGMRES as S

KERNELS = ("judge_cycles", "first", "normalise", "scale", "dots", "collect", "coefficients", "update", "close",
           "combine")
TILE = 256              # rows in a tile: the tiles of U, W and a basis block fit in the cache of a core
GROUP = 16              # basis vectors that a tile's loop handles together


@njit(cache=True)
def judge_cycles(state, norm2, count):
    """Judge the true residuals at the end of a cycle. Arguments: top of file."""
    if all_stopped(state):
        return
    for l in range(count):
        if not ended(state, l):
            judge_cycle(own(state, l), norm2[l, Norms.JUDGED2].real)
    go_on(state)


@parallel
def first(state, UW, norm2, g, columns, count):
    """Start a cycle: U_l = r_l / ‖r_l‖, where U holds the residuals; 0 for the right-hand sides that have ended. The
    top of g = diag(‖r_l‖). The loop then goes on for all. Arguments: top of file."""
    g[:] = 0
    columns[0] = 0
    for l in range(count):
        beta = 0.0 if ended(state, l) else math.sqrt(norm2[l, Norms.OWN2].real)
        if beta > 0:
            set_ratio(own(state, l), norm2[l, Norms.JUDGED2].real, norm2[l, Norms.OWN2].real)
        g[l, l] = beta
        inverse = 1.0 / beta if beta > 0 else 0.0
        row = UW[l]
        for i in prange(row.size):
            row[i] = row[i] * inverse if inverse > 0 else 0
    go_on(state)


@njit(cache=True)
def normalise(state, partial, g, small, tolerance, count, side):
    """α with αᴴ α = Uᴴ U, from the sums of its slices; dependent vectors are left out. The top of g = α g. Arguments:
    top of file."""
    if all_stopped(state):
        return
    G = block.total(partial)
    block.pivoted_cholesky(G, block.diagonal(G), tolerance, False, small[S.ALPHA], small[S.INVERSE])
    for l in range(count):
        size = g[l, l]
        for i in range(count):
            g[i, l] = small[S.ALPHA, i, l] * size


@parallel(fastmath=FAST)
def scale(state, UW, small, count, side):
    """U = U α⁻¹. Arguments: top of file."""
    if all_stopped(state):
        return
    n, none = UW.shape[1], np.zeros(count, np.uint8)
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        made = np.empty((count, TILE), UW.dtype)
        clear(made, hi - lo)
        add_product(UW[:count], lo, hi, small[S.INVERSE], 1, made, 0, none)
        copy(made, 0, hi - lo, UW[:count], lo)


@parallel(fastmath=FAST)
def dots(state, V, UW, partial, rows, j, count, height):
    """partial = [U W V]ᴴ [U W] of each slice, for j basis blocks. Arguments: top of file."""
    if all_stopped(state):
        return
    none, two = np.empty(0, np.float32), 2 * count
    for p in prange(rows.size - 1):
        mine = partial[p]
        mine[:two + j * count] = 0
        for lo in range(rows[p], rows[p + 1], TILE):
            hi = min(lo + TILE, rows[p + 1])
            block.gram(UW, UW, none, lo, hi, mine[:two])
            for i in range(0, j * count, GROUP):
                end = min(i + GROUP, j * count)
                block.gram(V[i:end], UW, none, lo, hi, mine[two + i:two + end])


@parallel
def collect(state, partial, sums, j, count):
    """sums = the sum of ``partial`` over the slices, for j basis blocks. Arguments: top of file."""
    if all_stopped(state):
        return
    for i in prange((2 + j) * count):
        sums[i] = 0
        for p in range(partial.shape[0]):
            sums[i] += partial[p, i]


@njit(cache=True)
def reflect(panel, turn):
    """Find the unitary ``turn`` that makes ``panel``, shape (2 k, k), upper triangular, by Householder reflections."""
    two, k = panel.shape
    turn[:] = 0
    for i in range(two):
        turn[i, i] = 1
    v = np.empty(two, panel.dtype)
    for c in range(k):
        size2 = 0.0
        for i in range(c, two):
            v[i] = panel[i, c]
            size2 += (np.conj(v[i]) * v[i]).real
        size, top = math.sqrt(size2), abs(v[c])
        if size == 0:
            continue
        image = -size * (v[c] / top if top > 0 else v[c] * 0 + 1)
        v[c] -= image
        half = size * (size + top)               # vᴴ v / 2
        for q in range(c + 1, k + two):
            column = panel[:, q] if q < k else turn[:, q - k]
            along = v[c] * 0
            for i in range(c, two):
                along += np.conj(v[i]) * column[i]
            along /= half
            for i in range(c, two):
                column[i] -= along * v[i]
        panel[c, c] = image
        panel[c + 1:, c] = 0


@njit(cache=True)
def finish_block(state, sums, H, R, turns, g, small, columns, j, count):
    """Add the second pass's coefficients to block j − 1 of H's columns, make it triangular in R, turn g, and judge each
    residual norm after j steps.

    A right-hand side that meets its tolerance pauses; the cycle ends when all have. Arguments: top of file."""
    k, at = count, (j - 1) * count
    extra = np.empty((j * k, k), H.dtype)
    block.product(sums[2 * k:(2 + j) * k, :k], small[S.SCALE], extra)
    new = H[:(j + 1) * k, at:at + k]
    new[:j * k] += extra
    block.product(small[S.ALPHA], small[S.SCALE], new[j * k:])
    old = new.copy()
    turned = np.empty((2 * k, k), H.dtype)
    for i in range(j - 1):
        block.product(turns[i], old[i * k:(i + 2) * k], turned)
        old[i * k:(i + 2) * k] = turned
    reflect(old[at:at + 2 * k], turns[j - 1])
    R[:(j + 1) * k, at:at + k] = old
    block.product(turns[j - 1], g[at:at + 2 * k], turned)
    g[at:at + 2 * k] = turned
    columns[0] = j
    flags, _, _ = state
    every = 1
    for l in range(k):
        norm2 = 0.0
        for i in range(k):
            norm2 += (np.conj(turned[k + i, l]) * turned[k + i, l]).real
        if not ended(state, l) and flags[l, Flag.VERDICT] == Code.RUNNING:
            judge_inner(own(state, l), norm2)
        if flags[l, Flag.VERDICT] == Code.RUNNING:
            every = 0
    for l in range(k):
        flags[l, Flag.STOP] = every


@njit(cache=True)
def second_pass(sums, small, tolerance, j, count):
    """α and its inverse, with αᴴ α = Uᴴ U − Sᴴ S: the norms of the candidates after the second pass, by Pythagoras."""
    k = count
    U = sums[:k, :k].copy()
    left = np.empty_like(U)
    basis = sums[2 * k:(2 + j) * k, :k]
    block.adjoint_product(basis, basis, left)
    block.pivoted_cholesky(U - left, block.diagonal(U), tolerance, False, small[S.ALPHA], small[S.INVERSE])


@njit(cache=True)
def coefficients(state, sums, H, R, turns, g, small, columns, tolerance, floor, j, count, side):
    """All small matrices of step j: α, the finished block j − 1 of H's columns, β, γ, and block j of H's columns.
    Arguments: top of file."""
    if all_stopped(state):
        return
    k = count
    second_pass(sums, small, tolerance, j, k)
    inverse = small[S.INVERSE]
    if j > 0:
        finish_block(state, sums, H, R, turns, g, small, columns, j, k)
        if all_stopped(state):
            return
    else:
        top = np.empty((k, k), H.dtype)
        block.product(small[S.ALPHA], g[:k], top)
        g[:k] = top
    basis = sums[2 * k:(2 + j) * k]
    both = np.empty(((j + 1) * k, k), H.dtype)                                 # [T; β]
    both[:j * k] = basis[:, k:]
    part = np.empty((k, k), H.dtype)
    block.adjoint_product(basis[:, :k], basis[:, k:], part)
    block.adjoint_product(inverse, sums[:k, k:] - part, small[S.BETA])         # β = α⁻ᴴ (Uᴴ W − Sᴴ T)
    both[j * k:] = small[S.BETA]
    W = sums[k:2 * k, k:].copy()
    block.adjoint_product(both, both, part)
    gamma = np.empty((k, k), H.dtype)                                          # γᴴ γ = Wᴴ W − Tᴴ T − βᴴ β
    block.pivoted_cholesky(W - part, block.diagonal(W), floor, True, gamma, small[S.GAMMA_INVERSE])
    block.product(gamma, inverse, small[S.SCALE])                              # Γ = γ α⁻¹
    if j > 0:
        correction = np.empty_like(both)
        block.product(H[:(j + 1) * k, :j * k], basis[:, :k], correction)
        both -= correction
    block.product(both, inverse, H[:(j + 1) * k, j * k:(j + 1) * k])           # H(:, j) = ([T; β] − H S) α⁻¹
    H[(j + 1) * k:, j * k:(j + 1) * k] = 0


@parallel(fastmath=FAST)
def update(state, V, UW, sums, small, j, count, side):
    """V_j = (U − V S) α⁻¹;  U = (W − V T − V_j β) γ⁻¹. Arguments: top of file."""
    if all_stopped(state):
        return
    n, k, none = UW.shape[1], count, np.zeros(count, np.uint8)
    coefficients = sums[2 * k:(2 + j) * k]
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        m, made = hi - lo, np.empty((3, k, TILE), UW.dtype)
        u, w, v = made[0], made[1], made[2]
        copy(UW[:k], lo, hi, u, 0)
        copy(UW[k:], lo, hi, w, 0)
        for i in range(0, j * k, GROUP):
            end = min(i + GROUP, j * k)
            add_product(V[i:end], lo, hi, coefficients[i:end, :k], -1, u, 0, none)
            add_product(V[i:end], lo, hi, coefficients[i:end, k:], -1, w, 0, none)
        clear(v, m)
        add_product(u, 0, m, small[S.INVERSE], 1, v, 0, none)
        add_product(v, 0, m, small[S.BETA], -1, w, 0, none)
        copy(v, 0, m, V[j * k:(j + 1) * k], lo)
        clear(u, m)
        add_product(w, 0, m, small[S.GAMMA_INVERSE], 1, u, 0, none)
        copy(u, 0, m, UW[:k], lo)


@njit(cache=True)
def close(state, sums, H, R, turns, g, small, columns, y, tolerance, j, count, side):
    """End a cycle of j steps: finish the last block of H's columns if the cycle is full, then solve R y = g by back
    substitution; an unknown without a pivot is 0. Arguments: top of file."""
    k = count
    if not all_stopped(state):
        second_pass(sums, small, tolerance, j, k)
        finish_block(state, sums, H, R, turns, g, small, columns, j, k)
    go_on(state)
    y[:] = 0
    many = columns[0] * k
    for i in range(many):
        size2 = 0.0
        for q in range(i + 1):
            size2 += (np.conj(R[q, i]) * R[q, i]).real
        if abs(R[i, i]) <= 2.0**-52 * math.sqrt(size2):
            R[i, i] = 0
    for i in range(many - 1, -1, -1):
        for l in range(k):
            left = g[i, l]
            for q in range(i + 1, many):
                left -= R[i, q] * y[q, l]
            y[i, l] = left / R[i, i] if R[i, i] != 0 else 0


@parallel(fastmath=FAST)
def combine(state, V, y, columns, out, add, count, side):
    """out = Σ V_i y_i over the finished blocks, for the right-hand sides that have not ended; out += this sum if
    ``add``. Arguments: top of file."""
    if all_stopped(state):
        return
    n, many = out.shape[1], columns[0] * count
    skip = np.zeros(count, np.uint8)
    for l in range(count):
        skip[l] = ended(state, l)
    for tile in prange((n + TILE - 1) // TILE):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        if not add:
            out[:, lo:hi] = 0
        for i in range(0, many, GROUP):
            end = min(i + GROUP, many)
            add_product(V[i:end], lo, hi, y[i:end], 1, out, lo, skip)
