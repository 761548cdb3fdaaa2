"""Column: one right-hand side of a solve, from its norms to its Result."""
from __future__ import annotations

import numpy as np

from swell.core.stopping import Reason
from swell.krylov.method import Counts
from swell.solving.choice_cost import count
from swell.solving.measure import EPS, OF_ZERO, Goal
from swell.solving.result import Result
from swell.solving.verdict import verdict

NOTED_ERROR = 1e-2      # relative error of x above which a note reports it


class Column:
    """One right-hand side: its goal, the quality of its x, and the cost so far.

    Attributes
    ----------
    norm_b, largest_b : float
        ‖b‖₂ and ‖b‖∞, without the incompatible part of b; ``largest_b`` is 0 if the solution is 0.
    first : float
        ‖b − A x‖₂ of the starting vector.
    threshold, aim : float
        The residual norm of convergence, and the one at which a run stops. A run that left small rows unsolved lowers
        ``aim``.
    quality : Quality
        The quality of the latest x.
    reason : Reason
        Why the last run ended.
    history : array of float64
        The residual norms that the method computed.
    iterations, counts, host_reads, seconds, compiled
        The cost of all runs.
    spectrum : Spectrum or None
        The spectrum of the first run: a resumed run is shorter, and its spectrum less accurate.
    notes : list of str
    """

    def __init__(self, norm_b, largest_b):
        self.norm_b, self.largest_b = float(norm_b), float(largest_b)
        self.first, self.threshold, self.aim = self.norm_b, 0.0, 0.0           # threshold 0: unknown
        self.quality, self.reason, self.history = OF_ZERO, Reason.CONVERGED, np.empty(0)       # x = 0 for b = 0
        self.iterations, self.counts, self.host_reads, self.seconds, self.compiled = 0, Counts(0, 0, 0), 0, 0.0, 0.0
        self.spectrum, self.notes = None, []

    @property
    def zero(self) -> bool:
        """True if x = 0 is the solution."""
        return self.largest_b == 0

    @property
    def goal(self) -> Goal:
        """The goal of this right-hand side."""
        return Goal(self.threshold, self.norm_b, self.largest_b)

    @property
    def met(self) -> bool:
        """True if x certainly meets the tolerance."""
        return self.quality.confirms(self.threshold)

    def _error_bound(self, p, j) -> float:
        """Return an upper estimate of the relative error of x, by CG's smallest Ritz value; NaN if unknown or harmless.

        It is known for CG without a preconditioner, or with the diagonal as preconditioner or scaling. It is harmless
        if the condition leaves two digits for every b. ``p``, ``j``: as for `result`."""
        c, spectrum = p.setup.configuration, self.spectrum
        if spectrum is None or self.iterations < 2 or not self.met:
            return np.nan
        diagonal = [part for part in (c.name("precond"), c.name("scaling")) if part != "none"]
        if not set(diagonal) <= {"jacobi"} or not p.setup.A.has_entries or p.setup.nullspace is not None:
            return np.nan
        harmless = NOTED_ERROR * self.norm_b / max(self.quality.residual, EPS * self.norm_b)
        if not spectrum.may_exceed(harmless) or not spectrum.condition > harmless:
            return np.nan
        bound = p.measure.scaled_error(p.x0, j, spectrum.extremes[0],
                                       abs(p.setup.A.diagonal()) if diagonal else 1.0)
        if bound > NOTED_ERROR:
            digits = count(max(0, int(-np.log10(bound))), "digit")
            self.notes.append(f"A's condition is {spectrum.condition:.0e} or more: this residual makes about {digits} "
                              "of x certain. Ask for a smaller rtol, or use method='direct'")
        return bound

    def result(self, p, j, x, workspace) -> Result:
        """Return the Result.

        Parameters
        ----------
        p : Prepared
            The system of the last run; its buffers hold x and b − A x.
        j : int
            The number of this right-hand side in the buffers.
        x : array
            The solution.
        workspace : int
            Bytes of buffers.
        """
        s, d, q, dtype = p.setup, p.description, self.quality, p.setup.A.dtype
        small_rows, bound = q.small_rows_unsolved(self.goal), self._error_bound(p, j)
        if small_rows:
            self.notes.append(f"{p.measure.describe_rows(q.worst)}, are solved to {q.rows:.1e} of their terms only: "
                              "larger rows meet the tolerance. Scale the rows to like size, ask for a smaller rtol, "
                              "or use method='direct'")
        scale = 1.0 if self.zero else self.norm_b
        return Result(
            x=x, reason=verdict(self.reason, q, self.goal, dtype), iterations=self.iterations,
            residual=q.residual / scale, backward_error=q.backward_error, componentwise_error=q.componentwise,
            rounding_floor=q.floor / scale, error_bound=bound, exact_to_rounding=q.exact(dtype),
            small_rows_unsolved=small_rows, history=(self.history if self.history.size else np.zeros(1)) / scale,
            **d.names, configuration=p.describe(), tolerance=self.threshold / scale,
            products=self.counts.products, reductions=self.counts.reductions,
            preconditioner_applications=self.counts.preconditioner,
            timings={**s.timings, "solve": self.seconds, "compile": s.timings["compile"] + self.compiled},
            memory={**d.memory, "workspace": workspace}, host_reads=self.host_reads,
            notes=list(dict.fromkeys((*d.notes, *p.iteration.notes, *self.notes, *d.failures))),
            spectrum=self.spectrum)
