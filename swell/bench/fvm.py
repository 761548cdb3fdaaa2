"""Tables of the finite-volume paper on stand-ins: products (3.1), smoothers (4.1), preconditioners of CG (5.1).

Every matrix is ordered by Cuthill–McKee first, as in the paper. ``swell bench smoothers`` measures the smoothers. In
table 5.1 the right-hand side is random, since all ones are an eigenvector of some of these matrices. The residual of
the original system is computed in every tenth iteration, and a solve ends at a true relative residual of 1e-8. If the
device is a GPU, its host is measured, too: the products, and ``--cpu-iterations`` of three of the solves.
"""
from __future__ import annotations

from functools import partial

import numpy as np

from swell import api
from swell.bench import engine, smoothers
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.formats.csr import CSRMatrix
from swell.gallery import jumping_diffusion

EVERY = 10              # iterations between two computations of the original residual
RTOL = 1e-8
SEED = 11
REPEAT = {"cpu": 20, "cuda": 50}            # repetitions of a product
FORMATS = ("sell", "modified_sell(height=512)", "modified_sell(height=1024)")
# name: (scaling, precond)
VARIANTS = {
    "CG": (None, None),
    "Jacobi scaling": ("jacobi", None),
    "Ruiz scaling": ("ruiz", None),
    "IC(0)": (None, "ic0"),
    "IC(0), multicolour": (None, "ic0(ordering='multicolor')"),
    "IC(0), sweeps": (None, "ic0(factor='sweeps', solve='sweeps')"),
    "IC(1)": (None, "ic(level=1)"),
    "Chebyshev": ("jacobi", "chebyshev"),
}
SCALED = ("CG", "Jacobi scaling", "Ruiz scaling")        # their iterations should cost the same
ON_CPU = ("CG", "Jacobi scaling", "IC(0)")               # measured on the CPU, too, if the device is a GPU
PRODUCTS = ("matrix", "device", "n", "mean entries", "most", "λ at 512", "SELL µs", "mod. SELL 512 µs", "1024 µs",
            "SELL / mod.")
SOLVES = ("matrix", "preconditioner", "device", "reason", "iterations", "setup ms", "solve ms", "µs an iteration",
          "true residual", "condition", "by (5.31)")
ITERATIONS = ("matrix", "device", *(f"{name}, µs" for name in SCALED), "Jacobi / CG", "Ruiz / CG")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    if not arguments.no_smoothers:
        smoothers.check(arguments)
    device, cpu = make_space(arguments.device), make_space("cpu")
    spaces = [device] if device.name == "cpu" or arguments.no_cpu else [device, cpu]
    systems = [(name, smoothers.ordered(A)) for name, A in engine.systems(arguments)]
    findings = engine.Findings("swell bench fvm", device, arguments)
    for space in spaces:
        compile_kernels(space, space is device)
    findings.take(record for space in spaces for record in products(space, systems, arguments))
    findings.table("Table 3.1: products", PRODUCTS, _products(findings.records))
    figures = []
    if not arguments.no_smoothers:
        smoothing = findings.take(smoothers.measure(systems, arguments))
        findings.table(*smoothers.table(smoothing))
        figures = smoothers.figures(smoothing)
    findings.take((record for space in spaces for record in solves(space, systems, arguments, space is device)),
                  unwritten=("history",))
    findings.table("Table 5.1: to a true residual of 1e-8", SOLVES, _solves(findings.records))
    findings.table(f"An iteration, with the original residual in every {EVERY}th", ITERATIONS,
                   _iterations(findings.records))
    caption = "Figure 5.1: the residual of the original system against time"
    findings.report((caption, _figure(findings.records)), *figures)
    return 0


def compile_kernels(space, everything):
    """Run each product and each preconditioner once on a small matrix: no measured time then includes compilation.
    ``everything``: all variants of solves, else only those in ``ON_CPU``."""
    engine.tell(f"compiling kernels that are not in the cache, {space.name}")
    A = jumping_diffusion((20, 20))
    b = np.ones(A.shape[0])
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        x, y = space.from_host(b), space.empty(b.size, b.dtype)
        for text in FORMATS:
            resolve("format", text).build(csr).apply(x, y)
    for variant in VARIANTS if everything else ON_CPU:
        _prepare(A, b, space, variant, Stopping(maxiter=EVERY)).solve(b)


def products(space, systems, arguments):
    """Yield the records (dicts) of table 3.1, one for each matrix; ``systems``: list of (name, SciPy CSR matrix)."""
    with space.active():
        meter = engine.Meter(space)
        for name, A in systems:
            engine.tell(f"products: {name}, {space.name}")
            csr = CSRMatrix.from_scipy(A, space)
            x, y = space.empty(A.shape[0], csr.dtype), space.empty(A.shape[0], csr.dtype)
            space.random(7, x)
            formats = {text: resolve("format", text).build(csr) for text in FORMATS}
            times = {text: meter.seconds(partial(matrix.apply, x, y), arguments.repeat or REPEAT[space.name])
                     for text, matrix in formats.items()}
            lengths = np.diff(A.indptr)
            yield {"benchmark": "fvm products", "matrix": name, "n": A.shape[0], "nnz": A.nnz,
                   "mean_entries": float(lengths.mean()), "most_entries": int(lengths.max()),
                   "local_share": formats[FORMATS[1]].local_share,
                   "seconds": times, **engine.circumstances(space)}


