"""Fused steps of COCG on the CPU; ``cocg.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``COCG`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/cocg.py``. ``w``: float32
weights of the tested norm², or an empty array for all ones. ``pc``, ``rc``: the conjugates of p and r, or empty arrays
if they are not needed. A kernel writes the left sides of its formulas in place, vectors into the arrays and scalars
into ``s``; it returns nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.breakdown import EPS, vanishes
from swell.core.kernels.judge import halt, judge, judge_start, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import COCG as S

KERNELS = ("begin", "judge_first", "residual", "direction")


@helper
def drowns(s):
    """Return True if subtracting α q = (ρ/μ) q would leave no digit of r, judged from the scalars ``s``."""
    return abs(s[S.MU]) * math.sqrt(s[S.LAST_RR].real) <= EPS * abs(s[S.RHO]) * math.sqrt(s[S.QQ].real)


@helper
def step_length(s):
    """Return α = ρ/μ, from the scalars ``s``; 0 if the step would leave no digit of r: ``direction`` then ends the
    iteration."""
    return s[S.RHO] * 0 if drowns(s) else s[S.RHO] / s[S.MU]


@parallel(fastmath=FAST)
def begin(state, r, z, w, p, pc, s):
    """p = z, pc = conj(p); ρ = rᵀ z; (r, r), (z, z), norm² = Σ w |r|². Arguments: top of file."""
    parts = np.empty((4, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, rr, zz, norm2 = s.dtype.type(0), 0.0, 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = z[i]
            if pc.size:
                pc[i] = np.conj(z[i])
            rho += r[i] * z[i]
            zz += (np.conj(z[i]) * z[i]).real
            t = (np.conj(r[i]) * r[i]).real
            rr += t
            norm2 += t * w[i] if w.size else t
        parts[0, c], parts[1, c], parts[2, c], parts[3, c] = rho, zz, norm2, rr
    s[S.RHO], s[S.ZZ], s[S.NORM2], s[S.LAST_RR] = total(parts[0]), total(parts[1]), total(parts[2]), total(parts[3])


@njit(cache=True)
def judge_first(state, s):
    """Test the first residual for convergence: reads norm² in ``s``, sets ``state``. Arguments: top of file."""
    judge_start(state, s[S.NORM2].real)
    if not stopped(state) and vanishes(s[S.RHO], s[S.LAST_RR].real, s[S.ZZ].real):
        halt(state, Code.BREAKDOWN)


@parallel(fastmath=FAST)
def residual(state, q, r, rc, w, s):
    """r −= α q, rc = conj(r); norm² = Σ w |r|²; next ρ = rᵀ r, right without M only: with M, M's product writes it
    again. Arguments: top of file."""
    alpha = r.dtype.type(step_length(s))
    parts = np.empty((3, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, rr, weighted = s.dtype.type(0), 0.0, 0.0
        for i in chunk_rows(r.size, c):
            t = r[i] - alpha * q[i]
            r[i] = t
            if rc.size:
                rc[i] = np.conj(t)
            rho += t * t
            t2 = (np.conj(t) * t).real
            rr += t2
            weighted += w[i] * t2 if w.size else t2
        parts[0, c], parts[1, c], parts[2, c] = rho, rr, weighted
    s[S.NEXT_RHO], s[S.ZZ], s[S.NORM2] = total(parts[0]), total(parts[1]), total(parts[2])
    s[S.RR] = s[S.ZZ]


@parallel
def direction(state, z, p, pc, x, s):
    """x += α p; β = next ρ / ρ; p = z + β p, pc = conj(p); then test this iteration for convergence. Arguments: top of
    file."""
    lost = drowns(s)
    rho = s[S.NEXT_RHO]
    alpha, beta = x.dtype.type(step_length(s)), x.dtype.type(rho / s[S.RHO])
    for i in prange(p.size):
        d = p[i]
        x[i] += alpha * d
        d = z[i] + beta * d
        p[i] = d
        if pc.size:
            pc[i] = np.conj(d)
    finite = math.isfinite(s[S.QQ].real) and math.isfinite(s[S.ZZ].real)
    lost = lost or vanishes(rho, s[S.RR].real, s[S.ZZ].real) or not finite
    s[S.RHO] = rho
    s[S.LAST_RR] = s[S.RR]
    judge(state, s[S.NORM2].real)
    if not stopped(state) and lost:
        halt(state, Code.BREAKDOWN if finite else Code.NONFINITE)
