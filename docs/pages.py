"""Pages that each build of the site writes into docs/generated/: the API, one page an algorithm, and sources.

conf.py calls `write_all`, and connects `link_to_pages` and `as_rst` to Sphinx.
"""
from __future__ import annotations

import importlib
import inspect
import os
import pathlib
import re

from generate import TITLES

import swell
from swell.core.errors import MissingDependency
from swell.core.registry import TABLE, load

ROOT = pathlib.Path(__file__).parents[1]
GENERATED = ROOT / "docs" / "generated"
TEXTS = ROOT / "docs" / "algorithms"            # KIND/NAME.md: formulas, a run, when to take it; for the pages of algorithms
NOTEBOOK = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---"
LOOP = re.compile(r"<!-- loop ([\w.]+) -->")     # in these texts: the source of a function goes there
FOLDERS = ("docs", *(f"docs/{name}" for name in ("tutorials", "howto", "coming_from", "measured")), "benchmarks/notes")  # by hand
NAMED = re.compile(r"\[`?(?:[\w/]*/)?(\w+\.md)`?\]\(([^)\s]*\1)\)")           # a link whose text is the file's name
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
DEFAULT = re.compile(r"<(?:module|class|function) '?([\w.]+)'?[^>]*>")
LANGUAGES = {".py": "python", ".cu": "cuda", ".sh": "bash", ".toml": "toml", ".jsonl": "json", ".txt": "text"}
# Modules that are public, and the names of those without __all__.
MODULES = {"swell.pde.fvm": None, "swell.pde.helmholtz": None, "swell.pde.poisson_cube": ["PoissonCube"],
           "swell.pde.elasticity_cube": ["ElasticityCube"],
           "swell.gallery": None, "swell.dense": None, "swell.distributed": None, "swell.io": None,
           "swell.report": None, "swell.scipy_like": None, "swell.torch": None,
           "swell.jax": ["solve", "prepare"], "swell.jax.lineax": ["Solver", "BCSROperator"],
           "swell.guests.skfem": ["solver"], "swell.guests.fipy": ["SwellSolver"],
           "swell.guests.pyamg": None}


def write_all():
    """Write all generated pages; remove pages of an earlier build that are no longer made."""
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


