"""First kernels of methods with a shadow vector, on the CPU; ``shadow.cu`` has the same kernels for a GPU.

``state``: the state of the convergence test (core/kernels/judge.py). ``s``: scalars, indexed by ``Shadow`` of
krylov/slots.py.
"""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.core.kernels.breakdown import vanishes
from swell.core.kernels.judge import halt, judge_start, stopped
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.core.slots import Code
from swell.krylov.slots import Shadow as S

KERNELS = ("begin", "judge_first")


@parallel(fastmath=FAST)
def begin(state, r, shadow, w, p, s):
    """p = r; ρ = (r̂, r); (r̂, r̂); (r, r); norm² = Σ w |r|².

    ``shadow``: r̂. ``w``: weights, or an empty array for all ones. Writes p and the scalars in ``s``.
    """
    parts = np.empty((4, CHUNKS), s.dtype)
    for c in prange(CHUNKS):
        rho, shadow2, rr, norm2 = s.dtype.type(0), 0.0, 0.0, 0.0
        for i in chunk_rows(r.size, c):
            p[i] = r[i]
            rho += np.conj(shadow[i]) * r[i]
            shadow2 += (np.conj(shadow[i]) * shadow[i]).real
            t = (np.conj(r[i]) * r[i]).real
            rr += t
            norm2 += t * w[i] if w.size else t
        parts[0, c], parts[1, c], parts[2, c], parts[3, c] = rho, shadow2, rr, norm2
    s[S.RHO], s[S.SHADOW2], s[S.RR], s[S.NORM2] = total(parts[0]), total(parts[1]), total(parts[2]), total(parts[3])


@njit(cache=True)
def judge_first(state, s):
    """Test the first residual for convergence: reads norm² in ``s``, sets ``state``. Arguments: top of file."""
    judge_start(state, s[S.NORM2].real)
    if not stopped(state) and vanishes(s[S.RHO], s[S.SHADOW2].real, s[S.RR].real):
        halt(state, Code.BREAKDOWN)
