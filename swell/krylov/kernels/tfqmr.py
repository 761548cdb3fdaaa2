"""The fused steps of TFQMR on the CPU; ``tfqmr.cu`` is the same on a GPU.

Scalars: s[0] ρ = (r̂, w), s[1:3] σ = (r̂, v) and (v, v), s[3] norm² of the judged residual, s[4] (w, w) after the odd
step, s[5] after the even one, s[6] next ρ, s[7] (r̂, r̂), s[8] τ², s[9] θ² η of the iteration before, s[10] β,
s[11] what the iteration ended with.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, JUDGED, NONFINITE, RUNNING, judge_ended
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("clear", "direction", "odd", "even", "update")


@njit(cache=True)
def share(tau2, w2):
    """c² = 1/(1 + θ²) with θ² = ‖w‖²/τ²: the part of w in the next residual."""
    return tau2 / (tau2 + w2) if tau2 > 0 else 0.0


@njit(parallel=True, cache=True)
def clear(state, r, y, v, even, d, s):
    """y = r; v = A y = d = 0; θ = η = 0; τ = ‖r‖ is there."""
    for i in prange(r.size):
        y[i] = r[i]
        v[i] = 0
        even[i] = 0
        d[i] = 0
    s[9] = 0
    s[10] = 0
    s[11] = JUDGED


@njit(parallel=True, cache=True, fastmath=FAST)
def direction(state, odd, even, shadow, v, s):
    """v = A y + β (A y_ + β v); σ = (r̂, v), (v, v)."""
    beta = v.dtype.type(s[10])
    parts = np.empty((2, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        sigma, vv = s.dtype.type(0), 0.0
        for i in chunk_rows(v.size, c):
            t = odd[i] + beta * (even[i] + beta * v[i])
            v[i] = t
            sigma += np.conj(shadow[i]) * t
            vv += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = sigma, vv
    s[1], s[2] = total(parts[0]), total(parts[1])


@njit(parallel=True, cache=True, fastmath=FAST)
def odd(state, yh, v, u, d, y, w, s):
    """α = ρ/σ; d = ŷ + (θ² η / α) d; y −= α v; w −= α u; ‖w‖². Across ranks, judges the iteration before."""
    step = quotient(s[0], s[1])
    alpha, carry = w.dtype.type(step), w.dtype.type(quotient(s[9], step))
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
    s[4] = total(parts)
    judge_ended(state, s, 3, 11)


@njit(parallel=True, cache=True, fastmath=FAST)
def even(state, u, shadow, w, s):
    """w −= α u; ‖w‖²; next ρ = (r̂, w)."""
    alpha = w.dtype.type(quotient(s[0], s[1]))
    parts = np.empty((2, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, ww = s.dtype.type(0), 0.0
        for i in chunk_rows(w.size, c):
            t = w[i] - alpha * u[i]
            w[i] = t
            rho += np.conj(shadow[i]) * t
            ww += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = ww, rho
    s[5], s[6] = total(parts[0]), total(parts[1])


@njit(parallel=True, cache=True, fastmath=FAST)
def update(state, yh, u, w, weights, d, x, r, y, s, alone):
    """Both steps of x and r: x += η d, r = (1 − c²) r + c² w, with d = ŷ + θ² η/α d between them, where the first w was
    w + α u; y = w + β y; then the judgement of this iteration, if ``alone``."""
    step, rho, tau2 = quotient(s[0], s[1]), s[6], s[8].real
    c1 = share(tau2, s[4].real)
    tau2 *= 1 - c1                               # τ θ c, squared
    c2 = share(tau2, s[5].real)
    next_beta = quotient(rho, s[0])
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
    finite = math.isfinite(s[2].real) and math.isfinite(s[5].real)
    lost = vanishes(s[1], s[7].real, s[2].real) or vanishes(rho, s[7].real, s[5].real)
    s[0] = rho
    s[3] = total(parts)
    s[8] = tau2 * (1 - c2)
    s[9] = (1 - c2) * step
    s[10] = next_beta
    s[11] = NONFINITE if not finite else BREAKDOWN if lost else RUNNING
    if alone:
        judge_ended(state, s, 3, 11)
