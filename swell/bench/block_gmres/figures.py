"""Tables' rows and figures of ``swell bench block-gmres`` on one device; two of the figures serve for ranks, too."""
from __future__ import annotations

import numpy as np

from swell.bench import engine
from swell.bench.block_gmres.cases import BATCHES, EXACT, HOST, SWEEPS, sweeps

TOLERANCES = (1e-3, 1e-5)
WHOLLY = "all of it on the CPU"
BROKEN_DOWN = 3                         # number of sweeps whose steps are timed by parts, beside exact solves
PARTS = ("product", "preconditioner", "inner_products", "updates")


def _where(record):
    """Return the record's device without its model name."""
    return record["device"].split(",")[0]


def _power(rtol):
    """Return ``rtol``, a power of ten, as text such as 1e-3."""
    return f"1e{round(np.log10(rtol))}"


def _of_solves(records):
    return [r for r in records if r["benchmark"] == "block_gmres"]


def solves(records) -> list:
    """Return the rows of tables 2 to 4."""
    rows = []
    for r in _of_solves(records):
        times = r["restart_seconds"]
        steps = [f"{1e3 * f(times):.2f}" for f in (min, max, np.mean)] if times else [""] * 3
        rows.append((r["matrix"], r["preconditioner"], _where(r), _power(r["rtol"]), r["reason"], r["iterations"],
                     *steps, f"{1e3 * r['solve_seconds']:.1f}", f"{1e3 * r['setup_seconds']:.0f}",
                     f"{r['residual']:.1e}"))
    return rows


def orthogonal(records) -> list:
    """Return the rows of figures 8 and 9."""
    return [(r["matrix"], r["basis"], r["batch"], f"{1e6 * r['inner_products']:.1f}", f"{1e6 * r['updates']:.1f}")
            for r in records]


def steps(records) -> list:
    """Return the rows of the table of a step's parts."""
    rows = []
    for r in _of_solves(records):
        if r["step"] and r["rtol"] == TOLERANCES[0]:
            times = [1e6 * r["step"].get(part, 0.0) for part in PARTS]
            rows.append((r["matrix"], r["preconditioner"], *(f"{t:.1f}" for t in (*times, sum(times)))))
    return rows


def drawn(records) -> list:
    """Draw all figures from the records; return (caption, figure) pairs."""
    orthogonal = [r for r in records if r["benchmark"] == "block_gmres orthogonalisation" and r["basis"] == "full"]
    solves = _of_solves(records)
    names = list(dict.fromkeys(r["matrix"] for r in solves))
    return [("Figure 8: inner products of a step over the vectors that one launch handles",
             batches(orthogonal, "inner_products")),
            ("Figure 9: updates of a step over the vectors that one launch handles", batches(orthogonal, "updates")),
            *((f"Figure 12: solves to {_power(rtol)} of the first residual, over the sweeps; lines: exact solves",
               over_sweeps(names, _milliseconds(solves, rtol), SWEEPS, {EXACT: "--"})) for rtol in TOLERANCES),
            *((f"Figures 13 to 15: solves to {_power(rtol)} of the first residual", _whole(solves, rtol))
              for rtol in TOLERANCES),
            ("The parts of a step of GMRES(30)", _parts(solves))]


def batches(records, part):
    """Return a figure: bars of the time of a ``part`` of a step, "inner_products" or "updates", by vectors a launch."""
    names = list(dict.fromkeys(r["matrix"] for r in records))
    times = {(r["matrix"], r["batch"]): 1e6 * r[part] for r in records}
    return engine.bars(names, [f"{k} a launch" for k in BATCHES],
                       {f"{k} a launch": [times[name, k] for name in names] for k in BATCHES}, "µs a step")


def _milliseconds(records, rtol):
    """Return {(matrix, preconditioner): milliseconds} of the converged solves with the tolerance ``rtol``."""
    return {(r["matrix"], r["preconditioner"]): 1e3 * r["solve_seconds"] for r in records
            if r["rtol"] == rtol and r["reason"] == "CONVERGED"}


def _whole(records, rtol):
    """Return a figure: bars of whole solves on the CPU, with exact triangular solves, and with the best number of
    sweeps."""
    names, times = list(dict.fromkeys(r["matrix"] for r in records)), _milliseconds(records, rtol)
    labels = [label for label in (WHOLLY, HOST, EXACT) if any((name, label) in times for name in names)]
    values = {label: [times.get((name, label)) for name in names] for label in labels}
    best = "block ILU(0), the best number of sweeps"
    values[best] = [min((times[name, sweeps(k)] for k in SWEEPS if (name, sweeps(k)) in times), default=None)
                    for name in names]
    return engine.bars(names, [*labels, best], values, "ms (logarithmic)", log=True)


def over_sweeps(names, times, counts, lines):
    """Return a figure: milliseconds of solves over the number of sweeps; None if there is no time.

    ``names``: the matrices; ``times``: {(matrix, preconditioner): milliseconds}; ``counts``: numbers of sweeps;
    ``lines``: {preconditioner without sweeps: style of its line}."""
    from swell.display.figure import colour_of, finish, new_figure
    labels = {sweeps(count): count for count in counts}
    if not any(label in labels or label in lines for _, label in times):
        return None
    figure, axes = new_figure(7.5, 4.2)
    for k, name in enumerate(names):
        colour, own = colour_of(k), {label: time for (of, label), time in times.items() if of == name}
        points = [(count, own[label]) for label, count in labels.items() if label in own]
        if points or any(label in own for label in lines):
            axes.plot(*np.reshape(points, (-1, 2)).T, "o-", color=colour, lw=1.4, ms=4, label=name)
        for label, style in lines.items():
            if label in own:
                axes.axhline(own[label], color=colour, lw=0.9, ls=style)
    engine.logarithmic(axes)
    axes.set_xticks(counts)
    return finish(figure, axes, "sweeps for each triangle", "ms")


def _parts(records):
    """Return a figure: stacked bars of the parts of a GMRES step, in per cent."""
    from swell.display.figure import GRID, INK, colour_of, new_figure
    rows = [r for r in records if r["step"] and r["rtol"] == TOLERANCES[0] and r["preconditioner"] != WHOLLY]
    figure, axes = new_figure(7.5, 1.0 + 0.28 * max(len(rows), 1))
    totals, left = np.array([sum(r["step"].values()) for r in rows]), np.zeros(len(rows))
    for k, part in enumerate(PARTS):
        widths = np.array([r["step"].get(part, 0.0) for r in rows]) / totals
        axes.barh(range(len(rows)), 100 * widths, left=100 * left, color=colour_of(k), label=part.replace("_", " "))
        left += widths
    for k, total in enumerate(totals):
        axes.text(101, k, f"{1e6 * total:.0f} µs", va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(rows)), [f"{r['matrix']}: {r['preconditioner']}" for r in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xlabel("% of a step", color=INK)
    axes.grid(True, axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure
