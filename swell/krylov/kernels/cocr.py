"""Fused steps of COCR on the CPU; ``cocr.cu`` has the same kernels for a GPU. Unneeded conjugates are empty arrays."""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.compiled import helper, parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import ended_as, judge_ended, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import COCR as S

KERNELS = ("begin", "judge_first", "direction", "residual")


@helper
def step_length(s):
    """α = ρ'/μ, or 0 if μ is only rounding error; ``residual`` then ends the iteration."""
    return s[S.NEXT_RHO] * 0 if vanishes(s[S.MU], s[S.QQ].real, s[S.TT].real) else s[S.NEXT_RHO] / s[S.MU]


@parallel(fastmath=FAST)
def begin(state, r, z, w, p, q, zc, s):
    """p = q = 0; the conjugate of z; (z, z), norm² = Σ w |r|²."""
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
    s[S.ENDED] = Code.JUDGED.value


@njit(cache=True)
def judge_first(state, s):
    """Judge the first residual."""
    judge_start(state, s[S.NORM2].real)


@parallel(fastmath=FAST)
def direction(state, z, az, p, q, qc, s):
    """β = ρ'/ρ; p = z + β p; q = A z + β q; (q, q); μ = qᵀ q, which the product with M overwrites.

    Across ranks, also judge the previous iteration.
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
    judge_ended(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def residual(state, p, q, t, w, x, r, z, zc, s, alone):
    """α = ρ'/μ; x += α p; r −= α q; z −= α t, unless z is r (then ``z`` is empty).

    Then judge this iteration, if ``alone`` (on one rank).
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
    s[S.ENDED] = ended_as(finite, lost)
    if alone:
        judge_ended(state, s, S.NORM2, S.ENDED)
