"""Fused steps of LSQR on the CPU; ``lsqr.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``LSQR`` of least_squares/slots.py. Vectors have the names of ``least_squares/lsqr.py``. A kernel writes the
left sides of its formulas in place, vectors into the arrays and scalars into ``s``.
"""
from __future__ import annotations

import math

from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.breakdown import quotient
from swell.core.kernels.judge import judge, judge_start
from swell.core.kernels.measure import measure2
from swell.least_squares.slots import LSQR as S

KERNELS = ("start", "update")


@njit(parallel=True, cache=True)
def start(state, v, w, s):
    """w = v/α; ρ̄ = α, φ̄ = β; test the first residual for convergence. Arguments: top of file."""
    alpha, beta = s[S.NEXT_ALPHA].real, s[S.NEXT_BETA].real
    of_v = quotient(1.0, alpha)
    for i in prange(w.size):
        w[i] = of_v * v[i]
    s[S.ALPHA] = alpha
    s[S.BETA] = beta
    s[S.RHO_BAR] = alpha
    s[S.PHI_BAR] = beta
    judge_start(state, measure2(beta, alpha * beta, s[S.ALLOWED].real, s[S.NORMAL].real))


@njit(parallel=True, cache=True)
def update(state, v, w, y, s):
    """Rotate β out of the bidiagonal matrix; y += (φ/ρ) w; w = v/α − (θ/ρ) w.

    Then test this iteration for convergence. Arguments: top of file.
    """
    alpha, beta, rho_bar = s[S.NEXT_ALPHA].real, s[S.NEXT_BETA].real, s[S.RHO_BAR].real
    rho = math.hypot(rho_bar, beta)
    cos, sin = quotient(rho_bar, rho), quotient(beta, rho)
    of_y, of_v, of_w = quotient(cos * s[S.PHI_BAR].real, rho), quotient(1.0, alpha), quotient(sin * alpha, rho)
    for i in prange(y.size):
        t = w[i]
        y[i] += of_y * t
        w[i] = of_v * v[i] - of_w * t
    residual = sin * s[S.PHI_BAR].real
    s[S.ALPHA] = alpha
    s[S.BETA] = beta
    s[S.RHO_BAR] = -cos * alpha
    s[S.PHI_BAR] = residual
    judge(state, measure2(residual, residual * alpha * abs(cos), s[S.ALLOWED].real, s[S.NORMAL].real))
