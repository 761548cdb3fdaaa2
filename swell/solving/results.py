"""Results: the outcomes for several right-hand sides of one matrix."""
from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.stopping import Reason
from swell.solving.result import Result, count, table

SHOWN = 16              # columns in a printed table
HEADER = "column", "iterations", "‖b − Ax‖/‖b‖", "backward error", "reason"


@dataclass
class Results:
    """The outcomes for several right-hand sides. ``results[j]`` is the `Result` of column j; a slice gives `Results`.

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
        found = np.full((max((len(r.history) for r in self.columns), default=0), len(self)), math.nan)
        for j, r in enumerate(self.columns):
            found[:len(r.history), j] = r.history
        return found

    @property
    def timings(self) -> dict:
        """Seconds of "setup" and its parts, done once; and of "solve" and "compile", of all columns."""
        if not self.columns:
            return {}
        total = {part: sum(r.timings.get(part, 0.0) for r in self.columns) for part in ("solve", "compile")}
        return {**self.columns[0].timings, **total}

    def worst(self) -> list[int]:
        """The columns, those that did not converge first, then by falling residual."""
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
                 self[j].reason.name) for j in self.worst()[:SHOWN]]

    def _rest(self) -> str:
        return f"and {len(self) - SHOWN} more, no worse" if len(self) > SHOWN else ""

    def __str__(self):
        lines = [self._summary()]
        if self.columns:
            first, t = self.columns[0], self.timings
            lines += ["  " + line for line in first.configuration]
            lines.append(f"  cost: setup {t.get('setup', 0):.3g} s, solve {t.get('solve', 0):.3g} s"
                         + (f", compiling kernels {t['compile']:.2g} s" if t["compile"] > 0.01 else ""))
            lines += [f"  {line}" for line in table(first.considered)]
            rows = [HEADER, *self._rows()]
            widths = [max(map(len, cells)) for cells in zip(*rows)]
            lines += ["  " + "  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows]
            lines += [f"  {self._rest()}"] if self._rest() else []
            failed = {r.reason: r.message for r in self if not r.converged}
            lines += [f"  {reason.name}: {message}" for reason, message in failed.items()]
            notes = dict.fromkeys((*self.notes, *(note for r in self for note in r.notes)))
            lines += [f"  note: {note}" for note in notes]
        return "\n".join(lines)

    def _repr_html_(self):
        """The summary and the table, for a notebook."""
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in self._rows())
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEADER)
        return (f"<p>{html.escape(self._summary())}</p>"
                f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
                f"<p>{html.escape('; '.join(filter(None, (self._rest(), *self.notes))))}</p>")
