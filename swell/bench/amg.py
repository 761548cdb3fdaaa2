"""Algebraic multigrid: whole solves beside other preconditioners and PyAMG; iterations over n, anisotropy and jumps.

Every method solves to a true relative residual of 1e-8, for b = A times random numbers in [0, 1). The methods are CG
with each preconditioner, and swell's own choice. Four wall times are taken: the setup, from the matrix in the device's
memory to a solver, with checks and conversions; the solve of one right-hand side in the device's memory; a second such
solve; and an update for new values on the same pattern. Each is the minimum of a few runs, in which the solvers take
turns, after small systems have compiled the kernels. On a CPU, if PyAMG is installed, its Ruge–Stüben and smoothed
aggregation run in the same process, with CG and default settings. hypre's BoomerAMG runs beside it if --hypre names a
driver (hypre.py); else its figures on one H200 are stored, the best of five settings. Where A has blocks of unknowns,
as elastic bodies have, the driver tries each setting with and without them. Unsymmetric systems get BiCGSTAB in place
of CG. --matrices takes the gallery's names and those of kinds.py.
"""
from __future__ import annotations

import importlib.util
import math
import time
from functools import partial
from itertools import chain

import numpy as np
import scipy.sparse as sp

from swell import api
from swell.bench import engine, hypre
from swell.bench.kinds import KINDS
from swell.cli import source
from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError
from swell.core.stopping import Stopping
from swell.formats.csr import CSRMatrix
from swell.gallery import advection, anisotropic2d, jumping_diffusion, poisson2d, poisson3d
from swell.gallery.poisson import diffusion
from swell.preconditioners.amg.report import facts

RTOL = 1e-8
SEED = 3
REPEAT = 3
MAX_SECONDS = 20.0      # seconds that a solver may spend on a matrix before its repetitions end
TIMES = ("setup_seconds", "solve_seconds", "again_seconds", "update_seconds")
PEER_ITERATIONS = 1000
MAX_UNKNOWNS = {"cpu": 2_200_000, "cuda": 64_000_000}    # unknowns of the largest systems of --scaling
SOLVERS = {"AMG": {"method": "cg", "precond": "amg"}, "IC(0)": {"method": "cg", "precond": "ic"},
           "SA": {"method": "cg", "precond": "smoothed_aggregation"},
           "Jacobi": {"method": "cg", "scaling": "jacobi"}, "by itself": {}}
UNSYMMETRIC = {"AMG": {"method": "bicgstab", "precond": "amg"}, "Jacobi": {"method": "bicgstab", "precond": "jacobi"},
               "by itself": {}}
PEERS = {"PyAMG RS": "ruge_stuben_solver", "PyAMG SA": "smoothed_aggregation_solver"}
HEADER = ("matrix", "solver", "n", "setup s", "solve s", "setup + solve", "its time / AMG's", "again s", "update s",
          "iterations", "operator complexity", "true residual", "hypre's time / its", "hypre's again / its")
BESIDE = ("matrix", "best named", "best named / nothing named", "hypre / best named", "hypre / nothing named",
          "again: hypre / best named", "hypre's settings")
SCALING = ("family", "system", "n", "iterations", "levels", "operator complexity", "setup s", "solve s",
           "true residual")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    findings = engine.Findings("swell bench amg", space, arguments)
    compile_kernels(space)
    if arguments.scaling:
        for family, systems in families(arguments.scale, arguments.most or MAX_UNKNOWNS[space.name]).items():
            records = findings.take(_scaled(space, family, systems), unwritten=("history",))
            findings.table(f"{family}: CG with AMG to {RTOL:g}", SCALING, _scaling_rows(records))
        findings.report(("Residuals over iterations", _curves(findings.records)))
        return 0
    systems = chain(_systems(arguments.matrices, arguments.scale), engine.files(arguments.files))
    wanted = _wanted(arguments.solvers)
    repeat = arguments.repeat or REPEAT
    findings.take(record for name, A in systems for record in measure(space, name, A, repeat, wanted, arguments.hypre))
    findings.table(f"Whole solves to {RTOL:g}", HEADER, _rows(findings.records))
    findings.table("swell's choice beside its best named one, and hypre beside both", BESIDE, _beside(findings.records))
    findings.report(("Setup and solve", _figure(findings.records)))
    return 0


def _systems(text, scale):
    """Yield (name, SciPy CSR matrix) for a text of gallery names, NAME or NAME:UNKNOWNS, separated by commas;
    ``scale``: a factor for the sizes."""
    for name in filter(None, map(str.strip, text.split(","))):
        kind, _, unknowns = name.partition(":")
        if name in KINDS:
            yield name, KINDS[name](scale)
        elif unknowns.isdecimal():
            yield kind, source.read_system(f"gallery:{kind}:{max(64, round(scale * int(unknowns)))}")[0]
        else:
            yield from engine.matrices(name, scale)


