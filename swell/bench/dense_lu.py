"""Dense LU: decomposers and solvers by the thesis' protocol (section 2.2.3): time, speed-up over getrf, accuracies of
factors and solutions.

Matrices: dense_matrices.py. Every decomposition and solution is repeated (10 runs), with 10 right-hand sides of ones;
without ``--repeat`` until `MAX_SECONDS` have passed, which plain forms of ICM exceed in their first run.
Solvers get accurate factors with full pivoting: from PCM, or from getrf if the unit diagonal is in L. A failure gives a
record with its reason.

``--batch N``: also factor N matrices of each generated kind, one after the other and together (``factor_batch``).
``--tolerances LIST``: also factor by ICM with these processing tolerances. ``--changes LIST``: also let ICM begin from
the factors of a matrix that differs by these shares (section 3.3). The report has the thesis' figures
(dense_figures.py).
"""
from __future__ import annotations

import dataclasses
import statistics

import numpy as np

from swell.bench import dense_figures, engine
from swell.bench.dense_matrices import matrices
from swell.core.errors import FactorisationError, InputError, OutOfMemory
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.core.devices import make_space
from swell.dense.accuracy import decomposition_accuracy, solution_accuracy

RIGHT_HAND_SIDES = 10
RUNS = 10
MAX_SECONDS = 2.0       # s, of all runs; no further run begins then
DECOMPOSERS = {"cpu": ("getrf", "cm", "pcm(x=8)", "pcm(x=8, pivoting=conditional)",
                       "pcm(x=8, form=plain)", "icm(x=8)", "icm(x=32)", "icm(x=32, form=plain)"),
               "cuda": ("getrf", "pcm(x=8)", "pcm(x=32)", "pcm(x=32, pivoting=conditional)", "pcm(x=8, form=plain)",
                        "icm(x=8)", "icm(x=16)", "icm(x=32)", "icm(x=32, pivoting=full)", "icm(x=32, form=plain)")}
SOLVERS = {"cpu": ("ss", "is(x=8)", "is(x=128)", "is(x=8, form=plain)", "trsm", "getrs"),
           "cuda": ("is(x=8)", "is(x=32)", "is(x=128)", "is(x=8, form=plain)", "trsm", "getrs")}
HEADER = ("matrix", "decomposer", "n", "type", "ms", "best", "spread", "of getrf", "max |PA − LU|", "backward",
          "growth", "pivots", "iterations")
SOLVER_HEADER = ("matrix", "solver", "n", "type", "ms", "best", "spread", "max |LUX − PB|", "max |AX − B|",
                 "backward")
BATCH_HEADER = ("matrix", "decomposer", "n", "type", "matrices", "ms alone", "best", "ms together", "best",
                "times as fast")
SWEPT = ("matrix", "tolerance", "n", "type", "ms", "best", "iterations", "max |PA − LU|", "backward")
ESTIMATED = ("matrix", "decomposer", "n", "type", "change", "from A", "from the factors", "share")
QUARTILES = ("", "type", "mean", "std. dev.", "Q1", "Q2", "Q3", "max.", "failed")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    decomposers = [resolve("decomposer", text) for text in arguments.decomposers or DECOMPOSERS[space.name]]
    solvers = [resolve("dense_solver", text) for text in arguments.solvers or SOLVERS[space.name]]
    runs, types = arguments.repeat, _types(arguments.types)
    sweep, changes = (_numbers(option, getattr(arguments, option)) for option in ("tolerances", "changes"))
    findings = engine.Findings("swell bench dense-lu", space, arguments)
    pictures = []
    for name, make in matrices(arguments, space):
        try:
            A = make(0)
        except (InputError, OutOfMemory) as error:
            engine.tell(f"{name}: {error}")
            findings.take([{"benchmark": "dense-lu matrix", "matrix": name, "failure": str(error)}])
            continue
        for kind in types:
            if np.dtype(kind).kind != "c" and np.iscomplexobj(A):
                findings.take([{"benchmark": "dense-lu matrix", "matrix": name, "dtype": kind,
                                "failure": f"complex, and {kind} was asked for: --types complex128,complex64"}])
                continue
            engine.tell(f"{name}, {kind}")
            findings.take(_decompositions(space, name, A.astype(kind), decomposers, runs, pictures))
            findings.take(_swept(space, name, A.astype(kind), sweep, runs))
            findings.take(_from_estimates(space, name, A.astype(kind), decomposers, changes))
            findings.take(_solutions(space, name, A.astype(kind), solvers, runs))
            if arguments.batch:
                many = np.stack([make(seed).astype(kind) for seed in range(arguments.batch)])
                findings.take(_batches(space, name, many, decomposers, runs))
    _show(findings, pictures)
    return 0 if any("failure" not in r for r in findings.records) else 1


