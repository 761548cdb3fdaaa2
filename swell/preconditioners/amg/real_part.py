"""The real matrix from which classical coarsening reads links and weights, and values mirrored at the diagonal.

The real part of a complex matrix, each row turned so that its diagonal entry is |aᵢᵢ|:

    bᵢⱼ = Re(aᵢⱼ āᵢᵢ) / |aᵢᵢ|.

A smoothed error varies little along links with −bᵢⱼ large, as for a real matrix. Interpolation made of B is real. So
R = Pᵀ serves complex symmetric and Hermitian matrices alike: Pᵀ A P is complex symmetric, or Hermitian, if A is.

Interpolation of row i uses aⱼᵢ beside aᵢⱼ. These are the same numbers in a symmetric matrix; else row j is searched.

Cost: one pass over the matrix each; a binary search an entry for mirrored values.
"""
from __future__ import annotations

import numpy as np


def real_part(A):
    """Return B, a new real CSRMatrix with the pattern of a complex CSRMatrix A; A itself if it is real."""
    if A.dtype.kind != "c":
        return A
    B = A.with_values(A.space.empty(A.nnz, np.float64))
    _kernels(A).turned(A.indptr, A.indices, A.data, B.data)
    return B


def mirrored(A, symmetric):
    """Return aⱼᵢ for each entry aᵢⱼ of a real CSRMatrix, a float64 array; 0 where it is not stored.

    ``symmetric``: A is symmetric, and its own values are returned."""
    if symmetric:
        return A.data
    mirror = A.space.empty(A.nnz, np.float64)
    _kernels(A).mirrored(A.indptr, A.indices, A.data, mirror)
    return mirror


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "real_part", A.dtype)
