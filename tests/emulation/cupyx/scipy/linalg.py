"""LU factors of full matrices on the emulated device; SciPy does the work."""
from __future__ import annotations

import scipy.linalg

import cupy


def lu_factor(a, overwrite_a=False, check_finite=True):
    lu, pivots = scipy.linalg.lu_factor(a.get(), check_finite=check_finite)
    return cupy.array(lu), cupy.array(pivots)


def lu_solve(factors, b, trans=0, overwrite_b=False, check_finite=True):
    return cupy.array(scipy.linalg.lu_solve(tuple(part.get() for part in factors), b.get(), trans,
                                            check_finite=check_finite))
