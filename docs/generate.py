"""Writes docs/ALGORITHMS.md from the registry, the layers of docs/ARCHITECTURE.md from tests/layers.py, the choices of
docs/CHOICE.md from the advisor's table, the picture of docs/WHICH_METHOD.md from decision.py, the verdicts of
docs/REPRODUCE.md from the stored records, and the stub ``__init__.pyi`` of each lazy package from its public names:
python docs/generate.py [--check]."""
from __future__ import annotations

import dataclasses
import importlib
import pathlib
import runpy
import sys
import types

import decision

from swell.advisor.choices import CLASSES, IN_EVERY_CLASS
from swell.advisor.costs import COSTS
from swell.advisor.predictions import (AGGREGATION_ITERATIONS, AMG_ITERATIONS, GMRES_FACTOR, ITERATIONS,
                                       LAYER_ITERATIONS, WAVE_FACTOR)
from swell.cli.reproduce import PAPERS
from swell.core.registry import TABLE, load
from swell.papers.paper import markdown
from swell.papers.run import from_records

ROOT = pathlib.Path(__file__).parents[1]
TARGET, ARCHITECTURE, CHOICE, WHICH, REPRODUCE = (
    ROOT / "docs" / f"{name}.md" for name in ("ALGORITHMS", "ARCHITECTURE", "CHOICE", "WHICH_METHOD", "REPRODUCE"))
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


def between(page: pathlib.Path, mark: str, content: str) -> str:
    """The text of a page with ``content`` between its comments ``mark`` and ``/mark``."""
    head, _, rest = page.read_text().partition(f"<!-- {mark} -->")
    return f"{head}<!-- {mark} -->\n{content}\n<!-- /{mark} -->{rest.partition(f'<!-- /{mark} -->')[2]}"


def architecture() -> str:
    """docs/ARCHITECTURE.md with the layers as tests/layers.py has them."""
    layers = types.SimpleNamespace(**runpy.run_path(str(ROOT / "tests" / "layers.py")))
    return between(ARCHITECTURE, "layers", f"{layers.picture()}\n\n{layers.table()}")


def expected(rule) -> str:
    """The number of iterations that the advisor expects of a rule's choice for n unknowns."""
    if rule.method == "direct":
        return "none"
    if rule.part == "amg":
        return f"{AMG_ITERATIONS['m_matrix' in rule.suits.__name__]:g}"
    if rule.part == "smoothed_aggregation":
        return f"{AGGREGATION_ITERATIONS:g}"
    factor = GMRES_FACTOR if rule.method == "gmres" else 1
    if rule.method == "cocg" and rule.part != "jacobi":
        factor = WAVE_FACTOR
    return f"{ITERATIONS[rule.part] * factor:g} ∛n"


def choice() -> str:
    """docs/CHOICE.md with the advisor's tables of rules."""
    lines = ["| A | method | preconditioner or scaling | a choice for | expected iterations |", "|---|---|---|---|---|"]
    for title, rules in (*((c.title, c.rules) for c in CLASSES), ("in every class", IN_EVERY_CLASS)):
        for rule in rules:
            lines.append(f"| {title} | {rule.method} | {rule.part} | {rule.suits.__doc__} | {expected(rule)} |")
            title = ""
    sizes = ", ".join(f"{costs.multigrid_from} unknowns on {'a CPU' if name == 'cpu' else 'a GPU'}"
                      for name, costs in COSTS.items())
    return between(CHOICE, "choices", "\n".join([
        *lines, "", f"Large means at least {sizes}. In the class with a positive diagonal the graph's layers may ask for more "
        f"iterations: {LAYER_ITERATIONS['jacobi']:g} for each with Jacobi, {LAYER_ITERATIONS['ic']:g} with IC(0). On a GPU "
        f"swell expects {COSTS['cuda'].difficulty:g} times these iterations of all methods but multigrid, and of elastic bodies "
        f"{COSTS['cuda'].difficulty * COSTS['cuda'].elastic_difficulty:g} times."]))


def reproduced() -> str:
    """docs/REPRODUCE.md with the verdicts by stored records."""
    return between(REPRODUCE, "verdicts", "\n\n".join(markdown(from_records(name)) for name in PAPERS))


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
    pages = {TARGET: text(), ARCHITECTURE: architecture(), CHOICE: choice(), REPRODUCE: reproduced(), **stubs(),
             WHICH: between(WHICH, "decision", decision.table()),
             WHICH.with_name("which_method.svg"): decision.picture()}
    if "--check" in sys.argv:
        old = [str(page.relative_to(ROOT)) for page, wanted in pages.items()
               if not page.exists() or page.read_text() != wanted]
        sys.exit(f"{', '.join(old)}: not what the package and tests/layers.py say: run python docs/generate.py" if old else 0)
    for page, wanted in pages.items():
        page.write_text(wanted)
