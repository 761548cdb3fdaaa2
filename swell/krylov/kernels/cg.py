"""The fused steps of conjugate gradients on the CPU; ``cg.cu`` is the same on a GPU.

Scalars: s[0] ρ = (r, z), s[1:3] σ = (p, q) and (q, q), s[3:5] next ρ and (z, z), s[5] norm² of the judged residual.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.judge import INDEFINITE, ITERATION, NONFINITE, due, halt, judge, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("begin", "judge_first", "residual", "direction")


@njit(cache=True)
def step_length(s):
    """α = ρ/σ, or 0 where the curvature σ is not positive; ``direction`` then ends the iteration."""
    sigma = s[1].real
    return s[0].real / sigma if sigma > 0 else 0.0


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, z, w, p, s):
    """p = z; ρ = (r, z); norm² = Σ w |r|²."""
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rho, norm2 = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = z[i]
            rho += (np.conj(r[i]) * z[i]).real
            rr = (np.conj(r[i]) * r[i]).real
            norm2 += rr * w[i] if w.size else rr
        parts[0, c], parts[1, c] = rho, norm2
    s[0], s[5] = total(parts[0]), total(parts[1])


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
    weigh = w.size > 0 and due(state)
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rr, weighted = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            t = r[i] - alpha * q[i]
            r[i] = t
            t2 = (np.conj(t) * t).real
            rr += t2
            if weigh:
                weighted += w[i] * t2
        parts[0, c], parts[1, c] = rr, weighted
    s[3] = total(parts[0])
    s[5] = total(parts[1]) if weigh else s[3]


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
