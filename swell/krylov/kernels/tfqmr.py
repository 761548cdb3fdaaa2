"""Fused steps of TFQMR on the CPU; ``tfqmr.cu`` has the same kernels for a GPU, ``shadow.py`` the start."""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import ended_as, judge_ended
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import TFQMR as S

KERNELS = ("clear", "direction", "odd", "even", "update")


@njit(cache=True)
def share(tau2, w2):
    """c² = 1/(1 + θ²) with θ² = ‖w‖²/τ²: the weight of w in the next residual."""
    return tau2 / (tau2 + w2) if tau2 > 0 else 0.0


@parallel
def clear(state, r, y, v, even, d, s):
    """y = r; v = A y = d = 0; θ = η = 0. τ = ‖r‖ is already set."""
    for i in prange(r.size):
        y[i] = r[i]
        v[i] = 0
        even[i] = 0
        d[i] = 0
    s[S.CARRY] = 0
    s[S.BETA] = 0
    s[S.ENDED] = Code.JUDGED.value


@parallel(fastmath=FAST)
def direction(state, odd, even, shadow, v, s):
    """v = A y + β (A y_ + β v), where y_ is y of the last even step; σ = (r̂, v); (v, v)."""
    beta = v.dtype.type(s[S.BETA])
    parts = np.empty((2, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        sigma, vv = s.dtype.type(0), 0.0
        for i in chunk_rows(v.size, c):
            t = odd[i] + beta * (even[i] + beta * v[i])
            v[i] = t
            sigma += np.conj(shadow[i]) * t
            vv += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = sigma, vv
    s[S.SIGMA], s[S.VV] = total(parts[0]), total(parts[1])


@parallel(fastmath=FAST)
def odd(state, yh, v, u, d, y, w, s):
    """α = ρ/σ; d = ŷ + (θ² η / α) d; y −= α v; w −= α u; ‖w‖².

    Across ranks, also judge the previous iteration.
    """
    step = quotient(s[S.RHO], s[S.SIGMA])
    alpha, carry = w.dtype.type(step), w.dtype.type(quotient(s[S.CARRY], step))
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        ww = 0.0
        for i in chunk_rows(w.size, c):
            d[i] = yh[i] + carry * d[i]
            y[i] -= alpha * v[i]
            t = w[i] - alpha * u[i]
            w[i] = t
            ww += (np.conj(t) * t).real
        parts[c] = ww
    s[S.ODD2] = total(parts)
    judge_ended(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def even(state, u, shadow, w, s):
    """w −= α u; ‖w‖²; next ρ = (r̂, w)."""
    alpha = w.dtype.type(quotient(s[S.RHO], s[S.SIGMA]))
    parts = np.empty((2, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, ww = s.dtype.type(0), 0.0
        for i in chunk_rows(w.size, c):
            t = w[i] - alpha * u[i]
            w[i] = t
            rho += np.conj(shadow[i]) * t
            ww += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = ww, rho
    s[S.EVEN2], s[S.NEXT_RHO] = total(parts[0]), total(parts[1])


@parallel(fastmath=FAST)
def update(state, yh, u, w, weights, d, x, r, y, s, alone):
    """Two steps of x and r: x += η d; r = (1 − c²) r + c² w. Between them d = ŷ + (θ² η/α) d.

    The first step uses w + α u as w. Then y = w + β y; judge this iteration, if ``alone`` (on one rank).
    """
    step, rho, tau2 = quotient(s[S.RHO], s[S.SIGMA]), s[S.NEXT_RHO], s[S.TAU2].real
    c1 = share(tau2, s[S.ODD2].real)
    tau2 *= 1 - c1                               # τ θ c, squared
    c2 = share(tau2, s[S.EVEN2].real)
    next_beta = quotient(rho, s[S.RHO])
    kind = w.dtype.type
    alpha, beta, eta1, eta2, carry = kind(step), kind(next_beta), kind(c1 * step), kind(c2 * step), kind(1 - c1)
    own1, own2, new1, new2 = carry, kind(1 - c2), kind(c1), kind(c2)
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        weighted = 0.0
        for i in chunk_rows(w.size, c):
            first = d[i]
            second = yh[i] + carry * first
            d[i] = second
            x[i] += eta1 * first + eta2 * second
            t = own2 * (own1 * r[i] + new1 * (w[i] + alpha * u[i])) + new2 * w[i]
            r[i] = t
            y[i] = w[i] + beta * y[i]
            t2 = (np.conj(t) * t).real
            weighted += weights[i] * t2 if weights.size else t2
        parts[c] = weighted
    finite = math.isfinite(s[S.VV].real) and math.isfinite(s[S.EVEN2].real)
    lost = vanishes(s[S.SIGMA], s[S.SHADOW2].real, s[S.VV].real) or vanishes(rho, s[S.SHADOW2].real, s[S.EVEN2].real)
    s[S.RHO] = rho
    s[S.NORM2] = total(parts)
    s[S.TAU2] = tau2 * (1 - c2)
    s[S.CARRY] = (1 - c2) * step
    s[S.BETA] = next_beta
    s[S.ENDED] = ended_as(finite, lost)
    if alone:
        judge_ended(state, s, S.NORM2, S.ENDED)
