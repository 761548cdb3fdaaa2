"""The common look of all pictures, and their output as PNG or SVG."""
from __future__ import annotations

import io
import re
import secrets

from matplotlib.colors import hsv_to_rgb, to_hex
from matplotlib.figure import Figure

DPI = 150
GOLDEN = 0.618034       # of a turn: hues at this distance never repeat
INK, GRID = "#1f2933", "#d5dbe1"
COLOURS = ("#0b6fa4", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#4a5568")
MARKERS, SIZES = "os^Dv", (8.5, 7, 5.5, 4)                  # of two lengths without a common factor
DASHES = ("-", (0, (6, 2)), (0, (3, 2)), (0, (1, 1.5)))


def colour_of(k) -> str:
    """Return the colour of series k of a figure; each series has its own, the first ones from COLOURS."""
    if k < len(COLOURS):
        return COLOURS[k]
    return to_hex(hsv_to_rgb((k * GOLDEN % 1, 0.8, (0.55, 0.75, 0.95)[k % 3])))


def curve_of(k) -> dict:
    """Return the keywords of curve k for ``axes.plot``. Markers are hollow and differ in shape and size, lines in
    dashes, so that equal curves show through one another."""
    kind = k % len(SIZES)
    return {"color": colour_of(k), "marker": MARKERS[k % len(MARKERS)], "ms": SIZES[kind], "ls": DASHES[kind],
            "mfc": "none", "mew": 1.1, "lw": 1.1}


def new_figure(width=7.0, height=4.2):
    """Return (figure, axes) with one set of axes; ``width`` and ``height`` are in inches."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.tick_params(colors=INK, labelsize=9)
    for side in axes.spines.values():
        side.set_color(INK)
        side.set_linewidth(0.8)
    return figure, axes


def finish(figure, axes, xlabel, ylabel, columns=3):
    """Add labels ``xlabel``, ``ylabel``, a grid and a legend of ``columns`` columns; return the same figure."""
    axes.set_xlabel(xlabel, color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.grid(True, color=GRID, lw=0.6)
    return with_legend(figure, columns)


def with_legend(figure, columns=3):
    """Add a legend of ``columns`` columns above the axes, if any series has a label; return the same figure."""
    if any(axes.get_legend_handles_labels()[1] for axes in figure.axes):
        figure.legend(loc="outside upper center", ncols=columns, fontsize=8, frameon=False)
    return figure


def png(figure) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()


def svg(figure) -> str:
    """Return the figure as an SVG element for a page: transparent, in the colour of the text around it.

    Its ink becomes ``currentColor``, its grid a grey that shows on light and dark backgrounds. All elements of a page
    share one space of names and styles. So there is no style sheet, and each drawing has names of its own: a browser
    ignores clips and glyphs that it finds in a picture that is folded away."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg "):]
    for old, new in ((r"\s*<(metadata|style).*?</\1>|\s*<!--.*?-->", ""), (r' id="[a-z.]+_[0-9.]+"', ""),
                     (INK, "currentColor"), (GRID, "#80808066"), ("#ffffff", "none"), ("#000000", "currentColor"),
                     ("<svg ", '<svg fill="currentColor" stroke-linejoin="round" ')):
        text = re.sub(old, new, text, flags=re.DOTALL)
    prefix, names = f"swell-{secrets.token_hex(4)}", dict.fromkeys(re.findall(r' id="([^"]+)"', text))
    number = {name: k for k, name in enumerate(names)}
    return re.sub(r'( id="|"#|\(#)([^")]+)', lambda match: f"{match[1]}{prefix}-{number[match[2]]}", text)
