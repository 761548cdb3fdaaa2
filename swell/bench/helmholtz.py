"""Tables 10 to 12 of "Accelerated solution of Helmholtz equation with Iterative Krylov Methods on GPU": iterations,
products, seconds on CPU and GPU, and the speed-up of each method on each mesh, without a preconditioner and with some.

The paper's prefix P- means Jacobi. Its rules are x₀ = 0, a relative residual of 1e-9, at most 1000 iterations and no
judgement of progress. The paper's meshes are not published. swell's meshes have equally many unknowns in cavities of
the same kind (`paper_problem`). So the paper's iterations, which stand beside swell's, belong to another problem.
Iterations of different methods differ in cost: compare products. ``--meshes`` takes generated cavities of any size.
``--files`` takes meshes, and folders with K.npz, M.npz and B.npz: A = K − k² M + 0.05 i k B with k = 2πf/340 and a
source in the first unknown.

A solve's seconds are the median of ``--repeat`` solves after a warm-up, without the setup; a solve longer than
`MAX_SECONDS` is not repeated. Records also have the processor time of all threads, which other programs disturb less.
On a CPU a solve does ``--cpu-iterations`` at most; if a GPU's solve did more, the CPU's time is extrapolated to its
number. SciPy computes the residual again.
"""
from __future__ import annotations

import math
import statistics
import textwrap
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from swell import api
from swell.bench import engine
from swell.core.errors import InputError, SwellError
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.pde.helmholtz.frequencies import NODES, band
from swell.pde.helmholtz.named import cavity, named_mesh
from swell.pde.helmholtz.table1 import MESHES, posed

if TYPE_CHECKING:
    from scipy.sparse import csr_array, csr_matrix

METHODS = ("bicgstab", "bicgstabl(l=8)", "tfqmr", "qmr", "cocg")
PRECONDS = ("none", "jacobi", "ilu0")
STANDARD = {"cpu": "Audi3D-1,Audi3D-2,Twingo3D-0,Cylinder3D-0,Cylinder3D-1", "cuda": ",".join(MESHES)}
RTOL, MAXITER = 1e-9, 1000
REPEAT, MAX_SECONDS = 3, 2.0            # solves; s
SPEED, ABSORPTION, HERTZ = 340.0, 0.05, 300.0       # m/s, 1, Hz: for a folder's K, M and B, as the real cabin's
FAMILIES = {"Audi3D": "Table 10: Audi3D", "Twingo3D": "Table 11: Twingo3D", "Cylinder3D": "Table 12: Cylinder3D"}
OTHERS = "Other cavities"
# The paper's iterations with Jacobi's preconditioner, tables 10 to 12.
PAPER = {
    "bicgstab": {"Audi3D-1": 21, "Audi3D-2": 53, "Audi3D-3": 94, "Audi3D-4": 183, "Twingo3D-0": 563,
                 "Twingo3D-1": 1000, "Twingo3D-2": 1000, "Cylinder3D-0": 49, "Cylinder3D-1": 86, "Cylinder3D-2": 162},
    "bicgstabl(l=8)": {"Audi3D-1": 6, "Audi3D-2": 12, "Audi3D-3": 31, "Audi3D-4": 70, "Twingo3D-0": 1000,
                       "Twingo3D-1": 1000, "Twingo3D-2": 1000, "Cylinder3D-0": 10, "Cylinder3D-1": 19,
                       "Cylinder3D-2": 71},
    "tfqmr": {"Audi3D-1": 24, "Audi3D-2": 52, "Audi3D-3": 99, "Audi3D-4": 214, "Twingo3D-0": 366, "Twingo3D-1": 954,
              "Twingo3D-2": 1000},
    "qmr": {"Cylinder3D-0": 85, "Cylinder3D-1": 196, "Cylinder3D-2": 282},
}
SYSTEMS = ("problem", "unknowns", "the paper's", "entries", "density %", "bandwidth", "most a row", "mean", "deviation",
           "Hz", "nodes a wavelength")
