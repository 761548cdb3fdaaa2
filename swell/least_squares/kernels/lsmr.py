"""Fused steps of LSMR on the CPU; ``lsmr.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``LSMR`` of least_squares/slots.py. Vectors have the names of ``least_squares/lsmr.py``. A kernel writes the
left sides of its formulas in place, vectors into the arrays and scalars into ``s``. ``hbar``: h̄.
"""
from __future__ import annotations

import math

from numba import prange

from swell.core.compiled import njit
from swell.core.kernels.breakdown import quotient
from swell.core.kernels.judge import judge, judge_start
from swell.core.kernels.measure import measure2
from swell.least_squares.slots import LSMR as S

KERNELS = ("start", "update")


@njit(parallel=True, cache=True)
def start(state, v, h, hbar, s):
    """h = v/α; h̄ = 0; ᾱ = α, ζ̄ = α β; test the first residual for convergence. Arguments: top of file."""
    alpha, beta = s[S.NEXT_ALPHA].real, s[S.NEXT_BETA].real
    of_v = quotient(1.0, alpha)
    for i in prange(h.size):
        h[i] = of_v * v[i]
        hbar[i] = 0
    s[S.ALPHA] = alpha
    s[S.BETA] = beta
    s[S.ALPHA_BAR] = alpha
    s[S.ZETA_BAR] = alpha * beta
    s[S.RHO] = 1
    s[S.RHO_BAR] = 1
    s[S.COS_BAR] = 1
    s[S.SIN_BAR] = 0
    s[S.ZETA] = 0
    s[S.BETA_DOTS] = beta
    s[S.BETA_DOT] = 0
    s[S.RHO_DOT] = 1
    s[S.TAU] = 0
    s[S.THETA] = 0
    judge_start(state, measure2(beta, alpha * beta, s[S.ALLOWED].real, s[S.NORMAL].real))


@njit(parallel=True, cache=True)
def update(state, v, h, hbar, y, s):
    """Both rotations; h̄ = h − (θ̄ ρ/(ρ_old ρ̄_old)) h̄; y += (ζ/(ρ ρ̄)) h̄; h = v/α − (θ/ρ) h.

    Then test this iteration for convergence. Arguments: top of file.
    """
    alpha, beta, last_rho, last_rho_bar = s[S.NEXT_ALPHA].real, s[S.NEXT_BETA].real, s[S.RHO].real, s[S.RHO_BAR].real
    rho = math.hypot(s[S.ALPHA_BAR].real, beta)
    cos, sin = quotient(s[S.ALPHA_BAR].real, rho), quotient(beta, rho)
    theta, theta_bar, diagonal = sin * alpha, s[S.SIN_BAR].real * rho, s[S.COS_BAR].real * rho
    rho_bar = math.hypot(diagonal, theta)
    cos_bar, sin_bar = quotient(diagonal, rho_bar), quotient(theta, rho_bar)
    zeta, zeta_bar = cos_bar * s[S.ZETA_BAR].real, -sin_bar * s[S.ZETA_BAR].real
    of_hbar, of_y = quotient(theta_bar * rho, last_rho * last_rho_bar), quotient(zeta, rho * rho_bar)
    of_v, of_h = quotient(1.0, alpha), quotient(theta, rho)
    for i in prange(y.size):
        t = h[i] - of_hbar * hbar[i]
        hbar[i] = t
        y[i] += of_y * t
        h[i] = of_v * v[i] - of_h * h[i]
    beta_hat, beta_dots = cos * s[S.BETA_DOTS].real, -sin * s[S.BETA_DOTS].real              # ‖r‖ by section 5.1
    rho_tilde = math.hypot(s[S.RHO_DOT].real, theta_bar)
    cos_tilde, sin_tilde = quotient(s[S.RHO_DOT].real, rho_tilde), quotient(theta_bar, rho_tilde)
    theta_tilde, rho_dot = sin_tilde * rho_bar, cos_tilde * rho_bar
    beta_dot = cos_tilde * beta_hat - sin_tilde * s[S.BETA_DOT].real
    tau = quotient(s[S.ZETA].real - s[S.THETA].real * s[S.TAU].real, rho_tilde)
    residual = math.hypot(beta_dot - quotient(zeta - theta_tilde * tau, rho_dot), beta_dots)
    s[S.ALPHA] = alpha
    s[S.BETA] = beta
    s[S.ALPHA_BAR] = cos * alpha
    s[S.ZETA_BAR] = zeta_bar
    s[S.RHO] = rho
    s[S.RHO_BAR] = rho_bar
    s[S.COS_BAR] = cos_bar
    s[S.SIN_BAR] = sin_bar
    s[S.ZETA] = zeta
    s[S.BETA_DOTS] = beta_dots
    s[S.BETA_DOT] = beta_dot
    s[S.RHO_DOT] = rho_dot
    s[S.TAU] = tau
    s[S.THETA] = theta_tilde
    judge(state, measure2(residual, abs(zeta_bar), s[S.ALLOWED].real, s[S.NORMAL].real))
