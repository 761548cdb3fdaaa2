"""The fused steps of BiCGSTAB on the CPU; ``bicgstab.cu`` is the same on a GPU.

Scalars: s[0] ρ = (r̂, r), s[1:3] (r̂, v) and (v, v), s[3:5] conj (t, s) side by side with (t, t), s[5] next ρ,
s[6] norm² of the judged residual, s[7] (r, r), s[9] (r̂, r̂). The first of them come from ``shadow.py``.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, NONFINITE, halt, judge
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("half", "update", "direction")


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
    parts = np.empty((3, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, rr, weighted = s.dtype.type(0), 0.0, 0.0
        for i in chunk_rows(r.size, c):
            x[i] += alpha * ph[i] + omega * sh[i]
            d = r[i] - omega * t[i]
            r[i] = d
            rho += np.conj(shadow[i]) * d
            d2 = (np.conj(d) * d).real
            rr += d2
            weighted += w[i] * d2 if w.size else d2
        parts[0, c], parts[1, c], parts[2, c] = rho, weighted, rr
    s[5], s[6], s[7] = total(parts[0]), total(parts[1]), total(parts[2])


@njit(parallel=True, cache=True)
def direction(state, r, v, p, s):
    """β = (next ρ / ρ) (α / ω); p = r + β (p − ω v); then the judgement of this iteration."""
    alpha = quotient(s[0], s[1])
    omega = quotient(np.conj(s[3]), s[4].real)
    rho = s[5]
    beta = quotient(rho, s[0]) * quotient(alpha, omega)
    for i in prange(r.size):
        p[i] = r[i] + beta * (p[i] - omega * v[i])
    lost = vanishes(s[1], s[9].real, s[2].real) or omega == 0 or vanishes(rho, s[9].real, s[7].real)
    finite = math.isfinite(s[1].real) and math.isfinite(s[4].real)
    s[0] = rho
    judge(state, s[6].real)
    if state[0][0] == 0 and lost:
        halt(state, BREAKDOWN if finite else NONFINITE)
