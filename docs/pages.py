"""Pages that each build of the site writes into docs/generated/: the API, one page an algorithm, and sources."""
from __future__ import annotations

import importlib
import inspect
import os
import pathlib
import re

from generate import TITLES

import swell
from swell.core.registry import TABLE, load

ROOT = pathlib.Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "generated"
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".cu": "cuda", ".sh": "bash", ".toml": "toml", ".jsonl": "json", ".txt": "text"}
MODULES = {"swell.pde.fvm": ..., "swell.pde.helmholtz": ..., "swell.pde.poisson_cube": ["PoissonCube"], "swell.gallery": ...,
           "swell.dense": ..., "swell.distributed": ..., "swell.io": ..., "swell.report": ...,
           "swell.scipy_like": ["cg", "gmres", "bicgstab"]}         # ...: all that is public there


def write_all():
    """Write all generated pages, and remove those of an earlier build that are no longer made."""
    made = {**algorithms(), **api(), **sources()}
    for name, text in made.items():
        path = GENERATED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:               # Sphinx reads again what is newer
            path.write_text(text)
    for folder in ("algorithms", "api", "source"):
        for path in (GENERATED / folder).rglob("*.*"):
            if str(path.relative_to(GENERATED)) not in made:
                path.unlink()


# Algorithms

def algorithms() -> dict[str, str]:
    """A page for each algorithm of the registry, a table for each kind, and the page that lists the kinds."""
    kinds, made = [], {}
    for kind, rows in TABLE.items():
        title, _, argument = TITLES[kind].partition(" (")
        lines = [f"# {title}", "", f"Given as {argument.rstrip(')')}.", "", "| name | what | for | cost |", "|---|---|---|---|"]
        for name in rows:
            cls = load(kind, name)
            made[f"algorithms/{kind}/{name}.md"] = algorithm(kind, name, cls)
            what = cls.__doc__.strip().splitlines()[0]
            cells = [f"[`{name}`]({name}.md)", what, getattr(cls, "problem", ""), getattr(cls, "cost", "")]
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        made[f"algorithms/{kind}/index.md"] = "\n".join([*lines, "", toctree(rows)])
        kinds.append(f"{kind}/index")
    made["algorithms/index.md"] = "\n".join([
        "# Algorithms", "", "One page an algorithm: the problem class, the paper, the cost of an iteration, the storage, the "
        "differences from the textbook, and the settings. The text is the top of the file that implements it.", "",
        "`swell.names(\"method\")` lists the names of a kind. A name takes its settings in brackets: `\"gmres(restart=50)\"`.",
        "", toctree(kinds, shown=True)])
    return made


def algorithm(kind: str, name: str, cls) -> str:
    """Return the page of one algorithm."""
    module = importlib.import_module(cls.__module__)
    source = pathlib.Path(module.__file__).relative_to(ROOT)
    public = cls.__name__ in swell.__all__ and getattr(swell, cls.__name__) is cls
    path = f"{'swell' if public else module.__name__}.{cls.__name__}"
    facts = [(label, getattr(cls, key, "")) for label, key in
             (("For", "problem"), ("Cost of an iteration", "cost"), ("Vectors stored", "vectors"))]
    lines = [f"# {name}", "", f"**{cls.__doc__.strip().splitlines()[0]}**", ""]
    lines += [f"{label}\n: {fact}\n" for label, fact in facts if isinstance(fact, str) and fact]
    lines += ["## How it works", "", inspect.getdoc(module), "", f"Source: [{source}](/{source})", "",
              "## Settings", "", "```{eval-rst}", f".. autoclass:: {path}", *noindex(kind, name), "```", ""]
    return "\n".join(lines)


def noindex(kind, name):
    """An algorithm of two kinds has two pages; only the first is in the index."""
    first = next((k, n) for k, rows in TABLE.items() for n, row in rows.items() if row == TABLE[kind][name])
    return [] if first == (kind, name) else ["   :no-index:"]


# API

def catalogue() -> dict[str, list[str]]:
    """The public names by group, in the order of swell's docstring, whose titles take 26 columns."""
    paragraph = next(part for part in swell.__doc__.split("\n\n") if part.startswith("solve "))
    groups: dict[str, list[str]] = {}
    for line in paragraph.splitlines():
        if line[0] != " ":
            words = groups.setdefault(line[:26].strip(), [])
        words += [word for word in re.findall(r"\w+", line[26:]) if word in swell.__all__ and word not in words]
    return groups


def page_of() -> dict[str, str]:
    """The algorithm page of each public settings class."""
    found: dict[str, str] = {}
    for kind, rows in TABLE.items():
        for name, row in rows.items():
            found.setdefault(row.rpartition(":")[2], f"../algorithms/{kind}/{name}")
    return found


