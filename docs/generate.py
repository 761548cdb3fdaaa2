"""Writes docs/ALGORITHMS.md from the registry, and the layers of docs/ARCHITECTURE.md from tests/layers.py:
python docs/generate.py [--check]."""
from __future__ import annotations

import dataclasses
import importlib
import pathlib
import sys

from swell.core.registry import TABLE, load

ROOT = pathlib.Path(__file__).parents[1]
TARGET, ARCHITECTURE = ROOT / "docs" / "ALGORITHMS.md", ROOT / "docs" / "ARCHITECTURE.md"
TITLES = {"method": "Methods (`method=`)", "precond": "Preconditioners (`precond=`)",
          "least_squares": "Least squares (`swell.lstsq(method=)`)", "scaling": "Scalings (`scaling=`)",
          "smoother": "Smoothers (`Stationary(smoother=)`, `precond=`)",
          "ordering": "Orderings (`ordering=`)", "triangular": "Triangular solves (`solve=`)",
          "format": "Formats (`format=`)", "decomposer": "Dense decomposers (`swell.dense`)",
          "dense_solver": "Solvers with dense factors (`factors.solve(B, ...)`)"}


def section(kind: str) -> list[str]:
    """One table row an algorithm, from its class and the top of its file."""
    lines = [f"## {TITLES[kind]}", "", "| name | what | for | cost | settings | source |", "|---|---|---|---|---|---|"]
    for name in TABLE[kind]:
        cls = load(kind, name)
        summary = cls.__doc__.strip().splitlines()[0]
        settings = ", ".join(f"`{f.name}={f.default!r}`" for f in dataclasses.fields(cls)) or "none"
        path = pathlib.Path(importlib.import_module(cls.__module__).__file__)
        source = path.relative_to(ROOT)
        cells = [f"`{name}`", summary, getattr(cls, "problem", "any matrix"), getattr(cls, "cost", ""), settings,
                 f"[{source}](../{source})"]
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    if kind == "method":
        able = [name for name in TABLE[kind] if load(kind, name).distributed]
        lines += ["", f"Across ranks ({len(able)} of {len(TABLE[kind])}): {', '.join(able)}."]
    return [*lines, ""]


def text() -> str:
    """The whole page."""
    lines = ["# Algorithms", "", "Generated from the registry by `python docs/generate.py`; the file of each algorithm opens "
             "with its paper, its cost and what differs from the textbook.", ""]
    for kind in TABLE:
        lines += section(kind)
    return "\n".join(lines)


def architecture() -> str:
    """docs/ARCHITECTURE.md with the layers as tests/layers.py has them."""
    sys.path.insert(0, str(ROOT / "tests"))
    import layers
    head, _, rest = ARCHITECTURE.read_text().partition("<!-- layers -->")
    return f"{head}<!-- layers -->\n{layers.picture()}\n\n{layers.table()}\n<!-- /layers -->{rest.partition('<!-- /layers -->')[2]}"


if __name__ == "__main__":
    pages = {TARGET: text(), ARCHITECTURE: architecture()}
    if "--check" in sys.argv:
        old = [page.name for page, wanted in pages.items() if not page.exists() or page.read_text() != wanted]
        sys.exit(f"{', '.join(old)}: not what the registry and tests/layers.py say: run python docs/generate.py" if old else 0)
    for page, wanted in pages.items():
        page.write_text(wanted)
