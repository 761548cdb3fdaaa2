"""ChoiceCost: the predicted and the actual cost of each of the advisor's choices, as data and as a table."""
from __future__ import annotations

import math
import os
from dataclasses import dataclass


@dataclass
class ChoiceCost:
    """A choice of the advisor: its predicted cost and, if it was tried, its actual cost.

    Attributes
    ----------
    choice : str
        Method and preconditioner, by the names of the registry.
    setup, solve : float
        Predicted seconds of the setup and of a solve; NaN without a prediction; an infinite setup does not fit.
    iterations : float
        Predicted number of iterations.
    at_least : bool
        True if the prediction is a lower bound: its analysis stopped at a limit.
    probed : float
        Seconds of setup and solve, predicted again from the residuals of the first `watch.PROBE` iterations; inf if
        they did not fall, NaN if fewer were run.
    spent_setup, spent_solve : float
        Actual seconds of its setup and of its solve; NaN if it was not tried.
    outcome : str
        "not tried", or the name of the Reason why the attempt ended.
    """

    choice: str
    setup: float
    solve: float
    iterations: float
    at_least: bool = False
    probed: float = math.nan
    spent_setup: float = math.nan
    spent_solve: float = math.nan
    outcome: str = "not tried"

    def cells(self) -> tuple[str, ...]:
        """The texts of this choice in a printed result, in the columns of `HEADER`."""
        if math.isinf(self.setup):
            return self.choice, "does not fit", "", "", self.outcome
        predicted = f"{self.setup:.2g} + {self.solve:.2g} ({count(self.iterations, 'iteration')})"
        again = "" if math.isnan(self.probed) else "no end" if math.isinf(self.probed) else f"{self.probed:.2g}"
        return (self.choice, f"{'at least ' if self.at_least else ''}{predicted}", again,
                "" if math.isnan(self.spent_solve) else f"{self.spent_setup:.2g} + {self.spent_solve:.2g}",
                self.outcome)


BUSY = 1.25             # load per processor, the solve's own threads included, above which other work slows a solve
HEADER = "choice", "predicted s: setup + solve", "predicted again", "spent s: setup + solve", "outcome"


def count(number, noun) -> str:
    """Format a whole number, which may be inf, and its noun, in the plural unless the number is 1."""
    digits = f"{number:.0f}"
    return f"{digits} {noun}{'s' * (digits != '1')}"


def paired(method, *parts) -> str:
    """Return a method with the first of ``parts`` that is not "none", as in "cg with ic"."""
    part = next((part for part in parts if part != "none"), None)
    return method if part is None else f"{method} with {part}"


def seconds(timings) -> str:
    """Return the seconds of setup, solve and compilation in words."""
    compiled = timings.get("compile", 0)
    return (f"setup {timings.get('setup', 0):.3g} s, solve {timings.get('solve', 0):.3g} s"
            + (f", compiling kernels {compiled:.2g} s" if compiled > 0.01 else ""))


def table(costs) -> list[str]:
    """Format a list of ChoiceCost as a table: a line of headings, and a line for each choice. No choices: no lines.

    On a busy machine a last line says so, since predictions are for an idle one."""
    if not costs:
        return []
    rows = [HEADER, *(cost.cells() for cost in costs)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return lines + other_work()


def other_work() -> list[str]:
    """Return a sentence on this machine's other work if it slows solves; an empty list if not, or if unknown."""
    try:
        load, processors = os.getloadavg()[0], os.cpu_count() or 1
    except (AttributeError, OSError):            # Windows has no load average
        return []
    return [f"this machine is busy (a load of {load:.1f} on {processors} processors): predictions are for an idle one"
            ] if load > BUSY * processors else []
