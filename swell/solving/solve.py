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
from swell.solving.result import Result
from swell.solving.verdict import ROUNDING, last_word

RETRIES = 10            # largest number of runs in one solve; each resumes from the last x
SAFE = 1e-140, 1e140    # allowed norms of b: their squares, and squares of far smaller residuals, fit in a double


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
    """

    def __init__(self, prepared, b, monitor, watch=None, earlier=None):
        self.watch, self.prepared, self.setup, self.space = Stopwatch(), prepared, prepared.setup, prepared.space
        self.notes, self.spectrum, self.counts = [], None, Counts(0, 0, 0)
        self.method, self.workspace = prepared.setup.configuration.method, prepared.workspace
        self.iteration, self.loop, self.lengths = prepared.iteration, prepared.loop, [prepared.iteration.steps]
        self.history, self.iterations, self.threshold = np.empty(0), 0, 0.0
        self.earlier = earlier
        if earlier is not None:
            self.iterations = earlier.iterations         # they count against the limit
        self.host_reads, self.least = 0, np.inf
        self.space.from_host(b, out=prepared.b0)
        self.norm_b, self.largest_b = self.space.norms(prepared.b0)
        if self.setup.nullspace is not None and self.largest_b:
            self._make_compatible()
        if self.largest_b and not SAFE[0] < self.norm_b < SAFE[1]:
            raise InputError(f"b has entries up to {self.largest_b:.1e}, whose squares leave the range of double "
                             "precision: solve for b divided by that, and multiply x by it")
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
            self.first, self.counts = self._true_residual()[0], Counts(1, 0, 0)
            if not self.first < SAFE[1]:
                raise InputError(f"x0 leaves a residual of {self.first:.1e}, whose square leaves the range of double "
                                 "precision: start from a smaller x0, or from none")
        self.threshold = p.stopping.threshold(self.first if p.stopping.relative_to == "r0" else self.norm_b)
        if self.earlier is not None:
            self.threshold = self.earlier.threshold
        if self.setup.M is not None:
            units = self.setup.configuration.method.unit_vectors
            self.setup.M.expect(np.sqrt(self.first) if units else self.first)    # √‖r‖: M gets norms from 1 to ‖r‖
        return self.threshold

    def unfactored(self) -> Result:
        """Return the result of a solve whose factorisation failed; x is the starting vector."""
        residual, error = self._true_residual()
        self.history = np.array([residual])
        return self.result(Reason.SINGULAR if self.setup.failure.singular else Reason.NOT_FACTORED, residual, error)

    def iterate(self, zero_guess):
        """Iterate until the solve ends; returns (the loop's reason, ‖b − A x‖₂, backward error).

        ``zero_guess``: x starts at zero. The solve is resumed if the true residual contradicts convergence, and after
        a breakdown. Each further run must halve the true residual. After a stagnation the solve is resumed as long as
        there is a longer basis."""
        before = self.earlier
        last = np.inf if before is None else self.first
        if before is not None and before.reason is Reason.STAGNATED and not self._lengthen(self.first):
            return before.reason, *self._true_residual()
        for attempt in range(0 if before is None else 1, RETRIES):
            reason, residual, error = self._run(zero_guess, attempt)
            if residual <= self.threshold or self.loop.maxiter <= self.iterations:
                break
            if reason is Reason.STAGNATED:
                if not self._lengthen(residual):
                    break
            elif reason not in (Reason.CONVERGED, Reason.BREAKDOWN) or residual > 0.5 * last:
                break
            last, zero_guess = residual, False
        if len(self.lengths) > 1:
            self.notes.append(f"restart lengthened from {' to '.join(map(str, self.lengths))}: with shorter cycles the "
                              "iteration limit would have come before convergence")
            if not residual <= self.least:       # in a singular system a longer basis may make x worse
                self.space.copy(self._x_before, self.prepared.x)
                return Reason.STAGNATED, *self._true_residual()
        return reason, residual, error

    def _run(self, zero_guess, attempt):
        """Run the loop once, from the current x; returns (the loop's reason, ‖b − A x‖₂, backward error).

        ``zero_guess``: x is zero. ``attempt``: number of earlier runs of this solve."""
        loop, n, reads = self.loop, self.setup.A.shape[0], self.loop.host_reads
        loop.cycle = self.iteration.steps
        loop.patience = 0 if self.method.longer(n) is None else 2 if len(self.lengths) == 1 else 1
        with self.space.deferred_errors():
            loop.begin(self.threshold, max(self.norm_b, self.first), self.method.window(n), self.iterations,
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
        return loop.reason, *self._true_residual()

    def _lengthen(self, residual) -> bool:
        """Bind the method with a longer basis, for this solve only; return True if done.

        False: there is no longer basis, it does not fit into memory, or ``residual`` stagnates because of rounding."""
        p, s = self.prepared, self.setup
        longer = self.method.longer(s.A.shape[0])
        if longer is None or not residual <= self.least or last_word(
                Reason.STAGNATED, residual, self.threshold, self.norm_b, s.A, p.x0) is not Reason.STAGNATED:
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

    def _true_residual(self):
        """Return (‖b − A x‖₂, backward error), computed with the original matrix; writes the solution into x0."""
        p, s = self.prepared, self.setup
        p.transform("backward_x", p.x, p.x0, s.transforms[::-1])
        s.A.residual(p.x0, p.b0, p.r0)
        norm, largest_r, _, largest_x = self.space.norms(p.r0, p.x0)
        if not np.isfinite(largest_x):           # with a zero column of A, b − A x may not show it
            return np.inf, np.nan
        return norm, largest_r / (s.norm_A * largest_x + self.largest_b)

    def result(self, reason, residual, error) -> Result:
        """Return the Result; its x is the buffer x0, not a copy. ``residual``: ‖b − A x‖₂. ``error``: backward error.
        """
        self.space.synchronize()
        p, s, d, watch = self.prepared, self.setup, self.prepared.description, self.watch
        scale = self.norm_b if self.largest_b else 1.0
        return Result(
            x=p.x0, reason=reason, iterations=self.iterations, residual=residual / scale, backward_error=error,
            history=(self.history if self.history.size else np.zeros(1)) / scale, method=d.method,
            precond=d.precond, format=d.format, ordering=d.ordering, scaling=d.scaling, device=d.device, dtype=d.dtype,
            configuration=p.describe(),
            tolerance=self.threshold / scale, products=self.counts.products, reductions=self.counts.reductions,
            preconditioner_applications=self.counts.preconditioner,
            timings={**s.timings, "solve": watch.seconds, "compile": s.timings["compile"] + watch.compiled},
            memory={**d.memory, "workspace": self.bytes_held}, host_reads=self.host_reads,
            notes=list(dict.fromkeys((*d.notes, *p.iteration.notes, *self.notes, *d.failures))),
            spectrum=self.spectrum)