def _wanted(named):
    """Return the solvers that the list ``named`` names, or all of them if it names none; raise InputError for an
    unknown name."""
    names = [*SOLVERS, *PEERS]
    if not set(named or ()) <= set(names):
        raise InputError(f"--solvers {' '.join(named)}: expected some of {', '.join(map(repr, names))}")
    return named or names


def compile_kernels(space):
    """Run each solver once on a small system, so that no measured time includes compilation."""
    A = jumping_diffusion((20, 20))
    for M, solvers in ((A, SOLVERS), (upwind(20), UNSYMMETRIC)):
        for label, named in solvers.items():
            try:
                solver = _prepare(space, on_device(space, M), named)
                solver.solve(right_hand_side(space, M))
                solver.update(on_device(space, M))
            except InputError as error:
                engine.tell(f"{label} is left out: {error}")


def right_hand_side(space, A):
    """Return b = A times random numbers in [0, 1), a vector in the device's memory."""
    with space.active():
        return space.from_host(A @ np.random.default_rng(SEED).random(A.shape[0]))


def on_device(space, A):
    """Return the SciPy matrix A in the device's memory: A itself on a CPU, a CuPy matrix on a GPU."""
    if space.name == "cpu":
        return A
    import cupyx.scipy.sparse
    with space.active():
        return cupyx.scipy.sparse.csr_matrix(A)


def upwind(m):
    """Return an unsymmetric SciPy matrix on m × m cells, for which AMG is a choice."""
    return advection((m, m), "rotating", 0.01)


def _prepare(space, A, named):
    return api.prepare(A, device=space.device_name, stopping=Stopping(rtol=RTOL), **named)


def measure(space, name, A, repeat, wanted=(*SOLVERS, *PEERS), driver=None):
    """Return an iterator over the records (dicts of results) of one SciPy matrix, one for each solver of swell and
    PyAMG in ``wanted``.

    All solvers run in turn, ``repeat`` times; a record holds the minimum of each time. ``driver``: path of hypre's.
    """
    b, there, spent, best = right_hand_side(space, A), on_device(space, A), {}, {}
    symmetric = abs(A - A.T).max() <= 1e-12 * abs(A).max()
    beside = _hypre(space, name, A, b, symmetric, driver)
    solvers = SOLVERS if symmetric else UNSYMMETRIC
    runs = {label: partial(_ours, space, name, A, there, b, label, named, beside) for label, named in solvers.items()
            if label in wanted}
    peers = [label for label in PEERS if label in wanted and space.name == "cpu" and symmetric]
    if peers and importlib.util.find_spec("pyamg") is None:
        engine.tell("PyAMG is not installed, and is left out: pip install pyamg")
    else:
        runs |= {label: partial(_peer, space, name, A, b, label) for label in peers}
    for _ in range(repeat):
        for label, run_once in runs.items():
            if spent.get(label, 0) < MAX_SECONDS:
                engine.tell(f"{name}: {label}")
                began = time.perf_counter()
                try:
                    record = run_once()
                except (InputError, FactorisationError) as error:
                    engine.tell(f"{name}: {label} is left out: {error}")
                    spent[label] = math.inf
                    continue
                spent[label] = spent.get(label, 0) + time.perf_counter() - began
                before = best.get(label, record)
                best[label] = record | {field: min(record[field], before[field]) for field in TIMES}
    yield from best.values()


def _hypre(space, name, A, b, symmetric, driver):
    """Return hypre's figures, a dict: measured by the ``driver`` if there is one, else stored; {} if there are none."""
    if driver is None:
        return stored(name, A.shape[0])
    engine.tell(f"{name}: hypre")
    A.sort_indices()
    with space.active():
        unknowns = CSRMatrix.from_scipy(A, space).block_size
    try:
        return hypre.solve(driver, A, space.to_host(b), RTOL, symmetric, unknowns)
    except InputError as error:
        engine.tell(f"{name}: {error}")
        return {}


def _ours(space, name, A, there, b, label, named, beside):
    """Measure one of swell's solvers once; return the record, a dict. ``there``: A in the device's memory; ``label``:
    the solver, with the keywords ``named``; ``beside``: hypre's figures."""
    solver, setup = timed(lambda: _prepare(space, there, named))
    result, solve = timed(lambda: solver.solve(b))
    again = timed(lambda: solver.solve(b))[1]
    update = timed(lambda: solver.update(there))[1]
    complexity = solver.M.hierarchy.operator_complexity if label == "AMG" and solver.M is not None else math.nan
    return _record(space, name, A, label, space.to_host(result.x), (setup, solve, again, update), result.iterations,
                   complexity, beside)


