"""Several right-hand sides: solved together, in groups, or one by one; what is predicted to be faster.

Together they share each product and each launch (``solving/together.py``). One by one is the way for what can hold one
right-hand side only: a null space, resident_cg. Its vectors never leave the chip, so a loop of it may win.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell import inputs
from swell.advisor.attempts import FINAL
from swell.core.errors import InputError, OutOfMemory
from swell.core.stopping import Reason
from swell.solving.results import Results
from swell.solving.together import MOST, bound, obstacle


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
        if self._count == 1:
            only = self.alone(0, None if self.x0 is None else self.x0[:, 0])
            return Results(inputs.stack([only.x], self.b, self.original), [only])
        route = self.plan.route(self.chain, self.prepared, self._count if self.together is not False else 1)
        first = route.next()
        why = "together=False was given" if self.together is False else self._why_alone(first)
        if why and self.together:
            raise InputError(f"together=True: {why}; leave together out")
        columns, note = self._one_by_one(why) if why else self._in_groups(route, first)
        x = inputs.stack([r.x for r in columns], self.b, self.original)
        return Results(x, columns, [note])

    @property
    def _count(self):
        return self.b.shape[1]

    def _why_alone(self, first):
        """Return why choice ``first`` solves one by one, or None."""
        if first is None:
            return "no choice is left"
        why = obstacle(self.prepare(first))
        estimates = self.plan.estimates
        if why or self.together or not estimates:
            return why
        e = estimates[first]
        if e.alone(self._count) <= e.together(self._count):
            return f"predicted {e.alone(self._count):.2g} s, together {e.together(self._count):.2g} s"
        return None

    def _one_by_one(self, why):
        """Solve for one column after the other. Returns (the results, a note that says ``why``)."""
        columns = []
        for j in range(self._count):
            columns.append(self.alone(j, None if self.x0 is None else self.x0[:, j]))
            if columns[-1].reason in (Reason.INTERRUPTED, Reason.STOPPED):
                break                            # x then has fewer columns than b
        return columns, f"solved one by one: {why}"

    def _in_groups(self, route, first):
        """Solve together, at most `MOST` columns at a time. Returns (the results, a note on the groups)."""
        columns, width, sizes, one_rank = [], MOST, [], self.prepare(first).space.single_rank
        while len(columns) < self._count:
            begin = len(columns)
            part = slice(begin, min(begin + width, self._count))
            try:
                columns += self._group(route if not begin else self.plan.route(self.chain, self.prepared, self._count),
                                       first if not begin else None, part)
            except OutOfMemory as error:
                if width == 1 or not (one_rank or getattr(error, "told", False)):
                    raise                        # other ranks, which do not know of it, would not take fewer
                width = width // 2
                continue
            sizes.append(part.stop - begin)
            if columns[-1].reason in (Reason.INTERRUPTED, Reason.STOPPED):
                break
        fewer = f"; memory has room for {width} at a time" if width < min(MOST, self._count) else ""
        return columns, f"solved together in groups of {', '.join(map(str, sizes))}{fewer}" if len(sizes) > 1 else (
            f"solved together{fewer}")

    def _group(self, route, choice, part):
        """Solve for the columns in the slice ``part``, by ``choice`` and, if it is overtaken, by those after it.

        A column that does not converge is solved on alone, by all choices."""
        b, x = self.b[:, part], None if self.x0 is None else self.x0[:, part]
        if part.stop - part.start == 1:
            return [self.alone(part.start, None if x is None else x[:, 0])]
        attempts, choice = [], route.next() if choice is None else choice
        while choice is not None:
            ready = self.prepare(choice)
            if obstacle(ready):                  # a later choice may take one right-hand side only
                break
            results = bound(ready, b.shape[1]).run(b, x, self.monitor, route.watch(choice))
            worst = max(results, key=lambda r: (not r.converged, r.iterations))
            worst.choice = choice
            attempts.append(worst)
            if worst.reason is not Reason.OVERTAKEN:
                break
            x = np.stack([ready.space.to_host(r.x) for r in results], axis=1)
            route.ended(choice, worst)
            choice = route.next()
        considered = route.finished(attempts) if attempts else []
        found = []
        for j, result in enumerate(results):
            result.choice = worst.choice
            result.x = inputs.returned(result.x, ready.space, self.original)
            result.attempts = [a for a in attempts if a is not worst]
            if result.reason not in FINAL and len(self.chain) > 1:
                before, result = result, self.alone(part.start + j, ready.space.to_host(result.x))
                result.attempts = [before, *result.attempts]
            elif not result.considered:
                result.considered = considered
            found.append(result)
        return found