def _show(findings, pictures):
    """Print the tables of an ``engine.Findings``; write the CSV file and the report. ``pictures``: list of
    (caption, figure) of single matrices, for the end of the report's figures."""
    unread = [r for r in findings.records if r["benchmark"] == "dense-lu matrix"]
    if unread:
        findings.table("Left out", ("matrix", "why"), dict.fromkeys((r["matrix"], r["failure"]) for r in unread))
    made = [r for r in findings.records if r["benchmark"] == "dense-lu decomposition"]
    if not made:
        return
    solved = [r for r in findings.records if r["benchmark"] == "dense-lu solution"]
    findings.table("Decompositions", HEADER,
                   [_cells(r, r["decomposer"], HEADER, _factor_cells) for r in made])
    notes = [(r["matrix"], r["decomposer"], r["dtype"], note) for r in made for note in r.get("notes", ())]
    if notes:
        findings.table("Notes on the factors", ("matrix", "decomposer", "type", "note"), notes)
    findings.table("All matrices together", ("decomposer", "type", "s", "failed"), _totals(made, "decomposer"))
    for key, caption in (("max_difference", "max |PA − LU| (2.7)"), ("backward_error", "‖PA − LU‖₁ / ‖A‖₁")):
        findings.table(f"Accuracy of decompositions: {caption}", QUARTILES, _quartiles(made, "decomposer", key))
    if solved:
        findings.table("Solutions, 10 right-hand sides of ones", SOLVER_HEADER,
                       [_cells(r, r["solver"], SOLVER_HEADER, _solver_cells) for r in solved])
        findings.table("All systems together", ("solver", "type", "s", "failed"), _totals(solved, "solver"))
        for key, caption in (("max_difference", "max |LUX − PB| (2.8)"), ("backward_error", "normwise backward error")):
            findings.table(f"Accuracy of solutions: {caption}", QUARTILES, _quartiles(solved, "solver", key))
    batches = [r for r in findings.records if r["benchmark"] == "dense-lu batch"]
    if batches:
        findings.table("Matrices of one size, one after the other and together", BATCH_HEADER,
                       [_cells(r, r["decomposer"], BATCH_HEADER, _batch_cells, r["matrices"]) for r in batches])
    swept = [r for r in findings.records if r["benchmark"] == "dense-lu tolerance"]
    if swept:
        findings.table("ICM with processing tolerances", SWEPT,
                       [_cells(r, f"{r['tolerance']:g}", SWEPT, _swept_cells) for r in swept])
    estimated = [r for r in findings.records if r["benchmark"] == "dense-lu estimate"]
    if estimated:
        findings.table("Iterations of ICM from the factors of a similar matrix", ESTIMATED,
                       [_cells(r, r["decomposer"], ESTIMATED, _estimate_cells, f"{r['change']:g}") for r in estimated])
    if findings.arguments.csv:
        engine.write_csv(findings.arguments.csv, findings.records)
    if findings.arguments.report:
        findings.report(*dense_figures.figures(made, swept, solved), *pictures)


def _types(text):
    """Return the list of types that ``text`` names, separated by commas.

    Raises
    ------
    InputError
        For a name that is no type of swell.
    """
    from swell.core.settings import DTYPES
    types = [kind.strip() for kind in text.split(",")]
    for kind in types:
        if kind not in DTYPES:
            raise InputError(f"--types {kind}: expected some of {', '.join(DTYPES)}")
    return types


def _numbers(option, text):
    """Return the list of numbers that ``text``, the value of an option, names, separated by commas; none for None.

    Raises
    ------
    InputError
        For a text that is no number of at least zero.
    """
    numbers = []
    for part in text.split(",") if text is not None else ():
        try:
            numbers.append(float(part))
        except ValueError:
            numbers.append(-1.0)
        if not 0 <= numbers[-1] < float("inf"):
            raise InputError(f"--{option} {part.strip()}: expected numbers of at least 0, separated by commas, such as "
                             "0,1e-10,1e-5,1e-2")
    return numbers


def _timed(space, call, runs):
    """Call ``call()`` once as a warm-up and ``runs`` times more; return (last result, seconds of every run).

    ``runs`` is None: `RUNS` times, or until `MAX_SECONDS` have passed. A warm-up as long as that is the only run."""
    seconds = []
    while len(seconds) <= (runs or RUNS) and (runs or sum(seconds) < MAX_SECONDS):
        with engine.stopwatch(space) as elapsed:
            result = call()
        seconds.append(elapsed[0])
    return result, seconds[1:] or seconds


