"""Accuracy of factors and solutions: the thesis' maximum absolute differences, and relative errors.

The thesis takes max |A − L U P| (2.7) for factors, and max |L U P X − B| (2.8) for solutions, with L U instead of A.
Without ‖A‖ these numbers mean little. Normwise backward errors need no such context: ‖P A − L U‖₁ / ‖A‖₁ for factors
and, by Rigal and Gaches (1967), ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞) for the worst right-hand side. The latter is the size
of the smallest change of A and b for which x is exact. All is computed in double precision. A result that is not finite
is returned as infinity, so that no NaN can look like a success.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

PROBES = 4              # random vectors that compare factors with A


@dataclass(frozen=True)
class DecompositionAccuracy:
    """Accuracy of factors.

    Attributes
    ----------
    max_difference : float
        max |P A − L U| (2.7).
    backward_error : float
        ‖P A − L U‖₁ / ‖A‖₁.
    growth : float
        The largest entry of L and U over A's largest entry; see `LUFactors.largest`.
    """

    max_difference: float
    backward_error: float
    growth: float


@dataclass(frozen=True)
class SolutionAccuracy:
    """Accuracy of a solution.

    Attributes
    ----------
    max_difference : float
        max |L U X − P B| (2.8).
    max_residual : float
        max |A X − B|.
    backward_error : float
        ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞) of the worst right-hand side.
    """

    max_difference: float
    max_residual: float
    backward_error: float


def decomposition_accuracy(A, factors) -> DecompositionAccuracy:
    """Return the errors of L U as a product P A, for ``factors`` (LUFactors) of A, an array of shape (n, n)."""
    space = factors.space
    with space.active():
        A = _wide(space, A)
        difference = abs(A[factors.order] - _wide(space, factors.lower()) @ _wide(space, factors.upper()))
        size = abs(A)
        share = difference.sum(axis=0).max() / size.sum(axis=0).max()
        return DecompositionAccuracy(_finite(difference.max()), _finite(share), _finite(factors.largest() / size.max()))


def lost(A, factors) -> float:
    """Return ‖(P A − L U) V‖ / ‖A V‖ for a few random V, in the type of ``factors`` (LUFactors); it takes O(n²)
    operations. At 1, L U is no better an approximation of A than zero."""
    space = factors.space
    with space.active(factors.n), np.errstate(over="ignore", invalid="ignore"):      # an overflow gives inf
        signs = np.random.default_rng(0).integers(0, 2, (factors.n, PROBES)) * 2 - 1
        V = space.from_host(signs.astype(factors.dtype))
        ours = space.from_host(A)[factors.order] @ V
        size = abs(ours).max()                   # squares of large numbers would overflow
        difference = (ours - factors.lower() @ (factors.upper() @ V)) / size
        return _finite(space.xp.linalg.norm(difference) / space.xp.linalg.norm(ours / size))  # sync


def solution_accuracy(A, B, X, factors) -> SolutionAccuracy:
    """Return the errors of X in A X = B, and in L U X = P B with ``factors`` (LUFactors) of A. ``A``: shape (n, n).
    ``B``, ``X``: shape (n,) or (n, m)."""
    space = factors.space
    with space.active():
        A, B, X = (_wide(space, M) for M in (A, B, X))
        B, X = B.reshape(A.shape[0], -1), X.reshape(A.shape[0], -1)
        ours = _wide(space, factors.lower()) @ (_wide(space, factors.upper()) @ X) - B[factors.order]
        residual = B - A @ X
        share = backward_errors(space.xp, (abs(A) / len(A)).sum(axis=1).max(), residual, X, B)
        return SolutionAccuracy(_finite(abs(ours).max()), _finite(abs(residual).max()), _finite(share.max()))


def backward_errors(xp, norm, R, X, B):
    """Return ‖r‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞) for each column of the residuals R of A X = B; ``norm``: ‖A‖∞ / n.

    All is divided by ‖A‖∞: a product that overflows would make the error 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        residual, of_B = (abs(M).max(axis=0) / len(X) / norm for M in (R, B))
        size = abs(X).max(axis=0) + of_B
        return residual / xp.where(size > 0, size, 1)


def _wide(space, M):
    """Return M as a new array in the space, in double precision."""
    M = space.from_host(M)
    return M.astype(np.result_type(M.dtype, np.float64))


def _finite(value) -> float:
    """Return the value as a float; infinity if it is NaN or infinite."""
    value = float(value)
    return value if math.isfinite(value) else math.inf
