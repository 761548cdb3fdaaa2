"""Fused steps of Golub–Kahan bidiagonalisation on the CPU; ``golub_kahan.cu`` has the same kernels for a GPU.

Arguments of all kernels: ``state`` is the state of the convergence test (core/kernels/judge.py). ``s``: the scalars,
indexed by ``Bidiagonal`` of least_squares/slots.py. Vectors have the names of ``least_squares/golub_kahan.py``. A
kernel writes the left sides of its formulas in place, vectors into the arrays and scalars into ``s``. A prime marks the
value for the next step.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import parallel
from swell.core.kernels.breakdown import quotient
from swell.core.kernels.vector import CHUNKS, FAST, chunk_rows, total
from swell.least_squares.slots import Bidiagonal as S

KERNELS = ("first", "left", "right")


@parallel(fastmath=FAST)
def first(state, u, s, allowed, normal):
    """β' = ‖u‖; α = β = 0; store the limits ``allowed`` and ``normal`` in s[ALLOWED] and s[NORMAL]. Arguments: top of
    file."""
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


@parallel(fastmath=FAST)
def combine(fresh, out, of_new, of_old):
    """out = of_new fresh − of_old out, in place; return ‖out‖. ``of_new``, ``of_old``: numbers."""
    parts = np.empty(CHUNKS)
    for c in prange(CHUNKS):
        sums = 0.0
        for i in chunk_rows(out.size, c):
            t = of_new * fresh[i] - of_old * out[i]
            out[i] = t
            sums += (np.conj(t) * t).real
        parts[c] = sums
    return math.sqrt(total(parts))


def left(state, Av, u, s):
    """u = A v/α − (α/β) u; β' = ‖u‖. ``Av``: A v. Arguments: top of file."""
    alpha, beta = s[S.ALPHA].real, s[S.BETA].real
    s[S.NEXT_BETA] = combine(Av, u, quotient(1.0, alpha), quotient(alpha, beta))


def right(state, Au, v, s):
    """v = Aᴴ u/β' − (β'/α) v; α' = ‖v‖. ``Au``: Aᴴ u. Arguments: top of file."""
    alpha, beta = s[S.ALPHA].real, s[S.NEXT_BETA].real
    s[S.NEXT_ALPHA] = combine(Au, v, quotient(1.0, beta), quotient(beta, alpha))