def page(*parts: str) -> str:
    """Return a page of these paragraphs."""
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head, rows) -> str:
    """Return a table in MyST."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |" for cells in lines)


def contents(names, hidden=False) -> str:
    """Return a table of contents in MyST."""
    return "\n".join(["```{toctree}", ":maxdepth: 1", *([":hidden:"] if hidden else []), "", *names, "```"])


# Algorithms

def algorithms() -> dict[str, str]:
    """A page for each algorithm of the registry, a table for each kind, and the page that lists the kinds."""
    made = {}
    for kind, rows in TABLE.items():
        lines = []
        for name in rows:
            cls = load(kind, name)
            made[f"algorithms/{kind}/{name}.md"] = algorithm(kind, name, cls)
            facts = (getattr(cls, key, "") for key in ("problem", "cost"))
            lines.append((f"[`{name}`]({name}.md)", summary(cls), *facts))
        title, _, argument = TITLES[kind].partition(" (")
        made[f"algorithms/{kind}/index.md"] = page(
            f"# {title}", f"Given as {argument.rstrip(')')}.", table(("name", "what", "for", "cost"), lines),
            contents(rows, hidden=True))
    made["algorithms/index.md"] = page(
        "# Algorithms",
        "Every algorithm has a page: the problem class, the paper, the cost of an iteration, the storage, the "
        "differences from the textbook, and the settings. The text is the top of the file that implements it.",
        "A name takes its settings in brackets: `method=\"gmres(restart=50)\"`. `swell.names(\"method\")` lists the "
        "names of a kind.", contents([f"{kind}/index" for kind in TABLE]))
    return made


def algorithm(kind: str, name: str, cls) -> str:
    """Return the page of one algorithm."""
    module = importlib.import_module(cls.__module__)
    source = pathlib.Path(module.__file__).relative_to(ROOT)
    owner = "swell" if getattr(swell, cls.__name__, None) is cls else module.__name__
    facts = [(label, getattr(cls, key, None)) for label, key in
             (("For", "problem"), ("Cost of an iteration", "cost"), ("Vectors stored", "vectors"))]
    first = first_page()[TABLE[kind][name]]
    index = [] if first == f"{kind}/{name}" else ["   :no-index:"]              # in the index once
    text = taught(first)
    if text and first != f"{kind}/{name}":
        text = f"[{name}](../{first}.md) explains it in formulas, with a run and when to take it."
    return page(*[NOTEBOOK] * ("{code-cell}" in text), f"# {name}", f"**{summary(cls)}**",
                *(f"{label}\n: {fact}" for label, fact in facts if isinstance(fact, str)),
                text, "## How it works", inspect.getdoc(module), f"Source: [{source}](/{source})",
                "## Settings", "\n".join(["```{eval-rst}", f".. autoclass:: {owner}.{cls.__name__}", *index, "```"]))


def taught(there: str) -> str:
    """Return the text by hand for the page "kind/name", with the loops that it names; "" if there is none."""
    path = TEXTS / f"{there}.md"
    text = path.read_text().strip() if path.exists() else ""
    return LOOP.sub(lambda match: f"```python\n{source_of(match[1])}\n```", text)


def source_of(dotted: str) -> str:
    """Return the source of a function or method, such as "swell.krylov.cg.CGIteration.iterate"."""
    parts = dotted.split(".")
    depth = next(k for k in range(len(parts), 0, -1) if (ROOT.joinpath(*parts[:k]).with_suffix(".py")).exists())
    value = importlib.import_module(".".join(parts[:depth]))
    for part in parts[depth:]:
        value = getattr(value, part)
    return inspect.cleandoc("\n" + inspect.getsource(value))


def first_page() -> dict[str, str]:
    """The first page of each algorithm, "kind/name", by its row in the registry."""
    found: dict[str, str] = {}
    for kind, rows in TABLE.items():
        for name, row in rows.items():
            found.setdefault(row, f"{kind}/{name}")
    return found


# API

def catalogue() -> dict[str, list[str]]:
    """The public names by group, in the order of swell's docstring, whose titles take 26 columns.

    A name of two groups appears in the first."""
    paragraph = next(part for part in swell.__doc__.split("\n\n") if part.startswith("solve "))
    groups: dict[str, list[str]] = {}
    seen = {name for name in swell.__all__ if inspect.ismodule(getattr(swell, name))}
    for line in paragraph.splitlines():
        if line[0] != " ":
            names = groups.setdefault(line[:26].strip(), [])
        new = [word for word in re.findall(r"\w+", line[26:]) if word in swell.__all__ and word not in seen]
        names += dict.fromkeys(new)
        seen.update(new)
    return {title: names for title, names in groups.items() if names}


def api() -> dict[str, str]:
    """A page for each group of public names, and one for each public module."""
    made, groups = {}, []
    pages = {row.rpartition(":")[2]: there for row, there in first_page().items()}
    for title, names in catalogue().items():
        groups.append(re.sub(r"\W+", "_", title).strip("_"))
        here = [name for name in names if name not in pages]
        there = [f"- :doc:`{name} <../algorithms/{pages[name]}>`" for name in names if name in pages]
        made[f"api/{groups[-1]}.rst"] = page(heading(title[0].upper() + title[1:]), overview("swell", names),
                                             *(documented("swell", name) for name in here),
                                             *(["Each has a page with its paper, its cost and its settings:",
                                                "\n".join(there)] if there else []))
    modules, left_out = [], []
    for name, members in MODULES.items():
        try:
            module = importlib.import_module(name)
        except MissingDependency as missing:
            left_out.append(f"`{name}` is not in this build: {missing}")
            continue
        modules.append(name)
        names = members or module.__all__
        made[f"api/{name}.rst"] = page(heading(f"``{name}``"), escaped(summary(module)), overview(name, names),
                                       *(documented(name, member) for member in names))
    made["api/index.md"] = page(
        "# API", "Every public name, from its docstring. In Python `help(swell)` lists the names, and "
        "`help(swell.GMRES)` explains one.", "## swell", contents(groups), "## Modules", contents(modules), *left_out)
    return made


def heading(text) -> str:
    """Return a title in reStructuredText."""
    return f"{text}\n{'=' * len(text)}"


def overview(module, names) -> str:
    """Return a table of names and their summaries."""
    return "\n".join([f".. currentmodule:: {module}", "", ".. autosummary::", "", *(f"   {name}" for name in names)])


def documented(module, name) -> str:
    """Return the directive that inserts a name's docstring."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        again = module != "swell" and getattr(swell, name, None) is value           # in the index once
        return f".. autoclass:: {name}\n   :members:" + "\n   :no-index:" * again
    return f".. auto{'function' if callable(value) else 'data'}:: {name}"


