"""The fused steps of QMR on the CPU; ``qmr.cu`` is the same on a GPU. v and w are not scaled: their norms are ρ and ξ.

Scalars: s[0] (w, v), s[1:3] ε = (q, A p) and (A p, A p), s[3] (q, q), s[4] norm² of the judged residual, s[5] η, s[6] θ
of the iteration before, s[7] ξ², s[8] ρ², s[9] next (w, v), s[10] next ρ², s[11] next ξ², s[12] γ, s[13] what the
iteration ended with.
"""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import BREAKDOWN, JUDGED, NONFINITE, RUNNING, judge_ended
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("first", "lanczos", "update")


@njit(cache=True)
def over_delta(s):
    """β = ε/δ with δ = (w, v)/(ξ ρ); 0 where ε is rounding."""
    if vanishes(s[1], s[3].real, s[2].real):
        return s[1] * 0
    return quotient(s[1], s[0]) * (math.sqrt(s[7].real) * math.sqrt(s[8].real))


@njit(parallel=True, cache=True, fastmath=FAST)
def first(state, vh, w, p, q, d, Ad, s):
    """p = v̂/ρ; q = w/ξ, (q, q); d = A d = 0; γ = 1, η = −1, θ = 0."""
    of_v, of_w = p.dtype.type(quotient(1.0, math.sqrt(s[8].real))), p.dtype.type(quotient(1.0, math.sqrt(s[7].real)))
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        qq = 0.0
        for i in chunk_rows(p.size, c):
            p[i] = of_v * vh[i]
            a = of_w * w[i]
            q[i] = a
            d[i] = 0
            Ad[i] = 0
            qq += (np.conj(a) * a).real
        parts[c] = qq
    s[3] = total(parts)
    s[5] = -1
    s[6] = 0
    s[12] = 1
    s[13] = JUDGED


@njit(parallel=True, cache=True, fastmath=FAST)
def lanczos(state, Ap, MAq, v, w, s):
    """v = A p − (β/ρ) v; w = Mᴴ Aᴴ q − conj(β/ξ) w; their norms and (w, v). Across ranks, judges the
    iteration before."""
    beta = over_delta(s)
    of_v = v.dtype.type(quotient(beta, np.sqrt(s[8])))
    of_w = v.dtype.type(np.conj(quotient(beta, np.sqrt(s[7]))))
    parts = np.empty((3, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        wv, vv, ww = s.dtype.type(0), 0.0, 0.0
        for i in chunk_rows(v.size, c):
            a = Ap[i] - of_v * v[i]
            b = MAq[i] - of_w * w[i]
            v[i] = a
            w[i] = b
            wv += np.conj(b) * a
            vv += (np.conj(a) * a).real
            ww += (np.conj(b) * b).real
        parts[0, c], parts[1, c], parts[2, c] = wv, vv, ww
    s[9], s[10], s[11] = total(parts[0]), total(parts[1]), total(parts[2])
    judge_ended(state, s, 4, 13)


@njit(parallel=True, cache=True, fastmath=FAST)
def update(state, vh, w, Ap, weights, p, q, d, Ad, x, r, s, alone):
    """d = η p + c d, A d alike; x += d; r −= A d; then p and q of the next step, and the judgement of this one, if
    ``alone``."""
    beta, rho, xi = over_delta(s), math.sqrt(s[10].real), math.sqrt(s[11].real)
    size = abs(beta)
    theta = quotient(rho, s[12].real * size)
    gamma = 1 / math.sqrt(1 + theta * theta)
    ratio = gamma / s[12].real
    step = -s[5] * quotient(np.sqrt(s[8]), beta) * (ratio * ratio)
    carried = (s[6].real * gamma) ** 2
    factor = quotient(quotient(s[9], s[1]), s.dtype.type(rho * xi)) if size > 0 else s[9] * 0      # δ'/ε
    kind = x.dtype.type
    eta, carry = kind(step), kind(carried)
    of_v, of_w = kind(quotient(1.0, rho)), kind(quotient(1.0, xi))
    of_p, of_q = kind(xi * factor), kind(np.conj(rho * factor))
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        qq, weighted = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            a = eta * p[i] + carry * d[i]
            d[i] = a
            x[i] += a
            a = eta * Ap[i] + carry * Ad[i]
            Ad[i] = a
            a = r[i] - a
            r[i] = a
            a2 = (np.conj(a) * a).real
            weighted += weights[i] * a2 if weights.size else a2
            p[i] = of_v * vh[i] - of_p * p[i]
            a = of_w * w[i] - of_q * q[i]
            q[i] = a
            qq += (np.conj(a) * a).real
        parts[0, c], parts[1, c] = qq, weighted
    finite = math.isfinite(s[2].real) and math.isfinite(s[10].real) and math.isfinite(s[11].real)
    lost = size == 0 or vanishes(s[9], s[10].real, s[11].real)
    s[0] = s[9]
    s[3], s[4] = total(parts[0]), total(parts[1])
    s[5] = step
    s[6] = theta
    s[7] = s[11]
    s[8] = s[10]
    s[12] = gamma
    s[13] = NONFINITE if not finite else BREAKDOWN if lost else RUNNING
    if alone:
        judge_ended(state, s, 4, 13)
