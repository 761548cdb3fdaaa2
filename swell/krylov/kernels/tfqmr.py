"""Fused steps of TFQMR on the CPU; ``tfqmr.cu`` has the same kernels for a GPU, ``shadow.py`` the start.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``TFQMR`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/tfqmr.py``. ``weights``:
float32 weights of the tested norm², or an empty array for all ones. ``shadow``: r̂. ``yh``: ŷ = M y. ``odd``, ``even``,
``u``: A ŷ of the odd step, of the even step, and of the current step. A kernel writes the left sides of its formulas in
place, vectors into the arrays and scalars into ``s``; it returns nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import iteration_code, judge_once
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import TFQMR as S

KERNELS = ("clear", "direction", "odd", "even", "update")


@helper
def share(tau2, w2):
    """Return c² = 1/(1 + θ²) with θ² = ‖w‖²/τ²: the weight of w in the next residual. ``tau2``: τ²; ``w2``: ‖w‖²."""
    return tau2 / (tau2 + w2) if tau2 > 0 else 0.0


@parallel
def clear(state, r, y, v, even, d, s):
    """y = r; v = even = d = 0; θ = η = 0. τ = ‖r‖ is already in ``s``. Arguments: top of file."""
    for i in prange(r.size):
        y[i] = r[i]
        v[i] = 0
        even[i] = 0
        d[i] = 0
    s[S.CARRY] = 0
    s[S.BETA] = 0
    s[S.ENDED] = Code.JUDGED


@parallel(fastmath=FAST)
def direction(state, odd, even, shadow, v, s):
    """v = odd + β (even + β v); σ = (r̂, v); (v, v). ``odd``: A ŷ; ``even``: A ŷ of the last even step. Arguments: top
    of file."""
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

    Across ranks, also test the previous iteration for convergence. Arguments: top of file.
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
    judge_once(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def even(state, u, shadow, w, s):
    """w −= α u; ‖w‖²; next ρ = (r̂, w). Arguments: top of file."""
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
def update(state, yh, u, w, weights, d, x, r, y, s, single_rank):
    """Two steps of x and r: x += η d; r = (1 − c²) r + c² w. Between them d = ŷ + (θ² η/α) d. Then y = w + β y.

    w is already that of the second step; the first step uses w + α u. ``single_rank``: True on one rank; then test this
    iteration for convergence. Arguments: top of file.
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
    s[S.ENDED] = iteration_code(finite, lost)
    if single_rank:
        judge_once(state, s, S.NORM2, S.ENDED)
