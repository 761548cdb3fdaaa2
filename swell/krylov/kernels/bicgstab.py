"""Fused steps of BiCGSTAB on the CPU; ``bicgstab.cu`` has the same kernels for a GPU, ``shadow.py`` the start.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``BiCGSTAB`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/bicgstab.py``. ``w``:
float32 weights of the tested norm², or an empty array for all ones. ``shadow``: r̂. ``ph``, ``sh``: p̂ = M p and ŝ = M
s. A kernel writes the left sides of its formulas in place, vectors into the arrays and scalars into ``s``; it returns
nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels.breakdown import quotient, vanishes
from swell.core.kernels.judge import halt, judge, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import BiCGSTAB as S

KERNELS = ("half", "update", "direction")


@parallel
def half(state, v, r, s):
    """α = ρ / (r̂, v); r −= α v: r then holds the s of BiCGSTAB. Arguments: top of file."""
    alpha = quotient(s[S.RHO], s[S.GAMMA])
    for i in prange(r.size):
        r[i] -= alpha * v[i]


@parallel(fastmath=FAST)
def update(state, ph, sh, t, shadow, w, x, r, s):
    """ω = (t, s)/(t, t); x += α p̂ + ω ŝ; r −= ω t, where r holds s on entry; next ρ = (r̂, r), norm² = Σ w |r|².
    Arguments: top of file."""
    alpha = quotient(s[S.RHO], s[S.GAMMA])
    omega = quotient(np.conj(s[S.ST]), s[S.TT].real)
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
    s[S.NEXT_RHO], s[S.NORM2], s[S.RR] = total(parts[0]), total(parts[1]), total(parts[2])


@parallel
def direction(state, r, v, p, s):
    """β = (next ρ / ρ) (α / ω); p = r + β (p − ω v); then test this iteration for convergence. Arguments: top of
    file."""
    alpha = quotient(s[S.RHO], s[S.GAMMA])
    omega = quotient(np.conj(s[S.ST]), s[S.TT].real)
    rho = s[S.NEXT_RHO]
    beta = quotient(rho, s[S.RHO]) * quotient(alpha, omega)
    for i in prange(r.size):
        p[i] = r[i] + beta * (p[i] - omega * v[i])
    shadow2 = s[S.SHADOW2].real
    lost = vanishes(s[S.GAMMA], shadow2, s[S.VV].real) or omega == 0 or vanishes(rho, shadow2, s[S.RR].real)
    finite = math.isfinite(s[S.GAMMA].real) and math.isfinite(s[S.TT].real)
    s[S.RHO] = rho
    judge(state, s[S.NORM2].real)
    if not stopped(state) and lost:
        halt(state, Code.BREAKDOWN if finite else Code.NONFINITE)
