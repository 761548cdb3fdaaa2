"""Together: k right-hand sides of one prepared system solved at the same time, by k independent recurrences.

Each iteration multiplies the matrix by k vectors at once and applies the preconditioner to them. Every column has its
own scalars, convergence test and history, and takes the steps of its own solve. A column that has ended is frozen. If
one needs more than a single run of the method, such as a restart after a breakdown or a longer basis, it is solved on
alone, from its x.
"""
from __future__ import annotations

import weakref

import numpy as np

from swell.core.ahead import MATRIX
from swell.core.compilation import Stopwatch
from swell.core.errors import InputError
from swell.core.operator import OperatorAround
from swell.core.sharing import Widening
from swell.core.stopping import Reason
from swell.krylov.method import Counts
from swell.solving.result import Result
from swell.solving.measure import SAFE, Goal, write
from swell.solving.solve import Earlier
from swell.solving.verdict import verdict

MOST = 32               # columns that are solved together; more are solved in groups


def obstacle(prepared) -> str | None:
    """Return why a prepared system must solve its right-hand sides one by one, or None."""
    s = prepared.setup
    if s.configuration.method.gpu_only:
        return f"{s.configuration.name('method')} holds one right-hand side on the chip"
    if s.nullspace is not None:
        return "with a null space they are solved one by one"
    parts = [part.inner if isinstance(part, OperatorAround) else part for part in (s.matrix, s.M, s.S)]
    own = [part for part in parts if part is not None and not type(part).__module__.startswith("swell.")]
    return f"{type(own[0]).__name__}, an operator of your own, takes one vector at a time" if own else None


def bound(prepared, columns, method=None) -> "Together":
    """Return ``prepared`` bound to ``columns`` right-hand sides, with another method if one is given. The last is
    kept, with its buffers."""
    if (columns, method) not in prepared.companions:
        prepared.companions = {(columns, method): Together(prepared, columns, method)}
    return prepared.companions[columns, method]


class Together:
    """Buffers and the bound method for k right-hand sides of ``prepared``, whose matrices and factors it shares.

    Parameters
    ----------
    prepared : Prepared
    columns : int
        k, from 2 to `MOST`.
    method : settings of a method, optional
        In place of the prepared one.

    Ranks make and run it together.
    """

    def __init__(self, prepared, columns, method=None):
        setup = prepared.setup
        with prepared.space.agreed():            # one rank alone may lack memory
            self._alone = weakref.ref(prepared)  # which holds this object: no circle keeps their memory
            self.space = prepared.space.for_columns(columns)
            with self.space.active(setup.A.shape[0]):
                self.space.compile_ahead((MATRIX, *setup.configuration.parts), setup.A.dtype)
                self._copies = Widening(self.space)
                self.prepared = prepared.shared(self._copies, method)

    @property
    def alone(self):
        """The prepared system of one right-hand side."""
        return self._alone()

    def follow(self) -> bool:
        """Follow an update of the system to other values; buffers and captured graphs stay. Return False if that
        cannot be, since the update replaced more than values, on this rank or another."""
        self.prepared.follow(self.alone)
        return not self.space.max_over_ranks(not self._copies.current())         # all ranks keep their copies, or none

    def run(self, b, x0=None, monitor=None, watch=None) -> list[Result]:
        """Solve for the columns of b, shape (n, k), on the host or on the device; return their results in order.

        ``x0``, such an array or None (zero), has the starting vectors. ``monitor(iteration, relative_norm)`` gets the
        largest relative norm of all columns. ``watch(norm, threshold)`` gets the norm and threshold of the column that
        is furthest from its threshold; a true value ends the run as OVERTAKEN. The x of a result has the shape (n,).
        """
        n = self.prepared.setup.A.shape[0]
        with self.space.active(n):
            run = Run(self.prepared, b, monitor, watch)
            results = run.solve(x0)
        with self.alone.space.active(n):
            return [self._completed(result, b[:, j], run.goals[j], run.qualities[j], monitor)
                    for j, result in enumerate(results)]

    def _completed(self, result, b, goal, quality, monitor):
        """Return the final result of a column with right-hand side b: ``result``, or what a further solve gives.

        ``goal``, ``quality``: of this column."""
        threshold = goal.threshold
        more = result.reason in (Reason.BREAKDOWN, Reason.FALSE_CONVERGENCE, Reason.STAGNATED,
                                 Reason.ATTAINABLE_ACCURACY) or quality.small_rows_unsolved(goal)
        left = self.prepared.loop.maxiter - result.iterations
        if not more or left <= 0 or not np.isfinite(result.residual):
            return result
        again = self.alone.run(b, result.x, monitor, earlier=Earlier(result.iterations, result.reason, threshold))
        if not again.converged and not again.residual < result.residual:
            return result
        again.history = np.append(result.history[:-1], again.history)
        for name in ("products", "reductions", "preconditioner_applications", "host_reads"):
            setattr(again, name, getattr(again, name) + getattr(result, name))
        again.timings["solve"] += result.timings["solve"]
        again.notes.append(f"ended as {result.reason.name} beside the other right-hand sides after {result.iterations} "
                           "iterations, and went on alone")
        again.x = again.x.copy()                 # a buffer that the next column would overwrite
        return again