SOLVES = ("problem", "method", "precond", "ended", "#iter", "the paper's", "products", "residual", "setup s", "CPU s")
BESIDE = ("GPU s", "speed-up")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    device, cpu = make_space(arguments.device), make_space("cpu")
    spaces = [device] if device.name == "cpu" else [device, cpu]
    solvers = [(m, p) for p in arguments.preconds or PRECONDS for m in arguments.methods or METHODS]
    for method, precond in solvers:
        resolve("method", method), resolve("precond", precond)
    stopping = _stopping(arguments.rtol, arguments.maxiter)
    engine.tell("generating and reading meshes")
    systems = list(_systems(arguments, device))
    if not systems:
        raise InputError("there is no system to solve: name --meshes or --files")
    findings = engine.Findings("swell bench helmholtz", device, arguments)
    findings.table("Table 1: systems", SYSTEMS, [system.row() for system in systems])
    for family in (*FAMILIES, OTHERS):
        of_family = [system for system in systems if system.family == family]
        taken = findings.take((record for system in of_family for method, precond in solvers for space in spaces
                               for record in _solve(space, system, method, precond, stopping, arguments)),
                              unwritten=("history",))
        if taken:
            cpu_only = "" if device.name == "cuda" else "; the CPU alone (--device cuda puts a GPU beside it)"
            findings.table(f"{FAMILIES.get(family, family)}, to {arguments.rtol:g}{cpu_only}",
                           SOLVES + (BESIDE if len(spaces) > 1 else ()), rows(taken))
    if arguments.csv:
        engine.write_csv(arguments.csv, [{k: v for k, v in r.items() if k != "history"} for r in findings.records])
    findings.report(*figures(findings.records, arguments.rtol))
    return 0


def _stopping(rtol, maxiter):
    """Return a Stopping with the paper's rules: no test for stagnation, and no end at divergence."""
    return Stopping(rtol=rtol, maxiter=maxiter, window=0, growth=math.inf)


@dataclass
class System:
    """The system A(ω) x = b of one cavity at one frequency, in Hz.

    ``nodes``: nodes a wavelength, if the mesh is known. ``paper``: name of the paper's problem that this one stands in
    for, at its size; or empty."""

    name: str
    A: csr_array | csr_matrix
    b: np.ndarray
    frequency: float
    nodes: float | None = None
    paper: str = ""

    @property
    def family(self) -> str:
        """The paper's table that this system belongs to, a key of ``FAMILIES``, or ``OTHERS``."""
        return next((family for family in FAMILIES if self.name.startswith(family)), OTHERS)

    def row(self):
        """Return this system's row of table 1."""
        n, lengths = self.A.shape[0], np.diff(self.A.indptr)
        coo = self.A.tocoo()
        return (self.name, n, MESHES[self.paper][2] if self.paper else "", self.A.nnz,
                f"{100 * self.A.nnz / n ** 2:.3f}", abs(coo.row - coo.col).max(), lengths.max(),
                f"{lengths.mean():.2f}", f"{lengths.std():.2f}", f"{self.frequency:g}",
                f"{self.nodes:.0f}" if self.nodes else "")


def _systems(arguments, device):
    """Yield the Systems: every cavity at each of its frequencies."""
    hertz = None if arguments.frequencies is None else band(arguments.frequencies)
    names = arguments.meshes if arguments.meshes is not None else STANDARD[device.name]
    for name in (name.strip() for name in names.split(",") if name.strip()):
        generated = ":" in name or Path(name).exists()
        yield from _cavity(name, name if generated else f"paper:{name}", hertz, arguments.scale)
    for path in arguments.files or ():
        name = Path(path).name.split(".")[0]
        yield from _folder(name, Path(path), hertz) if Path(path).is_dir() else _cavity(name, path, hertz, 1.0)


def _cavity(name, mesh, hertz, scale):
    """Yield the Systems of a generated mesh or a mesh file, one for each frequency. ``mesh``: as `named_mesh` takes it;
    ``hertz``: frequencies, or None for the cavity's own; ``scale``: factor on the number of unknowns."""
    geometry, paper = named_mesh(mesh, scale), name if name in MESHES and scale == 1 else ""
    for frequency in [None] if hertz is None else hertz:
        problem, at, source = posed(geometry, cavity(mesh), frequency)
        A, b, _ = problem.system(at, source)
        yield System(_label(name, at, hertz), A, b, at, NODES * problem.finest / at, paper)


