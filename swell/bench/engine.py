"""The benchmark engine: timing, records, tables and reports.

On a GPU, times are taken between events on the space's stream, while the host stays ahead of the device; on a CPU they
are wall times. Both are medians after a warm-up. A record is a flat dictionary, one line of JSON.
"""
from __future__ import annotations

import csv
import datetime
import json
import math
import platform
import shlex
import statistics
import sys
import time
from contextlib import contextmanager
from importlib import resources
from itertools import chain, pairwise

import numpy as np

from swell.bench.provenance import commit, versions
from swell.core.errors import InputError, meant

WARM_UP = 3
BATCH = 20              # calls between two synchronisations with the GPU
HEAD_START = 4          # copies that keep the GPU busy while the host issues a batch
COPY_BYTES = {"cpu": 128 << 20, "cuda": 512 << 20}
BEGAN = time.perf_counter()


def tell(text: str):
    """Print ``text``, a line of progress, on stderr, with the seconds since this module was loaded."""
    print(f"{time.perf_counter() - BEGAN:6.1f} s  {text}", file=sys.stderr, flush=True)


class Findings:
    """Collects a run's records and tables. Records are written, and tables shown, at once; the report has all tables.

    Parameters
    ----------
    title : str
        Title of the report; the device is added.
    space : Space
    arguments : argparse.Namespace
        ``arguments.out`` and ``arguments.report`` are the names of the files, or None.

    Attributes
    ----------
    records : list of dict
    tables : list of (caption, header, rows)
    """

    def __init__(self, title, space, arguments):
        self.title, self.space, self.arguments = f"{title} on {space.describe()}", space, arguments
        self.records, self.tables = [], []

    def take(self, records, unwritten=()) -> list[dict]:
        """Consume an iterator of records: write, keep and return them. Fields in ``unwritten`` are not written."""
        taken = []
        for record in records:
            taken.append(record)
            if self.arguments.out:
                append(self.arguments.out, [{k: v for k, v in record.items() if k not in unwritten}])
        self.records += taken
        return taken

    def table(self, caption, header, rows):
        """Show a table, and keep it for the report; ``rows``: tuples of cells."""
        self.tables.append((caption, header, rows))
        show(f"{caption}, {self.space.describe()}", header, rows)

    def report(self, *figures):
        """Write the HTML report if the user asked for one: ``figures``, pairs (caption, figure or None), tables,
        circumstances. Raise InputError if the file cannot be written."""
        if not self.arguments.report:
            return
        from swell.display import page
        from swell.display.figure import png
        from swell.report.files import write
        facts = circumstances(self.space)
        body = [f"<h1>{page.escape(self.title)}</h1>", page.paragraph(f"{facts['device']}, {facts['date']}", soft=True)]
        body += [page.image(png(figure), caption) if figure else page.paragraph(f"{caption}: none.", soft=True)
                 for caption, figure in figures]
        body += [piece for caption, *of in self.tables for piece in (page.heading(caption), page.table(*reversed(of)))]
        body += [page.heading("How it was measured"), page.preformatted([facts["command"]]),
                 page.paragraph(", ".join(f"{name} {version}" for name, version in facts["versions"].items()))]
        write(self.arguments.report, page.page(self.title, body))


