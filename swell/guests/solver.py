"""The guests for swell's own objects, given as a preconditioner: ``M=swell.prepare(A2, ...)``, ``M=s.M``."""
from swell.core.arrays import by_parts
from swell.core.guests import Preconditioners


class Prepared(Preconditioners):
    """Prepared Solvers."""

    def read_preconditioner(self, M):
        """Return the Solver as an approximate inverse. Direct solves are a fixed linear map. An iteration to a
        tolerance varies from vector to vector, and only flexible methods accept it."""
        return PreparedSolver(M), not all(choice.method.few_products for choice in M.choices)


class PreparedSolver:
    """The inverse of a prepared system, as a preconditioner: a solve that does not converge is no error."""

    def __init__(self, solver):
        self.solver, self.shape, self.dtype = solver, solver.A.shape, solver.A.dtype

    def matvec(self, r):
        """Return A⁻¹ r, to the Solver's tolerance."""
        return by_parts(lambda part: self.solver.solve(part).x, r, self.dtype)

    def rmatvec(self, r):
        """Return A⁻ᴴ r, to the Solver's tolerance."""
        return by_parts(lambda part: self.solver.solve(part, adjoint=True).x, r, self.dtype)


class Applied(Preconditioners):
    """The preconditioner of a prepared Solver, ``s.M``."""

    def read_preconditioner(self, M):
        """Return swell's operator itself, which a CUDA graph can hold; behind transforms, M with its passes over r."""
        operator = M.fixed
        return M if operator is None else operator, M.operator.variable
