"""Response: the pressure at the ears over a band, and measures of its accuracy."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from swell.core.encoding import printable
from swell.pde.helmholtz.field import decibels
from swell.pde.helmholtz.sweeping import columns_of

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
    pressure : ndarray, shape (ears,), or (sources, ears) for several sources, complex
        Amplitudes, Pa; for a failed solve, of its last iterate.
    result : Result or Results
        The Result of the linear solve, or the Results with one for each source, without x.
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

    def __repr__(self):
        state = "converged" if self.converged else f"NOT converged ({self.reason.name})"
        return f"Point({self.frequency:g} Hz, {state}, {self.result.iterations} iterations, {self.seconds:.3g} s)"

    @property
    def converged(self) -> bool:
        """True if the true residual met the tolerance, of all sources."""
        return self.result.converged

    @property
    def reason(self):
        """Why the solve ended; of several sources, the first that did not converge."""
        return self.result.reason

    @property
    def results(self) -> list:
        """The Result of each source."""
        return columns_of(self.result)


@dataclass(eq=False)
class Response:
    """The result of a sweep: the pressure at the ears; of several sources, the transfer matrix from each to each ear.

    Attributes
    ----------
    problem : Helmholtz
    ears : ndarray, shape (ears, dim)
        Positions of the listeners, m.
    sources : list of str, or None
        The names of several sources, each of which sounds on its own; None for one source. A point's name is its
        coordinates.
    device : str
        Name of the device.
    asked : int
        Number of requested frequencies.
    points : list of Point
        One for each solved frequency, in the order of the sweep.
    fields : dict of float to Field
        Frequency → Field, or list with one Field for each source, for frequencies whose field was requested.
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
    sources: list | None = None

    @property
    def frequencies(self) -> np.ndarray:
        """The solved frequencies in Hz, shape (points,)."""
        return np.array([point.frequency for point in self.points])

    @property
    def pressure(self) -> np.ndarray:
        """Complex amplitudes in Pa, shape (points, ears), or (points, sources, ears) for several sources."""
        return np.array([point.pressure for point in self.points]).reshape(
            len(self.points), *([] if self.sources is None else [len(self.sources)]), len(self.ears))

    @property
    def level(self) -> np.ndarray:
        """Levels in dB re 20 µPa, of the RMS values |p|/√2, with the shape of ``pressure``."""
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
        """Write a CSV file, one row a frequency: p at each ear (real, imaginary, level, phase), and solver data.

        Several sources: one row for each frequency, source and ear, which the columns "source" and "ear" name."""
        from swell.io.files import to_write, write_rows
        path = to_write(path, ".csv")
        ears = [""] if len(self.ears) == 1 else [f"_ear{k + 1}" for k in range(len(self.ears))]
        pair, ears = ([], ears) if self.sources is None else (["source", "ear"], [""])
        rows = [["frequency_Hz", *pair, *(f"{what}{ear}" for ear in ears for what in
                 ("p_real_Pa", "p_imag_Pa", "level_dB", "phase_deg")),
                 "converged", "reason", "iterations", "products", "residual", "seconds"]]
        for point in self.points:
            for names, heard, r in self._heard(point):
                heard = [v for p in heard for v in (p.real, p.imag, decibels(p), np.angle(p, deg=True))]
                rows.append([f"{point.frequency:.10g}", *names, *(f"{v:.10g}" for v in heard), int(r.converged),
                             r.reason.name, r.iterations, r.products, f"{r.residual:.3e}", f"{point.seconds:.4f}"])
        write_rows(path, rows)

    def _heard(self, point):
        """Yield ([] or [source, ear], pressures, Result) for each row of the CSV file at a Point."""
        if self.sources is None:
            yield [], point.pressure, point.result
            return
        for source, pressure, r in zip(self.sources, point.pressure, point.results):
            for ear, p in zip(self.ears, pressure):
                yield [source, ",".join(f"{v:g}" for v in ear)], [p], r

    def plot(self, path, modes=None):
        """Plot the level at the ears over the frequency, of several sources for each pair of a source and an ear.

        ``path``: a .png file to write. ``modes``: `Modes` whose frequencies are marked, or None."""
        from swell.io.files import to_write
        from swell.report.response import plot
        plot(self, to_write(path, ".png"), modes)

    def as_dict(self) -> dict:
        """Everything except the fields, in plain types for JSON; with several sources, "sources" has their names, and
        each point's "columns" the outcome of each."""
        names = {} if self.sources is None else {"sources": self.sources}
        return {"ears": self.ears.tolist(), **names, "device": self.device, "converged": self.converged,
                "asked": self.asked, "setups": self.setups, "unknowns": int(self.problem.space.n),
                "finest": self.problem.finest, "notes": self.notes, "points": [self._facts(p) for p in self.points]}

    def _facts(self, point) -> dict:
        """The dict of a Point in `as_dict`."""
        facts = {"frequency": point.frequency,
                 "pressure": np.stack([point.pressure.real, point.pressure.imag], axis=-1).tolist(),
                 "level": decibels(point.pressure).tolist(), "converged": point.converged,
                 "reason": point.reason.name, "iterations": point.result.iterations,
                 "products": sum(r.products for r in point.results), "residual": point.result.residual,
                 "seconds": point.seconds, "advice": point.advice}
        if self.sources is not None:
            facts["columns"] = [{"converged": r.converged, "reason": r.reason.name, "iterations": r.iterations,
                                 "products": r.products, "residual": r.residual} for r in point.results]
        return facts

    def __repr__(self):
        return (f"Response({len(self.points) - len(self.failed)} of {self.asked} frequencies converged, "
                f"{self.problem.space.n} unknowns, {sum(point.seconds for point in self.points):.3g} s, {self.device})")

    def _repr_html_(self):
        from swell.display import page
        from swell.display.figure import svg
        from swell.report.response import figure
        done = f"{len(self.points) - len(self.failed)} of {self.asked} converged"
        summary, *rest = str(self).splitlines()
        picture = [page.drawing(svg(figure(self)), "sound pressure level at the ears over the frequency")
                   ] if self.points and len(self.ears) else []
        return page.fragment([f"<p>{page.badge(done, self.converged)} {page.escape(summary)}</p>", *picture,
                              page.bullets(self.notes),          # a notebook shows this
                              page.details("Time, levels and the last solve", page.preformatted(rest))])

    @printable
    def __str__(self):
        done = len(self.points) - len(self.failed)
        seconds, compiling = (sum(getattr(p, kind) for p in self.points) for kind in ("seconds", "compiling"))
        sources = "" if self.sources is None else f"{len(self.sources)} source{'s' * (len(self.sources) > 1)}, "
        lines = [f"{done} of {self.asked} frequencies converged: {sources}{self.problem.space.n} unknowns, degree "
                 f"{self.problem.degree}, {self.device}"]
        if self.points:
            every = [result for point in self.points for result in point.results]
            lines.append(f"  {seconds:.3g} s, {sum(r.iterations for r in every)} iterations, "
                         f"{sum(r.products for r in every)} products, {self.setups} setup{'s' * (self.setups > 1)}, "
                         f"residuals up to {max(r.residual for r in every):.1e}"
                         + (f", compiling kernels {compiling:.2g} s" if compiling > 0.01 else ""))
        lines += self._loudest()
        lines += [f"  {listed(group)} Hz NOT converged ({self._why(group[0])}) at "
                  f"{max(point.result.residual for point in group):.1e}: {group[0].advice}"
                  for group in grouped(self.failed)]
        lines += [f"  {listed(group)} Hz: {group[0].advice}"
                  for group in grouped(point for point in self.points if point.converged and point.advice)]
        lines += [f"  note: {note}" for note in self.notes]
        if self.points:
            lines.append("  the last solve:")
            lines += ["    " + line for line in str(self.points[-1].result).splitlines()]
        return "\n".join(lines)

    def _loudest(self) -> list:
        """A line for each ear: its highest level, of all converged frequencies and sources."""
        good = np.array([[r.converged for r in point.results] for point in self.points], bool)
        levels, lines = self.level.reshape(*good.shape, len(self.ears)), []
        for k, ear in enumerate(self.ears):
            if good.any():
                decibels = np.where(good, levels[:, :, k], -np.inf)
                f, s = np.unravel_index(np.argmax(decibels), decibels.shape)
                source = "" if self.sources is None else f" from {self.sources[s]}"
                lines.append(f"  ear ({', '.join(f'{v:g}' for v in ear)}): loudest {decibels[f, s]:.1f} dB at "
                             f"{self.frequencies[f]:g} Hz{source}")
        return lines

    def _why(self, point):
        """The reason of a failed Point, and with several sources which of them failed."""
        if self.sources is None:
            return point.reason.name
        bad = [name for name, r in zip(self.sources, point.results) if not r.converged]
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        return f"{point.reason.name}, from {', '.join(bad[:SHOWN])}{more}"


def grouped(points):
    """Group points (list of Point) by advice and the reason of each source; return lists of points, ordered by their
    first point."""
    groups = {}
    for point in points:
        groups.setdefault((point.advice, *(r.reason for r in point.results)), []).append(point)
    return groups.values()


def listed(points):
    """The points' frequencies as text: the first `SHOWN`, then a count."""
    named = ", ".join(f"{point.frequency:g}" for point in points[:SHOWN])
    return named + (f" and {len(points) - SHOWN} more," if len(points) > SHOWN else "")
