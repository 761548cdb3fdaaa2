"""``swell bench block-gmres --ranks``: start the ranks and PETSc, collect and show their records.

The matrices lie in a temporary folder, from which each rank reads its rows: made once for strong scaling, and for each
number of ranks with ``--unknowns``, weak scaling. All sides get the same right-hand side and the same tolerance: 1e-3
of the first residual for thermal2~, 1e-5 for other matrices, as in the paper.
"""
from __future__ import annotations

import importlib.util
import math
import tempfile
from contextlib import contextmanager
from pathlib import Path

import scipy.sparse as sp

from swell.bench import engine
from swell.bench.block_gmres import cases, petsc, rank_figures
from swell.bench.block_gmres.device import MATRICES, System
from swell.bench.block_gmres.rank_figures import of_kind
from swell.bench.scaling import start
from swell.bench.scaling.command import Place, efficiency, numbers
from swell.core.ahead import cores
from swell.core.devices import make_space
from swell.core.errors import InputError, MissingDependency
from swell.distributed.partition import consecutive

MODULE = "swell.bench.block_gmres.ranks"
REPEAT, SOLVE_REPEAT = 20, 2
PETSC = "PETSc, bjacobi with ILU(0), CPU"
SWEEPS = "1,2,3,4,5"                     # the paper's
ORTHOGONAL = ("matrix", "basis", "batch", "ranks", "inner products µs", "updates µs")
PRODUCTS = ("matrix", "ranks", "overlap µs", "without µs", "pack", "exchange", "diagonal block", "rest",
            "communication %", "efficiency %")
ITERATIONS = ("matrix", "ranks", "µs an iteration", "efficiency %")
SOLVES = ("matrix", "preconditioner", "ranks", "T_precond ms: least", "largest", "mean", "load balance", "T_gmres ms",
          "beside iterations", "iterations", "reason", "‖b − Ax‖/‖b‖", "setup ms", "MB a rank")


