"""Balancing: the matrices of the cycle in variables scaled by the smoother's diagonal.

With D = diag(√(ω / dᵢ)) on each level, d the ℓ1 diagonal, and D_c on the next one,

    S = I − D A D,    P̃ = D⁻¹ P D_c,    R̃ = D_c R D⁻¹,    Q = S P̃ = (D⁻¹ P − D A P) D_c.

A smoothing step is x = S x + b. All entries are near 1, so that single precision suffices for every scale of A. Q needs
no extra product: A P was computed for the next level's matrix.
"""
from __future__ import annotations

from itertools import pairwise

from swell.preconditioners.amg.coarsest import SINGULAR
from swell.preconditioners.amg.smoother import scales


def balancing(hierarchy, omega):
    """Return the diagonal of D of each level of a `Hierarchy`, a list of new float64 arrays; ``omega`` is ω of D.

    An entry is 0 if the coarse diagonal entry is only rounding beside Σ pᵢᵣ² dᵢ: there a part of the problem without
    boundary values has shrunk to one row, which must get no coarse correction."""
    found = [scales(A, omega) for A in hierarchy.matrices]
    for level, (fine, coarse) in zip(hierarchy.levels, pairwise(found)):
        R, C = level.R, level.RAP.C
        _kernels(C).drop_rounding(R.indptr, R.indices, R.data, fine, C.indptr, C.indices, C.data, SINGULAR / omega,
                                 coarse)
    return found


def smoothing_matrix(A, scale, dtype):
    """Return S = I − D A D, a new CSRMatrix of type ``dtype`` with the pattern of A; ``scale`` is the diagonal of D."""
    S = A.with_values(A.space.empty(A.nnz, dtype))
    _kernels(A).smoothing_matrix(A.indptr, A.indices, A.data, scale, S.data)
    return S


def interpolation(level, fine, coarse, dtype):
    """Return P̃ = D⁻¹ P D_c for a `Level`, a new CSRMatrix with the pattern of P; ``fine`` and ``coarse`` are the
    diagonals of D and D_c."""
    P = level.P.with_values(level.P.space.empty(level.P.nnz, dtype))
    _kernels(level.P).balance(P.indptr, P.indices, level.P.data, fine, coarse, P.data)
    return P


def restriction(level, P, fine, coarse):
    """Return R̃ = D_c R D⁻¹ for a `Level`, a new CSRMatrix with the pattern of R; P̃ᵀ where R = Pᵀ.

    ``P`` is P̃, which also has the type; ``fine`` and ``coarse`` are the diagonals of D and D_c."""
    R = level.R
    if level.order is not None:
        return R.with_values(P.data[level.order])
    balanced = R.with_values(R.space.empty(R.nnz, P.dtype))
    _kernels(R).balance_restriction(R.indptr, R.indices, R.data, fine, coarse, balanced.data)
    return balanced


def smoothed_interpolation(level, fine, coarse, dtype):
    """Return Q = (D⁻¹ P − D A P) D_c for a `Level`, a new CSRMatrix with the pattern of A P; ``fine`` and ``coarse``
    are the diagonals of D and D_c."""
    AP, P = level.AP.C, level.P
    Q = AP.with_values(AP.space.empty(AP.nnz, dtype))
    _kernels(level.A).smoothed_interpolation(AP.indptr, AP.indices, AP.data, P.indptr, P.indices, P.data, fine, coarse,
                                            Q.data)
    return Q


def _kernels(A):
    """The kernels of the type of A: float64, or complex128."""
    return A.space.kernels("swell.preconditioners.amg", "cycle", A.dtype)
