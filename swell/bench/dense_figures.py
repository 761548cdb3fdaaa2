"""The figures of `swell bench dense-lu`, after chapter 3 of the thesis.

Times of every matrix (3.1), times and accuracies over the rows (3.9, 3.10, 3.15, 3.18), variants of x (3.6, 3.7, 3.16),
full beside conditional pivoting (3.12, 3.14), tolerances (3.11), speed-ups (3.8), patterns of nonzeros, and the
iterations of every section (3.2 to 3.5, 3.13).

The thesis draws max |PA − LU| and max |LUX − PB| alone, which say nothing without norms; backward errors stand below.
"""
import re

import numpy as np

from swell.bench import engine
from swell.display.figure import GRID, INK, curve_of, new_figure

PIXELS = 256            # most pixels along an edge of a pattern
SHOWN = "max_difference", "backward_error"
NAMES = {"seconds": "s", "max_difference": "max |PA − LU|", "backward_error": "‖PA − LU‖₁ / ‖A‖₁",
         "iterations": "iterations"}
OF_SOLVERS = NAMES | {"max_difference": "max |LUX − PB|", "backward_error": "normwise backward error"}
PIVOTING = re.compile(r", pivoting='\w+'|pivoting='\w+'(, )?")
WIDTH = re.compile(r", x=\d+|x=\d+(, )?")
VARIANTS = {"ICM": "3.6", "PCM": "3.7", "IS": "3.16"}        # numbers of the thesis' figures


def figures(made, swept, solved=()):
    """Return pairs (caption, figure) of a run. Records: ``made`` of decompositions; ``swept`` of tolerances; ``solved``
    of solutions."""
    drawn = []
    if any(r.get("speedup") for r in made):
        drawn.append(("Speed-up over getrf (figure 3.8)", speedups(made)))
    for dtype, good in _of_types(made):
        drawn.append((f"Times of decompositions, {dtype} (figure 3.1)", per_matrix(good, "decomposer")))
        drawn += variants(good, "decomposer", dtype)
        if _several_sizes(good):
            drawn.append((f"Times of decompositions over the rows, {dtype} (figure 3.9)", curves(good, ["seconds"])))
            drawn.append((f"Accuracy of decompositions, {dtype} (figure 3.10)", curves(good, SHOWN)))
            pairs = both_pivotings(good)
            if pairs:
                drawn.append((f"Accuracy with full and conditional pivoting, {dtype} (figures 3.12 and 3.14)",
                              curves(pairs, SHOWN)))
    for dtype, good in _of_types(swept):
        drawn.append((f"Processing tolerances of ICM, {dtype}: iterations, time and accuracy (figure 3.11)",
                      tolerances(good)))
    for dtype, good in _of_types(solved):
        drawn += variants(good, "solver", dtype)
        if _several_sizes(good):
            drawn.append((f"Times of solvers over the rows, {dtype} (figure 3.15)",
                          curves(good, ["seconds"], "solver")))
            drawn.append((f"Accuracy of solutions, {dtype} (figure 3.18)", curves(good, SHOWN, "solver")))
    return drawn


def _of_types(records):
    """Yield (type, its records without failures)."""
    good = [r for r in records if "failure" not in r]
    for dtype in dict.fromkeys(r["dtype"] for r in good):
        yield dtype, [r for r in good if r["dtype"] == dtype]


def _several_sizes(records):
    """Return True if records have matrices of one kind and several sizes."""
    sizes = {(kind_of(r), r["n"]) for r in records}
    return len(sizes) > len({kind for kind, _ in sizes})


def speedups(records):
    """Return dots of every decomposer's speed-up, for the first type."""
    return per_matrix([r for r in records if r["dtype"] == records[0]["dtype"] and r.get("speedup")], "decomposer",
                      "speedup", "times as fast as getrf")


def per_matrix(records, what, field="seconds", ylabel="s", log=True):
    """Return the chart of a ``field`` of the records by matrix: dots on a logarithmic axis, or bars. ``what``: the
    field with the settings, "decomposer" or "solver"."""
    names, labels = (list(dict.fromkeys(r[key] for r in records)) for key in ("matrix", what))
    found = {(r["matrix"], r[what]): r[field] for r in records}
    return engine.bars(names, labels, {label: [found.get((name, label)) for name in names] for label in labels},
                       ylabel, log=log)


def variants(records, what, dtype):
    """Return pairs (caption, figure) of settings that differ in x only: bars of their times. Bars begin at 0, so that
    only the slowest matrices have visible ones, as in the thesis."""
    drawn = []
    for method, number in VARIANTS.items():
        of = {}
        for r in records:
            if r[what].startswith(f"{method}("):
                of.setdefault(WIDTH.sub("", r[what]), []).append(r)
        drawn += [(f"Variants of {rest}, {dtype} (figure {number})", per_matrix(group, what, log=False))
                  for rest, group in of.items() if len({r[what] for r in group}) > 1]
    return drawn


def kind_of(record):
    """Return the kind of a record's matrix, its name without the number of rows; "files" for a name without one."""
    name = re.fullmatch(r"(random|border|bordered)\d+", record["matrix"])
    return name[1] if name else "files"


