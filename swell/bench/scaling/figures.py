"""Figures of the scaling report."""
from __future__ import annotations

from swell.bench import engine
from swell.bench.scaling.model import DOUBLE

STAGES = {"pack": "pack", "exchange": "exchange", "local": "diagonal block", "rest": "rest"}
MARKERS = {"strong": "Strong scaling", "weak": "Weak scaling"}


def figures(records, prediction, predicted) -> list:
    """Draw all figures; return (caption, figure) pairs. The model's figures need a ``prediction``; it may be None."""
    drawn = [("Figure 10: a product with and without overlap, by number of ranks; the largest time over the ranks",
              _overlap(records)),
             ("The stages of a product without overlap, by number of ranks; mean over the ranks", _stages(records))]
    for scaling, words in MARKERS.items():
        iterations = [r for r in _groups(records, "iteration") if r["scaling"] == scaling and r["seconds"]]
        if iterations:
            of_model = [r for r in predicted if r["scaling"] == scaling]
            caption = f"{words} (figure 11): an iteration without preconditioner"
            if of_model:
                caption += "; dots measured, lines predicted, dashed where the exchange hides behind the product"
            drawn.append((caption, _iterations(iterations, of_model)))
            if of_model:
                drawn.append((f"{words}: where an iteration's time goes, predicted", _parts(of_model)))
    if any(r["benchmark"] == "scaling solve" for r in records):
        drawn += [("Tables 2 to 4: converged solves, GMRES(30) with ILU(0) of each rank's block, by number of ranks",
                   _solves(records)),
                  ("Load balance factor of the preconditioning step, equation 13, by number of ranks",
                   _balance(records))]
    if prediction is not None:
        drawn.append(("Messages between two ranks, half a round trip; line: as fitted",
                      _messages(records, prediction)))
    return drawn


def _axes(rows, columns, width=7.5, height=3.6):
    """Make a figure with rows × columns axes in the report's style; return (figure, array of axes). ``width``,
    ``height``: inches, of the figure and of a row."""
    from matplotlib.figure import Figure

    from swell.display.figure import GRID, INK
    figure = Figure(figsize=(width, height * rows), layout="constrained", facecolor="white")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.tick_params(colors=INK, labelsize=8)
        axes.grid(True, color=GRID, lw=0.6)
        axes.set_axisbelow(True)
        for side in axes.spines.values():
            side.set_color(INK)
            side.set_linewidth(0.8)
    return figure, grid


def _groups(records, kind) -> list:
    """Return the records of a kind ("iteration", …), sorted by matrix in order of first occurrence, then by ranks."""
    of_kind = [r for r in records if r["benchmark"] == f"scaling {kind}"]
    names = list(dict.fromkeys((r["scaling"], r["matrix"]) for r in of_kind))
    return sorted(of_kind, key=lambda r: (names.index((r["scaling"], r["matrix"])), r["ranks"]))


def _label(record):
    weak = " (weak)" if record["scaling"] == "weak" else ""
    return f"{record['matrix']}{weak}: {record['ranks']}"


def _overlap(records):
    products = _groups(records, "product")
    return engine.bars([_label(r) for r in products], ["with overlap", "without"], {
        "with overlap": [1e6 * r["seconds"] for r in products],
        "without": [1e6 * r["seconds_without_overlap"] for r in products]}, "µs")


def _stages(records):
    from swell.display.figure import INK, colour_of
    products = _groups(records, "product")
    figure, ((axes,),) = _axes(1, 1, height=1.0 + 0.32 * len(products))
    left = [0.0] * len(products)
    totals = [sum(r[stage] for stage in STAGES) for r in products]
    for k, (stage, words) in enumerate(STAGES.items()):
        widths = [100 * r[stage] / total for r, total in zip(products, totals)]
        axes.barh(range(len(products)), widths, left=left, color=colour_of(k), label=words)
        left = [a + b for a, b in zip(left, widths)]
    for k, total in enumerate(totals):
        axes.text(101, k, f"{1e6 * total:.0f} µs", va="center", fontsize=7, color=INK)
    axes.set_yticks(range(len(products)), [_label(r) for r in products], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 114)
    axes.set_xlabel("% of a product", color=INK)
    figure.legend(loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure


def _ranks_axis(axes, ranks):
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(ranks), [str(p) for p in sorted(ranks)], fontsize=7)
    axes.xaxis.minorticks_off()


