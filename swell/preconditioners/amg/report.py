"""The hierarchy as a table: rows, entries, entries a row and the share of the rows above, with complexities and bytes.

Operator complexity is the number of entries of all levels over A's entries. It measures the cost of a cycle in products
with A, and the storage of the setup. 2 to 3 is usual; above 4 a smaller ``strength`` or ``pmax`` thins the levels.
"""
from __future__ import annotations

from itertools import pairwise

HEADER = ("level", "rows", "entries", "entries a row", "share of rows above")
MIB = 2**20


def facts(operator) -> dict:
    """Return the facts of the hierarchy of an AMGOperator in plain types.

    Returns
    -------
    dict
        "levels" (a list of dicts: "rows", "entries", "bytes"), "dense", "ended", "grid_complexity",
        "operator_complexity", "setup_bytes" (kept for `update`) and "bytes" (in all).
    """
    h = operator.hierarchy
    return {"levels": [{"rows": A.shape[0], "entries": A.nnz, "bytes": A.nbytes} for A in h.matrices],
            "dense": h.dense, "ended": h.ended, "grid_complexity": h.grid_complexity,
            "operator_complexity": h.operator_complexity, "setup_bytes": h.nbytes, "bytes": operator.nbytes}


def rows(record: dict) -> list[tuple]:
    """Return the cells of the table with the columns `HEADER`, a tuple for each level; ``record`` is the result of
    `facts`."""
    levels = record["levels"]
    shares = ["", *(f"{below['rows'] / max(above['rows'], 1):.3f}" for above, below in pairwise(levels))]
    return [(k, level["rows"], level["entries"], f"{level['entries'] / max(level['rows'], 1):.2f}", share)
            for k, (level, share) in enumerate(zip(levels, shares), start=1)]


def sentences(record: dict) -> list[str]:
    """Return sentences on the coarsest level, the complexities and the bytes. ``record`` is the result of `facts`."""
    end = "solved by a dense inverse" if record["dense"] else f"smoothed alone, since {record['ended']}"
    return [f"the coarsest level is {end}",
            f"grid complexity {record['grid_complexity']:.2f}, operator complexity {record['operator_complexity']:.2f}",
            f"{record['bytes'] / MIB:.1f} MiB, of which {record['setup_bytes'] / MIB:.1f} are kept for new values of A"]


def title(operator, record) -> str:
    """Return the number of levels and the settings in a line; ``record``: the operator's `facts`."""
    count, s = len(record["levels"]), operator.settings
    strength = "by row" if s.strength is None else s.strength
    return f"algebraic multigrid, {count} level{'' if count == 1 else 's'}; {s.form}, strength {strength}, {s.dtype}"


def short(operator) -> str:
    """Return the ``repr`` of an AMGOperator, a line."""
    record = facts(operator)
    sizes = [str(level["rows"]) for level in record["levels"]]
    return (f"{type(operator).__name__}({len(sizes)} level{'' if len(sizes) == 1 else 's'} of {' '.join(sizes)} rows, "
            f"operator complexity {record['operator_complexity']:.2f})")


def pieces(operator) -> list[str]:
    """Return the table and the picture of the levels of an AMGOperator, as pieces of HTML."""
    from swell.display import page
    from swell.display.figure import svg
    from swell.display.levels import figure
    record = facts(operator)
    return [page.table(rows(record), HEADER), page.paragraph("; ".join(sentences(record)) + ".", soft=True),
            page.drawing(svg(figure(record)), "rows and entries of each level, on a logarithmic scale")]


def html(operator) -> str:
    """Return the HTML that a notebook shows for an AMGOperator."""
    from swell.display import page
    return page.fragment([page.paragraph(title(operator, facts(operator))), *pieces(operator)])


def text(operator) -> str:
    """Return the text that ``print`` shows for an AMGOperator."""
    record = facts(operator)
    cells = [HEADER, *(tuple(map(str, row)) for row in rows(record))]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    return "\n".join([title(operator, record), *("  " + line for line in [*lines, *sentences(record)])])
