"""Writes docs/ALGORITHMS.md from the registry: python docs/generate.py [--check]."""
from __future__ import annotations

import dataclasses
import importlib
import pathlib
import sys

from swell.core.registry import TABLE, load

TARGET = pathlib.Path(__file__).parent / "ALGORITHMS.md"
TITLES = {"method": "Methods (`method=`)", "precond": "Preconditioners (`precond=`)", "scaling": "Scalings (`scaling=`)",
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
        source = path.relative_to(pathlib.Path(__file__).parents[1])
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


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.exists() and TARGET.read_text() == text() else
                 "docs/ALGORITHMS.md is not what the registry says: run python docs/generate.py")
    TARGET.write_text(text())
