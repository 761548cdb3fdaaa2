"""Fused steps of CG with one reduction on the CPU; ``single_reduction_cg.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``SingleReductionCG`` of krylov/slots.py. Vectors have shape (n,) and the names of
``krylov/single_reduction_cg.py``. ``weights``: float32 weights of the tested norm², or an empty array for all ones. A
kernel writes the left sides of its formulas in place, vectors into the arrays and scalars into ``s``; it returns
nothing. α_ and γ_ are of the last iteration.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.judge import due, halt, iterations, judge, judge_start, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import SingleReductionCG as S

KERNELS = ("norm", "first", "advance", "settle", "take")


@parallel(fastmath=FAST)
def norm(state, r, weights, s):
    """γ = (r, r), right without M only: M's product writes it again; norm² = Σ w |r|². Arguments: top of file."""
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rr, weighted = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            t = (np.conj(r[i]) * r[i]).real
            rr += t
            weighted += t * weights[i] if weights.size else t
        parts[0, c], parts[1, c] = rr, weighted
    s[S.GAMMA], s[S.NORM2] = total(parts[0]), total(parts[1])


@njit(cache=True)
def choose(state, s, beta, curvature):
    """Store β = ``beta`` and α = γ / ``curvature`` in ``s``, where ``curvature`` is (p, A p) of the new direction p.

    If γ or the curvature is not positive, stop the run in ``state``. Arguments: top of file.
    """
    gamma = s[S.GAMMA].real
    if not stopped(state) and not (gamma > 0 and curvature > 0):
        halt(state, Code.INDEFINITE if math.isfinite(gamma) and math.isfinite(curvature) else Code.NONFINITE)
    s[S.LAST_GAMMA] = gamma
    s[S.ALPHA] = gamma / curvature if curvature > 0 else 0.0
    s[S.BETA] = beta


@njit(cache=True)
def first(state, s):
    """Test the first residual for convergence; α = γ/δ, β = 0. Arguments: top of file."""
    judge_start(state, s[S.NORM2].real)
    choose(state, s, 0.0, s[S.DELTA].real)


@parallel(fastmath=FAST)
def advance(state, u, w, p, q, x, r, weights, s):
    """p = u + β p; q = w + β q; x += α p; r −= α q; norm² = Σ w |r|²; next γ = (r, r).

    ``q`` is the s = A p of krylov/single_reduction_cg.py; ``s`` holds the scalars. u may be r. With M, M's product
    writes γ again. Arguments: top of file.
    """
    alpha, beta = s[S.ALPHA].real, s[S.BETA].real
    weigh = weights.size > 0 and due(state)
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rr, weighted = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            direction = u[i] + beta * p[i]
            image = w[i] + beta * q[i]
            p[i] = direction
            q[i] = image
            x[i] += alpha * direction
            t = r[i] - alpha * image
            r[i] = t
            t2 = (np.conj(t) * t).real
            rr += t2
            if weigh:
                weighted += weights[i] * t2
        parts[0, c], parts[1, c] = rr, weighted
    s[S.GAMMA] = total(parts[0])
    s[S.NORM2] = total(parts[1]) if weigh else s[S.GAMMA]


@njit(cache=True)
def settle(state, s, coefficients):
    """Test this iteration for convergence; compute the next β = γ/γ_ and α = γ/(δ − β γ/α_) in ``s``.

    ``coefficients``: float64 array; iteration k stores α_ and β at 2 k and 2 k + 1, if there is room. If the curvature
    δ − β γ/α_ is not positive, the direction restarts with p = u, whose curvature δ is measured. Arguments: top of
    file.
    """
    gamma, before, alpha = s[S.GAMMA].real, s[S.LAST_GAMMA].real, s[S.ALPHA].real
    beta = gamma / before
    curvature = s[S.DELTA].real - beta * gamma / alpha
    if not curvature > 0:
        beta, curvature = 0.0, s[S.DELTA].real
    k = 2 * iterations(state)
    if k + 1 < coefficients.size:
        coefficients[k] = alpha
        coefficients[k + 1] = beta
    judge(state, s[S.NORM2].real)
    choose(state, s, beta, curvature)


@parallel(fastmath=FAST)
def take(state, true_, r, s):
    """Set r = ``true_``, the true residual b − A x; s[DRIFT2] = the largest ‖true_ − r‖² yet. Arguments: top of
    file."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        drift = 0.0
        for i in chunk_rows(r.size, c):
            t = true_[i]
            d = t - r[i]
            drift += (np.conj(d) * d).real
            r[i] = t
        parts[c] = drift
    s[S.DRIFT2] = max(s[S.DRIFT2].real, total(parts))
