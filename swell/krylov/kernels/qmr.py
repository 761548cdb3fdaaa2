"""Fused steps of QMR on the CPU; ``qmr.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``QMR`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/qmr.py``. ``weights``: float32
weights of the tested norm², or an empty array for all ones. ``vh``: v̂ = M v. ``Ap``, ``Ad``: A p and A d. ``MAq``: Mᴴ
Aᴴ q. v and w are not scaled; ρ and ξ are their norms. A kernel writes the left sides of its formulas in place, vectors
into the arrays and scalars into ``s``; it returns nothing.
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
from swell.krylov.slots import QMR as S

KERNELS = ("first", "lanczos", "update")


@helper
def over_delta(s):
    """Return β = ε/δ with δ = (w, v)/(ξ ρ), from the scalars ``s``; 0 if ε is only rounding error."""
    if vanishes(s[S.EPSILON], s[S.QQ].real, s[S.AP2].real):
        return s[S.EPSILON] * 0
    return quotient(s[S.EPSILON], s[S.WV]) * (math.sqrt(s[S.XI2].real) * math.sqrt(s[S.RHO2].real))


@parallel(fastmath=FAST)
def first(state, vh, w, p, q, d, Ad, s):
    """p = v̂/ρ; q = w/ξ, (q, q); d = A d = 0; γ = 1, η = −1, θ = 0. Arguments: top of file."""
    rho, xi = math.sqrt(s[S.RHO2].real), math.sqrt(s[S.XI2].real)
    of_v, of_w = p.dtype.type(quotient(1.0, rho)), p.dtype.type(quotient(1.0, xi))
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
    s[S.QQ] = total(parts)
    s[S.ETA] = -1
    s[S.THETA] = 0
    s[S.GAMMA] = 1
    s[S.ENDED] = Code.JUDGED


@parallel(fastmath=FAST)
def lanczos(state, Ap, MAq, v, w, s):
    """v = A p − (β/ρ) v; w = Mᴴ Aᴴ q − conj(β/ξ) w; (v, v), (w, w) and (w, v).

    Across ranks, also test the previous iteration for convergence. Arguments: top of file.
    """
    beta = over_delta(s)
    of_v = v.dtype.type(quotient(beta, np.sqrt(s[S.RHO2])))
    of_w = v.dtype.type(np.conj(quotient(beta, np.sqrt(s[S.XI2]))))
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
    s[S.NEXT_WV], s[S.NEXT_RHO2], s[S.NEXT_XI2] = total(parts[0]), total(parts[1]), total(parts[2])
    judge_once(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def update(state, vh, w, Ap, weights, p, q, d, Ad, x, r, s, single_rank):
    """d = η p + c d, A d likewise; x += d; r −= A d; norm²; then p and q of the next iteration, and (q, q).

    ``single_rank``: True on one rank; then test this iteration for convergence. Arguments: top of file.
    """
    beta, rho, xi = over_delta(s), math.sqrt(s[S.NEXT_RHO2].real), math.sqrt(s[S.NEXT_XI2].real)
    size = abs(beta)
    theta = quotient(rho, s[S.GAMMA].real * size)
    gamma = 1 / math.sqrt(1 + theta * theta)
    ratio = gamma / s[S.GAMMA].real
    step = -s[S.ETA] * quotient(np.sqrt(s[S.RHO2]), beta) * (ratio * ratio)
    carried = (s[S.THETA].real * gamma) ** 2
    wv = s[S.NEXT_WV]
    factor = quotient(quotient(wv, s[S.EPSILON]), s.dtype.type(rho * xi)) if size > 0 else wv * 0      # δ'/ε
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
    finite = math.isfinite(s[S.AP2].real) and math.isfinite(s[S.NEXT_RHO2].real) and math.isfinite(s[S.NEXT_XI2].real)
    lost = size == 0 or vanishes(s[S.NEXT_WV], s[S.NEXT_RHO2].real, s[S.NEXT_XI2].real)
    s[S.WV] = s[S.NEXT_WV]
    s[S.QQ], s[S.NORM2] = total(parts[0]), total(parts[1])
    s[S.ETA] = step
    s[S.THETA] = theta
    s[S.XI2] = s[S.NEXT_XI2]
    s[S.RHO2] = s[S.NEXT_RHO2]
    s[S.GAMMA] = gamma
    s[S.ENDED] = iteration_code(finite, lost)
    if single_rank:
        judge_once(state, s, S.NORM2, S.ENDED)