def solves(space, systems, arguments, everything):
    """Yield the records (dicts) of table 5.1; for ``SCALED`` they also hold the time of an iteration. ``systems``: list
    of (name, SciPy CSR matrix).

    On a CPU a solve does ``--cpu-iterations`` at most: enough for the time of an iteration. ``everything``: measure all
    variants, else ``ON_CPU``.
    """
    limit = arguments.cpu_iterations if space.name == "cpu" else None
    count, repeat = (arguments.iterations, 3) if everything else (min(arguments.iterations, limit), 1)
    for name, A in systems:
        with space.active():
            b = space.empty(A.shape[0], A.dtype)
            space.random(SEED, b)
            rhs = space.to_host(b)
        for variant in VARIANTS if everything else ON_CPU:
            engine.tell(f"solves: {name}, {space.name}, {variant}")
            prepare = partial(_prepare, A, b, space, variant)
            solver = prepare(Stopping(rtol=RTOL, maxiter=limit))
            solver.solve(b, monitor=engine.a_few)
            result = solver.solve(b)
            record = {"benchmark": "fvm solve", "matrix": name, "n": A.shape[0], "nnz": A.nnz, "variant": variant,
                      "reason": result.reason.name, "iterations": result.iterations,
                      "setup_seconds": result.timings["setup"], "solve_seconds": result.timings["solve"],
                      "residual": engine.true_residual(A, space.to_host(result.x), rhs),
                      "condition": result.as_dict()["condition"], "facts": _bounds(result),
                      "history": result.history, **engine.circumstances(space)}
            if variant in SCALED:
                record["iteration_seconds"], _ = engine.seconds_an_iteration(prepare, b, count, repeat)
            yield record


def _prepare(A, b, space, variant, stopping):
    """Return a Solver for A and one variant (a key of ``VARIANTS``) that computes the residual every ``EVERY``
    iterations. b: a right-hand side like the later ones."""
    scaling, precond = VARIANTS[variant]
    stopping = Stopping(rtol=stopping.rtol, maxiter=stopping.maxiter, window=stopping.window, growth=stopping.growth,
                        every=EVERY)
    return api.prepare(A, method="cg", scaling=scaling, precond=precond, device=space.device_name, stopping=stopping,
                       b_like=b)


def _bounds(result):
    """Return Gershgorin's bound (5.31) as text, from the result's facts on the scaling; "" if it is not there."""
    bound = next((line.strip() for line in result.configuration if "Gershgorin" in line), "")
    return "not bounded" if "not bound" in bound else " ".join(bound.split()[1:4])


def _where(record):
    """Return the record's device without its model name."""
    return record["device"].split(",")[0]


def _products(records):
    rows = []
    for r in records:
        if r["benchmark"] == "fvm products":
            times = [1e6 * r["seconds"][text] for text in FORMATS]
            rows.append((r["matrix"], _where(r), r["n"], f"{r['mean_entries']:.2f}", r["most_entries"],
                         f"{r['local_share']:.2f}", *(f"{t:.1f}" for t in times), f"{times[0] / times[1]:.2f}"))
    return rows


def _solves(records):
    return [(r["matrix"], r["variant"], _where(r), r["reason"], r["iterations"], f"{1e3 * r['setup_seconds']:.1f}",
             f"{1e3 * r['solve_seconds']:.1f}", f"{1e6 * r['solve_seconds'] / max(r['iterations'], 1):.1f}",
             f"{r['residual']:.1e}", "" if r["condition"] is None else f"{r['condition']:.1e}", r["facts"])
            for r in records if r["benchmark"] == "fvm solve"]


def _iterations(records):
    rows, seconds = [], {}
    for r in records:
        if r["benchmark"] == "fvm solve" and "iteration_seconds" in r:
            seconds.setdefault((r["matrix"], _where(r)), {})[r["variant"]] = 1e6 * r["iteration_seconds"]
    for key, by_variant in seconds.items():
        times = [by_variant[name] for name in SCALED]
        rows.append((*key, *(engine.cell(t) for t in times), *(engine.cell(t / times[0], 3) for t in times[1:])))
    return rows


def _figure(records):
    """Return figure 5.1: the residual of the original system over time."""
    from swell.display.figure import GRID, colour_of, new_figure
    solves = [r for r in records if r["benchmark"] == "fvm solve"]
    names = list(dict.fromkeys(r["matrix"] for r in solves))
    rows = -(-len(names) // 2)
    figure, _ = new_figure(9.0, 3.2 * max(rows, 1))
    figure.clear()
    device = solves[0]["device"] if solves else ""
    for k, name in enumerate(names):
        axes = figure.add_subplot(rows, min(len(names), 2), k + 1)
        for j, r in enumerate(r for r in solves if r["matrix"] == name and r["device"] == device):
            times = np.linspace(0, 1e3 * r["solve_seconds"], len(r["history"]))[::EVERY]
            axes.semilogy(times, np.maximum(r["history"][::EVERY], 1e-17), lw=1.2, label=r["variant"],
                          color=colour_of(j))
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("ms", fontsize=8)
        axes.set_ylabel("‖b − A x‖ / ‖b‖", fontsize=8)
        axes.grid(True, color=GRID, lw=0.6)
        axes.tick_params(labelsize=8, which="both")
        if k == 0:
            axes.legend(fontsize=7)
    return figure
