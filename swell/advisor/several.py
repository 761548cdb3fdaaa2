"""Several right-hand sides, solved together, in groups, or one by one, whichever is predicted to be faster.

Together they share each product and each launch (``solving/together.py``). A null space and resident_cg take one
right-hand side at a time. The vectors of resident_cg never leave the chip, so a loop of it may still be faster.

If nothing is named and the choice is CG with IC(0), block CG takes its place from four columns on. Triangular solves
are most of an iteration then, and the shared Krylov space saves more than half of the iterations
(benchmarks/notes/block_methods.md).
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell import inputs
from swell.core.errors import InputError, OutOfMemory
from swell.core.log import LOG
from swell.core.monitor import SolutionMonitor
from swell.core.registry import load
from swell.core.stopping import Reason
from swell.solving.result import FINAL
from swell.solving.results import Results
from swell.solving.together import MAX_COLUMNS, bound, obstacle

BLOCK = range(4, 17)    # columns for which block CG replaces CG with IC(0)
BY_USER = Reason.INTERRUPTED, Reason.STOPPED    # the user ended the solve: no further column is begun


@dataclass
class Task:
    """Several right-hand sides for one prepared solver.

    Attributes
    ----------
    choices, prepared, prepare
        As `attempts.try_choices` takes them.
    b, x0 : arrays, shape (n, k)
        x0 may be None.
    monitor : callable or None
    original : array
        The solution is an array of the same kind.
    together : bool or None
        The user's argument; None takes what is predicted to be faster.
    alone : callable
        ``alone(j, x0)`` solves for column j from x0, trying all choices, and returns its Result.
    """

    choices: object
    prepared: dict
    prepare: object
    b: object
    x0: object
    monitor: object
    original: object
    together: bool | None
    alone: object

    def solve(self) -> Results:
        """Return the Results."""
        if isinstance(self.monitor, SolutionMonitor):
            raise InputError(f"a SolutionMonitor takes one right-hand side, and b has {self.count} columns: solve for "
                             "each b[:, j] by itself")
        self._block = False                      # True if a block method ran last
        if self.count == 1:
            only = self.alone(0, self._start(0))
            return Results(inputs.stack([only.x], self.b, self.original), [only])
        if self.together is False:
            columns, note = self._one_by_one("together=False was given")
        else:
            order = self.choices.order(self.prepared, self.count)
            k, ready = self._next(order)
            why = self._why_alone(k, ready, order.predictions)
            columns, note = self._one_by_one(why) if why else self._in_groups(order, k)
        return Results(inputs.stack([r.x for r in columns], self.b, self.original), columns, [note])

    @property
    def count(self):
        """Number of right-hand sides."""
        return self.b.shape[1]

    def _start(self, j):
        return None if self.x0 is None else self.x0[:, j]

    def _next(self, order):
        """Return (number of the next choice that can be set up, its Prepared); (None, None) if none is left."""
        while (k := order.next()) is not None:
            try:
                return k, self.prepare(k)
            except (InputError, MemoryError) as error:
                if len(self.choices.configurations) == 1:
                    raise
                order.failed(k, str(error))
        return None, None

    def _why_alone(self, k, ready, predictions):
        """Return why choice k, set up as ``ready``, solves for one column after the other; None if it does not.

        ``predictions``: those by which k was chosen.
        Raises InputError if the user asked for all columns at once, and the choice cannot do it."""
        if ready is None or ready.setup.failure is not None:
            return "the matrix could not be factored"        # each result says why
        why = obstacle(ready)
        if self.together and why:
            raise InputError(f"together=True: {why}; leave together out")
        if self.together or not predictions:
            return why
        alone, together = predictions[k].alone(self.count), min(p.together(self.count) for p in predictions)
        if why is None and predictions[k].together(self.count) < alone:
            return None
        predicted = f"predicted {alone:.2g} s for them, and {together:.2g} s for the fastest choice together"
        return predicted if why is None else f"{why}; {predicted}"

    def _one_by_one(self, why):
        """Solve for one column after the other; return (the results, a note that says ``why``)."""
        columns = []
        for j in range(self.count):
            columns.append(self.alone(j, self._start(j)))
            if columns[-1].reason in BY_USER:
                break                            # x then has fewer columns than b
        return columns, f"solved one by one: {why}"

    def _in_groups(self, order, k):
        """Solve together, at most `MAX_COLUMNS` columns at a time; return (the results, a note on the groups)."""
        most = MAX_COLUMNS if self._block_form(k, BLOCK[0]) is None else BLOCK[-1]
        columns, width, sizes, one_rank = [], most, [], self.prepare(k).space.ranks.single
        while len(columns) < self.count:
            group = range(len(columns), min(len(columns) + width, self.count))
            try:
                columns += self._group(order, k, group)
            except OutOfMemory as error:
                if width == 1 or not (one_rank or getattr(error, "told", False)):
                    raise                        # the other ranks do not know of it, and would not take fewer
                width //= 2
                continue
            sizes.append(len(group))
            if any(r.reason in BY_USER for r in columns[-len(group):]):
                break
            order, k = self.choices.order(self.prepared, self.count), None
        groups = f" in groups of {', '.join(map(str, sizes))}" if len(sizes) > 1 else ""
        fewer = f"; memory has room for {width} at a time" if width < min(most, self.count) else ""
        shared = "; block_cg took the place of cg: with IC(0) a shared Krylov space pays" if self._block else ""
        return columns, f"solved together{groups}{fewer}{shared}"

    def _block_form(self, k, count):
        """Return settings of block CG, which solves for ``count`` columns in choice k; None if it keeps its method."""
        c = self.choices.configurations[k]
        if self.choices.predictions and count in BLOCK and (c.name("method"), c.name("precond")) == ("cg", "ic"):
            return load("method", "block_cg")()
        return None

    def _group(self, order, k, group):
        """Solve for the columns in the range ``group`` by choice k, or by the next one if k is None.

        If the choice is overtaken, the next one follows. A column that does not converge is then solved alone, from its
        x, and all choices are tried."""
        if len(group) == 1:
            return [self.alone(group[0], self._start(group[0]))]
        columns = slice(group.start, group.stop)
        b, x = self.b[:, columns], None if self.x0 is None else self.x0[:, columns]
        attempts, results = [], []
        k, ready = self._next(order) if k is None else (k, self.prepare(k))
        while ready is not None and ready.setup.failure is None and not obstacle(ready):
            block = self._block_form(k, len(group))
            self._block = block is not None
            results = bound(ready, len(group), block).run(b, x, self.monitor, order.watch(k))
            worst = max(results, key=lambda r: (not r.converged, r.iterations))
            worst.choice = k
            LOG.info("tried for %d right-hand sides together, of which the worst: %r", len(group), worst)
            attempts.append(worst)
            if worst.reason is not Reason.OVERTAKEN:
                break
            x = np.stack([ready.space.to_host(r.x) for r in results], axis=1)
            order.ended(k, worst)
            k, ready = self._next(order)
        if not results:
            return [self.alone(j, self._start(j)) for j in group]
        costs = order.finished(attempts)
        return [self._finished(j, result, attempts, costs) for j, result in zip(group, results)]

    def _finished(self, j, result, attempts, costs):
        """Return the Result of column j: ``result`` if it is final, else what further choices reach from its x.

        ``attempts``: the worst result of each attempt for the group. ``costs``: a ChoiceCost of each choice."""
        space = self.prepared[attempts[-1].choice].space
        if not result.final and len(self.choices.configurations) > 1:
            alone = self.alone(j, space.to_host(result.x))
            result.x = inputs.returned(result.x, space, self.original)
            alone.attempts = [result, *alone.attempts]
            return alone
        if result.reason not in FINAL:
            LOG.warning("right-hand side %d: %r: %s", j, result, result.message)
        result.choice, result.choices = attempts[-1].choice, costs
        result.attempts = [attempt for attempt in attempts[:-1] if attempt is not result]
        result.x = inputs.returned(result.x, space, self.original)
        return result
