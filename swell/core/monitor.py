"""``SolutionMonitor``: a monitor that also gets x."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SolutionMonitor:
    """A monitor that also gets x: ``monitor=SolutionMonitor(f)`` calls ``f(iteration, relative_residual, x)``.

    x is a copy, of the same kind as b, in the user's ordering and scaling. f is called with the starting vector, and
    then each time a method has formed x: after every iteration, but with GMRES and FGMRES after every cycle. A true
    answer stops the solve. Forming x costs up to two passes over it; on a GPU every iteration is launched by itself.

    Attributes
    ----------
    function : callable

    Examples
    --------
    >>> import numpy as np, swell
    >>> A, seen = swell.gallery.poisson2d(10), []
    >>> monitor = swell.SolutionMonitor(lambda iteration, residual, x: seen.append(x))
    >>> r = swell.solve(A, np.ones(100), method="cg", monitor=monitor)
    >>> len(seen) == r.iterations + 1 and bool((seen[-1] == r.x).all())
    True
    """

    function: Callable[[int, float, Any], Any]

    def __call__(self, iteration, residual, x):
        return self.function(iteration, residual, x)

    def converting(self, convert) -> "SolutionMonitor":
        """Return a monitor that calls this one with ``convert(x)``."""
        return SolutionMonitor(lambda iteration, residual, x: self.function(iteration, residual, convert(x)))
