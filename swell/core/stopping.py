"""When a solve stops: the reasons for which it ends, and the user's tolerances and limits.

Only the judge compares norms. It runs on the device, where the residual norm is, at the end of a kernel
(``core/kernels/judge.hpp``). It tests in this order: not finite, converged, out of iterations, diverged, stagnated.
"""
from __future__ import annotations

import enum
import math
import numbers
from dataclasses import dataclass, replace

from swell.core.errors import InputError
from swell.core.settings import Idle, shown

# The relative tolerance of a solve that names none. Most systems reach it in this type.
RTOL = {"float32": 1e-5, "float64": 1e-8, "complex64": 1e-5, "complex128": 1e-8}
MOST_ITERATIONS = 10**8     # the history takes 8 bytes for each iteration


def _finite(number) -> bool:
    """True for a finite number; False for NaN, infinity, and integers too large for a double."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _check_count(name, value):
    """Raise InputError, naming the argument ``name``, unless ``value`` is an integer from 0 to MOST_ITERATIONS."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not 0 <= value <= MOST_ITERATIONS:
        raise InputError(f"{name}={shown(value)}: expected an integer from 0 to {MOST_ITERATIONS}")


class Reason(enum.Enum):
    """Why a solve ended. The value is (code in the kernels, sentence for the user)."""

    RUNNING = (0, "still running")
    CONVERGED = (1, "the true residual b − A x meets the tolerance")
    MAXITER = (2, "the iteration limit was reached first: raise maxiter, or choose a stronger preconditioner")
    STAGNATED = (3, "the residual stopped falling: choose a stronger preconditioner, method='gmres(restart=100)', or "
                    "method='direct'")
    DIVERGED = (4, "the residual grew without bound: the method does not suit this matrix; try method='gmres' or "
                   "'direct'")
    NONFINITE = (5, "NaN or Inf appeared during the iteration: rescale the system, check the preconditioner, "
                    "or use a wider dtype")
    BREAKDOWN = (6, "the method broke down (a division by an inner product that vanished): try method='gmres', or "
                    "another x0")
    INDEFINITE = (7, "the matrix or the preconditioner is not positive definite, as cg needs (minres: the "
                     "preconditioner): use method='gmres' or 'direct', or 'minres' without that preconditioner")
    INTERRUPTED = (8, "interrupted: x is the current iterate, from which a new solve may start (x0=x)")
    STOPPED = (9, "the monitor asked to stop: x is the current iterate")
    FALSE_CONVERGENCE = (10, "the method's own residual met the tolerance but the true residual b − A x does not: "
                             "try method='gmres' or 'direct', or a better-conditioned preconditioner")
    ATTAINABLE_ACCURACY = (11, "rounding forbids this tolerance for this method: the residual is already at the level "
                               "of the rounding errors of A x; accept this x, relax rtol, use a wider dtype, or try "
                               "method='direct'")
    SINGULAR = (12, "the matrix is singular, at least to working precision for this b: check boundary conditions, give "
                    "its null space (nullspace='constants', or rigid-body modes), or remove empty and dependent rows")
    NOT_FACTORED = (13, "the matrix could not be factored: see the note, or choose another preconditioner, or an "
                        "iterative method in place of a direct one")
    OUT_OF_MEMORY = (14, "memory is too small for the next choice, and x is the best result of those tried: use "
                         "dtype='float32', a method with short recurrences (method='bicgstab'), or a larger machine")

    OVERTAKEN = (15, "at this rate another choice is predicted to be sooner")
    UNSOLVED_ROWS = (16, "b − A x meets the tolerance by the large rows of A alone, and the small rows are not solved: "
                         "scale the rows to like size (units, a smaller penalty, constraints eliminated), use "
                         "scaling='ruiz', or method='direct'")

    def __init__(self, code, sentence):
        self.code = code
        self.sentence = sentence

    @classmethod
    def of(cls, code: int) -> "Reason":
        """Return the reason whose ``code`` is this integer."""
        return next(r for r in cls if r.code == code)


@dataclass(frozen=True)
class Stopping:
    """Settings that say when a solve stops.

    Attributes
    ----------
    rtol : float or None
        Relative tolerance: ‖b − A x‖₂ ≤ rtol ‖b‖₂ (or rtol ‖b − A x₀‖₂ with ``relative_to="r0"``). None: `RTOL` of the
        type of the solve, 1e-8 in double and 1e-5 in single precision.
    atol : float
        Absolute tolerance: ‖b − A x‖₂ ≤ atol. The larger of both bounds counts.
    maxiter : int or None
        Iteration limit; None means n, but at least 1000 and at most 20 000.
    relative_to : {"b", "r0"}
        The norm that ``rtol`` refers to.
    every : int
        Judge the residual every ``every`` iterations, and after the last. In a scaled system the other iterations do
        not compute the norm of the original residual. GMRES, whose norms are free, judges all.
    window : int or None
        Stagnation: number of iterations without a new smallest residual (by at least 1 %). 0: never; None: the
        method's default.
    growth : float
        Divergence: the residual exceeds ``growth`` times the larger of ‖b‖ and the first residual.
    """

    rtol: float | None = None
    atol: float = 0.0
    maxiter: int | None = None
    relative_to: str = "b"
    every: int = 1
    window: int | None = None
    growth: float = 1e10

    idle = tuple(Idle("every", f"for {method}", "its norms are free, and it judges all of them")
                 for method in ("gmres", "fgmres", "block_gmres"))

    def __post_init__(self):
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if name == "rtol" and value is None:
                continue
            if not isinstance(value, numbers.Real) or value < 0 or not _finite(value):
                raise InputError(f"{name}={shown(value)}: expected a finite number, not negative, such as 1e-8")
        if self.rtol == 0 and self.atol == 0:
            raise InputError("rtol=0 and atol=0: only a zero residual would do; give one of them a positive value")
        if self.rtol is not None and self.rtol >= 1:
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

    def for_type(self, dtype) -> "Stopping":
        """Return these settings for a solve in ``dtype``: an rtol of None becomes the type's."""
        return replace(self, rtol=RTOL[dtype.name]) if self.rtol is None else self

    def limit(self, n: int) -> int:
        """The iteration limit for n unknowns."""
        return self.maxiter if self.maxiter is not None else min(max(1000, n), 20_000)

    def threshold(self, reference: float) -> float:
        """The residual norm at which a solve has converged; ``reference`` is ‖b‖ or the first residual norm.

        Call `for_type` first."""
        return max(self.rtol * reference, self.atol)
