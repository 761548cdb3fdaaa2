"""The order in which a solve tries the choices: the one with the least predicted seconds first, then the next one.

`Choices` belongs to a prepared solver. It keeps the iterations that each choice took, or was extrapolated to take. An
`Order` belongs to one solve. An attempt is a choice that runs, under a watch (watch.py). It ends in one of three ways:
it converges; it fails, and its choice is removed; or it is overtaken, because the watch predicts that another choice is
faster. The next attempt then starts from the x of the overtaken one. An overtaken choice is resumed only if every other
choice fails.

A finished setup costs nothing more. A factorisation's setup is divided by the number of solves, this one included: its
seconds are certain, so a solver that is used often pays for it once the solves have taken as long (ski rental).

Once a choice has converged, later solves take it, or another one that has. They explore an untried iterative choice
only if it is predicted to be faster with all of its setup, and if that takes at most `EXPLORED` of the last solve: what
the watch then lets it spend makes the solve at most 1.5 times as long. A note tells of it.

Choices without predictions are tried as they are listed.
"""
from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from swell.advisor.costs import MULTIGRID
from swell.advisor.watch import Watch
from swell.core.stopping import Reason
from swell.solving.choice_cost import ChoiceCost, paired

REFINE_FROM = 8         # a bound is refined only if the seconds to beat are this many times the seconds of refining it
REFINE_UP_TO = 10       # refining stops once the bound is this many times the seconds to beat
MAX_DIFFICULTY = 1e3    # the difficulty of a system on which a residual does not fall
EXPLORED = 0.2          # of a solve's seconds, which the setup of an untried iterative choice may take
SLOWDOWN = 1.5          # residuals often fall more slowly later: factor on an extrapolation, for other choices


def fastest_choice(predictions, choices, seconds, limit=math.inf) -> int | None:
    """Return the number of the choice that is predicted to be fastest; None if all take ``limit`` or longer.

    ``choices``: the numbers to compare, places in the list ``predictions``. ``seconds(k)``: predicted seconds of choice
    k. If a lower bound would win, and much time depends on it, a refined prediction replaces it in ``predictions``.
    """
    for k in choices:
        if predictions[k].certain:
            return k
    while True:
        best = min((k for k in choices if predictions[k].refine is None), key=seconds, default=None)
        to_beat = min(limit, math.inf if best is None else seconds(best))
        bounds = [k for k in choices if predictions[k].refine is not None and seconds(k) < to_beat
                  and REFINE_FROM * predictions[k].refining <= to_beat]
        if not bounds:
            return best if best is not None and seconds(best) < limit else None
        k = min(bounds, key=seconds)
        predictions[k] = predictions[k].refine(REFINE_UP_TO * to_beat)


def difficulty(iterations, prediction) -> float:
    """Return the factor, at least 1, by which the system needs more iterations than predicted.

    ``iterations``: extrapolated, of a choice. ``prediction``: its Prediction. A factor above 1 is multiplied by
    `SLOWDOWN`."""
    factor = iterations / prediction.iterations
    return min(SLOWDOWN * factor, MAX_DIFFICULTY) if factor > 1 else 1.0


class Choices:
    """The choices of a prepared solver, and what its solves have found out about them.

    Parameters
    ----------
    configurations : list of Configuration
    adapt : bool
        False: solves leave the predictions as they are, so each solve takes the order of the first.

    Attributes
    ----------
    predictions : list of Prediction
        One for each configuration, with the iterations that solves have found; empty if a configuration has none.
    solves : int
        Solves so far; always 0 without ``adapt``.
    tried, converged : set of int
        The choices that have run, and those that have solved a system; empty without ``adapt``.
    """

    def __init__(self, configurations, adapt=True):
        predictions = [configuration.prediction for configuration in configurations]
        self.predictions = self._first = [] if None in predictions else predictions
        self.configurations, self.adapt, self.solves = configurations, adapt, 0
        self.tried, self.converged = set(), set()

    def order(self, prepared, columns=1) -> "Order":
        """Return a new Order for the next solve. ``prepared``: numbers of the choices that are set up already;
        ``columns``: number of right-hand sides."""
        if all(math.isinf(p.setup + p.iterations) for p in self.predictions):
            self.renew()
        return Order(self, prepared if self.adapt else [0], columns)

    def renew(self):
        """Restore the first predictions of choices that failed, so that they are tried again, as for new values."""
        self.predictions = [first if math.isinf(p.iterations) else p for p, first in zip(self.predictions, self._first)]


