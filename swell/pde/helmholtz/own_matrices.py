"""Sweeps of one's own matrices: (K − ω² M + iω B) x = iω f for a band of frequencies, at chosen rows."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from swell.core.encoding import printable
from swell.core.errors import InputError
from swell.core.settings import real, shown
from swell.pde.helmholtz.frequencies import checked
from swell.pde.helmholtz.sweeping import Sweep, columns_of


@dataclass(eq=False)
class MatrixResponse:
    """The entries of x at chosen rows, over the frequency.

    Attributes
    ----------
    rows : list of int
    loads : list of str
        Names of the right-hand sides.
    asked : int
        Number of frequencies that were asked for.
    frequencies : list of float
        Hz.
    values : list of ndarray, shape (loads, rows)
        For each frequency; of failed solves the last iterates.
    results : list of Result or Results
        Without x.
    device : str
    setups : int
    """

    rows: list
    loads: list
    asked: int
    device: str
    frequencies: list = field(default_factory=list)
    values: list = field(default_factory=list)
    results: list = field(default_factory=list)
    setups: int = 0

    @property
    def converged(self) -> bool:
        """True if every frequency was solved for every right-hand side."""
        return len(self.results) == self.asked and all(r.converged for each in self.results for r in columns_of(each))

    def write_csv(self, path):
        """Write one row for each frequency, right-hand side and row of x."""
        from swell.io.files import write_rows
        rows = [["frequency_Hz", "load", "row", "real", "imag", "amplitude", "converged", "reason", "iterations",
                 "residual"]]
        for frequency, values, result in zip(self.frequencies, self.values, self.results):
            for load, of_load, r in zip(self.loads, values, columns_of(result)):
                for row, x in zip(self.rows, of_load):
                    rows.append([f"{frequency:.10g}", load, row, f"{x.real:.10g}", f"{x.imag:.10g}", f"{abs(x):.10g}",
                                 int(r.converged), r.reason.name, r.iterations, f"{r.residual:.3e}"])
        write_rows(Path(path), rows)

    def plot(self, path):
        """Plot |x| at each row over the frequency, a line for each right-hand side and row, to a .png file."""
        from swell.display.figure import GRID, INK, colour_of, new_figure, with_legend
        from swell.report.files import save
        figure, axes = new_figure()
        values = abs(np.array(self.values))
        for j, load in enumerate(self.loads):
            for k, row in enumerate(self.rows):
                axes.semilogy(self.frequencies, values[:, j, k], lw=1.6, color=colour_of(j * len(self.rows) + k),
                              label=f"row {row}" + (f", {load}" if len(self.loads) > 1 else ""))
        axes.set_xlabel("frequency in Hz", color=INK)
        axes.set_ylabel("|x|", color=INK)
        axes.grid(True, color=GRID, lw=0.6)
        save(with_legend(figure), path)

    def as_dict(self) -> dict:
        """Everything in plain types for JSON."""
        points = [{"frequency": f, "values": np.stack([v.real, v.imag], axis=-1).tolist(),
                   "columns": [{"converged": r.converged, "reason": r.reason.name, "iterations": r.iterations,
                                "residual": r.residual} for r in columns_of(result)]}
                  for f, v, result in zip(self.frequencies, self.values, self.results)]
        return {"rows": self.rows, "loads": self.loads, "converged": self.converged, "asked": self.asked,
                "setups": self.setups, "device": self.device, "points": points}

    @printable
    def __str__(self):
        every = [r for result in self.results for r in columns_of(result)]
        done = sum(all(r.converged for r in columns_of(result)) for result in self.results)
        lines = [f"{done} of {self.asked} frequencies converged: {len(self.loads)} right-hand sides, {self.device}"]
        if every:
            lines.append(f"  {sum(r.iterations for r in every)} iterations, {self.setups} "
                         f"setup{'s' * (self.setups > 1)}, residuals up to {max(r.residual for r in every):.1e}")
        lines += [f"  {f:g} Hz NOT converged: {r.reason.name} at {r.residual:.1e}: {r.message}"
                  for f, result in zip(self.frequencies, self.results) for r in columns_of(result) if not r.converged]
        return "\n".join(lines)


def sweep_matrices(K, M, B, loads, rows, frequencies, *, speed=None, names=None, watch=None,
                   settings=None) -> MatrixResponse:
    """Solve (K − ω² M + iω B) x = iω f for each frequency.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices, n × n
        K is real.
    loads : array, shape (n,) or (n, k)
        f.
    rows : sequence of int
        The entries of x that are kept.
    frequencies : sequence of float
        Hz.
    speed : float, optional
        m/s. If given, (K − k² M + ik B) x = ik f is solved, with k = ω / speed.
    names : list of str, optional
        A name for each load.
    watch : callable, optional
        ``watch(frequency, result)`` after each frequency; a true return value ends the sweep.
    settings : dict, optional
        Arguments of `Sweep`.

    Raises
    ------
    InputError
        For matrices that are no square matrices of one size, loads, rows, names or frequencies that do not fit them.
    """
    for name, A in zip("KMB", (K, M, B)):
        if len(shape := getattr(A, "shape", ())) != 2 or shape[0] != shape[1]:
            raise InputError(f"{name} is of type {type(A).__name__} and shape {shape}: expected a square matrix; in "
                             "place of a missing one give K * 0")
    n = K.shape[0]
    loads = np.asarray(loads)
    if loads.dtype.kind not in "biufc":
        raise InputError(f"loads are of type {loads.dtype}: expected numbers")
    if loads.ndim not in (1, 2) or loads.shape[0] != n or loads.size == 0:
        raise InputError(f"loads have shape {loads.shape}: expected ({n},), or ({n}, k) for k of them")
    loads, indices = loads.reshape(n, -1), np.asarray([] if rows is None else rows)
    if indices.ndim != 1 or indices.size and indices.dtype.kind not in "iu":
        raise InputError(f"rows={shown(rows)}: expected a list of rows of x, whole numbers from 0 to {n - 1}")
    rows = indices.tolist()
    bad = next((row for row in rows if not 0 <= row < n), None)
    if bad is not None or not rows:
        raise InputError(f"row {bad} of x: expected 0 to {n - 1}" if rows else "rows is empty: name a row of x to keep")
    if names is not None and len(names) != loads.shape[1]:
        raise InputError(f"{len(names)} names and {loads.shape[1]} loads came: expected a name for each load")
    if speed is not None and not (real(speed) and 0 < speed < math.inf):
        raise InputError(f"speed={speed!r}: expected a positive number, m/s")
    frequencies = checked(frequencies)
    sweep = Sweep(K, M, B, **(settings or {}))
    answer = MatrixResponse(rows, names or [f"load {j + 1}" for j in range(loads.shape[1])], len(frequencies),
                            sweep.space.describe())
    for frequency in frequencies.tolist():
        omega = 2 * math.pi * frequency / (speed or 1.0)
        result = sweep.solve(omega, 1j * omega * (loads if loads.shape[1] > 1 else loads[:, 0]))
        x = sweep.space.to_host(result.x).reshape(n, -1)
        for r in (result, *columns_of(result)):
            r.x = None
        answer.frequencies.append(frequency)
        answer.values.append(x[rows].T.copy())
        answer.results.append(result)
        answer.setups = sweep.setups
        if watch is not None and watch(frequency, result):
            break
    return answer
