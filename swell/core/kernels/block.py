"""Blocks of k vectors that share one Krylov space, on a CPU; ``block.cuh`` is the GPU version.

A block is an array of shape (k, n); a vector is a row of it. ``state`` is the judge's record of all right-hand sides:
flags, limits and histories, each with a row for every right-hand side (core/loop.py). While a block method runs, the
STOP flags of all right-hand sides are equal, since every vector of the block serves all of them. FINAL marks those that
have ended.

Rows of vectors are cut into slices, from ``rows[p]`` to ``rows[p + 1]``. Every slice leaves its sums in ``partial[p]``;
``total`` adds them in order. So a sum has the same bits for any number of threads.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.compiled import helper, njit
from swell.core.kernels.judge import halt
from swell.core.slots import Flag

TILE = 1024             # rows in a tile: the tiles of three blocks of 8 vectors fit in the cache of a core
NEGATIVE = 1e-3         # a pivot below −NEGATIVE, relative to its diagonal entry, is no rounding error


@njit(cache=True)
def own(state, j):
    """Return the judge's state of right-hand side j: views of its rows in ``state``."""
    flags, limits, histories = state
    return flags[j], limits[j], histories[j]


@helper
def ended(state, j):
    """True if right-hand side j has its final verdict in ``state``."""
    flags, _, _ = state
    return flags[j, Flag.FINAL] != 0


@helper
def all_stopped(state):
    """True if the judge has stopped the loop: the STOP flags in ``state`` are equal."""
    flags, _, _ = state
    return flags[0, Flag.STOP] != 0


@helper
def go_on(state):
    """Make the STOP flags in ``state`` equal: 1 if every right-hand side has ended, else 0."""
    flags, _, _ = state
    every = 1
    for j in range(flags.shape[0]):
        if flags[j, Flag.FINAL] == 0:
            every = 0
    for j in range(flags.shape[0]):
        flags[j, Flag.STOP] = every


@njit(cache=True)
def halt_all(state, code):
    """End every right-hand side that has not ended yet in ``state``, with the verdict ``code``."""
    flags, _, _ = state
    for j in range(flags.shape[0]):
        if flags[j, Flag.FINAL] == 0:
            halt(own(state, j), code)
    go_on(state)


@njit(cache=True, inline="always")
def four(P, i, lo, hi):
    """Return the rows from ``lo`` to ``hi`` of four vectors of P, from the i-th on; the last one stands for those
    beyond."""
    last = P.shape[0] - 1
    return P[i, lo:hi], P[min(i + 1, last), lo:hi], P[min(i + 2, last), lo:hi], P[min(i + 3, last), lo:hi]


@njit(cache=True, inline="always")
def gram(P, Q, w, lo, hi, out):
    """out[i, j] += Σ conj(P_i) w Q_j over the rows from ``lo`` to ``hi``; an empty ``w`` stands for ones."""
    a, b = P.shape[0], Q.shape[0]
    number = out.dtype.type
    for j in range(0, b, 2):
        x, y = Q[j, lo:hi], Q[min(j + 1, b - 1), lo:hi]
        for i in range(0, a, 4):
            v0, v1, v2, v3 = four(P, i, lo, hi)
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = number(0)
            if w.size:
                u = w[lo:hi]
                for r in range(x.size):
                    xr, yr = u[r] * number(x[r]), u[r] * number(y[r])
                    s0 += np.conj(number(v0[r])) * xr
                    s1 += np.conj(number(v1[r])) * xr
                    s2 += np.conj(number(v2[r])) * xr
                    s3 += np.conj(number(v3[r])) * xr
                    t0 += np.conj(number(v0[r])) * yr
                    t1 += np.conj(number(v1[r])) * yr
                    t2 += np.conj(number(v2[r])) * yr
                    t3 += np.conj(number(v3[r])) * yr
            else:
                for r in range(x.size):
                    xr, yr = number(x[r]), number(y[r])
                    s0 += np.conj(number(v0[r])) * xr
                    s1 += np.conj(number(v1[r])) * xr
                    s2 += np.conj(number(v2[r])) * xr
                    s3 += np.conj(number(v3[r])) * xr
                    t0 += np.conj(number(v0[r])) * yr
                    t1 += np.conj(number(v1[r])) * yr
                    t2 += np.conj(number(v2[r])) * yr
                    t3 += np.conj(number(v3[r])) * yr
            for q, (s, t) in enumerate(((s0, t0), (s1, t1), (s2, t2), (s3, t3))):
                if i + q < a:
                    out[i + q, j] += s
                    if j + 1 < b:
                        out[i + q, j + 1] += t