def _iterations(measured, predicted):
    """Return a figure: time over ranks by method, in one panel a matrix; ``measured``, ``predicted``: records."""
    from swell.display.figure import INK, colour_of
    names = list(dict.fromkeys(r["matrix"] for r in measured))
    methods = list(dict.fromkeys(r["method"] for r in measured))
    columns = min(2, len(names))
    figure, grid = _axes(-(-len(names) // columns), columns)
    for axes in grid.flat[len(names):]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, names):
        of_all = []
        for k, method in enumerate(methods):
            colour = colour_of(k)
            here = [r for r in measured if (r["matrix"], r["method"]) == (name, method)]
            lines = [r for r in predicted if (r["matrix"], r["method"]) == (name, method)]
            axes.plot([r["ranks"] for r in here], [1e6 * r["seconds"] for r in here], "o", color=colour, ms=5)
            for part, style in (("seconds", "-"), ("hidden", "--")):
                axes.plot([r["ranks"] for r in lines], [1e6 * r[part] for r in lines], style, color=colour, lw=1.2)
            of_all += [*here, *lines]
        axes.set_title(name, fontsize=9, color=INK)
        engine.logarithmic(axes)
        _ranks_axis(axes, {r["ranks"] for r in of_all})
        axes.set_xlabel("ranks", color=INK, fontsize=8)
        axes.set_ylabel("µs an iteration", color=INK, fontsize=8)
    _legend(figure, [(method, colour_of(k)) for k, method in enumerate(methods)])
    return figure


def _legend(figure, entries):
    from matplotlib.lines import Line2D
    handles = [Line2D([], [], color=colour, marker="o", ms=5, lw=1.2, label=label) for label, colour in entries]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=8, frameon=False)


def _parts(predicted):
    """Return a figure: stacked shares of the predicted time over ranks, in one panel for each matrix and method."""
    from swell.display.figure import INK, colour_of
    cases = list(dict.fromkeys((r["matrix"], r["method"]) for r in predicted))
    parts = ("local", "overhead", "exchange", "reductions")
    columns = min(3, len(cases))
    figure, grid = _axes(-(-len(cases) // columns), columns, height=2.3)
    for axes in grid.flat[len(cases):]:
        axes.set_visible(False)
    for axes, case in zip(grid.flat, cases):
        of_case = [r for r in predicted if (r["matrix"], r["method"]) == case]
        shares = [[100 * r[part] / r["seconds"] for r in of_case] for part in parts]
        axes.stackplot([r["ranks"] for r in of_case], *shares, labels=parts,
                       colors=[colour_of(k) for k in range(len(parts))])
        _ranks_axis(axes, {r["ranks"] for r in of_case})
        axes.margins(0)
        axes.tick_params(axis="x", labelrotation=60, labelsize=6)
        axes.set_title(f"{case[0]}, {case[1]}", fontsize=7, color=INK)
        axes.set_ylabel("%", color=INK, fontsize=8)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure


def _solves(records):
    solves = _groups(records, "solve")
    labels = list(dict.fromkeys(r["preconditioner"] for r in solves))
    groups = list(dict.fromkeys(_label(r) for r in solves))
    times = {(_label(r), r["preconditioner"]): 1e3 * r["seconds"] for r in solves if r["reason"] == "CONVERGED"}
    kinds = {"exact": [label for label in labels if label.endswith(", exact")],            # of ILU(0) and block ILU(0)
             "the best number of sweeps": [label for label in labels if not label.endswith(", exact")]}
    values = {words: [min((times[group, label] for label in kind if (group, label) in times), default=None)
                      for group in groups] for words, kind in kinds.items() if kind}
    return engine.bars(groups, list(values), values, "ms (logarithmic)", log=True)


def _balance(records):
    solves = [r for r in _groups(records, "solve") if r["ranks"] > 1]
    labels = list(dict.fromkeys(r["preconditioner"] for r in solves))
    groups = list(dict.fromkeys(_label(r) for r in solves))
    factor = {(_label(r), r["preconditioner"]): r["load_balance"] for r in solves}
    values = {label: [factor.get((group, label)) for group in groups] for label in labels}
    return engine.bars(groups, labels, values, "largest over mean")


def _messages(records, prediction):
    from swell.display.figure import INK, colour_of
    figure, ((axes,),) = _axes(1, 1)
    for k, r in enumerate(r for r in records if r["benchmark"] == "scaling links" and r["messages"]):
        sizes, times = zip(*r["messages"])
        axes.plot(sizes, [1e6 * t for t in times], "o", color=colour_of(k), ms=5, label=f"{r['ranks']} ranks")
    links = prediction.links
    axes.plot(sizes, [1e6 * (links.latency + size / links.bandwidth) for size in sizes], color=INK, lw=1.2)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [_bytes(size) for size in sizes], fontsize=7)
    axes.xaxis.minorticks_off()
    engine.logarithmic(axes)
    axes.set_xlabel(f"bytes ({DOUBLE} a number)", color=INK)
    axes.set_ylabel("µs", color=INK)
    axes.legend(fontsize=8, frameon=False)
    return figure


def _bytes(size):
    for power, unit in ((20, "MB"), (10, "kB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"