class Meter:
    """Times calls in one space, on the space's own stream, and measures its copy speed.

    Parameters
    ----------
    space : Space
    size : int, optional
        Bytes of the copied array.

    Attributes
    ----------
    copy_speed : float
        Bytes read and written a second by the fastest available copy.
    """

    def __init__(self, space, size=None):
        self.space = space
        with space.active():
            self._source = space.empty((size or COPY_BYTES[space.name]) // 8, np.float64)
            self._target = space.empty(self._source.size, np.float64)
            self._source.fill(1)
        best = min(self.seconds(copy, 10) for copy in self._copies())
        self.copy_speed = 2 * self._source.nbytes / best

    def _copies(self):
        """Yield functions that copy a large array: by the space, and on a CPU also in parallel."""
        yield lambda: self.space.copy(self._source, self._target)
        if self.space.name == "cpu":
            copy = self.space.kernels("swell.bench", "copy", np.float64).copy
            yield lambda: copy(self._source, self._target)

    def seconds(self, call, repeat: int) -> float:
        """The median time of ``repeat`` calls, in seconds, after a warm-up."""
        return statistics.median(self.times(call, repeat))

    def times(self, call, repeat: int) -> list[float]:
        """The times of ``repeat`` calls, in seconds, after a warm-up."""
        with self.space.active():                # otherwise calls and events would be on different streams
            if self.space.name == "cpu":
                return wall_times(call, repeat)
            for _ in range(WARM_UP):
                call()
            self.space.synchronize()
            return list(self._events(call, repeat))

    def _events(self, call, repeat):
        """Yield times between events. Copies run while the host issues the calls, so that no call waits."""
        cupy, stream = self.space.xp, self.space.stream
        for first in range(0, repeat, BATCH):
            count = min(BATCH, repeat - first)
            events = [cupy.cuda.Event() for _ in range(count + 1)]
            for _ in range(HEAD_START):
                self.space.copy(self._source, self._target)
            events[0].record(stream)
            for event in events[1:]:
                call()
                event.record(stream)
            events[-1].synchronize()
            yield from (1e-3 * cupy.cuda.get_elapsed_time(a, b) for a, b in pairwise(events))


def wall_times(call, repeat: int, warm_up: int = WARM_UP) -> list[float]:
    """The times of ``repeat`` calls that return when their work is done, in seconds, after a warm-up."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def seconds_an_iteration(prepare, b, count: int, repeat: int) -> tuple[float, object]:
    """Time an iteration, without costs that occur once a solve; return (seconds, result of the longer solve).

    The time is the difference of two solves, of ``count`` and ``count // 2`` iterations, over the difference of their
    iterations, measured ``repeat`` times. It is NaN if it is within noise.

    Parameters
    ----------
    prepare : callable
        Makes a ``Solver`` from a ``Stopping``.
    b : array of the device
    """
    solvers = [prepare(fixed(k)) for k in (count // 2, count)]
    result = [s.solve(b) for s in solvers][1]
    pairs = [[_timed(s.solve(b)) for s in solvers] for _ in range(repeat)]
    return beyond_noise(difference(*pair) for pair in pairs), result


def a_few(iteration, residual):
    """Monitor of a warm-up: True (stop) after two iterations, enough to compile, to capture, to touch all memory."""
    return iteration >= 2


def fixed(count):
    """A ``Stopping`` for ``count`` iterations: no tolerance, no test for stagnation, norms as in a real solve."""
    from swell.core.stopping import Stopping
    return Stopping(rtol=1e-30, maxiter=count, window=0, growth=1e100)


def _timed(result):
    return result.timings["solve"], result.iterations


def difference(short, long):
    """Return seconds an iteration, maybe negative, from two (seconds, iterations); NaN if the longer run broke down."""
    return (long[0] - short[0]) / (long[1] - short[1]) if long[1] > short[1] else math.nan


def beyond_noise(differences) -> float:
    """Return the median of differences of times, or NaN if it is noise, as on a busy machine: negative, or no larger
    than the median absolute deviation. NaNs among the differences are left out."""
    numbers = [value for value in differences if not math.isnan(value)]
    if not numbers:
        return math.nan
    middle = statistics.median(numbers)
    return middle if middle > statistics.median(abs(value - middle) for value in numbers) else math.nan


def true_residual(A, x, b) -> float:
    """Return ‖b − A x‖ / ‖b‖ by SciPy, for a SciPy matrix A and vectors of the host."""
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def cell(value, digits=1) -> str:
    """Return a number as text for a table, with ``digits`` decimals; "" for NaN."""
    return "" if math.isnan(value) else f"{value:.{digits}f}"


@contextmanager
def stopwatch(space):
    """Context manager: ``elapsed[0]`` is the block's wall time in seconds, with the device's work."""
    elapsed = [0.0]
    space.synchronize()
    start = time.perf_counter()
    yield elapsed
    space.synchronize()
    elapsed[0] = time.perf_counter() - start


def matrices(text: str, scale: float, known=None):
    """Yield (name, SciPy CSR matrix) for gallery names separated by commas, at ``scale`` times their usual size.

    Raises
    ------
    InputError
        For a name that the gallery, or ``known``, does not have.
    """
    from swell import gallery
    names, known = [name.strip() for name in text.split(",") if name.strip()], known or gallery.names()
    for name in names:
        if name not in known:
            raise InputError(f"--matrices: there is no {name!r}; {meant(name, known)}expected some of "
                             f"{', '.join(known)}")
    return ((name, gallery.get(name, None if scale == 1 else max(64, round(scale * gallery.standard_size(name)))))
            for name in names)


def systems(arguments):
    """Return an iterator over (name, SciPy CSR matrix) for the --matrices and --files of a command line."""
    tell("reading and generating matrices")
    return chain(matrices(arguments.matrices, arguments.scale), files(arguments.files))


def files(paths):
    """Yield (name, SciPy CSR matrix) for matrix files, and OpenFOAM folders (see ``pressure_laplacian``)."""
    from pathlib import Path
    for path in paths or ():
        name = Path(path).name.split(".")[0]
        if Path(path).is_dir():
            yield name, pressure_laplacian(path)
        else:
            from swell.io import read_matrix
            yield name, read_matrix(path)


def pressure_laplacian(path):
    """The Laplacian on an OpenFOAM folder's mesh as a SciPy CSR matrix: 0 on the first patch with "outlet" in its name
    (else on the first patch), no flux elsewhere."""
    from swell.pde import fvm
    mesh = fvm.read_mesh(path)
    fixed = next((p.name for p in mesh.patches if "outlet" in p.name.lower()), mesh.patches[0].name)
    conditions = {p.name: fvm.Dirichlet(0) if p.name == fixed else fvm.Neumann(0) for p in mesh.patches}
    return fvm.Poisson(mesh, conditions).assemble("cpu").A.to_scipy()


def circumstances(space) -> dict:
    """Return a dict of fields that every record has: device, machine, versions, command, date; a checkout's commit."""
    packages = {"cpu": ("numpy", "scipy"), "cuda": ("cupy-cuda13x", "cupy-cuda12x", "nvmath-python")}
    return {"device": space.describe(), "machine": platform.machine(), "versions": versions(packages[space.name]),
            "command": shlex.join(["swell", *sys.argv[1:]]),
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"), **commit()}


def published(kind: str, space, matrix: str, scale: float, case=None) -> dict:
    """Stored figures of other libraries for one gallery matrix; empty if there are none, or ``scale`` is not 1.

    Parameters
    ----------
    kind : {"spmv_us", "iteration_us", "solve_s"}
    case : str, optional
        The method, for ``iteration_us``.
    """
    if scale != 1:
        return {}
    figures = stored(space.name).get(kind, {})
    return (figures.get(case, {}) if case else figures).get(matrix, {})


def stored(device: str) -> dict:
    """Return the dict of other libraries' figures that peers.json has for "cpu" or "cuda"."""
    return json.loads(resources.files("swell.bench").joinpath("peers.json").read_text("utf-8"))[device]


def append(path, records):
    """Add the records (dicts) to a file of JSON lines.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from swell.cli.output import as_json
    try:
        with open(path, "a", encoding="utf-8") as stream:
            stream.writelines(as_json(record) + "\n" for record in records)
    except OSError as error:
        raise InputError(f"--out {path}: {error.strerror}") from None


def write_csv(path, records):
    """Write all records to a CSV file, with a column for every field that any record has.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    fields = list(dict.fromkeys(field for r in records for field in r))
    try:
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fields)
            writer.writeheader()
            writer.writerows(records)
    except OSError as error:
        raise InputError(f"--csv {path}: {error.strerror}") from None


def show(title, header, rows):
    """Print a table: words aligned left, numbers right; lines never break in the first two columns."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    table = Table(title=title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    rows = list(rows)
    for k, name in enumerate(header):
        words = k < 2 or all(str(row[k])[:1].isalpha() for row in rows)
        table.add_column(name, justify="left" if words else "right", no_wrap=k < 2)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console(highlight=False, width=max(Console().width, 16 * len(header))).print(table)
    sys.stdout.flush()


def bars(groups, labels, values, ylabel, log=False):
    """Return a bar chart, or None if every values[label][group] is: groups of bars (one a matrix), a bar a label.

    ``log``: dots on a logarithmic axis, where the height of a bar would depend on where the axis begins."""
    if all(value is None for heights in values.values() for value in heights):
        return None
    from swell.display.figure import GRID, INK, colour_of, new_figure, with_legend
    figure, axes = new_figure(7.5, 3.8)
    width = 0.8 / max(len(labels), 1)
    for k, label in enumerate(labels):
        places = np.arange(len(groups)) + (k - (len(labels) - 1) / 2) * width
        if log:
            axes.plot(places, [value or np.nan for value in values[label]], "o", ms=6, label=label, color=colour_of(k))
        else:
            axes.bar(places, [value or 0 for value in values[label]], width, label=label, color=colour_of(k))
    turn = 60 if len(groups) > 10 else 20 if sum(map(len, groups)) > 60 else 0
    axes.set_xticks(range(len(groups)), groups, rotation=turn, ha="right" if turn else "center")
    if log:
        logarithmic(axes)
    axes.set_ylabel(ylabel, color=INK)
    axes.grid(True, axis="y", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    return with_legend(figure)


def logarithmic(axes):
    """Make the y axis of ``axes`` logarithmic, labelled 1, 2, 5, 10, ..."""
    from matplotlib.ticker import LogLocator
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="both", labelsize=8)


def in_microseconds(figures: dict) -> str:
    """Return stored figures {library: µs} as text, fastest first."""
    return ", ".join(f"{name} {value:g}" for name, value in sorted(figures.items(), key=lambda item: item[1]))