def _folder(name, path, hertz):
    """Yield the Systems of the folder ``path`` with K.npz, M.npz and B.npz, one for each frequency in ``hertz``."""
    import scipy.sparse as sp
    missing = [f"{part}.npz" for part in "KMB" if not (path / f"{part}.npz").is_file()]
    if missing:
        raise InputError(f"--files {path}: {', '.join(missing)} missing: expected a mesh file, or a folder with the "
                         "matrices K.npz, M.npz and B.npz")
    K, M, B = (sp.load_npz(path / f"{part}.npz").tocsr() for part in "KMB")
    if hertz is not None and not hertz.all():
        raise InputError(f"--files {path} at frequency 0: A is then K, which is singular; begin above 0 Hz")
    for frequency in [HERTZ] if hertz is None else hertz:
        k = 2 * math.pi * frequency / SPEED
        A = (K - k * k * M + 1j * k * ABSORPTION * B).tocsr()
        A.sort_indices()
        b = np.zeros(A.shape[0], complex)
        b[0] = 1
        yield System(_label(name, frequency, hertz), A, b, frequency)


def _label(name, frequency, hertz):
    """Return the system's name, with the frequency if ``hertz``, the list of all frequencies, has several."""
    return name if hertz is None or len(hertz) == 1 else f"{name}, {frequency:g} Hz"


def _solve(space, system, method, precond, stopping, arguments):
    """Yield one record (dict) of a solve of ``system``, a System, by ``method`` with ``precond`` on the device of
    ``space``. A failure's record has a message and no numbers."""
    engine.tell(f"{system.name}, {space.name}: {method}, {precond}")
    cut = space.name == "cpu" and (arguments.cpu_iterations or math.inf) < arguments.maxiter
    if cut:
        stopping = _stopping(arguments.rtol, arguments.cpu_iterations)
    record = {"benchmark": "helmholtz", "problem": system.name, "family": system.family, "n": system.A.shape[0],
              "nnz": system.A.nnz, "frequency": system.frequency, "nodes": system.nodes, "method": method,
              "precond": precond, "on": space.name, "rtol": arguments.rtol, "maxiter": stopping.maxiter, "cut": cut,
              "paper_iterations": _paper(system.paper, method, precond)}
    try:
        with space.active():
            b = space.from_host(system.b)
        prepare = partial(api.prepare, system.A, method=method, precond=precond, device=space.device_name,
                          stopping=stopping, b_like=b)
        prepare().solve(b, monitor=engine.a_few)         # compiles, so that the measured setup does not
        solver = prepare()
        solver.solve(b, monitor=engine.a_few)
        seconds, before = [], time.process_time()
        while len(seconds) < (arguments.repeat or REPEAT) and sum(seconds) < MAX_SECONDS:
            result = solver.solve(b)
            seconds.append(result.timings["solve"])
        work = (time.process_time() - before) / len(seconds)
    except SwellError as error:
        yield record | {"reason": "REFUSED", "failure": str(error), **engine.circumstances(space)}
        return
    yield record | {
        "settings": f"{describe(resolve('method', method))}, {result.precond}", "reason": result.reason.name,
        "message": result.message, "iterations": result.iterations, "products": result.products,
        "residual": engine.true_residual(system.A, space.to_host(result.x), system.b),
        "setup_seconds": result.timings["setup"], "solve_seconds": statistics.median(seconds), "runs": len(seconds),
        "threads_seconds": work,
        "format": result.format, "notes": list(result.notes), "history": result.history,
        **engine.circumstances(space)}


def _paper(name, method, precond):
    """Return the paper's number of iterations for the system ``name``, or None if it has none for this method and
    preconditioner."""
    return PAPER.get(method.replace(" ", ""), {}).get(name) if precond == "jacobi" else None


def rows(records) -> list:
    """Return the rows of a table: one for each problem, method and preconditioner, with the records of one or two
    devices."""
    both = {}
    for r in records:
        both.setdefault((r["problem"], r["method"], r["precond"]), {})[r["on"]] = r
    return [_row(key, by_device) for key, by_device in both.items()]


def _row(key, by_device):
    cpu, gpu = by_device.get("cpu"), by_device.get("cuda")
    first, paper = gpu or cpu, (gpu or cpu)["paper_iterations"] or ""
    if "failure" in first:
        words = textwrap.shorten(first["failure"], 70, placeholder=" …")
        return (*key, f"REFUSED: {words}", "", paper, *[""] * (6 if gpu else 4))
    head = (*key, first["reason"], first["iterations"], paper, first["products"], f"{first['residual']:.1e}",
            f"{first['setup_seconds']:.3f}")
    if gpu is None:
        return (*head, f"{cpu['solve_seconds']:.3f}")
    if cpu is None or "failure" in cpu:
        return (*head, "", f"{gpu['solve_seconds']:.4f}", "")
    seconds, about = on_cpu(cpu, gpu)
    return (*head, f"{about}{seconds:.3f}", f"{gpu['solve_seconds']:.4f}", f"{seconds / gpu['solve_seconds']:.2f}")


