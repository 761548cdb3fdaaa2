"""Fused steps of conjugate gradients on the CPU; ``cg.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``CG`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/cg.py``. ``w``: float32 weights
of the tested norm², or an empty array for all ones. A kernel writes the left sides of its formulas in place, vectors
into the arrays and scalars into ``s``; it returns nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.judge import due, halt, iterations, judge, judge_start, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import CG as S

KERNELS = ("begin", "judge_first", "residual", "direction")


@helper
def step_length(s):
    """Return α = ρ/σ, from the scalars ``s``; 0 if the curvature σ is not positive: ``direction`` then ends the
    iteration."""
    sigma = s[S.SIGMA].real
    return s[S.RHO].real / sigma if sigma > 0 else 0.0


@parallel(fastmath=FAST)
def begin(state, r, z, w, p, s):
    """p = z; ρ = (r, z); norm² = Σ w |r|². Arguments: top of file."""
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rho, norm2 = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = z[i]
            rho += (np.conj(r[i]) * z[i]).real
            rr = (np.conj(r[i]) * r[i]).real
            norm2 += rr * w[i] if w.size else rr
        parts[0, c], parts[1, c] = rho, norm2
    s[S.RHO], s[S.NORM2] = total(parts[0]), total(parts[1])


@njit(cache=True)
def judge_first(state, s):
    """Test the first residual for convergence: reads norm² in ``s``, sets ``state``. Arguments: top of file."""
    rho = s[S.RHO].real
    judge_start(state, s[S.NORM2].real)
    if not stopped(state) and not rho > 0:
        halt(state, Code.INDEFINITE if math.isfinite(rho) else Code.NONFINITE)


@parallel(fastmath=FAST)
def residual(state, q, r, w, s):
    """r −= α q; norm² = Σ w |r|²; next ρ = (r, r), right without M only: with M, M's product writes it again.
    Arguments: top of file."""
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
    s[S.NEXT_RHO] = total(parts[0])
    s[S.NORM2] = total(parts[1]) if weigh else s[S.NEXT_RHO]


@parallel
def direction(state, z, p, x, s, coefficients):
    """x += α p; β = next ρ / ρ; p = z + β p; then test this iteration for convergence.

    ``coefficients``: float64 array; iteration k stores α and β at 2 k and 2 k + 1, if there is room. Arguments: top of
    file.
    """
    alpha = step_length(s)
    rho = s[S.NEXT_RHO].real
    beta = rho / s[S.RHO].real
    k = 2 * iterations(state)
    if k + 1 < coefficients.size:
        coefficients[k] = alpha
        coefficients[k + 1] = beta
    for i in prange(p.size):
        d = p[i]
        x[i] += alpha * d
        p[i] = z[i] + beta * d
    s[S.RHO] = rho
    sigma = s[S.SIGMA].real
    if not sigma > 0:
        halt(state, Code.INDEFINITE if math.isfinite(sigma) else Code.NONFINITE)
        return
    judge(state, s[S.NORM2].real)
    if not stopped(state) and not rho > 0:
        halt(state, Code.INDEFINITE if math.isfinite(rho) else Code.NONFINITE)
