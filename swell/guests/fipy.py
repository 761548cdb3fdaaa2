"""``SwellSolver``: swell as a solver of FiPy.

    from swell.guests.fipy import SwellSolver
    solver = SwellSolver()
    for step in range(100):
        equation.solve(var=phi, dt=dt, solver=solver)
"""
from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np

from swell.core.errors import InputError, MissingDependency
from swell.core.stopping import Reason, Stopping
from swell.recurring import Recurring
from swell.options import Accepted, OptionsDict

try:
    from fipy.solvers import convergence
    from fipy.solvers.scipy.scipyConvergence import SciPy_Convergence
    from fipy.solvers.scipy.scipySolver import ScipySolver
except ImportError as error:
    raise MissingDependency("FiPy is missing: pip install 'swell[guests]'") from error

OPTIONS = Accepted(without=("M", "rtol", "atol", "maxiter", "stopping"))
SUITE = "swell"         # FiPy finds the classes below by this name and their code
CAUSES = {Reason.MAXITER: convergence.IterationDivergence, Reason.STAGNATED: convergence.StagnatedDivergence,
          Reason.BREAKDOWN: convergence.BreakdownDivergence, Reason.INDEFINITE: convergence.BreakdownDivergence,
          Reason.SINGULAR: convergence.IllConditionedDivergence, Reason.NONFINITE: convergence.OutOfRangeDivergence,
          Reason.DIVERGED: convergence.ToleranceDivergence}
ENDS = {reason: type(f"Swell_{reason.name}", (CAUSES.get(reason, convergence.Divergence),), {
    "__doc__": reason.sentence, "suite": SUITE, "status_code": reason.code, "status_name": f"SWELL_{reason.name}"})
    for reason in Reason if reason is not Reason.CONVERGED} | {Reason.CONVERGED: SciPy_Convergence}
CRITERIA = ("default", "RHS", "legacy", "unscaled", "matrix", "initial")


class Exact(convergence.LossOfAccuracyConvergence):
    """x is exact to rounding: the tolerance asks for more than double precision can hold."""

    suite, status_code, status_name = SUITE, "exact", "SWELL_EXACT_TO_ROUNDING"


class SwellSolver(ScipySolver):
    """A linear solver for ``equation.solve(..., solver=SwellSolver())``.

    Give the same object to every time step and sweep: a matrix whose pattern recurs updates the setup. FiPy's current
    values are the starting vector. A solve that fails is reported by FiPy's own warnings.

    Parameters
    ----------
    tolerance, absolute_tolerance, criterion, iterations, precon
        As FiPy's solvers take them. A ``precon`` of FiPy's SciPy suite becomes swell's M. swell computes the norm of
        b − A x with the returned x, and compares it with the tolerance times ‖b‖ ("RHS", "legacy"), ‖A‖∞ ("matrix"),
        the first residual norm ("initial"), or 1 ("unscaled").
    monitor
        As `swell.solve` takes it.
    method, precond, ..., block
        See `swell.Options`; the tolerances are FiPy's.

    Attributes
    ----------
    result : Result or None
        The last solve's.
    convergence
        FiPy's record of the last solve.
    """

    @OPTIONS.shown
    def __init__(self, tolerance="default", absolute_tolerance=0.0, criterion="default", iterations="default",
                 precon=None, *, monitor=None, **options: Unpack[OptionsDict]):
        chosen = OPTIONS.read(options)
        super().__init__(tolerance=tolerance, absolute_tolerance=absolute_tolerance, criterion=criterion,
                         iterations=iterations, precon=precon)
        if self.criterion not in CRITERIA:
            raise InputError(f"criterion={self.criterion!r}: expected one of {', '.join(CRITERIA)}")
        if precon is not None and chosen.precond is not None:
            raise InputError("both precon, FiPy's preconditioner, and precond, swell's, were given: name one of them")
        self.result, self._monitor = None, monitor
        self._options = chosen
        self._recurring = Recurring(**chosen.keywords())

    @property
    def setups(self) -> int:
        """Setups done so far. Other solves updated the last setup to new values, or used it as it was."""
        return self._recurring.setups

    def _solve_(self, L, x, b):
        """Solve L x = b from x. FiPy calls this."""
        if (L.diagonal() < 0).all():    # FiPy's steady diffusion is negative definite: cg and multigrid need -L
            L, b = -L, -b
        recurring = self._recurring
        if self.preconditioner is not None:      # it is made for these values
            self._recurring = recurring = Recurring(
                **replace(self._options, M=self.preconditioner._applyToMatrix(L)[0]).keywords())
        scale, _ = self._adaptTolerance(L, x, b)
        threshold = max(self.tolerance * scale, self.absolute_tolerance, np.finfo(float).tiny)
        stopping = Stopping(rtol=0.0, atol=threshold, maxiter=self.iterations)
        self.result = result = recurring.solve(L, b, x0=x if x.any() else None, monitor=self._monitor,
                                               stopping=stopping)
        how = Exact if result.reason is Reason.ATTAINABLE_ACCURACY and result.exact_to_rounding else ENDS[result.reason]
        self._setConvergence(suite=how.suite, code=how.status_code, actual_code=result.reason.code,
                             iterations=result.iterations, tolerance_scale=scale,
                             residual=self._residualNorm(L, result.x, b))
        self.convergence.warn()
        return result.x

    def _adaptRHSTolerance(self, L, x, b):
        return self._rhsNorm(L, x, b), None

    _adaptLegacyTolerance = _adaptRHSTolerance

    def _adaptUnscaledTolerance(self, L, x, b):
        return 1.0, None

    def _adaptMatrixTolerance(self, L, x, b):
        return self._matrixNorm(L, x, b), None

    def _adaptInitialTolerance(self, L, x, b):
        return self._residualNorm(L, x, b), None
