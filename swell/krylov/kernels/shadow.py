"""How methods with a shadow residual begin, on the CPU; ``shadow.cu`` is the same on a GPU."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import vanishes
from swell.core.kernels.judge import BREAKDOWN, halt, judge_start
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total

KERNELS = ("begin", "judge_first")


@njit(parallel=True, cache=True, fastmath=FAST)
def begin(state, r, shadow, w, p, s):
    """p = r; s[0] = ρ = (r̂, r), s[7] = (r̂, r̂), s[8] = (r, r), s[9] = norm² = Σ w |r|²."""
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
    s[0], s[7], s[8], s[9] = total(parts[0]), total(parts[1]), total(parts[2]), total(parts[3])


@njit(cache=True)
def judge_first(state, s):
    """The first judgement. A method may use s[9] for something else from now on."""
    judge_start(state, s[9].real)
    if state[0][0] == 0 and vanishes(s[0], s[7].real, s[8].real):
        halt(state, BREAKDOWN)
    s[9] = 0
