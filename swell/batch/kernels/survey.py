"""What the choice of a method asks of each system, on the CPU; ``survey.cu`` is the GPU's version.

``indptr``, ``indices``, ``diagonal``, ``values``: as in ``cg.py``. ``mirror``: the entry of aⱼᵢ for each aᵢⱼ, or −1.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@parallel
def survey(indptr, indices, diagonal, mirror, values, tolerance, definite, threads):
    """definite[s] = 1 if system s is Hermitian with a positive diagonal, or not finite; else 0.

    ``tolerance``: of Hermitian, relative to the largest entry. ``threads``: on a GPU only."""
    for s in prange(values.shape[0]):
        definite[s] = looks_definite(indptr, diagonal, mirror, values[s], tolerance)


@njit(cache=True)
def looks_definite(indptr, diagonal, mirror, a, tolerance):
    """Return 1 or 0 for one system, as ``survey`` says."""
    most, difference, total = 0.0, 0.0, 0.0
    for k in range(a.size):
        most = max(most, abs(a[k]))
        total += abs(a[k])
        other = a[mirror[k]] if mirror[k] >= 0 else a[k] * 0
        difference = max(difference, abs(a[k] - np.conj(other)))
    if not math.isfinite(total):
        return 1
    for i in range(diagonal.size):
        if not a[diagonal[i]].real > 0:
            return 0
    return 1 if difference <= tolerance * most else 0
