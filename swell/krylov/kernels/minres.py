"""Fused steps of MINRES on the CPU; ``minres.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``MINRES`` of krylov/slots.py. Vectors have shape (n,) and the names of ``krylov/minres.py``. ``w``: float32
weights of the tested norm², or an empty array for all ones. ``q``: A z. v and d are not scaled: kernels divide by β and
γ. A kernel writes the left sides of its formulas in place, vectors into the arrays and scalars into ``s``; it returns
nothing.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import helper, njit, parallel
from swell.core.kernels.breakdown import EPS, quotient
from swell.core.kernels.judge import halt, iteration_code, judge_once, judge_start, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import MINRES as S

KERNELS = ("begin", "judge_first", "lanczos", "update")
TRUSTED = 0.01          # largest trusted drift of r from b − A x, relative to ‖r‖


@helper
def rotated(s):
    """Return (α, δ, γ̄) from the scalars ``s``. α is the diagonal entry of T in the new column. The last Givens
    rotation turns the entry above it into δ, and α into γ̄."""
    alpha, c, d = s[S.ALPHA].real / s[S.BETA2].real, s[S.COS].real, s[S.DELTA].real
    return alpha, c * d + s[S.SIN].real * alpha, s[S.SIN].real * d - c * alpha


@parallel(fastmath=FAST)
def begin(state, r, z, w, v, v_old, d, d_old, s):
    """v = r; v_old = d = d_old = 0; β² = (r, z), (z, z), (r, r); norm² = Σ w |r|²; the other scalars are reset.
    Arguments: top of file."""
    parts = np.empty((4, CHUNKS))
    for c in prange(CHUNKS):
        rz, zz, rr, norm2 = 0.0, 0.0, 0.0, 0.0
        for i in chunk_rows(r.size, c):
            v[i] = r[i]
            v_old[i] = 0
            d[i] = 0
            d_old[i] = 0
            rz += (np.conj(r[i]) * z[i]).real
            zz += (np.conj(z[i]) * z[i]).real
            t = (np.conj(r[i]) * r[i]).real
            rr += t
            norm2 += t * w[i] if w.size else t
        parts[0, c], parts[1, c], parts[2, c], parts[3, c] = rz, zz, rr, norm2
    s[S.BETA2], s[S.ZZ], s[S.RR], s[S.NORM2] = total(parts[0]), total(parts[1]), total(parts[2]), total(parts[3])
    s[S.LAST_BETA2] = 0
    s[S.COS] = -1
    s[S.SIN] = 0
    s[S.DELTA] = 0
    s[S.EPSILON] = 0
    s[S.GAMMA] = 1
    s[S.LAST_GAMMA] = 1
    s[S.COLUMN] = 0
    s[S.A2] = 0
    s[S.DRIFT] = 0
    s[S.ENDED] = Code.JUDGED


@njit(cache=True)
def judge_first(state, s):
    """Test the first residual for convergence: reads norm² in ``s``, sets ``state``; φ = β. Arguments: top of file."""
    beta2 = s[S.BETA2].real
    s[S.PHI] = math.sqrt(max(beta2, 0.0))
    judge_start(state, s[S.NORM2].real)
    if not stopped(state) and not beta2 > 0:
        halt(state, Code.INDEFINITE if math.isfinite(beta2) else Code.NONFINITE)


@parallel(fastmath=FAST)
def lanczos(state, q, z, v, v_next, d, d_next, s):
    """v_next = q/β − (α/β) v − (β/β_old) v_old; d_next = z/β − (δ/γ) d − (ε/γ_old) d_old.

    On entry ``v_next`` and ``d_next`` hold v_old and d_old, which are overwritten. Also (d_next, d_next) and (v_next,
    v_next), which is the next β² without M. Across ranks, also test the previous iteration for convergence. Arguments:
    top of file.
    """
    alpha, delta, _ = rotated(s)
    beta, last = math.sqrt(s[S.BETA2].real), math.sqrt(s[S.LAST_BETA2].real)
    of_z, of_v, of_old = 1 / beta, alpha / beta, quotient(beta, last)
    of_d, of_older = delta / s[S.GAMMA].real, s[S.EPSILON].real / s[S.LAST_GAMMA].real
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        vv, dd = 0.0, 0.0
        for i in chunk_rows(v.size, c):
            t = of_z * q[i] - of_v * v[i] - of_old * v_next[i]
            v_next[i] = t
            vv += (np.conj(t) * t).real
        for i in chunk_rows(v.size, c):          # a second loop: LLVM does not vectorise one over all arrays
            t = of_z * z[i] - of_d * d[i] - of_older * d_next[i]
            d_next[i] = t
            dd += (np.conj(t) * t).real
        parts[0, c], parts[1, c] = vv, dd
    s[S.A2] = max(s[S.A2].real, quotient(s[S.QQ].real, s[S.ZZ].real))
    s[S.VV], s[S.DD] = total(parts[0]), total(parts[1])
    s[S.NEXT_BETA2] = s[S.VV]
    s[S.ZZ] = s[S.VV]
    judge_once(state, s, S.NORM2, S.ENDED)


@parallel(fastmath=FAST)
def update(state, v, d, w, x, r, s, eps, single_rank):
    """Rotate the next β out of T; x += (c φ/γ) d; r = s² r − (s c φ/β) v; (r, r), norm²; the scalars of the next step.

    x and r stay if A r vanishes, if the drift of r from b − A x exceeds TRUSTED ‖r‖, or if M is not definite. ``v``,
    ``d``: the new vectors. ``eps``: machine precision. ``single_rank``: True on one rank; then test this iteration for
    convergence. Arguments: top of file.
    """
    alpha, delta, bar = rotated(s)
    beta2, phi, last_c = s[S.NEXT_BETA2].real, s[S.PHI].real, s[S.COS].real
    finite = math.isfinite(alpha) and math.isfinite(beta2)
    definite = beta2 > 0 or s[S.VV].real == 0
    beta = math.sqrt(max(beta2, 0.0))
    gamma = math.hypot(bar, beta)
    cos, sin = quotient(bar, gamma), quotient(beta, gamma)
    column = max(s[S.COLUMN].real, math.hypot(math.hypot(s[S.EPSILON].real, delta), gamma))
    step = quotient(cos * phi, gamma)
    drift = s[S.DRIFT].real + eps * math.sqrt(s[S.A2].real) * abs(step) * math.sqrt(s[S.DD].real)
    annihilated = math.hypot(bar, last_c * beta) <= EPS * column           # ‖A r‖/‖r‖, in M's norms
    lost = annihilated or drift > TRUSTED * math.sqrt(s[S.RR].real)
    stays = lost or not definite
    of_d, of_r, of_v = (0.0, 1.0, 0.0) if stays else (step, sin * sin, quotient(sin * cos * phi, beta))
    parts = np.empty((2, CHUNKS))
    for c in prange(CHUNKS):
        rr, norm2 = 0.0, 0.0
        for i in chunk_rows(r.size, c):
            x[i] += of_d * d[i]
            t = of_r * r[i] - of_v * v[i]
            r[i] = t
            t2 = (np.conj(t) * t).real
            rr += t2
            norm2 += w[i] * t2 if w.size else t2
        parts[0, c], parts[1, c] = rr, norm2
    s[S.RR], s[S.NORM2] = total(parts[0]), total(parts[1])
    s[S.EPSILON] = s[S.SIN].real * beta
    s[S.DELTA] = -last_c * beta
    s[S.COS] = cos
    s[S.SIN] = sin
    s[S.PHI] = sin * phi
    s[S.LAST_GAMMA] = s[S.GAMMA]
    s[S.GAMMA] = gamma if gamma > 0 else 1.0
    s[S.LAST_BETA2] = s[S.BETA2]
    s[S.BETA2] = beta2 if beta2 > 0 else 1.0
    s[S.COLUMN] = column
    s[S.DRIFT] = drift
    s[S.ENDED] = Code.INDEFINITE if finite and not definite else iteration_code(finite, lost)
    if single_rank:
        judge_once(state, s, S.NORM2, S.ENDED)
