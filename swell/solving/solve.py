"""One solve of a prepared system: runs of the method until the true residual confirms convergence, or none helps."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.monitor import SolutionMonitor
from swell.core.settings import describe
from swell.core.stopping import Reason
from swell.core.workspace import Workspace
from swell.krylov.method import Counts
from swell.solving.considered import count
from swell.solving.measure import EPS, EXACT, ROUNDING, SAFE, Goal
from swell.solving.result import Result
from swell.solving.verdict import verdict

RETRIES = 10            # largest number of runs in one solve; each resumes from the last x
DOUBTED = 1e-2          # relative error of x that a note tells


class Earlier(NamedTuple):
    """A run that a solve goes on from: its iterations, its end, and the residual norm of convergence."""

    iterations: int
    reason: Reason
    threshold: float


class Solve:
    """One solve of a prepared system, for one right-hand side.

    Attributes
    ----------
    norm_b, largest_b : float
        ‖b‖₂ and ‖b‖∞, after an incompatible part of b was removed; ``largest_b`` is 0 if the solution is 0.
    history : array of float64
        Judged residual norms.
    method, iteration, loop, workspace
        From the prepared system; or this solve's own, with a longer basis.
    lengths : list of int
        Number of iterations in a cycle, for each basis used so far.
    least : float
        ‖b − A x‖₂ at the start of the last longer basis; infinite before the first.
    quality : Quality
        Of the latest x.
    threshold, aim : float
        The residual norm of convergence; and the one at which a run stops, which is lower after a run that left small
        rows unsolved.
    """

    def __init__(self, prepared, b, monitor, watch=None, earlier=None):
        self.watch, self.prepared, self.setup, self.space = Stopwatch(), prepared, prepared.setup, prepared.space
        self.quality, self.least_rows = EXACT, np.inf
        self.notes, self.spectrum, self.counts = [], None, Counts(0, 0, 0)
        self.method, self.workspace = prepared.setup.configuration.method, prepared.workspace
        self.iteration, self.loop, self.lengths = prepared.iteration, prepared.loop, [prepared.iteration.steps]
        self.history, self.iterations, self.threshold = np.empty(0), 0, 0.0      # 0: unknown, so nothing is met
        self.earlier = earlier
        if earlier is not None:
            self.iterations = earlier.iterations         # they count against the limit
        self.host_reads, self.least = 0, np.inf
        self.norm_b, self.largest_b = prepared.read_b(b)
        if self.setup.nullspace is not None and self.largest_b:
            self._make_compatible()
        shows = isinstance(monitor, SolutionMonitor)
        self._monitor, self._watch, self._sees_x = None if shows else monitor, watch, monitor
        self._shows = shows

    def _on_iteration(self, iteration, norm):
        """Monitor the loop: call the watch with the norm, and the user's monitor with the relative norm.

        Returns the user's answer: True stops the loop."""
        if self._watch is not None and self._watch(norm, self.threshold):
            self.loop.ask(Reason.OVERTAKEN)
        return self._monitor and self._monitor(iteration, norm / self.norm_b)

    def _on_x(self, iteration, norm):
        """Call the user's `SolutionMonitor` with x of the original system, and return its answer."""
        p = self.prepared
        p.transform("backward_x", p.x, p.x0, self.setup.transforms[::-1])
        return self._sees_x(iteration, norm / self.norm_b, p.x0)

    def _make_compatible(self):
        """Check that b is compatible with the null space, or raise InputError; ``project=True`` removes the other part.

        Then ``norm_b`` and the notes change too."""
        p = self.prepared
        part = self.setup.nullspace.check(p.b0, self.norm_b, p.stopping.threshold(self.norm_b))
        if not part:
            return
        self.notes.append(f"b was incompatible: a part of {part:.2e} ‖b‖ was taken out of b (project=True), and "
                          "residuals do not include it")
        rest, self.largest_b = self.space.norms(p.b0)
        if rest <= ROUNDING * np.finfo(p.b0.dtype).eps * self.norm_b:
            self.largest_b = 0                   # only rounding is left of b: x = 0
        self.norm_b = rest
        p.b0_changed()

    def start(self, x0) -> float:
        """Write the transformed b and x0 into the buffers b and x; return the residual norm of convergence.

        ``x0``: starting vector in the user's ordering; None: zero."""
        p, transforms, self.first = self.prepared, self.setup.transforms, self.norm_b
        p.transform("forward_b", p.b0, p.b, transforms)
        if x0 is None:
            p.x.fill(0)
        else:
            self.space.from_host(x0, out=p.x0)
            p.transform("forward_x", p.x0, p.x, transforms)
            self._assess()
            self.first, self.counts = self.quality.residual, Counts(1, 0, 0)
            if not self.first < SAFE[1]:
                raise InputError(f"x0 leaves a residual of {self.first:.1e}, whose square leaves the range of double "
                                 "precision: start from a smaller x0, or from none")
        self.threshold = p.stopping.threshold(self.first if p.stopping.relative_to == "r0" else self.norm_b)
        if self.earlier is not None:
            self.threshold = self.earlier.threshold
        self.aim = self.threshold
        if self.setup.M is not None:
            units = self.setup.configuration.method.unit_vectors
            self.setup.M.expect(np.sqrt(self.first) if units else self.first)    # √‖r‖: M gets norms from 1 to ‖r‖
        return self.threshold

    def unfactored(self) -> Result:
        """Return the result of a solve whose factorisation failed; x is the starting vector."""
        self._assess()
        self.history = np.array([self.quality.residual])
        if self.quality.confirms(self.threshold):                # the starting vector, or atol
            return self.result(Reason.CONVERGED)
        return self.result(Reason.SINGULAR if self.setup.failure.singular else Reason.NOT_FACTORED)

    def iterate(self, zero_guess) -> Reason:
        """Iterate until the solve ends; return the reason for the result, of the last run's reason and x's quality.

        ``zero_guess``: x starts at zero. The solve is resumed if the true residual contradicts convergence, if small
        rows are unsolved, and after a breakdown. Each further run must halve the true residual. After a stagnation the
        solve is resumed as long as there is a longer basis."""
        before, last = self.earlier, np.inf
        if before is not None:
            last, reason = self.first, before.reason
            if not (self._aim_lower() if self.quality.confirms(self.threshold) else
                    reason is not Reason.STAGNATED or self._lengthen()):
                return self._verdict(reason)
        for attempt in range(0 if before is None else 1, RETRIES):
            reason = self._run(zero_guess, attempt)
            residual = self.quality.residual
            if self.quality.confirms(self.threshold):
                if self.loop.maxiter <= self.iterations or reason is not Reason.CONVERGED or not self._aim_lower():
                    break
            elif self.loop.maxiter <= self.iterations:
                break
            elif reason is Reason.STAGNATED:
                if not self._lengthen():
                    break
            elif reason not in (Reason.CONVERGED, Reason.BREAKDOWN) or residual > 0.5 * last:
                break
            last, zero_guess = residual, False
        if self.aim < self.threshold and not self.quality.rows <= self.least_rows:
            self._go_back()
        if len(self.lengths) > 1:
            self.notes.append(f"restart lengthened from {' to '.join(map(str, self.lengths))}: with shorter cycles the "
                              "iteration limit would have come before convergence")
            if not self.quality.residual <= self.least:          # in a singular system a longer basis may make x worse
                self._go_back()
                reason = Reason.STAGNATED
        return self._verdict(reason)

    def _verdict(self, reason) -> Reason:
        """Return the reason for the result; note rows that the tolerance leaves unsolved."""
        if self.quality.small_rows_unsolved(self.goal):
            self.notes.append(f"{self.prepared.measure.worst_rows()}, are solved to {self.quality.rows:.1e} of their "
                              "terms only: larger rows meet the tolerance. Scale the rows to like size, ask for a "
                              "smaller rtol, or use method='direct'")
        return verdict(reason, self.quality, self.goal, self.setup.A.dtype)

    @property
    def goal(self) -> Goal:
        """What this right-hand side asks for."""
        return Goal(self.threshold, self.norm_b, self.largest_b)

    def _aim_lower(self) -> bool:
        """Lower the residual norm at which a run stops, where the tolerance is met and small rows are unsolved.

        Return False if all rows are solved, or if the last lower one was of no use, or rounding forbids another."""
        quality, solved = self.quality, self.goal.of_rows
        if not quality.rows > solved or self.aim <= quality.floor or quality.rows > 0.5 * self.least_rows:
            return False
        self.least_rows = quality.rows
        self.space.copy(self.prepared.x, self._x_before)
        self.aim = max(self.aim * 0.1 * solved / quality.rows, quality.floor)
        return True

    def _go_back(self):
        """Go back to the x that `_x_before` keeps."""
        self.space.copy(self._x_before, self.prepared.x)
        self._assess()

    def _run(self, zero_guess, attempt) -> Reason:
        """Run the loop once, from the current x; return the loop's reason.

        ``zero_guess``: x is zero. ``attempt``: number of earlier runs of this solve."""
        loop, n, reads = self.loop, self.setup.A.shape[0], self.loop.host_reads
        loop.cycle = self.iteration.steps
        loop.patience = 0 if self.method.longer(n) is None else 2 if len(self.lengths) == 1 else 1
        with self.space.deferred_errors():
            loop.begin(self.aim, max(self.norm_b, self.first), self.method.window(n), self.iterations,
                       self._on_iteration if self._monitor or self._watch else None,
                       on_x=self._on_x if self._shows else None)
            self.iteration.run(zero_guess, attempt)
            loop.end()
        if attempt == 0:                         # a resumed run is shorter, and its spectrum less accurate
            self.spectrum = self.iteration.spectrum()
        self.history = np.append(self.history[:-1], loop.history[:loop.iterations + 1])
        self.iterations += loop.iterations
        self.host_reads += loop.host_reads - reads
        self.counts = self.counts.plus(self.iteration.counts(loop.iterations, zero_guess), check=1)
        self._assess()
        return loop.reason

    def _lengthen(self) -> bool:
        """Bind the method with a longer basis, for this solve only; return True if done.

        False: there is no longer basis, it does not fit into memory, or the residual stagnates because of rounding."""
        p, s, residual = self.prepared, self.setup, self.quality.residual
        longer = self.method.longer(s.A.shape[0])
        if longer is None or not residual <= self.least or verdict(
                Reason.STAGNATED, self.quality, self.goal, s.A.dtype) is not Reason.STAGNATED:
            return False
        self.iteration = self.loop = self.workspace = None       # free the previous basis first
        try:
            with self.space.agreed():
                p.check_fits(longer)
                self.workspace, self.loop = Workspace(self.space), self.space.loop(p.stopping, s.A.shape[0])
                self.iteration = p.bound(longer, self.workspace, self.loop)
        except MemoryError as error:
            self.notes.append(f"{describe(longer)} was to go on from there and was left out: {error}")
            self.workspace = p.workspace
            return False
        self.space.copy(p.x, self._x_before)
        self.method, self.least = longer, residual
        self.lengths.append(self.iteration.steps)
        return True

    @property
    def _x_before(self):
        """The buffer that keeps x from before the last longer basis."""
        return self.prepared.workspace.array("x before", self.prepared.x.size, self.prepared.x.dtype)

    @property
    def bytes_held(self) -> int:
        """Size in bytes of all buffers: the prepared system's, and this solve's own."""
        own = 0 if self.workspace is self.prepared.workspace else self.workspace.nbytes
        return self.prepared.workspace.nbytes + own

    def _assess(self):
        """Write the solution into x0, and set ``quality`` by the original matrix and the caller's b."""
        p = self.prepared
        p.transform("backward_x", p.x, p.x0, self.setup.transforms[::-1])
        self.quality, = p.measure.of(p.x0, p.exact_b, [self.goal])

    def _error_bound(self) -> float:
        """Estimate the relative error of x from above, by CG's smallest Ritz value; NaN if it is unknown or harmless.

        Known: CG without a preconditioner, or with the diagonal as preconditioner or scaling. Harmless: the condition
        leaves two digits for every b."""
        c, spectrum = self.setup.configuration, self.spectrum
        if spectrum is None or self.iterations < 2 or not self.quality.confirms(self.threshold):
            return np.nan
        diagonal = [part for part in (c.name("precond"), c.name("scaling")) if part != "none"]
        if not set(diagonal) <= {"jacobi"} or not self.setup.A.has_entries or self.setup.nullspace is not None:
            return np.nan
        harmless = DOUBTED * self.norm_b / max(self.quality.residual, EPS * self.norm_b)
        if not spectrum.may_exceed(harmless) or not spectrum.condition > harmless:
            return np.nan
        p, least = self.prepared, spectrum.extremes[0]
        bound = p.measure.scaled_error(p.x0, least, abs(self.setup.A.diagonal()) if diagonal else 1.0)
        if bound > DOUBTED:
            digits = count(max(0, int(-np.log10(bound))), "digit")
            self.notes.append(f"A's condition is {spectrum.condition:.0e} or more: this residual makes about {digits} "
                              "of x certain. Ask for a smaller rtol, or use method='direct'")
        return bound

    def result(self, reason) -> Result:
        """Return the Result; its x is the buffer x0, not a copy."""
        self.space.synchronize()
        bound = self._error_bound()
        p, s, d, watch, q = self.prepared, self.setup, self.prepared.description, self.watch, self.quality
        scale = self.norm_b if self.largest_b else 1.0
        return Result(
            x=p.x0, reason=reason, iterations=self.iterations, residual=q.residual / scale,
            backward_error=q.backward_error, componentwise_error=q.componentwise, rounding_floor=q.floor / scale,
            error_bound=bound, exact_to_rounding=q.exact(s.A.dtype),
            small_rows_unsolved=q.small_rows_unsolved(self.goal),
            history=(self.history if self.history.size else np.zeros(1)) / scale, method=d.method,
            precond=d.precond, format=d.format, ordering=d.ordering, scaling=d.scaling, device=d.device, dtype=d.dtype,
            configuration=p.describe(),
            tolerance=self.threshold / scale, products=self.counts.products, reductions=self.counts.reductions,
            preconditioner_applications=self.counts.preconditioner,
            timings={**s.timings, "solve": watch.seconds, "compile": s.timings["compile"] + watch.compiled},
            memory={**d.memory, "workspace": self.bytes_held}, host_reads=self.host_reads,
            notes=list(dict.fromkeys((*d.notes, *p.iteration.notes, *self.notes, *d.failures))),
            spectrum=self.spectrum)
