"""A solve of a prepared system, for k ≥ 1 right-hand sides.

The method runs until the true residual confirms convergence, or no further run would help. The first run is for all k
right-hand sides. Each further run, such as a restart after a breakdown, is for one.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.columns import column
from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.monitor import SolutionMonitor
from swell.core.settings import describe
from swell.core.stopping import Reason
from swell.core.workspace import Workspace
from swell.krylov.method import Counts
from swell.solving.column import Column
from swell.solving.measure import ROUNDING, NORM_RANGE, write
from swell.solving.result import Result
from swell.solving.verdict import ASKED, verdict

MAX_RUNS = 10           # runs in one solve; each resumes from the last x
OUT_OF_RANGE = ("x0 leaves a residual of {:.1e}, whose square leaves the range of double precision: start from a "
                "smaller x0, or from none")


class Solve:
    """A solve of a prepared system.

    Parameters
    ----------
    prepared : Prepared
        In a space for k columns.
    b : array, shape (n,), or (n, k) if k > 1
    monitor : callable, SolutionMonitor or None
    watch : callable or None
        See `Prepared.run`.
    earlier : Column, optional
        The state of this right-hand side after a run together with others.

    Attributes
    ----------
    columns : list of k Columns
    method, iteration, loop, workspace
        Taken from the prepared system, or made for this solve, with a longer basis.
    lengths : list of int
        Number of iterations in a cycle, for each basis used so far.
    """

    def __init__(self, prepared, b, monitor, watch=None, earlier=None):
        self.watch, self.prepared, self.setup, self.space = Stopwatch(), prepared, prepared.setup, prepared.space
        self.method, self.workspace = prepared.setup.configuration.method, prepared.workspace
        self.iteration, self.loop, self.lengths = prepared.iteration, prepared.loop, [prepared.iteration.steps]
        with self.space.ranks.agreed():          # on a GPU there may be no memory for b
            norms = prepared.read_b(b)
        if earlier:
            self.columns = [earlier]
        elif self.space.columns == 1:
            self.columns = [Column(*norms)]
        else:
            self.columns = [Column(*numbers) for numbers in zip(*norms)]
        if self.setup.nullspace is not None and not self.columns[0].zero:
            self._make_compatible(self.columns[0])
        shows = isinstance(monitor, SolutionMonitor)
        self._monitor, self._watch, self._on_x = None if shows else monitor, watch, monitor if shows else None

    def _make_compatible(self, c):
        """Check that b is compatible with the null space, or raise InputError.

        ``project=True`` removes the incompatible part, and the norms and notes of ``c``, the only column, change."""
        p = self.prepared
        part = self.setup.nullspace.check(p.b0, c.norm_b, p.stopping.threshold(c.norm_b))
        if not part:
            return
        c.notes.append(f"b was incompatible: a part of {part:.2e} ‖b‖ was taken out of b (project=True), and "
                       "residuals do not include it")
        rest, c.largest_b = self.space.norms(p.b0)
        if rest <= ROUNDING * np.finfo(p.b0.dtype).eps * c.norm_b:
            c.largest_b = 0                      # only rounding errors of b remain: x = 0
        c.norm_b = c.first = rest
        p.b0_changed()

    def run(self, x0):
        """Solve from x0, None for zero. For k > 1 the method runs only once; see `goes_on`."""
        if all(c.zero for c in self.columns):
            self.prepared.x0.fill(0)
        elif self.setup.failure is None:
            self._start(x0)
            self._run(x0 is None, 0)
            if len(self.columns) == 1:
                self._go_on()
        else:
            self._start(x0)
            self._assess()
            for c in self.columns:
                c.history = np.array([c.quality.residual])
                c.reason = Reason.SINGULAR if self.setup.failure.singular else Reason.NOT_FACTORED
        self._end()

    def resume(self, x):
        """Go on from x, of the transformed system: the result of a run together with other columns."""
        p, c = self.prepared, self.columns[0]
        c.notes.append(f"ended as {c.reason.name} beside the other right-hand sides after {c.iterations} iterations, "
                       "and went on alone")
        p.transform("forward_b", p.b0, p.b, self.setup.transforms)
        self.space.copy(x, p.x)
        self._expect()
        self._assess()
        c.counts = c.counts.plus(Counts(0, 0, 0), check=1)
        self._go_on()
        self._end()

    def _end(self):
        """Add the time to the columns, in equal parts."""
        self.space.synchronize()
        self.columns[0].compiled += self.watch.compiled
        seconds = self.watch.seconds / len(self.columns)
        for c in self.columns:
            c.seconds += seconds

    def result(self, j=0) -> Result:
        """Return the Result of column j; its x is the buffer x0 if k = 1, else a copy."""
        p, k = self.prepared, len(self.columns)
        longer = 0 if self.workspace is p.workspace else self.workspace.nbytes
        x = p.x0 if k == 1 else p.x0.column(j).copy()
        return self.columns[j].result(p, j, x, (p.workspace.nbytes + longer) // k)

    def _start(self, x0):
        """Write the transformed b and x0 into the buffers b and x; set the residual norm of convergence of each column.

        ``x0``: starting vectors in the user's ordering; None: zero."""
        p, transforms = self.prepared, self.setup.transforms
        p.transform("forward_b", p.b0, p.b, transforms)
        if x0 is None:
            p.x.fill(0)
        else:
            with self.space.ranks.agreed():      # on a GPU there may be no memory for x0
                write(self.space, x0, p.x0)
            for j in np.flatnonzero(self._numbers("zero")):
                column(p.x0, j).fill(0)
            p.transform("forward_x", p.x0, p.x, transforms)
            self._assess()
            for c in self.columns:
                c.first, c.counts = c.quality.residual, Counts(0 if c.zero else 1, 0, 0)
                if np.isfinite(c.norm_b) and not c.first < NORM_RANGE[1]:
                    raise InputError(OUT_OF_RANGE.format(c.first))
        for c in self.columns:
            c.threshold = c.aim = p.stopping.threshold(c.first if p.stopping.relative_to == "r0" else c.norm_b)
        self._expect()

    def _expect(self):
        """Tell M the norms of the vectors that it will be applied to."""
        if self.setup.M is not None:
            first = self._numbers("first")
            units = self.setup.configuration.method.unit_vectors
            self.setup.M.expect(np.sqrt(first) if units else first)            # √‖r‖: norms from 1 to ‖r‖

    def _numbers(self, name):
        """The attribute ``name`` of all columns: an array, or a number if there is one column."""
        numbers = [getattr(c, name) for c in self.columns]
        return np.array(numbers) if len(numbers) > 1 else numbers[0]

    def _go_on(self):
        """Run again, for the only column, as long as another run helps.

        The solve is resumed if the true residual contradicts convergence, if small rows are unsolved, after a
        breakdown, and if a preconditioner in single precision was indefinite and is now in double precision. Each
        further run must halve the true residual. After a stagnation the solve is resumed as long as there is a longer
        basis. A run that makes x worse is undone."""
        p, c, before = self.prepared, self.columns[0], None
        for attempt in range(1, MAX_RUNS):
            widened = c.reason is Reason.INDEFINITE and not c.met and self._widen()
            if not (widened or self._helps(c, before)):
                break
            if c.met:
                c.aim = max(c.aim * 0.1 * c.goal.of_rows / c.quality.rows, c.quality.floor)
            elif c.reason is Reason.STAGNATED and not self._lengthen(c):
                break
            x_before = p.workspace.array("x before", p.x.size, p.x.dtype)
            self.space.copy(p.x, x_before)
            met, reason, before = c.met, c.reason, c.quality
            self._run(False, attempt)
            better = c.quality.rows <= before.rows if met else c.quality.residual <= before.residual
            if not better and c.reason not in ASKED:             # a longer basis may make x worse if A is singular
                self.space.copy(x_before, p.x)
                self._assess()
                c.reason = reason
                break
        if len(self.lengths) > 1:
            c.notes.append(f"restart lengthened from {' to '.join(map(str, self.lengths))}: with shorter cycles the "
                           "iteration limit would have come before convergence")

    def _widen(self) -> bool:
        """Replace a preconditioner in single precision by the same one in double precision, for this and later solves.

        Return False if it has no such form: then A or M is indefinite, and not its rounded form."""
        p, M = self.prepared, self.setup.M
        wider = M.in_double_precision("CG found it indefinite in single precision") if M is not None else None
        if wider is None:
            return False
        p.use_preconditioner(wider)
        self.iteration, self.loop = p.iteration, p.loop
        self._expect()
        return True

    def goes_on(self, j) -> bool:
        """True if further runs may help column j, which a `Solve` of it alone does."""
        return len(self.columns) > 1 and not self.columns[j].zero and self._helps(self.columns[j])

    def _helps(self, c, before=None) -> bool:
        """True if another run may help column ``c``. ``before``: `Quality` before the last run; None after the first.

        If small rows are unsolved, another run may reach a lower residual norm, unless the last one did not improve
        them, or rounding forbids it."""
        q, dtype = c.quality, self.setup.A.dtype
        if self.loop.maxiter <= c.iterations or not math.isfinite(q.residual):
            return False
        if c.met:
            return (c.reason is Reason.CONVERGED and q.small_rows_unsolved(c.goal) and c.aim > q.floor
                    and (before is None or not before.confirms(c.threshold) or q.rows <= 0.5 * before.rows))
        if c.reason is Reason.STAGNATED:         # not because of rounding, and a longer basis exists
            return (self.method.longer(self.setup.A.shape[0]) is not None
                    and verdict(c.reason, q, c.goal, dtype) is Reason.STAGNATED)
        return c.reason in (Reason.CONVERGED, Reason.BREAKDOWN) and (
            before is None or q.residual <= 0.5 * before.residual)

    def _on_iteration(self, iteration, norms):
        """Call the watch and the user's monitor; return the monitor's value: True stops the loop.

        The watch gets norm and aim of the column furthest from its aim, and the monitor the largest relative norm."""
        if len(self.columns) == 1:
            norm, threshold, relative = norms, self.columns[0].aim, norms / self.columns[0].norm_b
        else:
            zero = self._numbers("zero")
            norms = np.where(zero, 0.0, norms)   # x = 0 solves such a column, and its norm is of an earlier solve
            thresholds = self._numbers("aim")
            furthest = int(np.argmax(norms / np.maximum(thresholds, np.finfo(float).tiny)))
            norm, threshold = float(norms[furthest]), float(thresholds[furthest])
            relative = float((norms / np.where(zero, 1.0, self._numbers("norm_b"))).max())
        if self._watch is not None and self._watch(norm, threshold):
            self.loop.ask(Reason.OVERTAKEN)
        return self._monitor and self._monitor(iteration, relative)

    def _show_x(self, iteration, norm):
        """Call the user's `SolutionMonitor` with x of the original system, and return its answer."""
        p = self.prepared
        p.transform("backward_x", p.x, p.x0, self.setup.transforms[::-1])
        return self._on_x(iteration, norm / self.columns[0].norm_b, p.x0)

    def _run(self, zero_guess, attempt):
        """Run the loop once, from the current x, for all columns.

        ``zero_guess``: x is zero. ``attempt``: number of earlier runs of this solve."""
        loop, n, reads = self.loop, self.setup.A.shape[0], self.loop.host_reads
        loop.cycle = self.iteration.steps
        loop.slow_cycles = 0 if self.method.longer(n) is None else 2 if len(self.lengths) == 1 else 1
        with self.space.ranks.deferred_errors():
            loop.begin(self._numbers("aim"), np.maximum(self._numbers("norm_b"), self._numbers("first")),
                       self.method.window(n), self.columns[0].iterations,
                       self._on_iteration if self._monitor or self._watch else None,
                       [j for j, c in enumerate(self.columns) if c.zero], self._show_x if self._on_x else None)
            self.iteration.run(zero_guess, attempt)
            loop.end()
        for j, c in enumerate(self.columns):
            c.host_reads += loop.host_reads - reads
            if c.zero:
                continue
            if attempt == 0:
                c.spectrum = self.iteration.spectrum(j)
            iterations = loop.iterations_of(j)
            c.reason, c.iterations = loop.reason_of(j), c.iterations + iterations
            c.history = np.concatenate((c.history[:-1], loop.histories[j, :iterations + 1]))
            c.counts = c.counts.plus(self.iteration.counts(iterations, zero_guess), check=1)
        self._assess()

    def _lengthen(self, c) -> bool:
        """Bind the method with a longer basis, for this solve only.

        If memory is too small for it, return False and add a note to ``c``.
        """
        p, s = self.prepared, self.setup
        longer = self.method.longer(s.A.shape[0])
        self.iteration = self.loop = self.workspace = None       # free the previous basis first
        try:
            with self.space.ranks.agreed():
                p.check_fits(longer)
                self.workspace, self.loop = Workspace(self.space), self.space.loop(p.stopping, s.A.shape[0])
                self.iteration = p.bound(longer, self.workspace, self.loop)
        except MemoryError as error:
            c.notes.append(f"{describe(longer)} was to go on from there and was left out: {error}")
            self.workspace = p.workspace
            return False
        self.method = longer
        self.lengths.append(self.iteration.steps)
        return True

    def _assess(self):
        """Write the solution into x0, and set each column's ``quality`` by the original matrix and the caller's b."""
        p = self.prepared
        p.transform("backward_x", p.x, p.x0, self.setup.transforms[::-1])
        qualities = p.measure.of(p.x0, p.exact_b, [c.goal for c in self.columns])
        for c, quality in zip(self.columns, qualities):
            if not c.zero:
                c.quality = quality
