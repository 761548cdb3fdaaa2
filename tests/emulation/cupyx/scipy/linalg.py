"""LU factors and triangular solves of full matrices on the emulated device; SciPy does the work."""
from __future__ import annotations

import scipy.linalg

import cupy


def lu_factor(a, overwrite_a=False, check_finite=True):
    lu, pivots = scipy.linalg.lu_factor(a.get(), check_finite=check_finite)
    return cupy.array(lu), cupy.array(pivots)


def lu_solve(factors, b, trans=0, overwrite_b=False, check_finite=True):
    return cupy.array(scipy.linalg.lu_solve(tuple(part.get() for part in factors), b.get(), trans,
                                            check_finite=check_finite))


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    return cupy.array(scipy.linalg.solve_triangular(a.get(), b.get(), trans, lower, unit_diagonal,
                                                    check_finite=check_finite))
