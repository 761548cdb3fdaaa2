"""Results: the outcomes for several right-hand sides of one matrix."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.encoding import printable
from swell.core.stopping import Reason
from swell.solving.choice_cost import count, paired, seconds, table
from swell.solving.result import Result

PRINTED = 16            # columns of b in a printed table
DRAWN = 8               # columns of b in a notebook's plot
HEADER = "column", "iterations", "‖b − Ax‖/‖b‖", "backward error", "reason"


@dataclass
class Results:
    """The results for several right-hand sides. ``results[j]`` is the `Result` of column j; a slice gives `Results`.

    Attributes
    ----------
    x : array, shape (n, k)
        The solutions as columns; fewer than b has if Ctrl-C or the monitor ended the solve.
    columns : list of Result
        One result for each column of x.
    notes : list of str
        How the right-hand sides were solved: together or one by one, and why.
    """

    x: Any
    columns: list[Result]
    notes: list[str] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True if every column converged."""
        return all(r.converged for r in self.columns)

    @property
    def reason(self) -> Reason:
        """CONVERGED, or the reason of the first column that did not converge."""
        return next((r.reason for r in self.columns if not r.converged), Reason.CONVERGED)

    @property
    def reasons(self) -> list[Reason]:
        """The reason of each column."""
        return [r.reason for r in self.columns]

    @property
    def iterations(self) -> int:
        """Total number of iterations."""
        return sum(r.iterations for r in self.columns)

    @property
    def residual(self) -> float:
        """The largest true relative residual of all columns."""
        return max((r.residual for r in self.columns), default=0.0)

    @property
    def residuals(self) -> np.ndarray:
        """The true relative residual of each column, shape (k,)."""
        return np.array([r.residual for r in self.columns])

    @property
    def history(self) -> np.ndarray:
        """The relative residual after each iteration, shape (most iterations + 1, k); NaN after a column's end."""
        history = np.full((max((len(r.history) for r in self.columns), default=0), len(self)), math.nan)
        for j, r in enumerate(self.columns):
            history[:len(r.history), j] = r.history
        return history

    @property
    def timings(self) -> dict:
        """Seconds of "setup" and its parts, which ran once, and of "solve" and "compile" for all columns."""
        if not self.columns:
            return {}
        total = {part: sum(r.timings.get(part, 0.0) for r in self.columns) for part in ("solve", "compile")}
        return {**self.columns[0].timings, **total}

    def worst(self) -> list[int]:
        """The numbers of the columns, worst first: not converged, then by falling residual."""
        return sorted(range(len(self)), key=lambda j: (self[j].converged, -np.nan_to_num(self[j].residual, nan=np.inf)))

    def as_dict(self) -> dict:
        """Return a dict: the summary of all columns, and under "columns" a list with the dict of each."""
        return {"converged": self.converged, "reason": self.reason.name, "iterations": self.iterations,
                "residual": self.residual, "notes": self.notes, "columns": [r.as_dict() for r in self.columns]}

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return len(self.columns)

    def __getitem__(self, j):
        if isinstance(j, slice):
            return Results(self.x[:, j], self.columns[j], self.notes)
        return self.columns[j]

    def _summary(self) -> str:
        done = sum(r.converged for r in self.columns)
        each = sorted(r.iterations for r in self.columns)
        took = "" if not each else f" in {count(each[0], 'iteration')} each" if each[0] == each[-1] else (
            f" in {each[0]} to {each[-1]} iterations, {self.iterations} in all")
        return f"{done} of {len(self)} right-hand sides converged{took}: ‖b − Ax‖/‖b‖ ≤ {self.residual:.2e}"

    def _rows(self) -> list[tuple[str, ...]]:
        return [(f"[{j}]", str(self[j].iterations), f"{self[j].residual:.2e}", f"{self[j].backward_error:.1e}",
                 self[j].reason.name) for j in self.worst()[:PRINTED]]

    def _rest(self) -> str:
        return f"and {len(self) - PRINTED} more, no worse" if len(self) > PRINTED else ""

    def _failed(self) -> dict:
        """Return the message of each reason for which a column did not converge."""
        return {r.reason: r.message for r in self if not r.converged}

    def _all_notes(self) -> list[str]:
        return [*dict.fromkeys((*self.notes, *(note for r in self for note in r.notes)))]

    @printable
    def __str__(self):
        lines = [self._summary()]
        if self.columns:
            lines += [f"  {line}" for line in self.columns[0].configuration]
            lines.append(f"  cost: {seconds(self.timings)}")
            lines += [f"  {line}" for line in table(self.columns[0].choices)]
            rows = [HEADER, *self._rows()]
            widths = [max(map(len, cells)) for cells in zip(*rows)]
            lines += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows]
            lines += [f"  {self._rest()}"] if self._rest() else []
            lines += [f"  {reason.name}: {message}" for reason, message in self._failed().items()]
            lines += [f"  note: {note}" for note in self._all_notes()]
        return "\n".join(lines)

    def __repr__(self):
        by = dict.fromkeys(paired(r.method, r.precond, r.scaling) for r in self)
        return (f"Results({sum(r.converged for r in self)} of {len(self)} converged, "
                f"{count(self.iterations, 'iteration')}, residual {self.residual:.2e}, "
                f"{self.timings.get('solve', 0):.3g} s{''.join(f', {name}' for name in by)})")

    def _repr_html_(self):
        from swell.display import page
        from swell.solving import cards
        done = f"{sum(r.converged for r in self)} of {len(self)} converged"
        body = [f"<p>{page.badge(done, self.converged)} {page.escape(self._summary())}</p>"]
        if self.columns:
            worst, shared = self.worst()[:DRAWN], dict(cards.sections(self[0]))
            body += [page.paragraph(f"{reason.name}: {message}.") for reason, message in self._failed().items()]
            body.append(cards.convergence([cards.line(f"[{j}] {cards.label(self[j])}", self[j]) for j in worst]))
            body += [page.table(self._rows(), HEADER), page.paragraph(self._rest(), soft=True)]
            body.append(page.bullets(self._all_notes()))
            body += [page.details(title, shared[title]) for title in (cards.RAN, cards.CHOICES) if title in shared]
        return page.fragment(body)               # a notebook shows this
