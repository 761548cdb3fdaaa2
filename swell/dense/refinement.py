"""Dense systems by iterative refinement: factors in single precision, the answer in double.

LAPACK's dsgesv and zcgesv (Langou et al. 2006); Higham, Accuracy and Stability, chapter 12; Carson and Higham 2018.
A is factored in single precision. Then x ← x + d with A d = b − A x, the residual in double precision, until the
backward error ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞) of every column is at most √n eps. Each step multiplies the error by
about n eps₃₂ κ(A): beyond κ = 10⁷ it stops falling. Then A is factored in double precision, and a note says so.

2/3 n³ operations in single precision, and 4 n² a step and column. Storage: A, and the factors in single precision, half
as large. It pays where single precision is faster: on a CPU up to twice, on a GPU by its ratio of the two speeds.

Differs from LAPACK: residuals are scaled by their largest entry, so that they cannot underflow in single precision; the
iteration ends as soon as a step does not halve the error, instead of after 30 steps.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.registry import resolve
from swell.core.settings import shown
from swell.dense.accuracy import backward_errors
from swell.dense.decomposer import checked
from swell.dense.factors import LUFactors
from swell.dense.products import on_device
from swell.dense.solver import checked_right_hand_sides, solve_scaled

STEPS = 30              # most steps, as in LAPACK
SINGLE = {"float64": np.float32, "complex128": np.complex64}


@dataclass(frozen=True, eq=False)
class Solution:
    """X of a dense system, whose backward error was computed from A, B and X.

    Attributes
    ----------
    x : array
        X, with the shape and on the device of B.
    factors : LUFactors
        The factors that X was computed with.
    steps : int
        Corrections after the first solution.
    backward_error : float
        ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞) of the worst column.
    notes : tuple of str
        Remarks for the user, such as a second factorisation in double precision.
    """

    x: Any
    factors: LUFactors
    steps: int
    backward_error: float
    notes: tuple


def solve(A, B, decomposer="getrf", solver="trsm", mixed=True, trans="N", space=None) -> Solution:
    """Solve a dense system by factorisation and iterative refinement, to a backward error of at most √n eps.

    Parameters
    ----------
    A : array, shape (n, n)
        NumPy or CuPy. It is not changed.
    B : array, shape (n,) or (n, m)
    decomposer : str or Decomposer
        "getrf", "pcm(x=8)", "icm(tolerance=1e-3)", …
    solver : str or DenseSolver
        As in ``LUFactors.solve``.
    mixed : bool
        Factor in single precision. If that does not suffice, A is factored again in double precision, with a note.
    trans : {"N", "T", "C"}
        Solve A X = B, Aᵀ X = B or Aᴴ X = B.
    space : Space or str, optional
        Where to work; by default the device of A.

    Raises
    ------
    InputError
        If A or B does not fit, or ``mixed`` is True for a matrix in single precision.
    FactorisationError
        If A is singular, or X misses the backward error with factors in A's own type.
    """
    if not isinstance(mixed, bool):
        raise InputError(f"mixed={shown(mixed)}: expected True or False")
    decomposer, notes = resolve("decomposer", decomposer), ()
    A = checked(A)
    if mixed:
        if A.dtype.name not in SINGLE:
            raise InputError(f"A has dtype {A.dtype.name}, and mixed=True is for double precision: give mixed=False")
        low = SINGLE[A.dtype.name]
        try:
            if float(abs(A).max()) > float(np.finfo(low).max):
                raise FactorisationError(f"entries of A overflow {np.dtype(low).name}")
            return refine(decomposer.factor(A.astype(low), space), A, B, solver, trans)
        except FactorisationError as error:
            notes = (f"{np.dtype(low).name} was not enough ({error}): A was factored again in {A.dtype.name}",)
    solution = refine(decomposer.factor(A, space), A, B, solver, trans)
    return replace(solution, notes=notes + solution.notes)


def refine(factors, A, B, solver="trsm", trans="N") -> Solution:
    """Solve op(A) X = B by refinement with ``factors`` (LUFactors) of A, which may be of a narrower type.

    Other parameters as in `solve`. Residuals, and X, have A's type. Raises FactorisationError if the backward error
    stays above √n eps of this type."""
    if not isinstance(factors, LUFactors):
        raise InputError(f"factors is of type {type(factors).__name__}: expected LUFactors, such as "
                         "dense.Getrf().factor(A) returns")
    space, n, A = factors.space, factors.n, checked(A)
    if A.shape != factors.lu.shape or A.dtype.kind != factors.dtype.kind:
        raise InputError(f"A has shape {tuple(A.shape)} and dtype {A.dtype.name}, and the factors have "
                         f"{tuple(factors.lu.shape)} and {factors.dtype.name}: expected the matrix that was factored")
    B, host = checked_right_hand_sides(B, n, A.dtype)
    bound, limit = resolve("dense_solver", solver).build(factors, trans), n ** 0.5 * float(np.finfo(A.dtype).eps)
    factors.require_useful()
    with space.active(n), np.errstate(over="ignore", invalid="ignore"):      # an overflow makes the error NaN
        xp, A = space.xp, on_device(space, A)
        B_array = xp.asarray(space.from_host(B).reshape(n, -1), A.dtype)
        if not bool(xp.isfinite(B_array).all()):  # sync
            raise InputError("B has entries that are not finite: expected finite numbers")
        norm = (abs(A) / n).sum(axis=int(trans == "N")).max()
        X, R, error = xp.zeros_like(B_array), B_array, np.inf
        for step in range(STEPS + 1 if B_array.size else 0):
            before = error
            X = X + solve_scaled(xp, lambda V: bound.apply(V.astype(factors.dtype)).astype(A.dtype), R)
            R = B_array - _product(A, X, trans)
            error = float(backward_errors(xp, norm, R, X, B_array).max())  # sync
            if error <= limit:
                break
            if not error <= before / 2 or step == STEPS:
                raise FactorisationError(
                    f"refinement with {type(factors.decomposer).__name__}'s factors in {factors.dtype.name} ends at a "
                    f"backward error of {error:.1e} after {step} steps, where {limit:.0e} is expected; "
                    + ("; ".join(factors.notes) or ("A is too ill-conditioned for them" if np.isfinite(error) else
                                                    f"x, or A x, overflows {A.dtype.name}: scale A and B")))
        X = X.reshape(B.shape)
        return Solution(space.to_host(X) if host else X, factors, step if B_array.size else 0,
                        error if B_array.size else 0.0, factors.notes if factors.dtype == A.dtype else ())


def _product(A, X, trans):
    """Return op(A) X, a new array."""
    if trans == "N":
        return A @ X
    return (A.T @ X.conj()).conj() if trans == "C" else A.T @ X
