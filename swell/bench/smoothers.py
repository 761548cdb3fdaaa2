"""Smoothers by the protocol of section 4.4 of the finite-volume paper: table 4.1, figures 4.2 and 4.3.

Every matrix is ordered by Cuthill–McKee, b is random in [−1, 1), the start is zero. An algorithm does 1000 outer
iterations, and computes the residual of the whole system in every tenth. Inner solvers do at most 100 sweeps, and stop
earlier if the squared norm of a block's residual falls below 1e-15; blocks have 512 rows. The time is the wall time of
a solve with its residuals. Shorter runs, with many residuals and with few in turn, give the time of a residual and of
an iteration without residuals: medians of differences, blank if they are within the machine's noise. A run that
diverges until numbers overflow is stopped there. A symmetric sweep of Gauss–Seidel counts as two iterations, and a
polynomial of degree 10 as ten. If the device is a GPU, one core of its host runs Gauss–Seidel in natural order, with
``--cpu-iterations`` at most. Ratios compare iterations without residuals.
"""
from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass

import numpy as np

from swell import api
from swell.bench import engine
from swell.core.errors import InputError
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.formats.csr import CSRMatrix
from swell.krylov.stationary import Stationary

EVERY = 10              # outer iterations between two residuals
RARELY = 100            # outer iterations between two residuals, in the runs with few residuals
RUN_SECONDS = 0.3       # seconds; a shorter run has about as many iterations as fit in this time
TURNS = 3               # number of pairs of shorter runs
BLOCK = "block_jacobi_sweeps(inner='{}', asynchronous={}, height=512, inner_sweeps=100, inner_tolerance=1e-15)"
HEADER = ("matrix", "algorithm", "device", "n", "iterations", "total ms", "its residuals ms",
          "µs an iteration", "log10 ‖r‖²", "Gauss–Seidel on a CPU / this")
NATURAL = "Fwd. Gauss–Seidel"


@dataclass(frozen=True)
class Algorithm:
    """A row of table 4.1: a smoother, the number of iterations that one sweep counts as, and whether it runs on the
    host."""

    smoother: str
    counts: int = 1
    host: bool = False


ALGORITHMS = {
    NATURAL: Algorithm("gauss_seidel(direction='forward', coloring='natural')", host=True),
    "Fwd. & bck. Gauss–Seidel": Algorithm("gauss_seidel(direction='symmetric', coloring='natural')", 2, host=True),
    "Block Jacobi (sync)": Algorithm(BLOCK.format("jacobi", False)),
    "Block Jacobi (async)": Algorithm(BLOCK.format("jacobi", True)),
    "Block Gauss–Seidel (sync)": Algorithm(BLOCK.format("gauss_seidel", False)),
    "Block Gauss–Seidel (async)": Algorithm(BLOCK.format("gauss_seidel", True)),
    "Block CG (sync)": Algorithm(BLOCK.format("cg", False)),
    "Block CG (async)": Algorithm(BLOCK.format("cg", True)),
    "Block Jacobi, 5 inner sweeps of 2/3": Algorithm("block_jacobi_sweeps(inner_sweeps=5, omega=0.6667)"),
    "Jacobi, damped by 2/3": Algorithm("jacobi_sweeps(omega=0.6667)"),
    "Multicolour Gauss–Seidel": Algorithm("gauss_seidel(direction='forward', coloring='jones_plassmann')"),
    "Chebyshev, degree 10": Algorithm("chebyshev(degree=10, fraction=0.02)", 10),
}
ADDED = 8               # rows from here on are not the paper's


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    check(arguments)
    systems = [(name, ordered(A)) for name, A in engine.systems(arguments)]
    findings = engine.Findings("swell bench smoothers", make_space(arguments.device), arguments)
    findings.take(measure(systems, arguments))
    findings.table(*table(findings.records))
    findings.report(*figures(findings.records))
    return 0


def ordered(A):
    """Return a SciPy matrix reordered by Cuthill–McKee, as a new SciPy CSR matrix."""
    space = make_space("cpu")
    with space.active(A.shape[0]):
        csr = CSRMatrix.from_scipy(A, space)
        return resolve("ordering", "cuthill_mckee").build(csr).matrix(csr).to_scipy()


def check(arguments):
    """Raise InputError unless the numbers of iterations are positive multiples of ``EVERY``."""
    for option in ("outer_iterations", "cpu_iterations"):
        value = getattr(arguments, option)
        if value is not None and (value <= 0 or value % EVERY):
            raise InputError(f"--{option.replace('_', '-')} {value}: expected a positive multiple of {EVERY}")


def measure(systems, arguments):
    """Yield one record (dict of results) for each system, (name, SciPy CSR matrix), and each algorithm."""
    device, host = make_space(arguments.device), make_space("cpu")
    for name, A in systems:
        for label, algorithm in ALGORITHMS.items():
            space = host if algorithm.host else device
            engine.tell(f"smoothers: {name}, {space.name}, {label}")
            count = arguments.outer_iterations
            if space.name == "cpu" and arguments.cpu_iterations:
                count = min(count, arguments.cpu_iterations)
            seconds, norms2 = smoothing(space, A, algorithm, count, EVERY)
            done = EVERY * (len(seconds) - 1)
            residual, iteration = None, seconds[-1] / done
            if done == count:                    # else it diverged: the time of an iteration includes residuals
                residual, iteration = apart(space, A, algorithm, count, iteration)
            yield {
                "benchmark": "smoothers", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "algorithm": label,
                "smoother": algorithm.smoother, "iterations": done, "seconds": seconds[-1],
                "residual_seconds": residual, "iteration_seconds": iteration,
                "times": seconds, "squared_residuals": norms2, **engine.circumstances(space)}


