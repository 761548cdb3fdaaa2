"""Fused steps of GMRES(m) on the CPU; ``gmres.cu`` has the same kernels for a GPU. Notation of ``krylov/restarted.py``.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``V``, shape (m, n),
holds the finished basis vectors in its rows, in single precision or in the precision of u and w. ``u`` is the
candidate, ``w`` = A M u. ``sums``: s from 0 on, t from m on, ``GMRESSums`` of krylov/slots.py from 2 m on. ``H``,
``R``: the Hessenberg matrix and its triangular factor, shape (m + 1, m); ``rotations``, shape (m, 2): cosine and sine
of each Givens rotation; ``g``: the rotated right-hand side, m + 1 entries. ``small``: scalars, indexed by ``GMRES`` of
krylov/slots.py. ``columns[0]``: number of finished columns in this cycle. ``norm2``: ``Norms`` of the residual. ``j``:
number of finished basis vectors.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.judge import judge_inner, pause, resume, set_ratio, stopped
from swell.core.kernels.vector import FAST
from swell.core.slots import Code, Norms
from swell.krylov.slots import GMRES as S
from swell.krylov.slots import GMRESSums as Sums

KERNELS = ("first", "dots", "subtract", "update", "close", "combine", "compress")
AFTER_PAUSE = ("close",)
USELESS = 2.0**-50      # the new part of a column of R, relative to the rest, that is taken for rounding
TILE = 2048             # rows in a tile: tiles of u, w and four basis vectors fit in the cache of a core
# A tile is a view with indices from 0. Numba tests other indices for their sign, which prevents vectorised loops.
# A loop handles four basis vectors: each load and store of u and w serves all four.


@njit(cache=True, inline="always")
def four_rows(V, i, end, lo, hi):
    """Return four views: columns ``lo`` to ``hi`` of rows i to i + 3 of V. Row end − 1 replaces those from ``end``
    on."""
    last = end - 1
    return V[i, lo:hi], V[min(i + 1, last), lo:hi], V[min(i + 2, last), lo:hi], V[min(i + 3, last), lo:hi]


@njit(cache=True, inline="always")
def four_weights(c, i, end):
    """Return the entries c_i to c_{i+3} of the vector c; zeros replace the entries from ``end`` on."""
    none = c.dtype.type(0)
    return (c[i], c[i + 1] if i + 1 < end else none, c[i + 2] if i + 2 < end else none,
            c[i + 3] if i + 3 < end else none)


@njit(cache=True, inline="always")
def subtract_tile(V, sums, begin, end, lo, hi, x, y):
    """x −= V s and y −= V t, in rows ``lo`` to ``hi`` only, for the basis vectors from ``begin`` to ``end``.

    ``x``, ``y``: views of these rows, written in place. Arguments: top of file.
    """
    m = (sums.size - 3) // 2
    for i in range(begin, end, 4):
        v0, v1, v2, v3 = four_rows(V, i, end, lo, hi)
        s0, s1, s2, s3 = four_weights(sums, i, end)
        t0, t1, t2, t3 = four_weights(sums, m + i, m + end)
        for k in range(hi - lo):
            x[k] -= s0 * v0[k] + s1 * v1[k] + s2 * v2[k] + s3 * v3[k]
            y[k] -= t0 * v0[k] + t1 * v1[k] + t2 * v2[k] + t3 * v3[k]


@parallel
def first(state, u, norm2, g, columns):
    """Start a cycle: u = r / ‖r‖, where u holds r on entry; g = ‖r‖ e₀; columns[0] = 0. Arguments: top of file."""
    beta = math.sqrt(norm2[Norms.OWN2].real)
    set_ratio(state, norm2[Norms.JUDGED2].real, norm2[Norms.OWN2].real)
    scale = 1.0 / beta if beta > 0 else 0.0
    for i in prange(u.size):
        u[i] *= scale
    g[:] = 0
    g[0] = beta
    columns[0] = 0


@parallel(fastmath=FAST)
def dots(state, V, u, w, sums, begin, end):
    """Write to ``sums``: s = Vᴴ u and t = Vᴴ w for the basis vectors from ``begin`` to ``end``.

    If ``begin`` is 0, also (u, u), (u, w) and (w, w). Arguments: top of file. Does nothing after the last iteration:
    the next basis vector was not written.
    """
    if stopped(state):
        return
    n = w.size
    m = (sums.size - 3) // 2
    many = end - begin
    tiles = (n + TILE - 1) // TILE
    parts = min(tiles, 64)
    partial = np.zeros((parts, 2 * many + 3), sums.dtype)
    for part in prange(parts):
        mine = partial[part]
        for tile in range(part * tiles // parts, (part + 1) * tiles // parts):
            lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
            x, y = u[lo:hi], w[lo:hi]
            for i in range(0, many, 4):
                v0, v1, v2, v3 = four_rows(V, begin + i, end, lo, hi)
                a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = sums.dtype.type(0)
                for k in range(y.size):
                    xk, yk = x[k], y[k]
                    a0 += np.conj(v0[k]) * xk
                    a1 += np.conj(v1[k]) * xk
                    a2 += np.conj(v2[k]) * xk
                    a3 += np.conj(v3[k]) * xk
                    b0 += np.conj(v0[k]) * yk
                    b1 += np.conj(v1[k]) * yk
                    b2 += np.conj(v2[k]) * yk
                    b3 += np.conj(v3[k]) * yk
                for k, (a, b) in enumerate(((a0, b0), (a1, b1), (a2, b2), (a3, b3))):
                    if i + k < many:
                        mine[i + k] += a
                        mine[many + i + k] += b
            if begin == 0:
                uu = 0.0
                ww = 0.0
                uw = sums.dtype.type(0)
                for k in range(y.size):
                    uu += (np.conj(x[k]) * x[k]).real
                    uw += np.conj(x[k]) * y[k]
                    ww += (np.conj(y[k]) * y[k]).real
                mine[2 * many + Sums.UU] += uu
                mine[2 * many + Sums.UW] += uw
                mine[2 * many + Sums.WW] += ww
    for i in range(many):
        sums[begin + i] = 0
        sums[m + begin + i] = 0
    if begin == 0:
        sums[2 * m:] = 0
    for part in range(parts):
        for i in range(many):
            sums[begin + i] += partial[part, i]
            sums[m + begin + i] += partial[part, many + i]
        if begin == 0:
            for i in range(3):
                sums[2 * m + i] += partial[part, 2 * many + i]


@parallel(fastmath=FAST)
def subtract(state, V, u, w, sums, begin, end):
    """u −= V s and w −= V t for the basis vectors from ``begin`` to ``end``; ``update`` must then skip these vectors.
    Arguments: top of file."""
    n = w.size
    tiles = (n + TILE - 1) // TILE
    for tile in prange(tiles):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        subtract_tile(V, sums, begin, end, lo, hi, u[lo:hi], w[lo:hi])


@helper
def rotate(R, rotations, g, k):
    """Apply Givens rotations to column k of R, whose entries 0..k+1 are filled, and to g; all in place.

    The k stored ``rotations`` come first; then a new one, which is stored, makes R[k+1, k] zero. Return |g[k+1]|, the
    residual norm, or −1 if all but rounding errors of the column depends on the columns before it.
    """
    norm2 = 0.0
    for i in range(k):
        c, sn = rotations[i, 0].real, rotations[i, 1]
        a, b = R[i, k], R[i + 1, k]
        R[i, k] = c * a + sn * b
        R[i + 1, k] = c * b - np.conj(sn) * a
        norm2 += (np.conj(R[i, k]) * R[i, k]).real
    a, b = R[k, k], R[k + 1, k]
    size = math.hypot(abs(a), abs(b))
    if size <= USELESS * math.sqrt(norm2):
        return -1.0
    if abs(a) == 0:
        c = 0.0
        sn = np.conj(b) / abs(b)
    else:
        c = abs(a) / size
        sn = (a / abs(a)) * np.conj(b) / size
    R[k, k] = c * a + sn * b
    R[k + 1, k] = 0
    rotations[k, 0] = c
    rotations[k, 1] = sn
    g[k + 1] = -np.conj(sn) * g[k]
    g[k] = c * g[k]
    return abs(g[k + 1])


@helper
def norm_after_pass(sums, j):
    """Return α = ‖u − V s‖ from the ``sums`` of j basis vectors, by Pythagoras: u was orthogonalised once, so s is
    small and nothing cancels."""
    m = (sums.size - 3) // 2
    left = sums[2 * m + Sums.UU].real
    for i in range(j):
        left -= (np.conj(sums[i]) * sums[i]).real
    return math.sqrt(max(left, 0.0))


@helper
def finish_column(state, sums, H, R, rotations, g, small, columns, j, alpha):
    """Add the second pass's coefficients to column j − 1 of H, rotate it in R and g, and test the residual norm after j
    steps.

    ``alpha``: the norm that ``norm_after_pass`` returned. Sets columns[0] = j. A zero column stops the cycle as
    BREAKDOWN. Arguments: top of file.
    """
    k = j - 1
    gamma = small[S.GAMMA].real
    for i in range(j):
        H[i, k] += gamma * sums[i]
    H[j, k] = gamma * alpha
    for i in range(j + 1):
        R[i, k] = H[i, k]
    estimate = rotate(R, rotations, g, k)
    if estimate < 0:                             # A is singular on this space: the column is useless
        pause(state, Code.BREAKDOWN)
        return
    columns[0] = j
    judge_inner(state, estimate * estimate)


@parallel(fastmath=FAST)
def update(state, V, u, w, sums, H, R, rotations, g, small, columns, begin, j, flexible):
    """Finish v_j, written to V[j], and column j − 1 of H; set the next candidate u = (A v_j − [V, v_j] h) / γ, and
    column j of H.

    ``subtract`` has already handled the basis vectors before ``begin``. ``flexible``: M varies (FGMRES), so A M is not
    linear. Arguments: top of file.
    """
    n = w.size
    m = (sums.size - 3) // 2
    alpha = norm_after_pass(sums, j)
    if j > 0:
        finish_column(state, sums, H, R, rotations, g, small, columns, j, alpha)
        if stopped(state):
            return
    beta = sums[2 * m + Sums.UW]                       # v_jᴴ w = ((u, w) − sᴴ t) / α
    left = sums[2 * m + Sums.WW].real
    for i in range(j):
        beta -= np.conj(sums[i]) * sums[m + i]
        left -= (np.conj(sums[m + i]) * sums[m + i]).real
    beta = beta / alpha
    left -= (np.conj(beta) * beta).real
    divisor = 1.0 if flexible else alpha         # a variable M is not linear: no division of A M(u) by α
    for i in range(j + 1):
        correction = sums.dtype.type(0)
        if not flexible:
            for k in range(max(0, i - 1), j):
                correction += H[i, k] * sums[k]
        H[i, j] = ((sums[m + i] if i < j else beta) - correction) / divisor
    gamma = math.sqrt(max(left, 2.0**-104 * sums[2 * m + Sums.WW].real)) / divisor
    small[S.GAMMA] = gamma
    scale = 1.0 / (gamma * divisor) if gamma > 0 else 0.0
    tiles = (n + TILE - 1) // TILE
    for tile in prange(tiles):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        both = np.empty((2, TILE), u.dtype)      # one array: Numba need not test for overlap
        a, b, x, y = both[0], both[1], u[lo:hi], w[lo:hi]
        finished = V[j, lo:hi]
        for k in range(y.size):
            a[k] = x[k]
            b[k] = y[k]
        subtract_tile(V, sums, begin, j, lo, hi, a, b)
        for k in range(y.size):
            v = a[k] / alpha
            finished[k] = v
            x[k] = (b[k] - beta * v) * scale


@njit(cache=True)
def close(state, sums, H, R, rotations, g, small, columns, y, j):
    """End a cycle of j steps: finish the last column if the cycle is full, then solve R y = g by back substitution;
    writes y. Arguments: top of file."""
    if not stopped(state):
        finish_column(state, sums, H, R, rotations, g, small, columns, j, norm_after_pass(sums, j))
    resume(state)
    k = columns[0]
    y[:] = 0
    for i in range(k - 1, -1, -1):
        total = g[i]
        for l in range(i + 1, k):
            total -= R[i, l] * y[l]
        y[i] = total / R[i, i]


@parallel(fastmath=FAST)
def combine(state, V, y, columns, out, add):
    """out = Σ y_i V_i over the columns[0] finished columns; out += this sum if ``add``. Writes only ``out``."""
    n = out.size
    k = columns[0]
    tiles = (n + TILE - 1) // TILE
    for tile in prange(tiles):
        lo, hi = tile * TILE, min(n, (tile + 1) * TILE)
        mine = out[lo:hi]
        if not add:
            mine[:] = 0
        for i in range(k):
            row, yi = V[i, lo:hi], y[i]
            for l in range(mine.size):
                mine[l] += yi * row[l]


@parallel
def compress(state, z, row):
    """Store z in ``row``, a row of Z in lower precision, then set z = ``row``: the product then uses the same rounded z
    as the update of x."""
    for i in prange(z.size):
        row[i] = z[i]
        z[i] = row[i]
