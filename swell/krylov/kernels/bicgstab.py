"""The fused steps of BiCGSTAB on the CPU; ``bicgstab.cu`` is the same on a GPU.

Scalars: s[0] ρ = (r̂, r), s[1:3] (r̂, v) and (v, v), s[3:5] conj (t, s) side by side with (t, t), s[5] next ρ,
s[6] norm² of the judged residual, s[7] (r̂, r̂), s[8] (r, r).
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.judge import BREAKDOWN, NONFINITE, halt, judge, judge_start
from swell.core.kernels.vector import FAST

KERNELS = ("begin", "half", "update", "direction")
EPS2 = 2.0**-104        # the square of the double's rounding unit: an inner product below it is noise


@njit(cache=True)
def quotient(a, b):
    """a/b, or 0 where b = 0."""
    return a / b if b != 0 else a * 0


@njit(cache=True)
def vanishes(product, a2, b2):
    """True if an inner product of vectors with squared norms a2 and b2 is no more than rounding."""
    return (product * np.conj(product)).real <= EPS2 * a2 * b2


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, shadow, w, p, s):
    """p = r; ρ = (r̂, r); the first judgement of r."""
    rho = s.dtype.type(0)
    norm2 = 0.0
    rr = 0.0
    shadow2 = 0.0
    for i in prange(r.size):
        p[i] = r[i]
        rho += np.conj(shadow[i]) * r[i]
        shadow2 += (np.conj(shadow[i]) * shadow[i]).real
        t = (np.conj(r[i]) * r[i]).real
        rr += t
        norm2 += t * w[i] if w.size else t
    s[0] = rho
    s[7] = shadow2
    s[8] = rr
    judge_start(state, norm2)
    if state[0][0] == 0 and vanishes(rho, shadow2, rr):
        halt(state, BREAKDOWN)


@njit(parallel=True, cache=True)
def half(state, v, r, s):
    """α = ρ / (r̂, v); r becomes s = r − α v."""
    alpha = quotient(s[0], s[1])
    for i in prange(r.size):
        r[i] -= alpha * v[i]


@njit(parallel=True, cache=True, fastmath=FAST)
def update(state, ph, sh, t, shadow, w, x, r, s):
    """ω = (t, s)/(t, t); x += α p̂ + ω ŝ; r = s − ω t; next ρ = (r̂, r), norm² = Σ w |r|²."""
    alpha = quotient(s[0], s[1])
    omega = quotient(np.conj(s[3]), s[4].real)
    rho = s.dtype.type(0)
    rr = 0.0
    weighted = 0.0
    for i in prange(r.size):
        x[i] += alpha * ph[i] + omega * sh[i]
        d = r[i] - omega * t[i]
        r[i] = d
        rho += np.conj(shadow[i]) * d
        d2 = (np.conj(d) * d).real
        rr += d2
        weighted += w[i] * d2 if w.size else d2
    s[5] = rho
    s[6] = weighted
    s[8] = rr


@njit(parallel=True, cache=True)
def direction(state, r, v, p, s):
    """β = (next ρ / ρ) (α / ω); p = r + β (p − ω v); then the judgement of this iteration."""
    alpha = quotient(s[0], s[1])
    omega = quotient(np.conj(s[3]), s[4].real)
    rho = s[5]
    beta = quotient(rho, s[0]) * quotient(alpha, omega)
    for i in prange(r.size):
        p[i] = r[i] + beta * (p[i] - omega * v[i])
    lost = vanishes(s[1], s[7].real, s[2].real) or omega == 0 or vanishes(rho, s[7].real, s[8].real)
    finite = math.isfinite(s[1].real) and math.isfinite(s[4].real)
    s[0] = rho
    judge(state, s[6].real)
    if state[0][0] == 0 and lost:
        halt(state, BREAKDOWN if finite else NONFINITE)
