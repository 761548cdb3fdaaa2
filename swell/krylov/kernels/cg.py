"""The fused steps of conjugate gradients on the CPU; ``cg.cu`` is the same on a GPU.

Scalars: s[0] ρ = (r, z), s[1:3] σ = (p, q) and (q, q), s[3:5] next ρ and (z, z), s[5] norm² of the judged residual.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.judge import INDEFINITE, ITERATION, NONFINITE, due, halt, judge, judge_start
from swell.core.kernels.vector import FAST

KERNELS = ("begin", "judge_first", "residual", "direction")


@njit(cache=True)
def step_length(s):
    """α = ρ/σ, or 0 where the curvature σ is not positive; ``direction`` then ends the iteration."""
    sigma = s[1].real
    return s[0].real / sigma if sigma > 0 else 0.0


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, z, w, p, s):
    """p = z; ρ = (r, z); norm² = Σ w |r|²."""
    rho = 0.0
    norm2 = 0.0
    for i in prange(r.size):
        p[i] = z[i]
        rho += (np.conj(r[i]) * z[i]).real
        rr = (np.conj(r[i]) * r[i]).real
        norm2 += rr * w[i] if w.size else rr
    s[0] = rho
    s[5] = norm2


@njit(cache=True)
def judge_first(state, s):
    """The first judgement."""
    rho = s[0].real
    judge_start(state, s[5].real)
    if state[0][0] == 0 and not rho > 0:
        halt(state, INDEFINITE if math.isfinite(rho) else NONFINITE)


@njit(parallel=True, cache=True, fastmath=FAST)
def residual(state, q, r, w, s):
    """r −= α q; norm² = Σ w |r|²; next ρ = (r, r), which a preconditioner's own product overwrites."""
    alpha = step_length(s)
    rr = 0.0
    weighted = 0.0
    if w.size and due(state):
        for i in prange(r.size):
            t = r[i] - alpha * q[i]
            r[i] = t
            t2 = (np.conj(t) * t).real
            rr += t2
            weighted += w[i] * t2
    else:
        for i in prange(r.size):
            t = r[i] - alpha * q[i]
            r[i] = t
            rr += (np.conj(t) * t).real
        weighted = rr
    s[3] = rr
    s[5] = weighted


@njit(parallel=True, cache=True)
def direction(state, z, p, x, s, coefficients):
    """x += α p; β = next ρ / ρ; p = z + β p; then the judgement of this iteration. Keeps α and β."""
    alpha = step_length(s)
    rho = s[3].real
    beta = rho / s[0].real
    k = 2 * state[0][ITERATION]
    if k + 1 < coefficients.size:
        coefficients[k] = alpha
        coefficients[k + 1] = beta
    for i in prange(p.size):
        d = p[i]
        x[i] += alpha * d
        p[i] = z[i] + beta * d
    s[0] = rho
    sigma = s[1].real
    if not sigma > 0:
        halt(state, INDEFINITE if math.isfinite(sigma) else NONFINITE)
        return
    judge(state, s[5].real)
    if state[0][0] == 0 and not rho > 0:
        halt(state, INDEFINITE if math.isfinite(rho) else NONFINITE)