def apart(space, A, algorithm, count, estimate):
    """Return (seconds of a residual, seconds of an iteration without residual) for an Algorithm on A; NaN if within
    noise.

    ``count``: outer iterations of a run at most; ``estimate``: approximate seconds of an iteration. n iterations take T
    = n (t + r/10) with many residuals and T' = n (t + r/100) with few, where an iteration takes t and a residual r.
    """
    rarely = RARELY if count % RARELY == 0 else count
    if rarely == EVERY:
        return math.nan, estimate
    again = min(count, max(2, int(RUN_SECONDS / estimate / rarely)) * rarely)
    runs = [prepared(space, A, algorithm, again, every) for every in (EVERY, rarely)]
    pairs = [[run()[0][-1] / again for run in runs] for _ in range(TURNS)]
    residual = engine.beyond_noise(many - few for many, few in pairs) / (1 / EVERY - 1 / rarely)
    iteration = statistics.median(few for _, few in pairs) - (0 if math.isnan(residual) else residual / rarely)
    return residual, iteration if iteration > 0 else math.nan


def smoothing(space, A, algorithm, count, every):
    """Run an Algorithm once on A; return two lists, for every ``every``-th of ``count`` outer iterations from 0:
    seconds since the start, and ‖r‖²."""
    return prepared(space, A, algorithm, count, every)()


def prepared(space, A, algorithm, count, every):
    """Prepare an Algorithm for A and warm it up; return a function without arguments. Each call of it is a new run and
    returns what ``smoothing`` returns."""
    method = Stationary(algorithm.smoother, every // algorithm.counts)
    host = right_hand_side(A)
    with space.active():
        b = space.from_host(host)
    # No tolerance and no judgement of progress: the number of iterations is fixed.
    stopping = Stopping(rtol=1e-30, maxiter=count // every, window=0, growth=np.inf)
    solver = api.prepare(A, method=method, device=space.device_name, stopping=stopping, b_like=b)
    solver.solve(b, monitor=engine.a_few)

    def run():
        times, start = [], time.perf_counter()
        result = solver.solve(b, monitor=lambda k, norm: times.append(time.perf_counter() - start))
        return times, [float(h**2 * np.vdot(host, host)) for h in result.history]
    return run


def right_hand_side(A):
    """Return a vector of random numbers in [−1, 1), with A's type and number of rows, equal in every run."""
    return np.random.default_rng(7).uniform(-1, 1, A.shape[0]).astype(A.dtype)


def table(records):
    """Return (caption, header, rows) of table 4.1."""
    rows = []
    for r in records:
        natural = next(k for k in records if (k["matrix"], k["algorithm"]) == (r["matrix"], NATURAL))
        end, diverged = r["squared_residuals"][-1], r["residual_seconds"] is None
        rows.append((r["matrix"], r["algorithm"], r["device"].split(",")[0], r["n"], r["iterations"],
                     f"{1e3 * r['seconds']:.1f}",
                     "" if diverged else engine.cell(1e3 * r["iterations"] / EVERY * r["residual_seconds"]),
                     engine.cell(1e6 * r["iteration_seconds"]),
                     "diverges" if diverged else f"{np.log10(end):.2f}" if end > 0 else "−∞",
                     engine.cell(natural["iteration_seconds"] / r["iteration_seconds"])))
    return "Table 4.1: smoothing from zero, residual in every tenth iteration", HEADER, rows


def figures(records) -> list:
    """Draw two figures a matrix: 4.2, all algorithms of the paper; 4.3, the device's alone. Return (caption, figure)
    pairs."""
    names = list(dict.fromkeys(r["matrix"] for r in records))
    paper = list(ALGORITHMS)[:ADDED]
    return [(f"{name}: {caption}", _figure([r for r in records if r["matrix"] == name and r["algorithm"] in shown]))
            for name in names
            for caption, shown in (("figure 4.2", paper), ("figure 4.3, and others",
                                                           [k for k, a in ALGORITHMS.items() if not a.host]))]


def _figure(records):
    """Return a figure: lines of log10 ‖r‖² over time, one for each record."""
    from swell.display.figure import GRID, INK, colour_of, new_figure
    figure, axes = new_figure(7.5, 4.6)
    for k, r in enumerate(records):
        times, norms2 = np.array(r["times"]), np.array(r["squared_residuals"])
        shown = norms2 > 0
        axes.plot(times[shown], np.log10(norms2[shown]), color=colour_of(k // 2), lw=1.5,
                  ls="--" if k % 2 else "-", label=f"{r['algorithm']}, {r['device'].split(',')[0].split(':')[0]}")
    axes.set_xlabel("s", color=INK)
    axes.set_ylabel("log10 ‖b − A x‖²", color=INK)
    axes.grid(True, color=GRID, lw=0.6)
    axes.legend(fontsize=7)
    return figure
