"""Extended+i interpolation by its formulas, to compare the kernels with."""
from __future__ import annotations

import numpy as np

from swell.preconditioners.amg.slots import State


def plain_extended(A, strong, state, numbers, pmax):
    """P by the formulas of interpolation.py, in dense loops."""
    n, coarse = len(A), state == State.COARSE
    P = np.zeros((n, numbers[-1]))
    for i in range(n):
        if coarse[i]:
            P[i, numbers[i]] = 1
        if state[i] != State.FINE:
            continue
        theta, w = A[i, i], np.zeros(n)
        for j in range(n):
            if j == i or A[i, j] == 0:
                continue
            if not strong[i, j]:
                theta += A[i, j]
            elif coarse[j]:
                w[j] += A[i, j]
            else:
                row = np.where(strong[j] & coarse, A[j], 0) * (state[j] == State.FINE)
                back = min(A[j, i], 0)
                d = row.sum() + back
                theta += A[i, j] * back / d if d else A[i, j]
                w += A[i, j] / d * row if d else 0
        w /= -theta
        kept = np.lexsort((np.arange(n), -abs(w)))[:pmax]
        kept = kept[w[kept] != 0]
        P[i, numbers[kept]] = w[kept] * (w.sum() / w[kept].sum() if kept.size else 1)
    return P
