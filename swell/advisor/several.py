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
from swell.advisor.attempts import FINAL
from swell.core.errors import InputError, OutOfMemory
from swell.core.log import LOG
from swell.core.monitor import SolutionMonitor
from swell.core.registry import load
from swell.core.stopping import Reason
from swell.solving.results import Results
from swell.solving.together import MOST, bound, obstacle

BLOCK = range(4, 17)    # columns for which block CG replaces CG with IC(0)
ENDED = Reason.INTERRUPTED, Reason.STOPPED      # ends that the user asked for


@dataclass
class Task:
    """Several right-hand sides for one prepared solver.

    Attributes
    ----------
    plan, chain, prepared, prepare
        As `attempts.follow` takes them.
    b, x0 : arrays, shape (n, k)
        x0 may be None.
    monitor : callable or None
    original : array
        x is given back in its kind.
    together : bool or None
        What the user asks for; None: what is predicted to be faster.
    alone : callable
        ``alone(j, x0)`` solves for column j from x0 by all choices, and returns its Result.
    """

    plan: object
    chain: list
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
        self._shared = False                     # did a block method run last?
        if self.count == 1:
            only = self.alone(0, self._start(0))
            return Results(inputs.stack([only.x], self.b, self.original), [only])
        if self.together is False:
            columns, note = self._one_by_one("together=False was given")
        else:
            route = self.plan.route(self.chain, self.prepared, self.count)
            choice, ready = self._next(route)
            why = self._why_alone(choice, ready)
            columns, note = self._one_by_one(why) if why else self._in_groups(route, choice)
        return Results(inputs.stack([r.x for r in columns], self.b, self.original), columns, [note])

    @property
    def count(self):
        """Number of right-hand sides."""
        return self.b.shape[1]

    def _start(self, j):
        return None if self.x0 is None else self.x0[:, j]

    def _next(self, route):
        """Return (the next choice of the route that can be set up, its Prepared); (None, None) if none is left."""
        while (choice := route.next()) is not None:
            try:
                return choice, self.prepare(choice)
            except (InputError, MemoryError) as error:
                if len(self.chain) == 1:
                    raise
                route.failed(choice, str(error))
        return None, None

    def _why_alone(self, choice, ready):
        """Return why the choice, set up as ``ready``, solves one by one; None if it does not.

        Raises InputError if the user asked for all at once, and the choice cannot."""
        if ready is None or ready.setup.failure is not None:
            return "the matrix could not be factored"        # of which each record tells
        why, estimates = obstacle(ready), self.plan.estimates
        if self.together and why:
            raise InputError(f"together=True: {why}; leave together out")
        if self.together or not estimates:
            return why
        alone, together = estimates[choice].alone(self.count), min(e.together(self.count) for e in estimates)
        if why is None and estimates[choice].together(self.count) < alone:
            return None
        predicted = f"predicted {alone:.2g} s for them, and {together:.2g} s for the fastest choice together"
        return predicted if why is None else f"{why}; {predicted}"

    def _one_by_one(self, why):
        """Solve for one column after the other. Returns (the results, a note that says ``why``)."""
        columns = []
        for j in range(self.count):
            columns.append(self.alone(j, self._start(j)))
            if columns[-1].reason in ENDED:
                break                            # x then has fewer columns than b
        return columns, f"solved one by one: {why}"

    def _in_groups(self, route, choice):
        """Solve together, at most `MOST` columns at a time. Returns (the results, a note on the groups)."""
        most = MOST if self._block_form(choice, BLOCK[0]) is None else BLOCK[-1]
        columns, width, sizes, one_rank = [], most, [], self.prepare(choice).space.ranks.single
        while len(columns) < self.count:
            part = range(len(columns), min(len(columns) + width, self.count))
            try:
                columns += self._group(route, choice, part)
            except OutOfMemory as error:
                if width == 1 or not (one_rank or getattr(error, "told", False)):
                    raise                        # other ranks, which do not know of it, would not take fewer
                width //= 2
                continue
            sizes.append(len(part))
            if any(r.reason in ENDED for r in columns[-len(part):]):
                break
            route, choice = self.plan.route(self.chain, self.prepared, self.count), None
        groups = f" in groups of {', '.join(map(str, sizes))}" if len(sizes) > 1 else ""
        fewer = f"; memory has room for {width} at a time" if width < min(most, self.count) else ""
        shared = "; block_cg took the place of cg: with IC(0) a shared Krylov space pays" if self._shared else ""
        return columns, f"solved together{groups}{fewer}{shared}"

    def _block_form(self, choice, count):
        """Return settings of block CG for ``count`` columns by the choice, or None if it keeps its method."""
        c = self.chain[choice]
        if self.plan.estimates and count in BLOCK and (c.name("method"), c.name("precond")) == ("cg", "ic0"):
            return load("method", "block_cg")()
        return None

    def _group(self, route, choice, part):
        """Solve for the columns in the range ``part``, by ``choice`` and, if it is overtaken, by those after it.

        A column that does not converge is solved on alone, by all choices."""
        if len(part) == 1:
            return [self.alone(part[0], self._start(part[0]))]
        columns = slice(part.start, part.stop)
        b, x = self.b[:, columns], None if self.x0 is None else self.x0[:, columns]
        attempts, results = [], []
        choice, ready = self._next(route) if choice is None else (choice, self.prepare(choice))
        while ready is not None and ready.setup.failure is None and not obstacle(ready):
            block = self._block_form(choice, len(part))
            self._shared = block is not None
            results = bound(ready, len(part), block).run(b, x, self.monitor, route.watch(choice))
            worst = max(results, key=lambda r: (not r.converged, r.iterations))
            worst.choice = choice
            LOG.info("tried for %d right-hand sides together, of which the worst: %r", len(part), worst)
            attempts.append(worst)
            if worst.reason is not Reason.OVERTAKEN:
                break
            x = np.stack([ready.space.to_host(r.x) for r in results], axis=1)
            route.ended(choice, worst)
            choice, ready = self._next(route)
        if not results:
            return [self.alone(j, self._start(j)) for j in part]
        considered = route.finished(attempts)
        return [self._finished(j, result, attempts, considered) for j, result in zip(part, results)]

    def _finished(self, j, result, attempts, considered):
        """Return the Result of column j: ``result``, or the result of the other choices if it did not converge."""
        space = self.prepared[attempts[-1].choice].space
        if not result.final and len(self.chain) > 1:
            alone = self.alone(j, space.to_host(result.x))
            result.x = inputs.returned(result.x, space, self.original)
            alone.attempts = [result, *alone.attempts]
            return alone
        if result.reason not in FINAL:
            LOG.warning("right-hand side %d: %r: %s", j, result, result.message)
        result.choice, result.considered = attempts[-1].choice, considered
        result.attempts = [attempt for attempt in attempts[:-1] if attempt is not result]
        result.x = inputs.returned(result.x, space, self.original)
        return result