def _peer(space, name, A, b, label):
    """Measure one of PyAMG's solvers (``label``, a key of ``PEERS``) once; return the record, a dict, even if the
    result is not finite."""
    import pyamg
    levels, setup = timed(lambda: getattr(pyamg, PEERS[label])(sp.csr_matrix(A)))
    norms = []
    with np.errstate(all="ignore"):
        x, seconds = timed(lambda: levels.solve(b, tol=RTOL, accel="cg", maxiter=PEER_ITERATIONS, residuals=norms))
    return _record(space, name, A, label, x, (setup, seconds, math.nan, math.nan), len(norms) - 1,
                   levels.operator_complexity())


def timed(call):
    """Call a function; return (its result, wall time in seconds)."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def _record(space, name, A, label, x, times, iterations, complexity, beside=None):
    b = A @ np.random.default_rng(SEED).random(A.shape[0])
    return {"benchmark": "amg", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "solver": label,
            **dict(zip(TIMES, times)), "iterations": iterations, "operator_complexity": complexity,
            "residual": engine.true_residual(A, x, b),
            "hypre": beside or {}, **engine.circumstances(space)}


def stored(name, n) -> dict:
    """Return hypre's stored figures for a system of this name and n unknowns, a dict; empty if there are none."""
    return next((figures for figures in engine.stored("cuda")["hypre_amg"] if figures["matrix"] == name
                 and figures["n"] == n), {})


def stretched(m, ratio):
    """Return the SciPy matrix of Poisson's equation by finite volumes on m × m cells that grow towards y = 1; the last
    is ``ratio`` times as high as the first."""
    widths = np.full(m, 1.0), ratio ** (np.arange(m) / max(m - 1, 1))
    across = [sp.diags_array(h / h.sum()) for h in widths]
    along = []
    for h in (widths[0] / widths[0].sum(), widths[1] / widths[1].sum()):
        links = 2 / (h[:-1] + h[1:])
        diagonal = np.concatenate([[2 / h[0]], links]) + np.concatenate([links, [2 / h[-1]]])
        along.append(sp.diags_array((-links, diagonal, -links), offsets=(-1, 0, 1)))
    A = sp.csr_matrix(sp.kron(across[1], along[0]) + sp.kron(along[1], across[0]))
    A.sort_indices()
    return A


def families(scale, most) -> dict:
    """Return {family: {name of a system: function that makes its matrix}}. ``scale``: a factor for the sizes; ``most``:
    the largest number of unknowns of Poisson systems."""
    def side(m, axes):
        return max(8, round(m * scale ** (1 / axes)))

    flat = {f"{m}²": m for m in (side(k, 2) for k in (250, 500, 1000, 2000, 4000)) if m**2 <= most}
    cubes = {f"{m}³": m for m in (side(k, 3) for k in (32, 64, 100, 128, 200, 256, 400)) if m**3 <= most}
    m, k = side(500, 2), side(64, 3)
    return {
        "Poisson 2D": {name: lambda m=m: poisson2d(m) for name, m in flat.items()},
        "Poisson 3D": {name: lambda m=m: poisson3d(m) for name, m in cubes.items()},
        "Anisotropy along the grid": {f"{e:g}": lambda e=e: _along(m, e) for e in (1, 0.1, 0.01, 1e-3, 1e-4)},
        "Anisotropy at 30°": {f"{e:g}": lambda e=e: anisotropic2d(m, e) for e in (1, 0.1, 0.01, 1e-3, 1e-4)},
        "Jumps": {f"{c:.0e}": lambda c=c: jumping_diffusion((k, k, k), c) for c in (1e0, 1e2, 1e4, 1e6, 1e8)},
        "Stretched cells": {f"1 : {r:g}": lambda r=r: stretched(m, r) for r in (1, 10, 100, 1000, 10_000)},
    }


def _along(m, epsilon):
    """Return the SciPy matrix of −u_xx − ε u_yy on m × m cells, with u = 0 at x = 0 and x = 1."""
    to_boundary = np.zeros((m, m))
    to_boundary[:, 0] = to_boundary[:, -1] = 2 / epsilon
    return diffusion(np.ones((m, m)), (1.0, math.sqrt(epsilon)), to_boundary * math.sqrt(epsilon))


def _scaled(space, family, systems):
    """Yield the record (dict of results) of each system of a family; ``systems``: {name: function that makes the
    matrix}."""
    for name, make in systems.items():
        engine.tell(f"{family}: {name}")
        A = make()
        b = right_hand_side(space, A)
        there = on_device(space, A)
        solver, setup = timed(lambda: _prepare(space, there, SOLVERS["AMG"]))
        result, solve = timed(lambda: solver.solve(b))
        hierarchy = facts(solver.M)
        yield {"benchmark": "amg scaling", "family": family, "system": name, "n": A.shape[0], "nnz": A.nnz,
               "iterations": result.iterations, "reason": result.reason.name, "levels": len(hierarchy["levels"]),
               "operator_complexity": hierarchy["operator_complexity"], "grid_complexity": hierarchy["grid_complexity"],
               "setup_seconds": setup, "solve_seconds": solve, "residual": result.residual,
               "history": result.history, **engine.circumstances(space)}