def both_pivotings(records):
    """Return the records of decomposers that differ from another one of ``records`` in ``pivoting`` only."""
    ways = {}
    for r in records:
        ways.setdefault(PIVOTING.sub("", r["decomposer"]), set()).add(r["decomposer"])
    both = {name for names in ways.values() if len(names) > 1 for name in names}
    return [r for r in records if r["decomposer"] in both]


def curves(records, fields, what="decomposer"):
    """Return a figure with a column for each kind of matrix and a row for each of ``fields``: a curve over the rows n
    for every decomposer or solver (``what``). A value of zero, an exact result, is left out of the logarithmic axis."""
    labels = list(dict.fromkeys(r[what] for r in records))
    return panels(records, fields, "rows n", labels, lambda r: r[what], lambda r: r["n"],
                  NAMES if what == "decomposer" else OF_SOLVERS)


def tolerances(records):
    """Return a figure with a column for each kind of matrix: iterations, seconds and errors over the processing
    tolerance, a curve for every matrix. The tolerance 0 is drawn at the left end."""
    least = min((r["tolerance"] for r in records if r["tolerance"]), default=1.0) / 100
    return panels(records, ("iterations", "seconds", *SHOWN), "processing tolerance; 0 at the left end",
                  list(dict.fromkeys(r["matrix"] for r in records)), lambda r: r["matrix"],
                  lambda r: r["tolerance"] or least)


def panels(records, fields, xlabel, labels, label_of, x_of, names=NAMES):
    """Return a figure of panels, a column for each kind of matrix, a row for each of ``fields``; in each panel a curve
    for every label. Both axes are logarithmic. ``label_of``, ``x_of``: functions of a record; ``names``: of fields."""
    kinds = list(dict.fromkeys(map(kind_of, records)))
    figure, only = new_figure(3.1 * len(kinds) + 1.2, 2.1 * len(fields) + 0.9 + 0.17 * -(-len(labels) // 3))
    only.remove()
    grid = figure.subplots(len(fields), len(kinds), squeeze=False, sharex="col", sharey="row")
    for i, field in enumerate(fields):
        for j, kind in enumerate(kinds):
            axes = grid[i, j]
            for k, label in enumerate(labels):
                line = sorted((x_of(r), value(r, field)) for r in records
                              if kind_of(r) == kind and label_of(r) == label and value(r, field))
                if line:
                    axes.plot(*zip(*line), label=label, **curve_of(k))
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.minorticks_off()
            if len(at := sorted({x_of(r) for r in records if kind_of(r) == kind})) <= 6 and at[0] >= 1:
                axes.set_xticks(at, map(str, at))
            axes.grid(True, color=GRID, lw=0.6)
            axes.tick_params(colors=INK, labelsize=8)
            if i == 0:
                axes.set_title(kind, fontsize=9, color=INK)
            if i == len(fields) - 1:
                axes.set_xlabel(xlabel, color=INK, fontsize=8)
            if j == 0:
                axes.set_ylabel(names[field], color=INK, fontsize=9)
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(len(handles), 3), fontsize=8,
                  frameon=False)
    return figure


def value(record, field):
    """Return a record's number ``field``; the iterations of all sections together."""
    number = record[field]
    return sum(map(sum, number)) if field == "iterations" and number is not None else number


def pattern(A):
    """Return the figure of a matrix's nonzeros: the largest modulus of the entries of each pixel, on a logarithmic
    scale over 12 decades; zeros are white, NaN and infinity red. ``A``: an array on the host."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm
    n = len(A)
    step = -(-n // PIXELS)
    at = range(0, n, step)
    size = np.where(np.isfinite(A), abs(A).astype(float), np.inf)
    largest = np.maximum.reduceat(np.maximum.reduceat(size, at, axis=0), at, axis=1)
    finite = largest[np.isfinite(largest) & (largest > 0)]
    most = finite.max() if finite.size else 1.0
    largest[~np.isfinite(largest)] = np.finfo(float).max         # above the scale
    figure, axes = new_figure(4.6, 4)
    colours = colormaps["viridis_r"].with_extremes(bad="white", over="#d1495b")
    drawn = axes.imshow(np.ma.masked_equal(largest, 0), norm=LogNorm(max(most * 1e-12, 1e-300), most), cmap=colours,
                        extent=(0, n, n, 0), interpolation="nearest")
    figure.colorbar(drawn, ax=axes, label=f"largest modulus of {step} by {step} entries" if step > 1 else "modulus")
    axes.set_xlabel(f"{np.count_nonzero(A) / A.size:.1%} nonzero", color=INK)
    return figure


def heat_map(metrics):
    """Return the figure of the iterations of every section, with the pivots below. ``metrics``: of LUFactors."""
    figure, axes = new_figure(4.6, 4)
    figure.colorbar(axes.imshow(metrics.iterations, cmap="viridis"), ax=axes, label="iterations")
    axes.set_xticks(range(len(metrics.pivots)), metrics.pivots)
    axes.set_yticks(range(len(metrics.pivots)), range(1, len(metrics.pivots) + 1))
    axes.set_xlabel("pivots in the diagonal section", color=INK)
    axes.set_ylabel(f"sections of {metrics.section} rows", color=INK)
    return figure