def api() -> dict[str, str]:
    """A page for each group of public names, and one for each public module."""
    algorithm_pages, groups, seen, made = page_of(), [], set(), {}
    for title, names in catalogue().items():
        names = [name for name in names if name not in seen and not inspect.ismodule(getattr(swell, name))]
        seen.update(names)
        if not names:
            continue
        slug = re.sub(r"\W+", "_", title).strip("_")
        made[f"api/{slug}.rst"] = group(title, "swell", names, algorithm_pages)
        groups.append(slug)
    modules = []
    for name, members in MODULES.items():
        module = importlib.import_module(name)
        names = module.__all__ if members is ... else members
        made[f"api/{name}.rst"] = group(f"``{name}``", name, names, {}, inspect.getdoc(module).splitlines()[0])
        modules.append(name)
    made["api/index.md"] = "\n".join([
        "# API", "", "Every public name, from its docstring. In Python: `help(swell)` lists the names, "
        "`help(swell.GMRES)` explains one.",
        "", "## swell", "", toctree(groups, shown=True), "## Modules", "", toctree(modules, shown=True)])
    return made


def group(title, module, names, elsewhere, summary="") -> str:
    """Return a page of functions and classes: a table, then each with its docstring."""
    head = title[:1].upper() + title[1:]
    lines = [head, "=" * len(head), "", escaped(summary), "", f".. currentmodule:: {module}", "", ".. autosummary::", ""]
    lines += [f"   {name}" for name in names] + [""]
    algorithms = [name for name in names if name in elsewhere]
    for name in names:
        value = getattr(importlib.import_module(module), name)
        if name in elsewhere:
            continue
        if inspect.isclass(value):
            lines += [f".. autoclass:: {name}", "   :members:", ""]
        elif callable(value):
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. autodata:: {name}", ""]
    if algorithms:
        lines += ["Each has a page with its paper, its cost and its settings:", ""]
        lines += [f"- :doc:`{name} <{elsewhere[name]}>`" for name in algorithms] + [""]
    return "\n".join(lines)


# Sources

def markdown():
    """The pages of the site that are written by hand."""
    yield from (ROOT / "docs").glob("*.md")
    for folder in ("docs/tutorials", "docs/coming_from", "benchmarks/notes"):
        yield from (ROOT / folder).glob("*.md")
    yield from (ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")


def sources() -> dict[str, str]:
    """A page for each source file that a page links to, and for each example; the list of examples."""
    made: dict[str, str] = {}
    files = set((ROOT / "examples").glob("*.py"))
    for page in markdown():
        files.update((page.parent / target).resolve() for target, _ in LINK.findall(page.read_text()))
    files.update(pathlib.Path(importlib.import_module(row.partition(":")[0]).__file__)
                 for rows in TABLE.values() for row in rows.values())
    for path in sorted(files):
        if path.is_file() and path.suffix in LANGUAGES:
            name = path.relative_to(ROOT)
            made[f"source/{name}.md"] = (f"---\norphan: true\n---\n# {name}\n\n```{{literalinclude}} /{name}\n"
                                         f":language: {LANGUAGES[path.suffix]}\n```\n")
    lines = ["# Scripts", "", "Each script runs in the tests and asserts its own numbers: `python examples/01_solve.py`.", "",
             "| script | content |", "|---|---|"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        title = re.match(r'"""(.*?)(\n\n|""")', path.read_text(), re.DOTALL)[1].replace("\n", " ")
        lines.append(f"| [{path.name}](source/examples/{path.name}.md) | {title} |")
    made["scripts.md"] = "\n".join([*lines, ""])
    return made


# Text

def toctree(names, shown=False) -> str:
    """Return a table of contents in MyST."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", *([] if shown else [":hidden:"]), "", *names, "```", ""])


def link_to_pages(app, docname, source):
    """Links to source files and to folders lead to their pages of the site."""
    page = pathlib.Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return

    def there(match):
        target = match[1]
        path = pathlib.Path(os.path.normpath(ROOT / target[1:] if target[0] == "/" else page.parent / target))
        if path == ROOT / "examples":
            path = GENERATED / "scripts.md"
        elif path == ROOT / "docs" / "ALGORITHMS.md":
            path = GENERATED / "algorithms" / "index.md"
        elif path.is_file() and path.suffix in LANGUAGES:
            path = GENERATED / "source" / f"{path.relative_to(ROOT)}.md"
        else:
            return match[0]
        return f"]({os.path.relpath(path, page.parent)}{match[2] or ''})"
    source[0] = LINK.sub(there, source[0])


def escaped(text: str) -> str:
    """reStructuredText of a docstring's line: `name` is code, |A| is no substitution."""
    parts = re.split(r"(``.*?``)", text)
    return "".join(part if part.startswith("``") else re.sub(r"(?<!\\)\|", r"\\|", re.sub(r"`([^`:]+?)`(?!_)", r"``\1``", part))
                   for part in parts)


def as_rst(app, what, name, obj, options, lines):
    """swell's docstrings are plain text: make them reStructuredText."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...", "==")) else escaped(line) for line in lines]
