"""Balancing: the matrices of the cycle in variables scaled by the smoother's diagonal.

With D = diag(√(ω / (λ dᵢ))) on each level, d the ℓ1 diagonal, λ the largest eigenvalue of diag(d)⁻¹A or a bound of it,
and D_c on the next one,

    S = I − D A D,    P̃ = D⁻¹ P D_c,    R̃ = D_c R D⁻¹,    Q = S P̃ = (D⁻¹ P − D A P) D_c.

A smoothing step is x = S x + b. All entries are near 1, so that single precision suffices for every scale of A. Q needs
no extra product: A P was computed for the next level's matrix.
"""
from __future__ import annotations

from itertools import pairwise

from swell.preconditioners.amg.coarsest import SINGULAR
from swell.preconditioners.amg.smoother import scales


def balancing(hierarchy, omega, first=None):
    """Return the diagonal of D of each level of a `Hierarchy`, a list of new float64 arrays; ``omega`` is ω of D.

    ``first``: the finest level's diagonal, if a level above has decided it.

    An entry is 0 if the coarse diagonal entry is only rounding beside Σ pᵢᵣ² dᵢ: there a part of the problem without
    boundary values has shrunk to one row, which must get no coarse correction."""
    kind = hierarchy.settings.diagonal
    diagonals = [*(scales(level.A, omega / level.interpolation.radius, kind) for level in hierarchy.levels),
                 scales(hierarchy.last, omega)]
    if first is not None:
        diagonals[0] = first
    for level, (fine, coarse) in zip(hierarchy.levels, pairwise(diagonals)):
        R, C = level.R, level.RAP.C
        _kernels(C).drop_rounding(R.indptr, R.indices, R.data, fine, C.indptr, C.indices, C.data, SINGULAR / omega,
                                 coarse)
    return diagonals


def smoothing_matrix(A, scale, dtype):
    """Return S = I − D A D, a new CSRMatrix of type ``dtype`` with the pattern of A; ``scale`` is the diagonal of D."""
    S = A.with_values(A.space.empty(A.nnz, dtype))
    _kernels(A).smoothing_matrix(A.indptr, A.indices, A.data, scale, S.data)
    return S


def interpolation(P, fine, coarse, dtype):
    """Return P̃ = D⁻¹ P D_c, a new CSRMatrix of type ``dtype`` with the pattern of P; ``fine`` and ``coarse`` are the
    diagonals of D and D_c."""
    balanced = P.with_values(P.space.empty(P.nnz, dtype))
    _kernels(P).balance(P.indptr, P.indices, P.data, fine, coarse, balanced.data)
    return balanced


def restriction(R, fine, coarse, dtype):
    """Return R̃ = D_c R D⁻¹, as `interpolation` returns P̃; for R = Pᵀ it is P̃ᵀ."""
    balanced = R.with_values(R.space.empty(R.nnz, dtype))
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