def _measured(space, call, runs):
    """Time ``call()``, repeated ``runs`` times; return (its result, dict of fields of the record), or (None,
    {"failure": reason})."""
    try:
        result, seconds = _timed(space, call, runs)
    except (FactorisationError, InputError, OutOfMemory) as error:
        return None, {"failure": str(error)}
    return result, {"seconds": statistics.median(seconds), "best": min(seconds), "spread": statistics.pstdev(seconds),
                    "runs": len(seconds)}


def _decompositions(space, name, A, decomposers, runs, pictures):
    """Yield one record (dict of results) for each decomposer of the dense matrix A; speed-ups are relative to the first
    getrf. Appends (caption, figure) to ``pictures``, for a matrix without pictures: the patterns of A and of factors by
    ICM, or else by the first decomposer, and the iterations of every section of iterative methods."""
    reference, on_device, density = None, space.from_host(A), np.count_nonzero(A) / max(A.size, 1)
    pictured = any(caption.startswith(f"{name},") for caption, _ in pictures)
    shown = next((s for s in decomposers if describe(s).startswith("ICM")), decomposers[0])
    for settings in decomposers:
        factors, fields = _measured(space, lambda: settings.factor(on_device, space), runs)
        record = {"benchmark": "dense-lu decomposition", "matrix": name, "n": len(A), "dtype": A.dtype.name,
                  "density": density, "decomposer": describe(settings), **fields, **engine.circumstances(space)}
        if factors is not None:
            if describe(settings).startswith("Getrf") and reference is None:
                reference = record["seconds"]
            metrics = factors.metrics
            record |= dataclasses.asdict(decomposition_accuracy(on_device, factors))
            record |= {"section": metrics.section, "pivots": metrics.pivots.tolist(), "notes": list(factors.notes),
                       "iterations": None if metrics.iterations is None else metrics.iterations.tolist(),
                       "speedup": reference / record["seconds"] if reference else None}
            if not pictured:
                of = f"{name}, {A.dtype.name}"
                if settings is shown:
                    pictures += [(f"{of}: nonzeros (figures 3.2a, 3.4a, 3.19)", dense_figures.pattern(A)),
                                 (f"{of}, {describe(settings)}: nonzeros of L and U (figures 3.5, 3.13a, 3.21)",
                                  dense_figures.pattern(space.to_host(factors.lu)))]
                if metrics.iterations is not None and metrics.iterations.size > 1:
                    pictures.append((f"{of}, {describe(settings)}: iterations of every section, and pivots (figures "
                                     "3.2b to 3.4b, 3.13b, 3.21)", dense_figures.heat_map(metrics)))
        yield record


def _swept(space, name, A, tolerances, runs):
    """Yield one record (dict of results) for each of ``tolerances``, with which ICM factors the dense matrix A."""
    on_device = space.from_host(A)
    for tolerance in tolerances:
        settings = resolve("decomposer", f"icm(x=32, tolerance={tolerance!r})")
        record = {"benchmark": "dense-lu tolerance", "matrix": name, "n": len(A), "dtype": A.dtype.name,
                  "decomposer": describe(settings), "tolerance": tolerance}
        factors, fields = _measured(space, lambda: settings.factor(on_device, space), runs)
        record |= {**fields, **engine.circumstances(space)}
        if factors is not None:
            record |= dataclasses.asdict(decomposition_accuracy(on_device, factors))
            record["iterations"] = factors.metrics.iterations.tolist()
        yield record


def _from_estimates(space, name, A, decomposers, changes):
    """Yield one record (dict of results) for each of ``changes``: iterations of the first ICM of ``decomposers``, or of
    ICM, from the factors of a matrix whose entries differ from A's by up to this share, and from A itself."""
    settings = next((s for s in decomposers if describe(s).startswith("ICM")), None) or resolve("decomposer", "icm")
    random, on_device = np.random.default_rng(0).uniform(-1, 1, A.shape), space.from_host(A)
    for change in changes:
        record = {"benchmark": "dense-lu estimate", "matrix": name, "n": len(A), "dtype": A.dtype.name,
                  "decomposer": describe(settings), "change": change, **engine.circumstances(space)}
        try:
            near = settings.factor(space.from_host((A * (1 + change * random)).astype(A.dtype)), space)
            found = [settings.factor(on_device, space, **how) for how in ({}, {"estimate": near})]
        except (FactorisationError, InputError, OutOfMemory) as error:
            yield record | {"failure": str(error)}
            continue
        yield record | dict(zip(("from_matrix", "from_estimate"),
                                (int(factors.metrics.iterations.sum()) for factors in found)))


