"""Writes docs/ALGORITHMS.md from the registry, the layers of docs/ARCHITECTURE.md from tests/layers.py, and the stub
``__init__.pyi`` of each lazy package from its public names: python docs/generate.py [--check]."""
from __future__ import annotations

import dataclasses
import importlib
import pathlib
import runpy
import sys
import types

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
    layers = types.SimpleNamespace(**runpy.run_path(str(ROOT / "tests" / "layers.py")))
    head, _, rest = ARCHITECTURE.read_text().partition("<!-- layers -->")
    return f"{head}<!-- layers -->\n{layers.picture()}\n\n{layers.table()}\n<!-- /layers -->{rest.partition('<!-- /layers -->')[2]}"


def stub(package: types.ModuleType) -> str:
    """The stub of a lazy package: it imports each public name from the module that defines it."""
    lines = ["# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily."]
    for name in sorted(package.__all__):
        value = getattr(package, name)
        if isinstance(value, str):
            lines.append(f"{name}: str")
        else:
            module = package.__name__ if isinstance(value, types.ModuleType) else value.__module__
            lines.append(f"from {module} import {name} as {name}")
    return "\n".join(lines) + "\n"


def stubs() -> dict[pathlib.Path, str]:
    """The stub of each package that imports its names lazily, by path."""
    files = [path for path in sorted((ROOT / "swell").rglob("__init__.py")) if "swell.core.lazy" in path.read_text()]
    return {path.with_suffix(".pyi"): stub(importlib.import_module(".".join(path.parent.relative_to(ROOT).parts)))
            for path in files}


if __name__ == "__main__":
    pages = {TARGET: text(), ARCHITECTURE: architecture(), **stubs()}
    if "--check" in sys.argv:
        old = [str(page.relative_to(ROOT)) for page, wanted in pages.items()
               if not page.exists() or page.read_text() != wanted]
        sys.exit(f"{', '.join(old)}: not what the package and tests/layers.py say: run python docs/generate.py" if old else 0)
    for page, wanted in pages.items():
        page.write_text(wanted)
