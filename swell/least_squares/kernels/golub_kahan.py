"""The fused steps of a Golub–Kahan bidiagonalisation on the CPU; ``golub_kahan.cu`` is the same on a GPU."""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from swell.core.kernels.breakdown import quotient
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.least_squares.slots import Bidiagonal as S

KERNELS = ("first", "left", "right")


@njit(parallel=True, cache=True, fastmath=FAST)
def first(state, u, s, allowed, normal):
    """β' = ‖u‖; α = β = 0, and the bounds of the norms."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        uu = 0.0
        for i in chunk_rows(u.size, c):
            uu += (np.conj(u[i]) * u[i]).real
        parts[c] = uu
    s[S.ALPHA] = 0
    s[S.BETA] = 0
    s[S.NEXT_BETA] = math.sqrt(total(parts))
    s[S.ALLOWED] = allowed
    s[S.NORMAL] = normal


@njit(parallel=True, cache=True, fastmath=FAST)
def left(state, Av, u, s):
    """u = A v/α − (α/β) u; β' = ‖u‖."""
    of_new, of_old = quotient(1.0, s[S.ALPHA].real), quotient(s[S.ALPHA].real, s[S.BETA].real)
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        uu = 0.0
        for i in chunk_rows(u.size, c):
            t = of_new * Av[i] - of_old * u[i]
            u[i] = t
            uu += (np.conj(t) * t).real
        parts[c] = uu
    s[S.NEXT_BETA] = math.sqrt(total(parts))


@njit(parallel=True, cache=True, fastmath=FAST)
def right(state, Au, v, s):
    """v = Aᴴ u/β' − (β'/α) v; α' = ‖v‖."""
    of_new, of_old = quotient(1.0, s[S.NEXT_BETA].real), quotient(s[S.NEXT_BETA].real, s[S.ALPHA].real)
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        vv = 0.0
        for i in chunk_rows(v.size, c):
            t = of_new * Au[i] - of_old * v[i]
            v[i] = t
            vv += (np.conj(t) * t).real
        parts[c] = vv
    s[S.NEXT_ALPHA] = math.sqrt(total(parts))
