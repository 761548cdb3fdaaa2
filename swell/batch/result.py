"""BatchResult: the outcomes of a batch, a record for each system."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swell.core.encoding import printable
from swell.core.stopping import Reason
from swell.solving.choice_cost import count, paired, seconds

WORST = 3               # systems that a printed result names
SHOWN = 10              # systems in a notebook's table


@dataclass
class SystemResult:
    """The outcome of one system of a batch.

    Attributes
    ----------
    index : int
    x : array, shape (n,) or (n, k)
    reason : Reason
        Of k columns: CONVERGED, or the reason of the first column that did not converge.
    iterations : int
        The most of its columns. LU: 1, or 2 where the solution was refined.
    residual, backward_error : float
        The largest of its columns; see `BatchResult`.
    """

    index: int
    x: Any
    reason: Reason
    iterations: int
    residual: float
    backward_error: float

    @property
    def converged(self) -> bool:
        """True only if the true residuals meet the tolerance."""
        return self.reason is Reason.CONVERGED

    @property
    def message(self) -> str:
        """The reason as a sentence, with advice on what to do next."""
        return self.reason.sentence

    def __repr__(self):
        state = "converged" if self.converged else f"NOT converged ({self.reason.name})"
        return (f"SystemResult({self.index}: {state}, {count(self.iterations, 'iteration')}, residual "
                f"{self.residual:.2e})")

    @printable
    def __str__(self):
        state = "converged" if self.converged else f"NOT converged ({self.reason.name}: {self.message})"
        return (f"system {self.index}: {state} in {count(self.iterations, 'iteration')}, ‖b − Ax‖/‖b‖ = "
                f"{self.residual:.2e}")


@dataclass
class BatchResult:
    """The outcomes of a batch. A failed system is one record; it has no effect on the others.

    Attributes
    ----------
    x : array, shape (batch, n) or (batch, n, k), or a list of arrays
        The solutions, in the same type of array as B. A list if B was one.
    converged : bool array, shape (batch,) or (batch, k)
        True only where the true residual meets the tolerance.
    iterations : int array of that shape
        LU: 1, or 2 where the solution was refined.
    residual : float array of that shape
        ‖b − A x‖₂ / ‖b‖₂, computed on the device from the original values; ‖b − A x‖₂ where b is zero.
    backward_error : float array of that shape
        ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞).
    reasons : int array of that shape
        The codes of the reasons; ``reason(i)`` returns the `Reason` of system i.
    method, precond, device, dtype : str
        The parts that ran, by the names of the registry; "lu" is the dense factorisation.
    configuration : list of str
        The parts with their settings, and why they were chosen.
    timings : dict
        Seconds of "setup" and "solve"; "compile" is the time to compile kernels at their first use.
    memory : dict
        Bytes of "matrix" (all values), "vectors", and "chip", the shared memory of a system on a GPU.
    launches : int
        Kernels launched on a GPU by the solve and by the update before it. Their number does not depend on the size of
        the batch.
    notes : list of str
    """

    x: Any
    converged: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    backward_error: np.ndarray
    reasons: np.ndarray
    method: str
    precond: str
    device: str
    dtype: str
    configuration: list[str]
    timings: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    launches: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def all_converged(self) -> bool:
        """True if every system converged."""
        return bool(self.converged.all())

    def reason(self, i) -> Reason:
        """Return the Reason of system i: CONVERGED, or the reason of its first column that did not converge."""
        codes = np.atleast_1d(self.reasons[i])
        failed = codes[codes != Reason.CONVERGED.code]
        return Reason.of(int(failed[0])) if failed.size else Reason.CONVERGED

    def __len__(self):
        return len(self.reasons)

    def __getitem__(self, i) -> SystemResult:
        i = range(len(self))[i]                  # IndexError beyond the end, from which iteration knows it
        return SystemResult(i, self.x[i], self.reason(i), int(np.max(self.iterations[i])),
                            float(np.max(self.residual[i])), float(np.max(self.backward_error[i])))

    def as_dict(self) -> dict:
        """All fields except x, in plain types, for JSON."""
        arrays = {name: getattr(self, name).tolist()
                  for name in ("converged", "iterations", "residual", "backward_error", "reasons")}
        return {**arrays, "method": self.method, "precond": self.precond, "device": self.device, "dtype": self.dtype,
                "configuration": self.configuration, "timings": self.timings, "memory": self.memory,
                "launches": self.launches, "notes": self.notes}

    def __repr__(self):
        return (f"BatchResult({self._systems().sum()} of {count(len(self), 'system')} converged, residual at most "
                f"{np.max(self.residual, initial=0):.2e}, {self.timings.get('solve', 0):.3g} s, "
                f"{paired(self.method, self.precond)} on {self.device})")

    def _repr_html_(self):
        from swell.display import page
        summary, *rest = str(self).splitlines()
        done = f"{self._systems().sum()} of {len(self)} converged"
        worst = [(f"[{i}]", self[i].iterations, f"{self[i].residual:.2e}", f"{self[i].backward_error:.1e}",
                  f"{self.reason(i).name}: {self.reason(i).sentence}") for i in self._worst()[:SHOWN]]
        header = "system", "iterations", "‖b − Ax‖/‖b‖", "backward error", "reason"
        return page.fragment([                   # a notebook shows this
            f"<p>{page.badge(done, self.all_converged)} {page.escape(summary)}</p>",
            *([page.table(worst, header)] if worst else []), page.bullets(self.notes),
            page.details("Configuration and cost", page.preformatted(line.strip() for line in rest))])

    def _systems(self) -> np.ndarray:
        """Return a bool array, shape (batch,): True for systems all of whose columns converged."""
        return self.converged.reshape(len(self), -1).all(axis=1)

    def _worst(self) -> np.ndarray:
        """Return the indices of the systems that did not converge, by falling residual."""
        failed = np.flatnonzero(~self._systems())
        sizes = np.nan_to_num(self.residual.reshape(len(self), -1), nan=np.inf, posinf=np.inf).max(axis=1)[failed]
        return failed[np.argsort(-sizes, kind="stable")]

    @printable
    def __str__(self):
        counts, residuals = self.iterations, self.residual[self.converged]
        lines = [f"{self._systems().sum()} of {count(len(self), 'system')} converged; iterations {counts.min()} to "
                 f"{counts.max()}, median {np.median(counts):g}"
                 + (f"; ‖b − Ax‖/‖b‖ at most {residuals.max():.2e} where converged" if residuals.size else "")]
        worst = self._worst()
        if worst.size:
            lines.append("  worst: " + ", ".join(
                f"[{i}] {self.reason(i).name} at {np.max(self.residual[i]):.1e}" for i in worst[:WORST])
                + (f", and {worst.size - WORST} more" if worst.size > WORST else ""))
        lines.append(f"  {'; '.join(self.configuration)}; {self.device}, {self.dtype}")
        lines.append(f"  cost: {seconds(self.timings)}"
                     f"; {(self.memory.get('matrix', 0) + self.memory.get('vectors', 0)) / 2**20:.1f} MiB")
        if self.notes:
            lines.append(f"  note: {'; '.join(self.notes)}")
        return "\n".join(lines)
