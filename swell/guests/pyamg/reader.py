"""The guest for PyAMG's hierarchies, which are given as ``M=``."""
from swell.core.guests import Preconditioners


class PyAMG(Preconditioners):
    """PyAMG's hierarchies."""

    def read_preconditioner(self, M):
        """Return a hierarchy as its V-cycle; ``ml.aspreconditioner(cycle="W")`` names another cycle."""
        from pyamg.multilevel import MultilevelSolver
        return (M.aspreconditioner() if isinstance(M, MultilevelSolver) else M), False
