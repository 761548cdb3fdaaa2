"""Response: the pressure at the ears over a band, and measures of its accuracy."""
from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.field import decibels

if TYPE_CHECKING:
    from swell.pde.helmholtz.problem import Helmholtz
    from swell.solving.result import Result

SHOWN = 8               # maximum of frequencies listed by value in one line of the report


@dataclass(eq=False)
class Point:
    """One frequency of a sweep.

    Attributes
    ----------
    frequency : float
        Hz.
    pressure : ndarray, shape (ears,), complex
        Amplitudes, Pa; for a failed solve, of its last iterate.
    result : Result
        The Result of the linear solve, without x.
    seconds : float
        Time of this frequency, without compilation.
    advice : str
        Advice on a failed solve, or on one too close to an undamped resonance for p to be meaningful.
    compiling : float
        Seconds spent on compiling kernels.
    """

    frequency: float
    pressure: np.ndarray
    result: Result
    seconds: float
    advice: str = ""
    compiling: float = 0.0

    @property
    def converged(self) -> bool:
        """True if the true residual met the tolerance."""
        return self.result.converged

    @property
    def reason(self):
        """Why the solve ended."""
        return self.result.reason


@dataclass(eq=False)
class Response:
    """The result of a sweep.

    Attributes
    ----------
    problem : Helmholtz
    ears : ndarray, shape (ears, dim)
        Positions of the listeners, m.
    device : str
        Name of the device.
    asked : int
        Number of requested frequencies.
    points : list of Point
        One for each solved frequency, in the order of the sweep.
    fields : dict of float to Field
        Frequency → Field, for frequencies whose field was requested.
    setups : int
        Number of preconditioners made.
    notes : list of str
        Warnings and remarks.
    """

    problem: Helmholtz
    ears: np.ndarray
    device: str
    asked: int
    points: list = field(default_factory=list)
    fields: dict = field(default_factory=dict)
    setups: int = 0
    notes: list = field(default_factory=list)

    @property
    def frequencies(self) -> np.ndarray:
        """The solved frequencies in Hz, shape (points,)."""
        return np.array([point.frequency for point in self.points])

    @property
    def pressure(self) -> np.ndarray:
        """Complex amplitudes in Pa, shape (points, ears)."""
        return np.array([point.pressure for point in self.points]).reshape(len(self.points), -1)

    @property
    def level(self) -> np.ndarray:
        """Levels in dB re 20 µPa, of the RMS values |p|/√2, shape (points, ears)."""
        return decibels(self.pressure)

    @property
    def failed(self) -> list:
        """The points that did not converge."""
        return [point for point in self.points if not point.converged]

    @property
    def converged(self) -> bool:
        """True if every requested frequency converged."""
        return len(self.points) == self.asked and not self.failed

    def write_csv(self, path):
        """Write a CSV file, one row a frequency: p at each ear (real, imaginary, level, phase), and solver data."""
        from swell.io.files import write_atomically
        path = Path(path)
        if path.suffix.lower() != ".csv":
            raise InputError(f"cannot write {path}: the extension is {path.suffix or 'missing'}, expected .csv")
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        ears = [""] if len(self.ears) == 1 else [f"_ear{k + 1}" for k in range(len(self.ears))]
        rows.writerow(["frequency_Hz", *(f"{what}{ear}" for ear in ears for what in
                       ("p_real_Pa", "p_imag_Pa", "level_dB", "phase_deg")),
                       "converged", "reason", "iterations", "products", "residual", "seconds"])
        for point in self.points:
            heard = [v for p in point.pressure for v in (p.real, p.imag, decibels(p), np.angle(p, deg=True))]
            r = point.result
            rows.writerow([f"{point.frequency:.10g}", *(f"{v:.10g}" for v in heard), int(point.converged),
                           r.reason.name, r.iterations, r.products, f"{r.residual:.3e}", f"{point.seconds:.4f}"])
        write_atomically(path, lambda stream: stream.write(text.getvalue().encode()))

    def plot(self, path):
        """Plot the level at the ears over the frequency; ``path``: a .png file to write."""
        from swell.report.response import plot
        path = Path(path)
        if path.suffix.lower() != ".png":
            raise InputError(f"cannot write {path}: the extension is {path.suffix or 'missing'}, expected .png")
        plot(self, path)

    def as_dict(self) -> dict:
        """Everything except the fields, in plain types for JSON."""
        return {"ears": self.ears.tolist(), "device": self.device, "converged": self.converged, "asked": self.asked,
                "setups": self.setups, "unknowns": self.problem.space.n, "finest": self.problem.finest,
                "notes": self.notes,
                "points": [{"frequency": p.frequency, "pressure": [[v.real, v.imag] for v in p.pressure.tolist()],
                            "level": decibels(p.pressure).tolist(), "converged": p.converged, "reason": p.reason.name,
                            "iterations": p.result.iterations, "products": p.result.products,
                            "residual": p.result.residual, "seconds": p.seconds, "advice": p.advice}
                           for p in self.points]}

    def __str__(self):
        done = len(self.points) - len(self.failed)
        seconds, compiling = (sum(getattr(p, kind) for p in self.points) for kind in ("seconds", "compiling"))
        lines = [f"{done} of {self.asked} frequencies converged: {self.problem.space.n} unknowns, degree "
                 f"{self.problem.degree}, {self.device}"]
        if self.points:
            iterations = sum(point.result.iterations for point in self.points)
            lines.append(f"  {seconds:.3g} s, {iterations} iterations, {sum(p.result.products for p in self.points)} "
                         f"products, {self.setups} setup{'s' if self.setups > 1 else ''}, residuals up to "
                         f"{max(p.result.residual for p in self.points):.1e}"
                         + (f", compiling kernels {compiling:.2g} s" if compiling > 0.01 else ""))
        good = np.array([point.converged for point in self.points], bool)
        for k, ear in enumerate(self.ears):
            if good.any():
                loudest = int(np.argmax(np.where(good, self.level[:, k], -np.inf)))
                lines.append(f"  ear ({', '.join(f'{v:g}' for v in ear)}): loudest {self.level[loudest, k]:.1f} dB at "
                             f"{self.frequencies[loudest]:g} Hz")
        lines += [f"  {listed(group)} Hz NOT converged ({group[0].reason.name}) at "
                  f"{max(point.result.residual for point in group):.1e}: {group[0].advice}"
                  for group in grouped(self.failed)]
        lines += [f"  {listed(group)} Hz: {group[0].advice}"
                  for group in grouped(point for point in self.points if point.converged and point.advice)]
        lines += [f"  note: {note}" for note in self.notes]
        if self.points:
            lines.append("  the last solve:")
            lines += ["    " + line for line in str(self.points[-1].result).splitlines()]
        return "\n".join(lines)


def grouped(points):
    """Group points (list of Point) by reason and advice; return lists of points, ordered by their first point."""
    groups = {}
    for point in points:
        groups.setdefault((point.reason, point.advice), []).append(point)
    return groups.values()


def listed(points):
    """The points' frequencies as text: the first `SHOWN`, then a count."""
    named = ", ".join(f"{point.frequency:g}" for point in points[:SHOWN])
    return named + (f" and {len(points) - SHOWN} more," if len(points) > SHOWN else "")