def _batches(space, name, A, decomposers, runs):
    """Yield one record (dict of results) for each decomposer that can factor many matrices together. A: the matrices,
    shape (count, n, n)."""
    on_device = space.from_host(A)
    for settings in decomposers:
        if not settings.supports_batches(space):
            continue
        record = {"benchmark": "dense-lu batch", "matrix": name, "n": A.shape[1], "dtype": A.dtype.name,
                  "decomposer": describe(settings), "matrices": len(A), **engine.circumstances(space)}
        _, one_by_one = _measured(space, lambda: [settings.factor(one, space) for one in on_device], runs)
        _, batch = _measured(space, lambda: settings.factor_batch(on_device, space), runs)
        if "failure" not in batch | one_by_one:
            batch |= {"alone": one_by_one["seconds"], "alone_best": one_by_one["best"],
                      "speedup": one_by_one["best"] / batch["best"]}
        yield record | one_by_one | batch


def _solutions(space, name, A, solvers, runs):
    """Yield one record (dict of results) for each solver, with factors of A that it accepts."""
    on_device, B = space.from_host(A), space.from_host(np.ones((len(A), RIGHT_HAND_SIDES), A.dtype))
    for settings in solvers:
        maker = resolve("decomposer", "pcm" if any(a.unit == "U" for a in settings.accepts) else "getrf")
        record = {"benchmark": "dense-lu solution", "matrix": name, "n": len(A), "dtype": A.dtype.name,
                  "solver": describe(settings), "factors": describe(maker), **engine.circumstances(space)}
        try:
            factors = maker.factor(on_device, space)
            bound = settings.build(factors)
        except (FactorisationError, InputError, OutOfMemory) as error:       # an InputError: not on this device
            yield record | {"failure": str(error)}
            continue
        X, fields = _measured(space, lambda: bound.solve(B), runs)
        record |= fields
        if X is not None:
            record |= dataclasses.asdict(solution_accuracy(on_device, B, X, factors))
            record["notes"] = list(factors.notes)
            record["iterations"] = getattr(bound, "iterations", None)
        yield record


def _cells(r, second, header, cells, *more):
    """Return a row of the table ``header``: the matrix, a second cell, rows, type and ``more``, then cells(r), or the
    reason why there are none."""
    head = (r["matrix"], second, r["n"], r["dtype"], *more)
    if "failure" in r:
        return (*head, r["failure"], *[""] * (len(header) - len(head) - 1))
    return (*head, *cells(r))


def _factor_cells(r):
    total = "" if r["iterations"] is None else sum(map(sum, r["iterations"]))
    speedup = f"{r['speedup']:.3f}" if r["speedup"] else ""
    return (*_milliseconds(r), speedup, f"{r['max_difference']:.2e}", f"{r['backward_error']:.2e}",
            f"{r['growth']:.1e}", sum(r["pivots"]), total)


def _milliseconds(r, fields=("seconds", "best", "spread")):
    return [f"{1e3 * r[field]:.2f}" for field in fields]


def _solver_cells(r):
    return (*_milliseconds(r), f"{r['max_difference']:.2e}", f"{r['max_residual']:.2e}", f"{r['backward_error']:.2e}")


def _swept_cells(r):
    return (*_milliseconds(r, ("seconds", "best")), sum(map(sum, r["iterations"])), f"{r['max_difference']:.2e}",
            f"{r['backward_error']:.2e}")


def _estimate_cells(r):
    return r["from_matrix"], r["from_estimate"], f"{r['from_estimate'] / r['from_matrix']:.2f}"


def _batch_cells(r):
    return (*_milliseconds(r, ("alone", "alone_best", "seconds", "best")), f"{r['speedup']:.2f}")


def _groups(records, what):
    """Yield ((settings, type), their records); ``what``: the field of a record with the settings, "decomposer" or
    "solver"."""
    for key in dict.fromkeys((r[what], r["dtype"]) for r in records):
        yield key, [r for r in records if (r[what], r["dtype"]) == key]


def _totals(records, what):
    """Return the rows of tables 3.7 and 3.11 of the thesis: total seconds and failures; ``what`` as in ``_groups``."""
    return [(*key, f"{sum(r.get('seconds', 0) for r in group):.4f}", sum("failure" in r for r in group))
            for key, group in _groups(records, what)]


def _quartiles(records, what, field):
    """Return the rows of tables 3.8, 3.9, 3.12 and 3.13 of the thesis: statistics of the accuracy in the records'
    ``field``; ``what`` as in ``_groups``."""
    rows = []
    for key, group in _groups(records, what):
        values = [r[field] for r in group if "failure" not in r]
        if values:
            figures = [np.mean(values), np.std(values), *np.percentile(values, (25, 50, 75)), max(values)]
            rows.append((*key, *(f"{v:.2e}" for v in figures), len(group) - len(values)))
    return rows
