"""The fused steps of COCR on the CPU; ``cocr.cu`` is the same on a GPU. Conjugates are empty where nobody needs them.

Scalars: s[0] ρ of the iteration before, 0 in the first; s[1:3] ρ' = zᵀ A z and (A z, A z); s[3:5] μ = qᵀ t and (t, t);
s[5] (q, q), s[6] (z, z).
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, NONFINITE, halt, judge, judge_start
from swell.core.kernels.vector import FAST

KERNELS = ("begin", "direction", "residual")


@njit(cache=True)
def step_length(s):
    """α = ρ'/μ, or 0 where μ is rounding; ``residual`` then ends the iteration."""
    return s[1] * 0 if vanishes(s[3], s[5].real, s[4].real) else s[1] / s[3]


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, z, w, p, q, zc, s):
    """p = q = 0; the conjugate of z; the first judgement of r."""
    zz = 0.0
    norm2 = 0.0
    for i in prange(r.size):
        p[i] = 0
        q[i] = 0
        if zc.size:
            zc[i] = np.conj(z[i])
        zz += (np.conj(z[i]) * z[i]).real
        t = (np.conj(r[i]) * r[i]).real
        norm2 += t * w[i] if w.size else t
    s[0] = 0
    s[6] = zz
    judge_start(state, norm2)


@njit(parallel=True, cache=True, fastmath=FAST)
def direction(state, z, az, p, q, qc, s):
    """β = ρ'/ρ; p = z + β p; q = A z + β q; μ = qᵀ q, which a preconditioner's own product overwrites; (q, q)."""
    beta = p.dtype.type(quotient(s[1], s[0]))
    mu = s.dtype.type(0)
    qq = 0.0
    for i in prange(p.size):
        p[i] = z[i] + beta * p[i]
        t = az[i] + beta * q[i]
        q[i] = t
        if qc.size:
            qc[i] = np.conj(t)
        mu += t * t
        qq += (np.conj(t) * t).real
    s[3] = mu
    s[4] = qq
    s[5] = qq


@njit(parallel=True, cache=True, fastmath=FAST)
def residual(state, p, q, t, w, x, r, z, zc, s):
    """α = ρ'/μ; x += α p; r −= α q; z −= α t, where z is not r itself (then it is empty); judges this iteration."""
    alpha = x.dtype.type(step_length(s))
    weighted = 0.0
    zz = 0.0
    for i in prange(r.size):
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
    finite = math.isfinite(s[2].real) and math.isfinite(s[4].real)
    lost = vanishes(s[1], s[6].real, s[2].real) or vanishes(s[3], s[5].real, s[4].real) or not finite
    s[0] = s[1]
    s[6] = zz
    judge(state, weighted)
    if state[0][0] == 0 and lost:
        halt(state, BREAKDOWN if finite else NONFINITE)