def _rows(records):
    rows = []
    for r in records:
        total = r["setup_seconds"] + r["solve_seconds"]
        ours = next((k for k in records if (k["matrix"], k["solver"]) == (r["matrix"], "AMG")), None)
        ratio = total / (ours["setup_seconds"] + ours["solve_seconds"]) if ours else math.nan
        setup, solve, both, again, update = ("" if math.isnan(t) else f"{t:.3g}" for t in (
            r["setup_seconds"], r["solve_seconds"], total, r["again_seconds"], r["update_seconds"]))
        rows.append((r["matrix"], r["solver"], r["n"], setup, solve, both, engine.cell(ratio, 2), again, update,
                     r["iterations"],
                     engine.cell(r["operator_complexity"], 2), f"{r['residual']:.1e}",
                     engine.cell(_ratio(r["hypre"], total), 2),
                     engine.cell(_ratio(r["hypre"], r["again_seconds"], True), 2)))
    return rows


def _ratio(figures, seconds, again=False):
    """Return hypre's time over ``seconds``: of setup and solve, or of the solve alone; NaN without its ``figures``."""
    if not figures or not seconds:
        return math.nan
    return 1e-3 * (figures["solve_ms"] + (0 if again else figures["setup_ms"])) / seconds


def _beside(records):
    """Return the rows of the table `BESIDE`, with the geometric means of its ratios at the end."""
    rows, ratios = [], []
    for name in dict.fromkeys(r["matrix"] for r in records):
        solved = [r for r in records if r["matrix"] == name and r["residual"] <= 2 * RTOL and "hypre" in r]
        chosen = next((r for r in solved if r["solver"] == "by itself"), None)
        named = [r for r in solved if r is not chosen and r["solver"] not in PEERS]
        if chosen is None or not named:
            continue
        whole = {id(r): r["setup_seconds"] + r["solve_seconds"] for r in solved}
        best, again = min(named, key=lambda r: whole[id(r)]), min(r["again_seconds"] for r in named)
        figures = best["hypre"]
        ratios.append((whole[id(best)] / whole[id(chosen)], _ratio(figures, whole[id(best)]),
                       _ratio(figures, whole[id(chosen)]), _ratio(figures, again, True)))
        cells = (engine.cell(ratio, 2) for ratio in ratios[-1])
        rows.append((name, best["solver"], *cells, figures.get("settings", "")))
    if rows:
        means = (math.exp(np.nanmean(np.log(column))) if not np.isnan(column).all() else math.nan
                 for column in np.array(ratios).T)
        rows.append(("geometric mean", "", *(engine.cell(mean, 2) for mean in means), ""))
    return rows


def _scaling_rows(records):
    return [(r["family"], r["system"], r["n"], r["iterations"], r["levels"], f"{r['operator_complexity']:.2f}",
             f"{r['setup_seconds']:.3g}", f"{r['solve_seconds']:.3g}", f"{r['residual']:.1e}") for r in records]


def _figure(records):
    """Return a figure: bars of setup + solve seconds, in one group a matrix."""
    names, labels = (list(dict.fromkeys(r[key] for r in records)) for key in ("matrix", "solver"))
    total = {(r["solver"], r["matrix"]): r["setup_seconds"] + r["solve_seconds"] for r in records}
    values = {label: [total.get((label, name)) for name in names] for label in labels}
    return engine.bars(names, labels, values, "s, setup and solve", log=bool(records))


def _curves(records):
    """Return a figure: residuals over iterations, in one panel a family."""
    from swell.display.figure import GRID, INK, colour_of, new_figure
    names = list(dict.fromkeys(r["family"] for r in records))
    figure, _ = new_figure(9.0, 7.5)
    figure.clear()
    for panel, name in enumerate(names):
        axes = figure.add_subplot(3, 2, panel + 1)
        for k, r in enumerate(r for r in records if r["family"] == name):
            axes.semilogy(np.maximum(r["history"], 1e-16), lw=1.2, color=colour_of(k), label=r["system"])
        axes.axhline(RTOL, color=INK, lw=0.8, ls=":")
        axes.set_title(name, fontsize=9, color=INK)
        axes.set_xlabel("iteration", fontsize=8, color=INK)
        axes.grid(True, color=GRID, lw=0.6)
        axes.tick_params(labelsize=8)
        axes.legend(fontsize=7, frameon=False)
    return figure