def on_cpu(cpu, gpu):
    """Return (seconds on the CPU, "" or "≈") from two records of a solve. "≈": the CPU's run was cut short, and its
    seconds are extrapolated to the GPU's iterations."""
    if cpu["cut"] and cpu["reason"] == "MAXITER":
        return cpu["solve_seconds"] * gpu["iterations"] / cpu["iterations"], "≈"
    return cpu["solve_seconds"], ""


def figures(records, rtol) -> list:
    """Draw all figures; return (caption, figure) pairs: histories of every problem, then times."""
    done = [r for r in records if "failure" not in r]
    device = "cuda" if any(r["on"] == "cuda" for r in done) else "cpu"
    on_device = [r for r in done if r["on"] == device]
    drawn = [(f"{name}: residual over products with A, on {device}; at the end of a line the true residual, a cross "
              "where the method failed", _histories([r for r in on_device if r["problem"] == name], rtol))
             for name in dict.fromkeys(r["problem"] for r in on_device)]
    for precond in dict.fromkeys(r["precond"] for r in on_device):
        with_it = [r for r in on_device if r["precond"] == precond and r["reason"] == "CONVERGED"]
        if with_it:
            drawn.append((f"Seconds of a solve on {device}, preconditioner: {precond}; methods that failed have no bar",
                          _times(on_device, precond, {_key(r): r["solve_seconds"] for r in with_it}, "s")))
    if device == "cuda":
        cpu = {_key(r): r for r in done if r["on"] == "cpu"}
        ratio = {_key(r): on_cpu(cpu[_key(r)], r)[0] / r["solve_seconds"] for r in on_device if _key(r) in cpu}
        for precond in dict.fromkeys(key[2] for key in ratio):
            drawn.append((f"Speed-up, preconditioner: {precond}",
                          _times(on_device, precond, ratio, "seconds on CPU / on GPU")))
    return drawn


def _key(r):
    return r["problem"], r["method"], r["precond"]


def _times(records, precond, values, ylabel):
    """Return a figure: bars of values, in one group a problem and one bar a method, in the colours of the histories.
    ``values``: {(problem, method, precond): number}."""
    names, methods = (list(dict.fromkeys(r[field] for r in records)) for field in ("problem", "method"))
    return engine.bars(names, methods, {m: [values.get((name, m, precond)) for name in names] for m in methods}, ylabel,
                       log=True)


def _histories(records, rtol):
    """Return a figure: residuals over products, in one panel a preconditioner; ``rtol``: the tolerance."""
    from swell.display.convergence import thinned
    from swell.display.figure import GRID, INK, colour_of, new_figure
    preconds, methods = (list(dict.fromkeys(r[field] for r in records)) for field in ("precond", "method"))
    figure, _ = new_figure(3.4 * max(len(preconds), 2), 3.8)
    figure.clear()
    panels = figure.subplots(1, len(preconds), sharey=True, squeeze=False)[0]
    for axes, precond in zip(panels, preconds):
        for r in (r for r in records if r["precond"] == precond):
            colour = colour_of(methods.index(r["method"]))
            iterations, residuals = thinned(r["history"])
            axes.semilogy(iterations * r["products"] / max(r["iterations"], 1), residuals, color=colour, lw=1.2)
            if 0 < r["residual"] < math.inf:
                axes.plot(r["products"], r["residual"], "o" if r["reason"] == "CONVERGED" else "X", color=colour, ms=6,
                          mec="white", clip_on=False)
        axes.axhline(rtol, color=INK, lw=0.9, ls=":")
        axes.set_title(precond, fontsize=9, color=INK)
        axes.set_xlabel("products", color=INK, fontsize=9)
        axes.set_xlim(left=0)
        axes.set_ylim(min([0.1 * rtol, *(0.5 * r["residual"] for r in records if r["residual"] > 0)]), 1e3)
        axes.tick_params(labelsize=8)
        axes.grid(True, color=GRID, lw=0.6)
    panels[0].set_ylabel("‖b − Ax‖₂ / ‖b‖₂", color=INK, fontsize=9)
    handles = [panels[0].plot([], [], color=colour_of(k), lw=1.6, label=m)[0]
               for k, m in enumerate(methods)]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(methods), fontsize=8, frameon=False)
    return figure