def run(arguments) -> int:
    """Run the benchmark on each number of ranks, as ``swell.bench.block_gmres.run``."""
    program = start.mpiexec("block-gmres")
    ranks = numbers("ranks", arguments.ranks)
    if arguments.petsc is not None:
        petsc.check(arguments.petsc)
    of_petsc = numbers("petsc-ranks", arguments.petsc_ranks, arguments.ranks)
    if arguments.partition == "graph" and importlib.util.find_spec("pymetis") is None:
        raise MissingDependency("--partition graph needs pymetis: pip install 'swell[partition]'")
    threads = arguments.threads or max(1, cores() // max(ranks))
    place = Place(arguments.device, threads)
    findings = engine.Findings("swell bench block-gmres", place, arguments)
    settings = {"device": arguments.device, "partition": arguments.partition, "block": None, "solves": True,
                "scaling": "weak" if arguments.unknowns else "strong",
                "repeat": arguments.repeat or REPEAT, "solve-repeat": SOLVE_REPEAT,
                "sweeps": numbers("sweeps", arguments.sweeps, SWEEPS),
                "cusparse": not arguments.no_cusparse, "host": not arguments.no_cpu,
                "maxiter": arguments.maxiter,
                "cpu-iterations": min(arguments.cpu_iterations or arguments.maxiter, arguments.maxiter)}

    def measure(counts, of_petsc, rows=None):
        """Take the records of matrices with ``rows`` rows, on each number of ranks in ``counts``, and of PETSc."""
        with _written(arguments, counts, rows) as systems:
            findings.table("Table 1: matrices", MATRICES, [system.row() for system, *_ in systems])
            of_systems = [(system.name, str(path), system.block) for system, path, _ in systems]
            for count in counts:
                findings.take({**record, "threads": threads, **engine.circumstances(place)} for record in
                              start.records(program, count, threads, {**settings, "systems": of_systems}, MODULE))
            if arguments.petsc:
                findings.take({**record, **engine.circumstances(place), "device": "cpu, PETSc"} for record in
                              _by_petsc(arguments.petsc, systems, of_petsc, settings))

    if arguments.unknowns:
        for count in ranks:
            measure([count], [count] if arguments.petsc_ranks is None or count in of_petsc else [],
                    count * arguments.unknowns)
    else:
        measure(ranks, of_petsc)
    records = findings.records
    findings.table("Figures 8 and 9: inner products and updates of a step, by vectors a launch; means over the ranks",
                   ORTHOGONAL, _orthogonal(records))
    findings.table("Figure 10: a product, with and without overlap", PRODUCTS, _products(records))
    findings.table("Figure 11: an iteration of GMRES(30) without preconditioner", ITERATIONS, _iterations(records))
    findings.table("Tables 2 to 4: GMRES(30) with block ILU(0) of each rank's block", SOLVES, _solves(records))
    if arguments.report:
        findings.report(*rank_figures.drawn(records))
    return 0


def _check_real(systems):
    """Raise InputError for a complex system, which PETSc's program does not solve."""
    name = next((system.name for system in systems if system.A.dtype.kind == "c"), None)
    if name is not None:
        raise InputError(f"--petsc: {name} is complex, and the program is for real systems: leave one of them out")


@contextmanager
def _written(arguments, ranks, rows):
    """Context manager: write the matrices that the command line names for the ranks, and with right-hand sides for
    PETSc if it is asked for; yield a list of (System, path for the ranks, path for PETSc). ``ranks``: their numbers;
    ``rows`` as in ``cases.given``. Raise InputError if a matrix has too few blocks for the ranks."""
    host = make_space("cpu")
    systems = [System(host, name, A, block) for name, A, block in cases.given(arguments, rows)]
    if arguments.petsc:
        _check_real(systems)
    with tempfile.TemporaryDirectory() as folder:
        written = []
        for at, system in enumerate(systems):
            consecutive(system.A.shape[0], max(ranks), system.block)
            for_ranks, for_petsc = Path(folder) / f"{at}.npz", Path(folder) / f"{at}.petsc"
            sp.save_npz(for_ranks, sp.csr_matrix(system.A), compressed=False)
            if arguments.petsc:
                petsc.write_system(for_petsc, system.A, system.rhs)
            written.append((system, for_ranks, for_petsc))
        yield written


def _by_petsc(command, systems, ranks, settings):
    """Yield the records of PETSc's solves, one for each system and number of ranks."""
    for system, _, path in systems:
        rtol = cases.tolerance(system.name)
        for count in ranks:
            engine.tell(f"PETSc on {count} CPU rank{'s' if count > 1 else ''}: {system.name}")
            solve = petsc.measure(command, count, path, system.block, rtol, settings["cpu-iterations"])
            yield {"benchmark": "block_gmres solve", "scaling": settings["scaling"], "matrix": system.name,
                   "n": system.A.shape[0], "nnz": system.A.nnz, "block": system.block, "preconditioner": PETSC,
                   "rtol": rtol, "load_balance": solve["largest"] / solve["mean"], "bytes": None, **solve}


def besides(records, solve) -> float:
    """Return the seconds of a solve beside its iterations: T_gmres − iterations (T_iteration + T_precond/31), with an
    iteration without preconditioner from ``records``; NaN without one."""
    own = (r["seconds"] for r in of_kind(records, "iteration") if r["seconds"]
           and all(r[name] == solve[name] for name in ("matrix", "ranks", "scaling")))
    iteration = next(own, float("nan")) if solve["preconditioner"] != PETSC else float("nan")
    return solve["seconds"] - solve["iterations"] * (iteration + solve["largest"] / (cases.RESTART + 1))


def _milli(seconds):
    return "" if math.isnan(seconds) else f"{1e3 * seconds:.2f}"


def _micro(*seconds):
    return [f"{1e6 * t:.1f}" for t in seconds]


def _orthogonal(records):
    return [(r["matrix"], r["basis"], r["batch"], r["ranks"], *_micro(r["inner_products"], r["updates"]))
            for r in of_kind(records, "orthogonalisation")]


def _products(records):
    return [(r["matrix"], r["ranks"], *_micro(r["seconds"], r["seconds_without_overlap"], r["pack"], r["exchange"],
                                              r["local"], r["rest"]),
             f"{100 * r['share_of_communication']:.1f}", f"{efficiency(records, r, ()):.0f}")
            for r in of_kind(records, "product")]


def _iterations(records):
    return [(r["matrix"], r["ranks"], *_micro(r["seconds"] or float("nan")), f"{efficiency(records, r, ()):.0f}")
            for r in of_kind(records, "iteration")]


def _solves(records):
    return [(r["matrix"], r["preconditioner"], r["ranks"], *(f"{1e3 * r[k]:.2f}" for k in ("least", "largest", "mean")),
             f"{r['load_balance']:.2f}", f"{1e3 * r['seconds']:.1f}", _milli(besides(records, r)), r["iterations"],
             r["reason"], f"{r['residual']:.1e}", f"{1e3 * r['setup_seconds']:.0f}",
             f"{1e-6 * r['bytes']:.1f}" if r["bytes"] else "") for r in of_kind(records, "solve")]
