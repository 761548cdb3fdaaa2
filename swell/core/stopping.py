"""One judge: the reasons for which a solve ends, the tolerance, and the state that the judging kernels share.

Only the judge compares norms. It runs where the residual norm is: at the end of a kernel (``core/kernels/judge.cuh``)
on a GPU, in a Numba function (``core/kernels/judge.py``) on a CPU; both keep the same record and the same order of
questions: not finite, converged, out of iterations, diverged, stagnated.
"""
from __future__ import annotations

import enum
import math
import numbers
from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.settings import Idle, shown

MOST_ITERATIONS = 10**8     # the history keeps 8 bytes of each


def _finite(number) -> bool:
    """False for NaN and infinity, and for integers that no double holds."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _check_count(name, value):
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not 0 <= value <= MOST_ITERATIONS:
        raise InputError(f"{name}={shown(value)}: expected an integer from 0 to {MOST_ITERATIONS}")


class Reason(enum.Enum):
    """Why a solve ended. The value is (code in the kernels, sentence for the user)."""

    RUNNING = (0, "still running")
    CONVERGED = (1, "the true residual b − A x meets the tolerance")
    MAXITER = (2, "the iteration limit was reached first: raise maxiter, or choose a stronger preconditioner")
    STAGNATED = (3, "the residual stopped falling: choose a stronger preconditioner, a larger restart, or "
                    "method='direct'")
    DIVERGED = (4, "the residual grew without bound: the method does not suit this matrix; try gmres or "
                   "method='direct'")
    NONFINITE = (5, "NaN or Inf appeared during the iteration: rescale the system, check the preconditioner, "
                    "or use a wider dtype")
    BREAKDOWN = (6, "the method broke down (a division by an inner product that vanished): try gmres, or another x0")
    INDEFINITE = (7, "the matrix or the preconditioner is not positive definite, as cg needs (minres: the "
                     "preconditioner): use gmres, method='direct', or minres without that preconditioner")
    INTERRUPTED = (8, "interrupted: x is the current iterate, from which a new solve may start (x0=x)")
    STOPPED = (9, "the monitor asked to stop: x is the current iterate")
    FALSE_CONVERGENCE = (10, "the method's own residual met the tolerance but the true residual b − A x does not: "
                             "try gmres, a better-conditioned preconditioner, or method='direct'")
    ATTAINABLE_ACCURACY = (11, "rounding forbids this tolerance for this method: the residual is already at the level "
                               "of the rounding errors of A x; accept this x, relax rtol, use a wider dtype, or try "
                               "method='direct'")
    SINGULAR = (12, "the matrix is singular, or so to working precision for this b: check boundary conditions, name "
                    "what A annihilates (nullspace='constants', rigid-body modes), or remove empty and dependent rows")
    NOT_FACTORED = (13, "the matrix could not be factored: see the note, or choose another preconditioner, or an "
                        "iterative method in place of a direct one")
    OUT_OF_MEMORY = (14, "memory ran out for what would have been tried next, and x is the best of what was: use "
                         "dtype='float32', name a method with short recurrences (bicgstab), or a larger machine")

    OVERTAKEN = (15, "at this rate another choice is predicted to be sooner")

    def __init__(self, code, sentence):
        self.code = code
        self.sentence = sentence

    @classmethod
    def of(cls, code: int) -> "Reason":
        """The reason with this code."""
        return next(r for r in cls if r.code == code)


@dataclass(frozen=True)
class Stopping:
    """When to stop.

    Attributes
    ----------
    rtol : float
        Relative tolerance: ‖b − A x‖₂ ≤ rtol ‖b‖₂ (or rtol ‖b − A x₀‖₂ with ``relative_to="r0"``).
    atol : float
        Absolute tolerance beside it: the larger bound counts.
    maxiter : int or None
        Iteration limit; None lets the solver choose (at least 1000, at most 20 000, n between).
    relative_to : {"b", "r0"}
    every : int
        Judge the residual after each so-many-th iteration (and after the last) only. In a scaled system the norm of the
        original residual then costs nothing in between. GMRES, whose norms are free, judges all.
    window : int or None
        Iterations without a new least residual (by at least 1 %) that count as stagnation; 0: never; None chooses by
        method.
    growth : float
        Residual over the larger of ‖b‖ and the first residual that counts as divergence.
    """

    rtol: float = 1e-8
    atol: float = 0.0
    maxiter: int | None = None
    relative_to: str = "b"
    every: int = 1
    window: int | None = None
    growth: float = 1e10

    idle = tuple(Idle("every", f"for {method}", "its norms are free, and it judges all of them")
                 for method in ("gmres", "fgmres"))

    def __post_init__(self):
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or value < 0 or not _finite(value):
                raise InputError(f"{name}={shown(value)}: expected a finite number, not negative, such as 1e-8")
        if self.rtol == 0 and self.atol == 0:
            raise InputError("rtol=0 and atol=0: no residual but zero would do; give one of them a positive value")
        if self.rtol >= 1:
            raise InputError(f"rtol={shown(self.rtol)}: expected less than 1 (x = 0 already meets it)")
        if self.maxiter is not None:
            _check_count("maxiter", self.maxiter)
        _check_count("every", self.every)
        if not self.every:
            raise InputError("every=0: expected at least 1, the number of iterations from one judgement to the next")
        if self.window is not None:
            _check_count("window", self.window)
        if not isinstance(self.growth, numbers.Real) or not self.growth > 1:
            raise InputError(f"growth={shown(self.growth)}: expected more than 1, such as 1e10 (inf: never diverged)")
        if self.relative_to not in ("b", "r0"):
            raise InputError(f"relative_to={shown(self.relative_to)}: expected 'b' or 'r0'")

    def limit(self, n: int) -> int:
        """The iteration limit for n unknowns."""
        return self.maxiter if self.maxiter is not None else min(max(1000, n), 20_000)

    def threshold(self, reference: float) -> float:
        """The residual norm that counts as converged, for ‖b‖ (or the first residual) = ``reference``."""
        return max(self.rtol * reference, self.atol)
