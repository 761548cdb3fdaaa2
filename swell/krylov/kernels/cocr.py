"""Fused steps of COCR on the CPU; ``cocr.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``COCR`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/cocr.py``. ``w``: float32
weights of the tested norm², or an empty array for all ones. ``zc``, ``qc``: the conjugates of z and q, or empty arrays
if they are not needed. ρ' is ρ of this iteration. A kernel writes the left sides of its formulas in place, vectors into
the arrays and scalars into ``s``; it returns nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import iteration_code, judge_once, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import COCR as S

KERNELS = ("begin", "judge_first", "direction", "residual")


@helper
def step_length(s):
    """Return α = ρ'/μ, from the scalars ``s``; 0 if μ is only rounding error: ``residual`` then ends the iteration."""
    return s[S.NEXT_RHO] * 0 if vanishes(s[S.MU], s[S.QQ].real, s[S.TT].real) else s[S.NEXT_RHO] / s[S.MU]


@parallel(fastmath=FAST)
def begin(state, r, z, w, p, q, zc, s):
    """p = q = 0; zc = conj(z); (z, z), norm² = Σ w |r|². Arguments: top of file."""
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        zz, norm2 = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = 0
            q[i] = 0
            if zc.size:
                zc[i] = np.conj(z[i])
            zz += (np.conj(z[i]) * z[i]).real
            t = (np.conj(r[i]) * r[i]).real
            norm2 += t * w[i] if w.size else t
        parts[0, c], parts[1, c] = zz, norm2
    s[S.RHO] = 0
    s[S.ZZ], s[S.NORM2] = total(parts[0]), total(parts[1])
    s[S.ENDED] = Code.JUDGED


@njit(cache=True)
def judge_first(state, s):
    """Test the first residual for convergence: reads norm² in ``s``, sets ``state``. Arguments: top of file."""
    judge_start(state, s[S.NORM2].real)


@parallel(fastmath=FAST)
def direction(state, z, az, p, q, qc, s):
    """β = ρ'/ρ; p = z + β p; q = A z + β q, qc = conj(q); (q, q); μ = qᵀ q, right without M only: with M, M's product
    writes it again.

    ``az``: A z. Across ranks, also test the previous iteration for convergence. Arguments: top of file.
    """
    beta = p.dtype.type(quotient(s[S.NEXT_RHO], s[S.RHO]))
    parts = np.empty((2, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        mu, qq = s.dtype.type(0), 0.0
        for i in chunk_rows(p.size, c):
            p[i] = z[i] + beta * p[i]
            t = az[i] + beta * q[i]
            q[i] = t
            if qc.size:
                qc[i] = np.conj(t)
            mu += t * t
            qq += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = mu, qq
    s[S.MU], s[S.TT] = total(parts[0]), total(parts[1])
    s[S.QQ] = s[S.TT]
    judge_once(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def residual(state, p, q, t, w, x, r, z, zc, s, single_rank):
    """α = ρ'/μ; x += α p; r −= α q; z −= α t, zc = conj(z); (z, z), norm² = Σ w |r|².

    ``t``: M q. Without M, ``z`` is an empty array, and r counts as z. ``single_rank``: True on one rank; then test this
    iteration for convergence. Arguments: top of file.
    """
    alpha = x.dtype.type(step_length(s))
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        zz, weighted = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            x[i] += alpha * p[i]
            d = r[i] - alpha * q[i]
            r[i] = d
            d2 = (np.conj(d) * d).real
            weighted += w[i] * d2 if w.size else d2
            if z.size:
                d = z[i] - alpha * t[i]
                z[i] = d
            if zc.size:
                zc[i] = np.conj(d)
            zz += (np.conj(d) * d).real
        parts[0, c], parts[1, c] = zz, weighted
    finite = math.isfinite(s[S.AZ2].real) and math.isfinite(s[S.TT].real)
    lost = vanishes(s[S.NEXT_RHO], s[S.ZZ].real, s[S.AZ2].real) or vanishes(s[S.MU], s[S.QQ].real, s[S.TT].real)
    s[S.RHO] = s[S.NEXT_RHO]
    s[S.ZZ], s[S.NORM2] = total(parts[0]), total(parts[1])
    s[S.ENDED] = iteration_code(finite, lost)
    if single_rank:
        judge_once(state, s, S.NORM2, S.ENDED)
