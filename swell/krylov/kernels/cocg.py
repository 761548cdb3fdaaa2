"""The fused steps of COCG on the CPU; ``cocg.cu`` is the same on a GPU. Conjugates are empty where nobody needs them.

Scalars: s[0] ρ = rᵀ z, s[1:3] μ = pᵀ q and (q, q), s[3:5] next ρ and (z, z), s[5] norm² of the judged residual,
s[6] (r, r), s[7] (r, r) before this iteration.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import EPS, vanishes
from swell.core.kernels.judge import BREAKDOWN, NONFINITE, halt, judge, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("begin", "judge_first", "residual", "direction")


@njit(cache=True)
def drowns(s):
    """True where α q = (ρ/μ) q would leave no digit of r."""
    return abs(s[1]) * math.sqrt(s[7].real) <= EPS * abs(s[0]) * math.sqrt(s[2].real)


@njit(cache=True)
def step_length(s):
    """α = ρ/μ, or 0 where the step would drown r; ``direction`` then ends the iteration."""
    return s[0] * 0 if drowns(s) else s[0] / s[1]


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, z, w, p, pc, s):
    """p = z; ρ = rᵀ z; (r, r), (z, z), norm² = Σ w |r|²."""
    parts = np.empty((4, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, rr, zz, norm2 = s.dtype.type(0), 0.0, 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = z[i]
            if pc.size:
                pc[i] = np.conj(z[i])
            rho += r[i] * z[i]
            zz += (np.conj(z[i]) * z[i]).real
            t = (np.conj(r[i]) * r[i]).real
            rr += t
            norm2 += t * w[i] if w.size else t
        parts[0, c], parts[1, c], parts[2, c], parts[3, c] = rho, zz, norm2, rr
    s[0], s[4], s[5], s[7] = total(parts[0]), total(parts[1]), total(parts[2]), total(parts[3])


@njit(cache=True)
def judge_first(state, s):
    """The first judgement."""
    judge_start(state, s[5].real)
    if state[0][0] == 0 and vanishes(s[0], s[7].real, s[4].real):
        halt(state, BREAKDOWN)


@njit(parallel=True, cache=True, fastmath=FAST)
def residual(state, q, r, rc, w, s):
    """r −= α q; norm² = Σ w |r|²; next ρ = rᵀ r, which a preconditioner's own product overwrites."""
    alpha = r.dtype.type(step_length(s))
    parts = np.empty((3, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, rr, weighted = s.dtype.type(0), 0.0, 0.0
        for i in chunk_rows(r.size, c):
            t = r[i] - alpha * q[i]
            r[i] = t
            if rc.size:
                rc[i] = np.conj(t)
            rho += t * t
            t2 = (np.conj(t) * t).real
            rr += t2
            weighted += w[i] * t2 if w.size else t2
        parts[0, c], parts[1, c], parts[2, c] = rho, rr, weighted
    s[3], s[4], s[5] = total(parts[0]), total(parts[1]), total(parts[2])
    s[6] = s[4]


@njit(parallel=True, cache=True)
def direction(state, z, p, pc, x, s):
    """x += α p; β = next ρ / ρ; p = z + β p; then the judgement of this iteration."""
    lost = drowns(s)
    rho = s[3]
    alpha, beta = x.dtype.type(step_length(s)), x.dtype.type(rho / s[0])
    for i in prange(p.size):
        d = p[i]
        x[i] += alpha * d
        d = z[i] + beta * d
        p[i] = d
        if pc.size:
            pc[i] = np.conj(d)
    finite = math.isfinite(s[2].real) and math.isfinite(s[4].real)
    lost = lost or vanishes(rho, s[6].real, s[4].real) or not finite
    s[0] = rho
    s[7] = s[6]
    judge(state, s[5].real)
    if state[0][0] == 0 and lost:
        halt(state, BREAKDOWN if finite else NONFINITE)
