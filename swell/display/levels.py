"""The levels of algebraic multigrid as a picture: rows and entries of each level, and entries a row."""
from __future__ import annotations

from swell.display.figure import GRID, INK, colour_of, new_figure

WIDTH = 0.38            # of a bar; levels are 1 apart


def figure(facts, width=8.0):
    """Return the picture as a matplotlib figure, ``width`` inches wide; ``facts`` is the dict that
    ``swell.preconditioners.amg.report.facts`` returns."""
    levels = facts["levels"]
    places = range(1, len(levels) + 1)
    figure, _ = new_figure(width, 1.7 + 0.38 * len(levels))
    figure.clear()
    sizes, lengths = figure.subplots(1, 2, width_ratios=(3, 2), sharey=True)
    for k, what in enumerate(("rows", "entries")):
        counts = [level[what] for level in levels]
        _bars(sizes, [place + (k - 0.5) * WIDTH for place in places], counts, WIDTH, k, map(short, counts), what)
    most = max(level["entries"] for level in levels)
    sizes.set_xscale("log")
    sizes.set_xlim(1, 4 * max(most, 10))
    figure.legend(*sizes.get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside lower center", ncols=2,
                  labelcolor=INK)
    sizes.set_title(f"grid complexity {facts['grid_complexity']:.2f}, operator complexity "
                    f"{facts['operator_complexity']:.2f}", fontsize=9, color=INK)
    sizes.set_ylabel("level", color=INK)
    sizes.set_yticks(list(places))
    sizes.invert_yaxis()
    means = [level["entries"] / max(level["rows"], 1) for level in levels]
    _bars(lengths, places, means, 2 * WIDTH, 2, [f"{mean:.1f}" for mean in means], "entries a row")
    lengths.set_xlim(0, 1.15 * max(*means, 1))
    lengths.set_title("entries a row", fontsize=9, color=INK)
    return figure


def _bars(axes, places, lengths, height, colour, labels, name):
    """Draw horizontal bars with labels at their ends into ``axes``, in the common look of all reports.

    ``places``, ``lengths``, ``labels``: one element a bar. ``height``: of a bar. ``colour``: its number. ``name``: for
    the legend."""
    bars = axes.barh(places, lengths, height, color=colour_of(colour), label=name)
    axes.bar_label(bars, list(labels), fontsize=7, padding=2, color=INK)
    axes.grid(True, axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8)
    for side in axes.spines.values():
        side.set_color(INK)


def short(count) -> str:
    """Return a count in a few characters: 512, 4.5k, 1.2M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return str(count)