@njit(cache=True, inline="always")
def add_product(P, lo, hi, C, sign, out, begin, skip):
    """out_j += sign Σ P_i C[i, j], for the vectors j with ``skip[j]`` = 0: the rows of P from ``lo`` to ``hi`` to those
    of ``out`` from ``begin`` on."""
    a, b = P.shape[0], out.shape[0]
    number = out.dtype.type
    for j in range(b):
        if skip[j]:
            continue
        x = out[j, begin:begin + hi - lo]
        for i in range(0, a, 4):
            v0, v1, v2, v3 = four(P, i, lo, hi)
            c0, c1, c2, c3 = number(sign * C[i, j]), number(0), number(0), number(0)
            if i + 1 < a:
                c1 = number(sign * C[i + 1, j])
            if i + 2 < a:
                c2 = number(sign * C[i + 2, j])
            if i + 3 < a:
                c3 = number(sign * C[i + 3, j])
            for r in range(x.size):
                x[r] += (c0 * v0[r] + c1 * v1[r]) + (c2 * v2[r] + c3 * v3[r])


@njit(cache=True, inline="always")
def clear(out, size):
    """out_j = 0 in the first ``size`` rows."""
    for j in range(out.shape[0]):
        x = out[j, :size]
        for r in range(size):
            x[r] = 0


@njit(cache=True, inline="always")
def copy(P, lo, hi, out, begin):
    """Copy the rows of P from ``lo`` to ``hi`` to the rows of ``out`` from ``begin`` on."""
    for j in range(P.shape[0]):
        v, x = P[j, lo:hi], out[j, begin:begin + hi - lo]
        for r in range(v.size):
            x[r] = v[r]


@njit(cache=True)
def total(partial):
    """Return the sum of ``partial`` over its first index, added in order."""
    out = np.zeros(partial.shape[1:], partial.dtype)
    for p in range(partial.shape[0]):
        out += partial[p]
    return out


@njit(cache=True)
def pivoted_cholesky(G, reference, tolerance, clamp, factor, inverse):
    """Find ``factor`` and ``inverse`` with G = factorᴴ factor and inverseᴴ G inverse = I on the first rows; return the
    rank, or −1 if G is plainly indefinite.

    G is Hermitian. ``reference``: squares of the sizes relative to which pivots are judged, by which G is scaled first.
    Where every remaining pivot is at most ``tolerance``, the vectors are dependent to working precision: rows of
    ``factor`` and columns of ``inverse`` are zero from this rank on. With ``clamp`` such a pivot counts as
    ``tolerance``, so only vectors with a reference of 0 are left out.
    """
    k = G.shape[0]
    H = np.zeros((k, k), G.dtype)
    scale, order, free = np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.bool_)
    factor[:] = 0
    inverse[:] = 0
    for i in range(k):
        if not clamp and G[i, i].real < -NEGATIVE * reference[i]:
            return -1
        free[i] = reference[i] > 0
        scale[i] = math.sqrt(reference[i]) if free[i] else 0.0
    for i in range(k):
        for j in range(k):
            if free[i] and free[j]:
                H[i, j] = G[i, j] / scale[i] / scale[j]
    rank = 0
    while rank < k:
        p, most = -1, -np.inf
        for i in range(k):
            if free[i] and not clamp and H[i, i].real < -NEGATIVE:
                return -1
            if free[i] and H[i, i].real > most:
                p, most = i, H[i, i].real
        if p < 0 or (most <= tolerance and not clamp):
            break
        most = max(most, tolerance)
        free[p] = False
        order[rank] = p
        pivot = math.sqrt(most)
        factor[rank, p] = pivot
        for j in range(k):
            if free[j]:
                factor[rank, j] = H[p, j] / pivot
        for i in range(k):
            for j in range(k):
                if free[i] and free[j]:
                    H[i, j] -= np.conj(factor[rank, i]) * factor[rank, j]
        rank += 1
    for c in range(rank):                        # solve factor y = e_c on the pivots' columns, which are triangular
        for i in range(c, -1, -1):
            y = G[0, 0] * 0
            if i == c:
                y += 1
            for l in range(i + 1, c + 1):
                y -= factor[i, order[l]] * inverse[order[l], c]
            inverse[order[i], c] = y / factor[i, order[i]].real
    for i in range(k):
        for j in range(k):
            factor[i, j] *= scale[j]
            if scale[i] > 0:
                inverse[i, j] /= scale[i]
    return rank


@njit(cache=True)
def diagonal(G):
    """Return the real parts of the diagonal of G."""
    k = G.shape[0]
    out = np.empty(k)
    for i in range(k):
        out[i] = G[i, i].real
    return out


@njit(cache=True)
def finite(G):
    """True if no entry of the matrix G is NaN or Inf."""
    for value in G.flat:
        if not np.isfinite(value):
            return False
    return True


@njit(cache=True)
def product(A, B, out):
    """out = A B for small matrices; ``out`` is neither of them. Zeros of A, as a Hessenberg matrix has, are skipped."""
    out[:] = 0
    for i in range(A.shape[0]):
        row = out[i]
        for l in range(A.shape[1]):
            if A[i, l] != 0:
                add_row(A[i, l], B[l], row)


@njit(cache=True)
def adjoint_product(A, B, out):
    """out = Aᴴ B for small matrices; ``out`` is neither of them."""
    out[:] = 0
    for l in range(A.shape[0]):
        for i in range(A.shape[1]):
            add_row(np.conj(A[l, i]), B[l], out[i])


@helper
def add_row(a, x, y):
    """y += a x, for rows of small matrices."""
    for j in range(y.size):
        y[j] += a * x[j]
