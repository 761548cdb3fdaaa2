"""The order of attempts: the choice with the least predicted seconds first, under a watch, then the next one.

A `Plan` belongs to a prepared solver. It keeps the iterations that each choice took, or was extrapolated to take. A
`Route` is one solve's way through the choices. An attempt ends in one of three ways: it converges; it fails, and its
choice is removed; or it is overtaken, because the watch predicts that another choice is faster. The next choice starts
from the x of an overtaken attempt. An overtaken choice is resumed only if every other choice fails.

A finished setup costs nothing more. The cost of an open setup is divided by the number of solves, this one included. So
a solver that is used often may pay for a setup that makes each solve cheaper.

Choices without estimates are tried in their order.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from swell.advisor.watch import Watch
from swell.core.stopping import Reason
from swell.solving.considered import Considered

FINER = 10              # times the seconds at stake at which an analysis gives up
WORTH = 8               # seconds at stake over seconds of looking closer, at least
HARDEST = 1e3           # largest factor of difficulty, for a choice whose residual does not fall
MULTIGRID = "amg", "smoothed_aggregation"       # preconditioners whose iterations hardly grow with n
DOUBTED = 1.5           # times the iterations that an extrapolation promises, for other choices


@dataclass(frozen=True)
class Estimate:
    """Predicted seconds of one choice.

    Attributes
    ----------
    setup, iteration : float
        Seconds of the setup, and of an iteration.
    iterations : float
        Iterations that are expected.
    alike : bool
        True for a Krylov method whose iterations grow with the difficulty of the system: if one such choice takes more
        than expected, the others will, too. False for AMG and for the direct method.
    margin : float
        Seconds that the choice must save in the solves so far: a GPU's kernels for it compile for long at first use.
    outright : bool
        True for a choice that is taken without comparison, since it is quick and certain.
    finer : callable or None
        For a lower bound: ``finer(seconds)`` returns a finer Estimate; it gives up if the setup takes more than
        ``seconds``.
    looking : float
        Predicted seconds of a call of ``finer``.
    further : float
        Seconds that each further right-hand side adds to an iteration, if they are solved together.
    """

    setup: float
    iteration: float
    iterations: float
    alike: bool = True
    margin: float = 0.0
    outright: bool = False
    finer: Callable | None = field(default=None, compare=False)
    looking: float = 0.0
    further: float = math.inf

    @property
    def solve(self) -> float:
        """Seconds of a solve after the setup."""
        return self.iteration * self.iterations

    def alone(self, columns) -> float:
        """Seconds of solves for ``columns`` right-hand sides, one by one."""
        return columns * self.solve

    def together(self, columns) -> float:
        """Seconds of a solve for ``columns`` right-hand sides together; infinite if there is no such form."""
        return self.solve + ((columns - 1) * self.further * self.iterations if columns > 1 else 0.0)

    def at_best(self, columns) -> float:
        """The less of `alone` and `together`."""
        return min(self.alone(columns), self.together(columns))

    def iteration_at_best(self, columns) -> float:
        """Seconds of an iteration for ``columns`` right-hand sides, alone or together, whichever is less."""
        return self.iteration + (columns - 1) * min(self.iteration, self.further) if columns > 1 else self.iteration


def fastest_choice(estimates, choices, seconds, patience=math.inf) -> int | None:
    """Return the choice that is predicted to be fastest; None if no prediction is below ``patience``.

    An estimate that is only a lower bound is replaced, in ``estimates``, by a finer one if it would win and enough time
    is at stake.

    Parameters
    ----------
    estimates : list of Estimate
    choices : list of int
        Places in it.
    seconds : callable
        ``seconds(k)``: what choice k costs.
    patience : float
        Seconds.
    """
    for k in choices:
        if estimates[k].outright:
            return k
    while True:
        known = [k for k in choices if estimates[k].finer is None]
        best = min(known, key=seconds, default=None)
        at_stake = min(patience, math.inf if best is None else seconds(best))
        bounds = [k for k in choices if estimates[k].finer is not None and seconds(k) < at_stake
                  and WORTH * estimates[k].looking <= at_stake]
        if not bounds:
            return best if best is not None and seconds(best) < patience else None
        k = min(bounds, key=seconds)
        estimates[k] = estimates[k].finer(FINER * at_stake)


def harder(taken, estimate) -> float:
    """Return the factor, at least 1, by which the system is harder than expected.

    ``taken``: iterations that a choice is extrapolated to take; ``estimate``: its Estimate. Residuals fall more slowly
    later on more often than not, so a factor above 1 is multiplied by `DOUBTED`."""
    factor = taken / estimate.iterations
    return min(DOUBTED * factor, HARDEST) if factor > 1 else 1.0


class Plan:
    """The choices of a prepared solver, with all that its solves have found out about them.

    Parameters
    ----------
    chain : list of Configuration
    adapt : bool
        False: solves leave the estimates as they are, so each takes the path of the first.

    Attributes
    ----------
    estimates : list of Estimate
        One for each choice of the chain, with the iterations that solves have found; empty if a choice has none.
    solves : int
        Solves so far; always 0 without ``adapt``.
    """

    def __init__(self, chain, adapt=True):
        found = [choice.estimate for choice in chain]
        self.estimates = self._first = [] if None in found else found
        self.adapt, self.solves = adapt, 0

    def route(self, chain, prepared, columns=1) -> "Route":
        """Return a new Route for the next solve. ``chain``: configurations; ``prepared``: choices already set up;
        ``columns``: number of right-hand sides."""
        if all(math.isinf(e.setup + e.iterations) for e in self.estimates):
            self.renew()
        return Route(self, chain, prepared if self.adapt else [0], columns)

    def renew(self):
        """Restore the first estimates of choices that have failed, so that they are tried again, as for new values."""
        self.estimates = [first if math.isinf(e.iterations) else e for e, first in zip(self.estimates, self._first)]


class Route:
    """One solve's way through the choices of a chain."""

    def __init__(self, plan, chain, prepared, columns=1):
        self._plan, self._chain, self._done, self._columns = plan, chain, set(prepared), columns
        self._running, self._left = list(range(len(chain))), []
        self._estimates, self._failures = list(plan.estimates), {}
        self._watch, self._x, self._harder, self._probed = None, None, 1.0, {}
        self._tried = False

    def seconds(self, k) -> float:
        """Return the seconds that choice k is predicted to need from here on, with its share of the setup."""
        e = self._estimates[k]
        setup = 0.0 if k in self._done else (e.setup + e.margin) / (1 + self._plan.solves)
        return setup + e.at_best(self._columns) * (self._harder if e.alike else 1.0)

    def next(self) -> int | None:
        """Return the number of the choice to try next; None if no choice is left."""
        if not self._estimates:
            return self._running[0] if self._running else None
        k = fastest_choice(self._estimates, self._running, self.seconds)
        if k is None and self._left:
            k = self._left.pop(0)
        elif k is None and not self._tried:      # no prediction is finite: something is tried all the same
            k = self._running[0]
        self._tried = True
        return k

    def watch(self, k) -> Watch | None:
        """Return a new Watch for an attempt of choice k; None if no other choice is left that could be sooner."""
        others = [j for j in self._running if j != k]
        self._watch = None
        if self._estimates and others:
            e = self._estimates[k]
            self._watch = Watch(e.iteration_at_best(self._columns), partial(self._best_of, others, k),
                                min(map(self.seconds, others)))
        return self._watch

    def _best_of(self, others, k, taken, seconds):
        """Return the predicted seconds of the best of ``others``, if choice k takes ``taken`` iterations.

        The prediction is exact if it is below ``seconds``; otherwise it may be inf."""
        e = self._estimates[k]
        if e.alike:
            self._harder = harder(taken, e)
        k = fastest_choice(self._estimates, others, self.seconds, seconds)
        found = math.inf if k is None else self.seconds(k)
        self._harder = 1.0
        return found

    def start(self, x0):
        """Return the starting vector of the next attempt: x of an attempt that was overtaken, else the user's x0."""
        return x0 if self._x is None else self._x

    def ended(self, k, result):
        """Remove choice k, whose attempt ended with a ``result`` that is not final, from the choices to try.

        An indefinite A also removes all choices with the same method. An overtaken choice may be resumed later."""
        self._keep_probe(k)
        if k in self._running:
            self._running.remove(k)
        # A is indefinite, since no other M is
        if result.reason is Reason.INDEFINITE and self._chain[k].part not in MULTIGRID:
            self._running = [j for j in self._running if self._chain[j].name("method") != self._chain[k].name("method")]
        if result.converged:                     # small rows are unsolved, or few digits certain: as by others like it
            self._running = [j for j in self._running if not self._estimates[j].alike] or self._running
        if result.reason is not Reason.OVERTAKEN:
            return
        self._left.append(k)
        self._done.add(k)
        e = self._estimates[k]
        if e.alike:                              # the others will take as many times their expected iterations
            factor = harder(result.iterations + self._watch.left, e)
            self._estimates = [replace(o, iterations=o.iterations * factor) if o.alike else o for o in self._estimates]
        self._estimates[k] = replace(self._estimates[k], iterations=self._watch.left)
        if result.residual < 1:
            self._x = result.x

    def _keep_probe(self, k):
        """Keep the number of iterations that the watch on choice k has extrapolated, if there is a watch."""
        if self._watch is not None:
            self._probed[k] = self._watch.probed

    def failed(self, k, why):
        """Remove choice k, which could not be set up or run, from the choices to try; keep the text ``why``."""
        self._running.remove(k)
        self._failures[k] = why

    def finished(self, attempts) -> list[Considered]:
        """Update the plan's estimates after the solve; return a Considered for each choice.

        ``attempts``: the results, in order."""
        plan, taken, told, found = self._plan, {}, [], []
        self._keep_probe(attempts[-1].choice)
        for result in attempts:
            taken.setdefault(result.choice, []).append(result)
        for k, before in enumerate(plan.estimates):
            mine, now = taken.get(k, []), self._estimates[k]
            spent = [sum(r.timings["solve"] for r in mine), mine[0].timings["setup"]] if mine else [math.nan] * 2
            told.append(Considered(
                f"{self._chain[k].name('method')}, {self._chain[k].part}", now.setup, before.solve, before.iterations,
                now.finer is not None, now.setup + now.iteration * self._probed.get(k, math.nan), spent[1], spent[0],
                mine[-1].reason.name if mine else self._failures.get(k, "not tried")))
            count = sum(r.iterations for r in mine)
            if mine and mine[-1].reason is Reason.OVERTAKEN:
                count += now.iterations
            elif mine and not mine[-1].final:
                count = math.inf
            iterations = count or before.iterations          # b = 0 and an exact x0 tell nothing
            found.append(now if now.iterations == iterations else replace(now, iterations=iterations))
        if plan.adapt:
            plan.estimates, plan.solves = found, plan.solves + 1
        return told