class Order:
    """The order in which one solve tries the `Choices`. Its methods name a choice by its number.

    Attributes
    ----------
    predictions : list of Prediction
        One for each choice, with what this solve has found out.
    notes : list of str
        Tells of a choice that a later solve tries for the first time.
    """

    def __init__(self, choices, prepared, columns=1):
        self._choices, self._prepared, self._columns = choices, set(prepared), columns
        self._remaining, self._overtaken = list(range(len(choices.configurations))), []
        self.predictions, self._failures = list(choices.predictions), {}
        self._watches, self._x, self._difficulty, self._begun, self.notes = {}, None, 1.0, False, []

    def seconds(self, k) -> float:
        """Return the seconds that choice k is predicted to need from here on, with its share of the setup."""
        p = self.predictions[k]
        shared = 1 if self._uncertain(k) else 1 + self._choices.solves
        return self._setup(k) / shared + p.at_best(self._columns) * (self._difficulty if p.grows else 1.0)

    def _setup(self, k):
        return 0.0 if k in self._prepared else self.predictions[k].setup

    def _uncertain(self, k):
        """True for an iterative choice, whose iterations are not known before it has run."""
        return self.predictions[k].grows or self._choices.configurations[k].part in MULTIGRID

    def _candidates(self):
        """Return the choices that this solve may try next: all that are left, until one has converged."""
        known = self._choices.converged.intersection(self._remaining)
        if not known:
            return self._remaining
        limit = EXPLORED * min(self.predictions[k].at_best(self._columns) for k in known)
        return [k for k in self._remaining if k in known or k not in self._choices.tried
                and not (self._uncertain(k) and self._setup(k) > limit)]

    def next(self) -> int | None:
        """Return the number of the choice to try next; None if no choice is left."""
        if not self.predictions:
            return self._remaining[0] if self._remaining else None
        k = self._fastest(self._candidates())
        if k is not None and self._choices.converged and k not in self._choices.tried:
            configuration, p = self._choices.configurations[k], self.predictions[k]
            name = paired(configuration.name("method"), configuration.part)
            self.notes.append(f"{name} was tried for the first time, after {self._choices.solves} solves: predicted "
                              f"{self._setup(k):.2g} s for its setup, and {p.at_best(self._columns):.2g} s for a solve")
        if k is None and self._overtaken:
            k = self._overtaken.pop(0)
        elif k is None and not self._begun:      # no prediction is finite: try something all the same
            k = self._remaining[0]
        self._begun = True
        return k

    def _fastest(self, choices, limit=math.inf):
        """Return `fastest_choice` of ``choices``; refined bounds are kept for later solves, too."""
        k, kept = fastest_choice(self.predictions, choices, self.seconds, limit), self._choices.predictions
        if self._choices.adapt:
            kept[:] = [new if old.refine else old for old, new in zip(kept, self.predictions)]
        return k

    def watch(self, k) -> Watch | None:
        """Return a new Watch for an attempt of choice k; None if there is no other choice to change to."""
        others = [j for j in self._remaining if j != k]
        if not (self.predictions and others):
            return None
        self._watches[k] = Watch(self.predictions[k].iteration_at_best(self._columns),
                                 partial(self._best_of, others, k), min(map(self.seconds, others)))
        return self._watches[k]

    def _best_of(self, others, k, iterations, limit):
        """Return the predicted seconds of the fastest of ``others``, if choice k takes ``iterations`` in all.

        The return value is inf if all of them take ``limit`` seconds or longer."""
        p = self.predictions[k]
        if p.grows:
            self._difficulty = difficulty(iterations, p)
        fastest = self._fastest(others, limit)
        seconds = math.inf if fastest is None else self.seconds(fastest)
        self._difficulty = 1.0
        return seconds

    def start(self, x0):
        """Return the starting vector of the next attempt: x of an overtaken attempt, else the user's x0."""
        return x0 if self._x is None else self._x

    def ended(self, k, result):
        """Remove choice k, whose attempt ended with a ``result`` that is not final, from the choices to try.

        If the result shows that A is indefinite, all choices with the same method are removed. An overtaken choice may
        be resumed later."""
        if k in self._remaining:
            self._remaining.remove(k)
        configurations = self._choices.configurations
        # Only M of multigrid may be indefinite; with any other M it is A.
        if result.reason is Reason.INDEFINITE and configurations[k].part not in MULTIGRID:
            method = configurations[k].name("method")
            self._remaining = [j for j in self._remaining if configurations[j].name("method") != method]
        if result.converged:                     # but small rows are unsolved: other Krylov methods leave them, too
            self._remaining = [j for j in self._remaining if not self.predictions[j].grows] or self._remaining
        if result.reason is not Reason.OVERTAKEN:
            return
        self._overtaken.append(k)
        self._prepared.add(k)
        p, iterations_left = self.predictions[k], self._watches[k].iterations_left
        if p.grows:
            factor = difficulty(result.iterations + iterations_left, p)
            self.predictions = [replace(other, iterations=other.iterations * factor) if other.grows else other
                                 for other in self.predictions]
        self.predictions[k] = replace(self.predictions[k], iterations=iterations_left)
        if result.residual < 1:
            self._x = result.x

    def failed(self, k, why):
        """Remove choice k, which could not be set up or run, from the choices to try; keep the text ``why``."""
        self._remaining.remove(k)
        self._failures[k] = why

    def finished(self, attempts) -> list[ChoiceCost]:
        """Update the predictions of the `Choices` after the solve; return a ChoiceCost for each choice.

        ``attempts``: the results, in order."""
        choices, costs, updated = self._choices, [], []
        for k, (before, now) in enumerate(zip(choices.predictions, self.predictions)):
            results, configuration = [r for r in attempts if r.choice == k], choices.configurations[k]
            last = results[-1] if results else None
            setup, solve = ((results[0].timings["setup"], sum(r.timings["solve"] for r in results)) if results
                            else (math.nan, math.nan))
            probed = self._watches[k].probed if k in self._watches else math.nan
            costs.append(ChoiceCost(
                f"{configuration.name('method')}, {configuration.part}", now.setup, before.solve, before.iterations,
                now.refine is not None, now.setup + now.iteration * probed, setup, solve,
                last.reason.name if last else self._failures.get(k, "not tried")))
            iterations = sum(r.iterations for r in results)
            if last and last.reason is Reason.OVERTAKEN:
                iterations += now.iterations
            elif last and not last.final:
                iterations = math.inf
            iterations = iterations or before.iterations         # b = 0 or an exact x0 takes none
            updated.append(now if now.iterations == iterations else replace(now, iterations=iterations))
        if choices.adapt:
            choices.predictions, choices.solves = updated, choices.solves + 1
            choices.tried |= {r.choice for r in attempts}
            choices.converged |= {r.choice for r in attempts if r.final and r.converged}
        return costs