def summary(thing) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join(inspect.getdoc(thing).partition("\n\n")[0].split())


# Sources

def by_hand():
    """The Markdown pages of the site that are not generated."""
    yield from (ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).glob("*.md"))


def sources() -> dict[str, str]:
    """A page for each source file that a page links to, and for each example; the list of examples."""
    examples = sorted((ROOT / "examples").glob("*.py"))
    modules = {pathlib.Path(importlib.import_module(row.partition(":")[0]).__file__) for row in first_page()}
    linked = {(there.parent / target).resolve() for there in by_hand() for target, _ in LINK.findall(there.read_text())}
    made = {}
    for path in sorted({*examples, *modules, *linked}):
        if path.is_file() and path.suffix in LANGUAGES:
            name = path.relative_to(ROOT)
            made[f"source/{name}.md"] = page("---\norphan: true\n---", f"# {name}", f"```{{literalinclude}} /{name}\n"
                                             f":language: {LANGUAGES[path.suffix]}\n```")
    titles = {path.name: re.match(r'"""(.*?)(\n\n|""")', path.read_text(), re.DOTALL)[1] for path in examples}
    made["scripts.md"] = page(
        "# Scripts", "Each script runs in the tests and asserts its own numbers: `python examples/01_solve.py`.",
        table(("script", "content"), [(f"[{name}](source/examples/{name}.md)", " ".join(title.split()))
                                      for name, title in titles.items()]))
    return made


# Text

def link_to_pages(app, docname, source):
    """In a Markdown page, make links to source files and folders lead to their pages of the site.

    A link whose text is the name of a page gets the title of that page."""
    here = pathlib.Path(app.env.doc2path(docname))
    if here.suffix == ".md":
        text = NAMED.sub(r"[](\2)", source[0])
        source[0] = LINK.sub(lambda match: f"]({there(here, match[1])}{match[2] or ''})", text)


def there(here: pathlib.Path, target: str) -> str:
    """Return the target of a link as the site has it; a target "/x" begins at the root of the repository."""
    path = pathlib.Path(os.path.normpath(ROOT / target[1:] if target[0] == "/" else here.parent / target))
    if path == ROOT / "examples":
        path = GENERATED / "scripts.md"
    elif path == ROOT / "docs" / "ALGORITHMS.md":
        path = GENERATED / "algorithms" / "index.md"
    elif path.is_file() and path.suffix in LANGUAGES:
        path = GENERATED / "source" / f"{path.relative_to(ROOT)}.md"
    else:
        return target
    return os.path.relpath(path, here.parent)


def escaped(text: str) -> str:
    """Return plain text as reStructuredText: `name` is code, and |A| is no substitution."""
    parts = re.split(r"(``.*?``)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"(?<!\\)\|", r"\\|", re.sub(r"`([^`:]+?)`(?!_)", r"``\1``", parts[k]))
    return "".join(parts)


def as_rst(app, what, name, obj, options, lines):
    """Escape a docstring before numpydoc reads it; examples and tables stay as they are."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...", "==")) else escaped(line) for line in lines]


def short_defaults(app, what, name, obj, options, signature, returned):
    """Show a default that is a module, class or function by its name: xp=numpy."""
    return DEFAULT.sub(r"\1", signature or "") or signature, returned
