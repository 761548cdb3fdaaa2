"""The fused steps of QMR on the CPU; ``qmr.cu`` is the same on a GPU. v and w are not scaled: their norms are ρ and ξ.

Scalars: s[0] (w, v), s[1:3] ε = (q, A p) and (A p, A p), s[3] next (w, v), s[4] next ρ², s[5] next ξ², s[6] (q, q),
s[7] ξ², s[8] ρ², s[9] γ, s[10] η, s[11] θ of the iteration before.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, NONFINITE, halt, judge
from swell.core.kernels.vector import FAST

KERNELS = ("first", "lanczos", "update")


@njit(cache=True)
def over_delta(s):
    """β = ε/δ with δ = (w, v)/(ξ ρ); 0 where ε is rounding."""
    if vanishes(s[1], s[6].real, s[2].real):
        return s[1] * 0
    return quotient(s[1], s[0]) * (math.sqrt(s[7].real) * math.sqrt(s[8].real))


@njit(parallel=True, cache=True)
def first(state, vh, w, p, q, d, Ad, s):
    """p = v̂/ρ; q = w/ξ; d = A d = 0; γ = 1, η = −1, θ = 0."""
    of_v, of_w = p.dtype.type(quotient(1.0, math.sqrt(s[8].real))), p.dtype.type(quotient(1.0, math.sqrt(s[7].real)))
    for i in prange(p.size):
        p[i] = of_v * vh[i]
        q[i] = of_w * w[i]
        d[i] = 0
        Ad[i] = 0
    s[6] = 1
    s[9] = 1
    s[10] = -1
    s[11] = 0


@njit(parallel=True, cache=True, fastmath=FAST)
def lanczos(state, Ap, MAq, v, w, s):
    """v = A p − (β/ρ) v; w = Mᴴ Aᴴ q − conj(β/ξ) w; their norms and (w, v)."""
    beta = over_delta(s)
    of_v = v.dtype.type(quotient(beta, np.sqrt(s[8])))
    of_w = v.dtype.type(np.conj(quotient(beta, np.sqrt(s[7]))))
    wv = s.dtype.type(0)
    vv = 0.0
    ww = 0.0
    for i in prange(v.size):
        a = Ap[i] - of_v * v[i]
        b = MAq[i] - of_w * w[i]
        v[i] = a
        w[i] = b
        wv += np.conj(b) * a
        vv += (np.conj(a) * a).real
        ww += (np.conj(b) * b).real
    s[3] = wv
    s[4] = vv
    s[5] = ww


@njit(parallel=True, cache=True, fastmath=FAST)
def update(state, vh, w, Ap, weights, p, q, d, Ad, x, r, s):
    """d = η p + c d, A d alike; x += d; r −= A d; then p and q of the next step, and the judgement of this one."""
    beta, rho, xi = over_delta(s), math.sqrt(s[4].real), math.sqrt(s[5].real)
    size = abs(beta)
    theta = quotient(rho, s[9].real * size)
    gamma = 1 / math.sqrt(1 + theta * theta)
    ratio = gamma / s[9].real
    step = -s[10] * quotient(np.sqrt(s[8]), beta) * (ratio * ratio)
    carried = (s[11].real * gamma) ** 2
    factor = quotient(quotient(s[3], s[1]), s.dtype.type(rho * xi)) if size > 0 else s[3] * 0      # δ'/ε
    kind = x.dtype.type
    eta, c = kind(step), kind(carried)
    of_v, of_w = kind(quotient(1.0, rho)), kind(quotient(1.0, xi))
    of_p, of_q = kind(xi * factor), kind(np.conj(rho * factor))
    weighted = 0.0
    qq = 0.0
    for i in prange(r.size):
        a = eta * p[i] + c * d[i]
        d[i] = a
        x[i] += a
        a = eta * Ap[i] + c * Ad[i]
        Ad[i] = a
        a = r[i] - a
        r[i] = a
        a2 = (np.conj(a) * a).real
        weighted += weights[i] * a2 if weights.size else a2
        p[i] = of_v * vh[i] - of_p * p[i]
        a = of_w * w[i] - of_q * q[i]
        q[i] = a
        qq += (np.conj(a) * a).real
    finite = math.isfinite(s[2].real) and math.isfinite(s[4].real) and math.isfinite(s[5].real)
    lost = size == 0 or vanishes(s[3], s[4].real, s[5].real) or not finite
    s[0] = s[3]
    s[6] = qq
    s[7] = s[5]
    s[8] = s[4]
    s[9] = gamma
    s[10] = step
    s[11] = theta
    judge(state, weighted)
    if state[0][0] == 0 and lost:
        halt(state, BREAKDOWN if finite else NONFINITE)
