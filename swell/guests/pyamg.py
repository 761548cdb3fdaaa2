"""The guest for PyAMG: a hierarchy as a preconditioner, ``M=ml`` or ``M=ml.aspreconditioner()``."""
from __future__ import annotations

from swell.guests.scipy import SciPy


class PyAMG(SciPy):
    """PyAMG's hierarchies."""

    def read_preconditioner(self, M):
        """Return a hierarchy as its V-cycle; ``ml.aspreconditioner(cycle="W")`` names another cycle."""
        from pyamg.multilevel import MultilevelSolver
        return M.aspreconditioner() if isinstance(M, MultilevelSolver) else M
