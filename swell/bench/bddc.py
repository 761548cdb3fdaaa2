"""BDDC on Poisson's cube, by the thesis' protocol (section 3.2): the times of three stages, iterations, the spectrum.
The same for elastic cubes and squares.

There is a record for every number of subdomains, every H/h and every decomposer. It holds the times of assembly
("loading"), of the preconditioner's set-up and its parts, and of the Krylov method. It also holds CG's estimates of the
least and largest eigenvalues of the preconditioned operator. Times are medians of several runs, after a warm-up.
The right-hand side is all ones, as in the thesis, or random. Ones leave out part of the spectrum, since the cube and
then the solution are symmetric; random numbers do not.

With three or more values of H/h, two laws are fitted: iterations = a + b (1 + log H/h), and √λ_max likewise.
"""
from __future__ import annotations

import contextlib
import gc
import statistics

import numpy as np

from swell.bench import engine
from swell.core.errors import FactorisationError, InputError, OutOfMemory
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.core.devices import make_space
from swell.pde.elasticity_cube import ElasticityCube
from swell.pde.poisson_cube import PoissonCube

RUNS = 3
MOST_DRAWN = 5000       # rows of a matrix whose nonzeros are drawn
STAGES = ("loading", "setup", "krylov")
PARTS = ("checks", "interface", "interior", "schur", "adaptive", "decomposers", "coarse", "method")
SHOWN = ("loading", "setup", "interior", "schur", "decomposers", "krylov")
ELEMENTS = {"cpu": "4,6,8", "cuda": "5,10,15,20,25"}
ELASTIC = {"cpu": "3,4,6", "cuda": "4,8,12,16"}              # three unknowns a node
DECOMPOSERS = {"cpu": ("getrf", "pcm(x=8)", "icm(x=8)"),
               "cuda": ("getrf", "pcm(x=32)", "icm(x=32)", "icm(x=32, tolerance=1e-6)", "icm(x=32, tolerance=1)")}
HEADER = ("cube", "decomposer", "levels", "n", "local rows", "iterations", "λ min", "λ max", "loading s", "setup s",
          "interior s", "schur s", "LU s", "Krylov s", "of getrf", "GB")
FIT_HEADER = ("subdomains", "decomposer", "levels", "H/h", "iterations", "off by", "√λ max", "off by")


def run(arguments) -> int:
    """Run the benchmark; return the exit status. ``arguments``: the parsed command line."""
    space = make_space(arguments.device)
    decomposers = [resolve("decomposer", text) for text in arguments.decomposers or DECOMPOSERS[space.name]]
    usual = (ELASTIC if arguments.problem == "elasticity" else ELEMENTS)[space.name]
    elements = [max(2, round(arguments.scale * m)) for m in numbers("--elements", arguments.elements or usual, 2)]
    cubes = [cube for s in numbers("--subdomains", arguments.subdomains, 2)
             for levels in numbers("--levels", arguments.levels, 2) for m in dict.fromkeys(elements)
             for cube in _cubes(m, s, levels, arguments)]
    findings = engine.Findings("swell bench bddc", space, arguments)
    _warm_up(decomposers, arguments)
    for cube in cubes:
        engine.tell(f"{cube.describe()}, {cube.levels} levels, {cube.n} unknowns")
        findings.take(_records(space, cube, decomposers, arguments))
    good, failed = ([r for r in findings.records if ("failure" in r) == bad] for bad in (False, True))
    if failed:
        findings.table("Left out", ("cube", "decomposer", "why"),
                       [(_name(r), r["decomposer"], r["failure"]) for r in failed])
    if good:
        findings.table(f"BDDC: {arguments.problem}", HEADER, [_row(r) for r in good])
    fits = list(_fits(findings.records))
    if fits:
        findings.table("Growth with H/h, fitted: a + b (1 + log H/h)", FIT_HEADER, fits)
    if arguments.csv:
        engine.write_csv(arguments.csv, findings.records)
    if good:
        findings.report(*figures(good), *_patterns(cubes, arguments))
    return 0 if good else 1


def _cubes(elements, subdomains, levels, arguments):
    """Return the problems of one size, a list: an elastic one for each of Poisson's ratios. Raises InputError for
    options that Poisson's equation has no use for."""
    if arguments.problem == "poisson":
        for option in ("ratio", "pressure", "near_nullspace"):
            if getattr(arguments, option) is not None:
                raise InputError(f"--{option.replace('_', '-')}: Poisson's equation has no use for it: expected it "
                                 "with --problem elasticity or elasticity2d only")
        return [PoissonCube(elements, subdomains, levels, arguments.coefficient)]
    try:
        ratios = [float(text) for text in (arguments.ratio or "0.3").split(",")]
    except ValueError:
        raise InputError(f"--ratio {arguments.ratio}: expected numbers below 0.5, separated by commas, such as "
                         "0.3,0.499") from None
    return [ElasticityCube(elements, subdomains, levels, young=arguments.coefficient, poisson=ratio,
                           axes=3 if arguments.problem == "elasticity" else 2, pressure=arguments.pressure or "none")
            for ratio in ratios]