class Run:
    """One run of `Together`."""

    def __init__(self, prepared, b, monitor, watch=None):
        self.watch, self.p, self.space = Stopwatch(), prepared, prepared.space
        with self.space.agreed():                # on a GPU there may be no memory for them
            self.norm_b, self.largest_b = prepared.read_b(b)
        self.zero = self.largest_b == 0
        self.scale = np.where(self.zero, 1.0, self.norm_b)
        self._monitor, self._watch = monitor, watch

    def _on_iteration(self, iteration, norms):
        """Monitor the loop, with the norms of all columns; a true return value stops it."""
        norms = np.where(self.zero, 0.0, norms)  # a zero column is not judged: it still has the norm of another solve
        if self._watch is not None:
            last = int(np.argmax(norms / np.maximum(self.thresholds, np.finfo(float).tiny)))
            if self._watch(float(norms[last]), float(self.thresholds[last])):
                self.p.loop.ask(Reason.OVERTAKEN)
        return self._monitor and self._monitor(iteration, float((norms / self.scale).max()))

    def solve(self, x0):
        """Iterate from x0 (None: zero), and return the result of each column."""
        p, s, loop = self.p, self.p.setup, self.p.loop
        first, products = self.norm_b, 0
        p.transform("forward_b", p.b0, p.b, s.transforms)
        if x0 is None:
            p.x.fill(0)
        else:
            with self.space.agreed():            # on a GPU there may be no memory for them
                write(self.space, x0, p.x0)
            for j in np.flatnonzero(self.zero):
                p.x0.array[j] = 0
            p.transform("forward_x", p.x0, p.x, s.transforms)
            self._assess(np.zeros(self.space.columns))
            first, products = np.array([quality.residual for quality in self.qualities]), 1
            if not (first[np.isfinite(self.norm_b)] < SAFE[1]).all():
                raise InputError("x0 leaves a residual whose square leaves the range of double precision: start from a "
                                 "smaller x0, or from none")
        references = first if p.stopping.relative_to == "r0" else self.norm_b
        self.thresholds = np.array([p.stopping.threshold(reference) for reference in references])
        if s.M is not None:
            s.M.expect(np.sqrt(first) if s.configuration.method.unit_vectors else first)
        reads = loop.host_reads
        loop.cycle = p.iteration.steps
        loop.patience = 0 if s.configuration.method.longer(s.A.shape[0]) is None else 2
        with self.space.deferred_errors():
            loop.begin(self.thresholds, np.maximum(self.norm_b, first), s.configuration.method.window(s.A.shape[0]), 0,
                       self._on_iteration if self._monitor or self._watch else None, np.flatnonzero(self.zero))
            p.iteration.run(x0 is None)
            loop.end()
        self._assess(self.thresholds)
        self.space.synchronize()
        self.counts = [Counts(0, 0, 0) if self.zero[j] else
                       Counts(products, 0, 0).plus(p.iteration.counts(loop.iterations_of(j), x0 is None), check=1)
                       for j in range(self.space.columns)]
        self.reads, self.seconds = loop.host_reads - reads, self.watch.seconds
        return [self._result(j) for j in range(self.space.columns)]

    def _assess(self, thresholds):
        """Write the solutions to x0, and set ``goals`` and ``qualities``, of every column."""
        p = self.p
        p.transform("backward_x", p.x, p.x0, p.setup.transforms[::-1])
        self.goals = [Goal(*map(float, numbers)) for numbers in zip(thresholds, self.scale, self.largest_b)]
        self.qualities = p.measure.of(p.x0, p.exact_b, self.goals)

    def _result(self, j):
        """The `Result` of column j."""
        p, s, d, loop, q = self.p, self.p.setup, self.p.description, self.p.loop, self.qualities[j]
        iterations = loop.iterations_of(j)
        reason = Reason.CONVERGED if self.zero[j] else verdict(loop.reason_of(j), q, self.goals[j], s.A.dtype)
        scale, counts = self.scale[j], self.counts[j]
        return Result(
            x=p.x0.array[j].copy(), reason=reason, iterations=iterations, residual=float(q.residual / scale),
            backward_error=q.backward_error, componentwise_error=q.componentwise,
            rounding_floor=float(q.floor / scale), exact_to_rounding=q.exact(s.A.dtype),
            small_rows_unsolved=q.small_rows_unsolved(self.goals[j]),
            history=loop.histories[j, :iterations + 1] / scale, method=d.method,
            precond=d.precond, format=d.format, ordering=d.ordering, scaling=d.scaling, device=d.device, dtype=d.dtype,
            configuration=p.describe(), tolerance=float(self.thresholds[j] / scale),
            products=counts.products, reductions=counts.reductions,
            preconditioner_applications=counts.preconditioner,
            timings={**s.timings, "solve": self.seconds / self.space.columns,
                     "compile": s.timings["compile"] + (self.watch.compiled if j == 0 else 0)},
            memory={**d.memory, "workspace": p.workspace.nbytes // self.space.columns}, host_reads=self.reads,
            notes=list(dict.fromkeys((*d.notes, *p.iteration.notes, *d.failures))),
            spectrum=p.iteration.spectrum(j))
