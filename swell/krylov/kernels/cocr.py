"""The fused steps of COCR on the CPU; ``cocr.cu`` is the same on a GPU. Conjugates are empty where nobody needs them.

Scalars: s[0] ρ of the iteration before, 0 in the first; s[1:3] ρ' = zᵀ A z and (A z, A z), s[3] (z, z), s[4] norm² of
the judged residual; s[5:7] μ = qᵀ t and (t, t), s[7] (q, q); s[8] what the iteration ended with.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, JUDGED, NONFINITE, RUNNING, judge_ended, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("begin", "judge_first", "direction", "residual")


@njit(cache=True)
def step_length(s):
    """α = ρ'/μ, or 0 where μ is rounding; ``residual`` then ends the iteration."""
    return s[1] * 0 if vanishes(s[5], s[7].real, s[6].real) else s[1] / s[5]


@njit(parallel=True, cache=True, fastmath=FAST)
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
    s[0] = 0
    s[3], s[4] = total(parts[0]), total(parts[1])
    s[8] = JUDGED


@njit(cache=True)
def judge_first(state, s):
    """The first judgement."""
    judge_start(state, s[4].real)


@njit(parallel=True, cache=True, fastmath=FAST)
def direction(state, z, az, p, q, qc, s):
    """β = ρ'/ρ; p = z + β p; q = A z + β q; μ = qᵀ q, which a preconditioner's own product overwrites; (q, q). Across
    ranks, judges the iteration before."""
    beta = p.dtype.type(quotient(s[1], s[0]))
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
    s[5], s[6] = total(parts[0]), total(parts[1])
    s[7] = s[6]
    judge_ended(state, s, 4, 8)


@njit(parallel=True, cache=True, fastmath=FAST)
def residual(state, p, q, t, w, x, r, z, zc, s, alone):
    """α = ρ'/μ; x += α p; r −= α q; z −= α t, where z is not r itself (then it is empty); then the judgement of this
    iteration, if ``alone``."""
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
    finite = math.isfinite(s[2].real) and math.isfinite(s[6].real)
    lost = vanishes(s[1], s[3].real, s[2].real) or vanishes(s[5], s[7].real, s[6].real)
    s[0] = s[1]
    s[3], s[4] = total(parts[0]), total(parts[1])
    s[8] = NONFINITE if not finite else BREAKDOWN if lost else RUNNING
    if alone:
        judge_ended(state, s, 4, 8)
