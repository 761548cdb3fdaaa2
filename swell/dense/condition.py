"""Condition numbers from factors: estimates of 1-norms by products with vectors alone.

Hager (1984); Higham, "FORTRAN codes for estimating the one-norm" (1988); Higham and Tisseur (2000), algorithm 2.4 with
one vector; LAPACK's lacn2 and gecon. ‖B‖₁ = max ‖B x‖₁ over ‖x‖₁ ≤ 1 is attained at a unit vector. From x = (1/n, …),
each step moves to the unit vector on which a subgradient of ‖B x‖₁ is largest, until none is better. A last vector of
alternating signs guards against cancellation. The result is a lower bound, and rarely less than a third of the norm.

At most 11 products with B or Bᴴ. Here B = A⁻¹ by the factors, on their device; and, where ‖A‖₁ is not given, B = L U,
whose columns have the norms of A's columns up to rounding. The host keeps the vectors, n numbers each.

Differs from LAPACK: many matrices of one size are estimated together, and the largest of all sums is the result.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.core.registry import resolve
from swell.core.settings import real, shown

STEPS = 5               # most unit vectors that are tried, as in LAPACK


def norms1(space, multiply, count, n, dtype):
    """Estimate ‖B‖₁ of ``count`` matrices B of n rows; return a float64 host array.

    ``multiply(X, adjoint)`` returns B X, or Bᴴ X, for each B; X and the result are arrays of the space, of shape
    (count, n, 1) and this type."""
    def apply(X, adjoint):
        return space.to_host(multiply(space.from_host(X), adjoint))  # sync

    def sums(X):
        return abs(X).astype(np.float64).sum(axis=(1, 2))

    def signs(X):
        size = abs(X)
        return np.where(size > 0, X / np.where(size > 0, size, 1), 1).astype(dtype)

    with np.errstate(over="ignore", invalid="ignore"):
        Y = apply(np.full((count, n, 1), 1 / n, dtype), False)
        most, at, last = sums(Y), np.full(count, -1), np.zeros_like(Y)
        for _ in range(STEPS if n > 1 else 0):
            S = signs(Y)
            slope = abs(apply(S, True))[:, :, 0]
            now = slope.argmax(axis=1)
            same = (now == at) | (S == last).all(axis=(1, 2))
            if same.all():
                break
            at, last = now, S
            unit = np.zeros((count, n, 1), dtype)
            unit[np.arange(count), at] = 1
            Y = apply(unit, False)
            most = np.maximum(most, sums(Y))
        i = np.arange(n)
        alternating = (-1.0) ** i * (1 + i / max(n - 1, 1))
        last = sums(apply(np.broadcast_to(alternating.astype(dtype)[:, None], (count, n, 1)).copy(), False))
        most = np.maximum(most, 2 * last / (3 * n))
    return np.where(np.isfinite(most), most, np.inf)


def condition(factors, norm=None) -> float:
    """Estimate ‖A‖₁ ‖A⁻¹‖₁ from `LUFactors`; ``norm``: ‖A‖₁, or None to estimate it from L U.

    Raises
    ------
    InputError
        If ``norm`` is no positive number.
    FactorisationError
        If the factors no longer represent A, by growth.
    """
    if norm is not None and not (real(norm) and 0 < norm < np.inf):
        raise InputError(f"condition(norm={shown(norm)}): expected ‖A‖₁, a positive number, or None to estimate it")
    factors.require_useful()
    space, one = factors.space, (1, factors.n, factors.dtype)
    inverse = [resolve("dense_solver", "trsm").build(factors, trans) for trans in "NC"]
    with space.active(factors.n):
        if norm is None:
            norm = norms1(space, _product(factors), *one)[0]
        return float(norm * norms1(space, lambda X, adjoint: inverse[adjoint].apply(X[0])[None], *one)[0])


def _product(factors):
    """Return a function (X, adjoint) that multiplies by L U or its adjoint: Pᵀ L U has the same column sums, and a
    vector of signs may come in any order."""
    L, U = factors.lower(), factors.upper()

    def product(X, adjoint):
        X = X[0]
        X = U.conj().T @ (L.conj().T @ X) if adjoint else L @ (U @ X)
        return X[None]
    return product
