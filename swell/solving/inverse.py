"""``Inverse``: a prepared system as the linear operator b ↦ A⁻¹ b, for SciPy's eigsh, CuPy, PyAMG and others."""
from __future__ import annotations

from abc import abstractmethod

from swell.core.errors import NotConverged
from swell.core.linear_map import LinearMap
from swell.core.stopping import Reason


class Inverse(LinearMap):
    """A⁻¹, to the tolerance of the solver: ``matvec(b)`` returns ``solve(b).x``, ``rmatvec(b)`` that of Aᴴ.

    A solve that does not converge raises `NotConverged`: the caller sees x alone.
    """

    @abstractmethod
    def solve(self, b, x0=None, monitor=None, together=None, adjoint=False, progress=False):
        """Solve A x = b; return a Result, or Results for several columns."""

    def _map(self, x, adjoint):
        return solution(self.solve(x, adjoint=adjoint))


def solution(result):
    """Return the x of a Result or Results.

    Raises
    ------
    NotConverged
        Unless each column converged, or is exact to rounding.
    KeyboardInterrupt
        After Ctrl-C, which the caller of a linear operator expects.
    """
    if (error := failure(result)) is not None:
        raise error
    return result.x


def failure(result) -> BaseException | None:
    """Return the error that `solution` raises for a Result or Results, or None."""
    for one in getattr(result, "columns", (result,)):
        if one.reason is Reason.INTERRUPTED:
            return KeyboardInterrupt()
        if not (one.converged or one.reason is Reason.ATTAINABLE_ACCURACY and one.exact_to_rounding):
            return NotConverged(f"swell did not converge: {one.message}; ‖b − A x‖/‖b‖ = {one.residual:.2e}, wanted "
                                f"{one.tolerance:.2e}", result)
    return None