def _warm_up(decomposers, arguments):
    """Solve a small cube with each of ``decomposers``, to compile kernels and load libraries. Failures are ignored
    here, since they recur and are recorded later."""
    for settings in decomposers:
        with contextlib.suppress(FactorisationError):
            _cubes(2, 2, 2, arguments)[0].solve(dense_lu=settings, interior=arguments.interior,
                                                averages=arguments.averages, device=arguments.device)


def numbers(option, text, least):
    """Return the list of whole numbers in ``text``, separated by commas, each at least ``least``.

    Raises
    ------
    InputError
        For any other text; the message names ``option``.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) >= least for part in parts):
        raise InputError(f"{option} {text}: expected whole numbers of at least {least}, separated by commas, such as "
                         "4,8")
    return [int(part) for part in parts]


def _records(space, cube, decomposers, arguments):
    """Yield one record (dict of results) for each decomposer on a Cube; speed-ups are relative to the first
    getrf. ``decomposers``: settings of dense LU."""
    reference, system = None, cube.assemble(arguments.device)
    b = system.b
    if arguments.random_rhs:
        b = space.from_host(np.random.default_rng(0).standard_normal(cube.n))
    for settings in decomposers:
        record = {"benchmark": "bddc", "problem": arguments.problem, "ratio": getattr(cube, "poisson", None),
                  "pressure": arguments.pressure, "near_nullspace": arguments.near_nullspace,
                  "averages": arguments.averages, "subdomains": cube.subdomains, "elements": cube.elements,
                  "levels": cube.levels, "n": cube.n, "coefficient": arguments.coefficient,
                  "constraints": arguments.constraints,
                  "interior_by": arguments.interior, "threshold": arguments.adaptive,
                  "rhs": "random" if arguments.random_rhs else "ones", "decomposer": describe(settings)}
        try:
            measured = _measured(system, settings, b, arguments)
        except (FactorisationError, OutOfMemory) as error:
            yield record | {"failure": str(error), **engine.circumstances(space)}
            continue
        if describe(settings).startswith("Getrf") and reference is None:
            reference = measured["setup"]
        yield record | measured | {"speedup": reference / measured["setup"] if reference else None,
                                   **engine.circumstances(space)}


def _measured(system, settings, b, arguments):
    """Run BDDC with one decomposer several times; return a dict, fields of the record. ``system``: a CubeSystem;
    ``settings``: the decomposer's. Each run's preconditioner is freed before the next run, since a GPU may have memory
    for only one."""
    timings, last = [], None
    for _ in range(arguments.repeat or RUNS):
        last = None
        gc.collect()                             # frees the last run's objects: captured loops are reference cycles
        last = system.solve(dense_lu=settings, constraints=arguments.constraints, interior=arguments.interior,
                            adaptive=arguments.adaptive, averages=arguments.averages, b=b,
                            near_nullspace="constants" if arguments.near_nullspace == "constants" else None)
        timings.append(last.timings)
    level, (least, largest) = last.bddc.level, last.extremes
    return {
        "reason": last.result.reason.name.lower(), "iterations": last.result.iterations,
        "residual": last.result.residual, "least": least, "largest": largest,
        "interface_dofs": level.interface.dofs.size, "coarse_unknowns": level.constraints.count,
        "local_rows": [min(level.sizes), max(level.sizes)], "local_problems": len(level.sizes),
        **{key: statistics.median(t.get(key, 0.0) for t in timings) for key in (*STAGES, *PARTS)},
        "spread": statistics.pstdev(t["setup"] for t in timings), "runs": len(timings), "bytes": last.bddc.nbytes,
        "notes": list(last.result.notes)}


def _name(r):
    power = _power(r)
    return f"{r['subdomains']}{power} x {r['elements']}{power}{_ratio(r)}"


def _power(r):
    return "²" if r["problem"] == "elasticity2d" else "³"


def _ratio(r):
    return "" if r["ratio"] is None else f", ν = {r['ratio']:g}"


def _row(r):
    """Return a row of the main table, from one record."""
    low, high = r["local_rows"]
    converged = "" if r["reason"] == "converged" else f" ({r['reason']})"
    return (_name(r), r["decomposer"], r["levels"], r["n"], f"{low} to {high}", f"{r['iterations']}{converged}",
            f"{r['least']:.4f}", f"{r['largest']:.4f}", *(f"{r[key]:.3g}" for key in SHOWN),
            f"{r['speedup']:.2f}" if r["speedup"] else "", f"{r['bytes'] / 1e9:.3g}")


def _series(records):
    """Yield ((subdomains with Poisson's ratio, decomposer, levels), its converged records in the order of H/h)."""
    series = {}
    for r in records:
        if r.get("reason") == "converged":
            subdomains = f"{r['subdomains']}{_power(r)}{_ratio(r)}"
            series.setdefault((subdomains, r["decomposer"], r["levels"]), []).append(r)
    for key, group in series.items():
        yield key, sorted(group, key=lambda r: r["elements"])


def _fit(group, value):
    """Fit a + b (1 + log H/h) to value(record) over the records ``group``; return (a, b, largest deviation)."""
    x, y = 1 + np.log([r["elements"] for r in group]), np.array([value(r) for r in group], float)
    b, a = np.polyfit(x, y, 1)
    return a, b, abs(a + b * x - y).max()


def _fits(records):
    """Yield the rows of the table of fitted laws."""
    for (subdomains, decomposer, levels), group in _series(records):
        if len(group) > 2:
            laws = []
            for value in (lambda r: r["iterations"], lambda r: np.sqrt(r["largest"])):
                a, b, off = _fit(group, value)
                laws += [f"{a:.2f} + {b:.2f} (1 + log H/h)", f"{off:.2g}"]
            yield (subdomains, decomposer, levels, ",".join(str(r["elements"]) for r in group), *laws)


def figures(records) -> list:
    """Return pairs (caption, figure) of records of one problem: the thesis' figures 3.20 and 3.22 to 3.24. Total is
    setup and Krylov's method; MAGMA, the thesis' baseline, is getrf here."""
    records = [r for r in records if "failure" not in r]
    drawn = [("Iterations as subdomains grow in size; a line is a + b (1 + log H/h) (figure 3.23a)", _growth(records)),
             ("Setup of the preconditioner (figure 3.22b)", _curves(records, lambda r: r["setup"], "s")),
             ("Krylov's method (figure 3.23b)", _curves(records, lambda r: r["krylov"], "s"))]
    for caption, value in (("Setup (figures 3.20 and 3.22a)", lambda r: r["setup"]),
                           ("Setup and Krylov's method together (figure 3.24)", lambda r: r["setup"] + r["krylov"])):
        speedup = speedups(records, value)
        if speedup:
            drawn.append((f"{caption}: times as fast as with getrf",
                          _curves([r for r in records if key_of(r) in speedup], lambda r: speedup[key_of(r)],
                                  "times as fast as with getrf")))
    return drawn


def _patterns(cubes, arguments):
    """Yield pairs (caption, figure): nonzeros of what decomposers get, in the smallest and in the largest cube: the
    matrices of a subdomain in a corner of the cube and of one in its middle. Large ones are left out."""
    from swell.bench.dense_figures import pattern
    for cube in dict.fromkeys((min(cubes, key=lambda c: c.n), max(cubes, key=lambda c: c.n))):
        if arguments.problem != "poisson" or 6 * cube.elements ** 2 > MOST_DRAWN:
            continue
        system, s = cube.assemble(arguments.device), cube.subdomains
        middle = {"in the middle": (s // 2 * s + s // 2) * s + s // 2} if s > 2 else {}
        for where, k in {"in a corner": 0, **middle}.items():
            A = system.A.space.to_host(system.bordered(k, arguments.constraints))
            yield (f"{cube.describe()}: nonzeros of the matrix of {len(A)} rows of a subdomain {where} (figure 3.19)",
                   pattern(A))


def key_of(r) -> tuple:
    """Return what tells a record of one problem from others: cube, levels and decomposer."""
    return _name(r), r["levels"], r["decomposer"]


def speedups(records, value) -> dict:
    """Return {key of a record: value(record with getrf) / value(record)} for the problems solved with getrf, too."""
    found = {key_of(r): r for r in records}
    reference = {key[:2]: value(r) for key, r in found.items() if key[2].startswith("Getrf")}
    return {key: reference[key[:2]] / value(r) for key, r in found.items() if key[:2] in reference}


def _growth(records):
    """Return a figure: iterations over H/h, with the fitted lines; figure 3.23a of the thesis."""
    from swell.display.figure import curve_of, finish, new_figure
    figure, axes = new_figure(7, 4)
    for k, (key, group) in enumerate(_series(records)):
        sizes, look = [r["elements"] for r in group], curve_of(k)
        axes.plot(sizes, [r["iterations"] for r in group], label=_label(key), **look | {"ls": ""})
        if len(group) > 2:
            a, b, _ = _fit(group, lambda r: r["iterations"])
            fine = np.linspace(sizes[0], sizes[-1], 60)
            axes.plot(fine, a + b * (1 + np.log(fine)), **look | {"marker": ""})
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    return finish(figure, axes, "H/h, elements along an edge of a subdomain", "iterations of CG", 2)


def _curves(records, value, ylabel):
    """Return a figure: value(record) over H/h on a logarithmic axis, a curve for every decomposer."""
    from swell.display.figure import curve_of, finish, new_figure
    figure, axes = new_figure(7, 4)
    for k, (key, group) in enumerate(_series(records)):
        axes.plot([r["elements"] for r in group], [value(r) for r in group], label=_label(key), **curve_of(k))
    axes.xaxis.get_major_locator().set_params(integer=True)
    engine.logarithmic(axes)
    return finish(figure, axes, "H/h, elements along an edge of a subdomain", ylabel, 2)


def _label(key):
    subdomains, decomposer, levels = key
    return f"subdomains {subdomains}, {levels} levels, {decomposer}"
