"""How good factors and solutions are: the thesis' maximum absolute differences, and relative measures beside them.

The thesis takes max |A − L U P| (2.7) for factors, and for solutions max |L U P X − B| (2.8), against L U instead of A.
They say nothing without ‖A‖. The normwise backward errors do: ‖P A − L U‖₁ / ‖A‖₁ and, by Rigal and Gaches (1967), for
the worst right-hand side, ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞): the size of the smallest change of A and b for which x is
exact. All is computed in double precision; what is not finite is infinite here, so that no NaN can look like a success.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

PROBES = 4              # vectors by which factors are compared with A


@dataclass(frozen=True)
class DecompositionAccuracy:
    """Of factors.

    Attributes
    ----------
    max_difference : float
        max |P A − L U| (2.7).
    backward_error : float
        ‖P A − L U‖₁ / ‖A‖₁.
    growth : float
        The largest entry of L and U over that of A, the one with the unit diagonal scaled by the other's diagonal.
    """

    max_difference: float
    backward_error: float
    growth: float


@dataclass(frozen=True)
class SolutionAccuracy:
    """Of a solution.

    Attributes
    ----------
    max_difference : float
        max |L U X − P B| (2.8).
    max_residual : float
        max |A X − B|.
    backward_error : float
        Against A, the worst right-hand side's.
    """

    max_difference: float
    max_residual: float
    backward_error: float


def decomposition_accuracy(A, factors) -> DecompositionAccuracy:
    """Compare factors with the matrix that they are of."""
    space = factors.space
    with space.active():
        A = _wide(space, A)
        difference = abs(A[factors.order] - _wide(space, factors.lower()) @ _wide(space, factors.upper()))
        size = abs(A)
        share = difference.sum(axis=0).max() / size.sum(axis=0).max()
        return DecompositionAccuracy(_finite(difference.max()), _finite(share), _finite(factors.largest() / size.max()))


def lost(A, factors) -> float:
    """‖(P A − L U) V‖ / ‖A V‖ for a few random V, in the type of the factors: O(n²). Where it is 1, zero would be as
    near to A as L U is."""
    space = factors.space
    with space.active(factors.n), np.errstate(over="ignore", invalid="ignore"):      # what overflows is inf here
        signs = np.random.default_rng(0).integers(0, 2, (factors.n, PROBES)) * 2 - 1
        V = space.from_host(signs.astype(factors.dtype))
        ours = space.from_host(A)[factors.order] @ V
        size = abs(ours).max()                   # squares of large numbers would overflow
        difference = (ours - factors.lower() @ (factors.upper() @ V)) / size
        return _finite(space.xp.linalg.norm(difference) / space.xp.linalg.norm(ours / size))  # sync


def solution_accuracy(A, B, X, factors) -> SolutionAccuracy:
    """Compare a solution with the system, and with the factors."""
    space = factors.space
    with space.active():
        A, B, X = (_wide(space, M) for M in (A, B, X))
        B, X = B.reshape(A.shape[0], -1), X.reshape(A.shape[0], -1)
        ours = _wide(space, factors.lower()) @ (_wide(space, factors.upper()) @ X) - B[factors.order]
        residual = abs(B - A @ X)
        size = abs(A).sum(axis=1).max() * abs(X).max(axis=0) + abs(B).max(axis=0)
        share = residual.max(axis=0) / space.xp.maximum(size, np.finfo(np.float64).tiny)
        return SolutionAccuracy(_finite(abs(ours).max()), _finite(residual.max()), _finite(share.max()))


def _wide(space, M):
    """An array of the space in double precision."""
    return space.from_host(M).astype(np.result_type(M.dtype, np.float64))


def _finite(value) -> float:
    """A number, or inf for what is none."""
    value = float(value)
    return value if math.isfinite(value) else math.inf
