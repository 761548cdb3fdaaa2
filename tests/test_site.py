"""The sources of the documentation site: pages are reachable, tutorials run code, and their code names what exists.

`make docs` builds the site: it executes every tutorial and the gallery, treats warnings as errors and follows all links.
"""
from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import re
import runpy
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import swell

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
TUTORIALS = [path for folder in ("tutorials", "coming_from") for path in sorted((DOCS / folder).glob("*.md"))
             if path.stem != "index"]
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
TAUGHT = sorted((DOCS / "algorithms").rglob("*.md"))           # texts by hand on the pages of algorithms
TOCTREE = re.compile(r"(?:```\{toctree\}|\.\. toctree::)\n(.*?)(?:```|\Z)", re.DOTALL)


@pytest.fixture(scope="module")
def pages():
    """docs/pages.py, as conf.py imports it."""
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("pages")
    finally:
        sys.path.remove(str(DOCS))


def cells(path) -> list[str]:
    """The Python of a page's code cells, without cells in another language, such as %%bash."""
    found = re.findall(r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", path.read_text(), re.DOTALL)
    return [re.sub(r"\A%%writefile .*\n", "", code) for code in found if not code.startswith(("%%bash", "%load_ext"))]


def listed(path, text) -> set[pathlib.Path]:
    """The pages in the tables of contents of a page."""
    found = set()
    for block in TOCTREE.findall(text):
        for line in filter(None, map(str.strip, block.splitlines())):
            if not line.startswith(":"):
                there = ROOT / line[1:] if line[0] == "/" else path.parent / line
                found.update(match.resolve() for match in there.parent.resolve().glob(f"{there.name}.md"))
    return found


def test_versions_stand_side_by_side(tmp_path):
    versions = runpy.run_path(str(DOCS / "versions.py"))
    dates = {"0.10.0": "unreleased", "0.9.0": "2026-12-01"}
    for version in dates:
        (tmp_path / "built" / "docs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "built" / "index.html").write_text(f"{version}{versions['MARK']}")
        (tmp_path / "built" / "docs" / "a.html").write_text(versions["MARK"])
        versions["add"](tmp_path / "built", tmp_path / "site", version, dates)
    site = tmp_path / "site"
    assert "0.10.0" in (site / "0.10.0" / "index.html").read_text() and 'url=0.9.0/' in (site / "index.html").read_text()
    page = site / "0.9.0" / "docs" / "a.html"
    target = re.search('href="(.*?)"', page.read_text())[1]
    assert (page.parent / target).resolve() == site / "versions.html"
    listed = re.findall('href="(.*?)"', (site / "versions.html").read_text())
    assert listed == ["0.10.0/index.html", "0.9.0/index.html"] and all((site / name).exists() for name in listed)


def test_every_page_is_in_a_table_of_contents(pages):
    written = [path for path in pages.by_hand() if path.name != "ALGORITHMS.md"]      # that one is the site's algorithms/
    reached = {DOCS / "index.md"}.union(*(listed(path, path.read_text()) for path in written))
    missing = [str(path.relative_to(ROOT)) for path in written if path not in reached]
    assert not missing, f"in no table of contents (docs/guides.md has the guides): {', '.join(missing)}"


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_code_and_names_what_exists(path):
    assert path.read_text().startswith("---\nfile_format: mystnb\n"), "without this the page is not executed"
    found = cells(path)
    assert len(found) >= 2
    check_names("\n".join(found))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_gallery_script_has_a_title_and_names_what_exists(path):
    text = path.read_text()
    title, line = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert line == "=" * len(title)
    assert "plt.subplots(" in text or "plt.figure(" in text
    check_names(text)


def check_names(code):
    """Parse the code; every attribute of a module of swell that it names must exist, and every keyword of a class or
    function of swell."""
    names: dict[str, object] = {}
    for node in ast.walk(tree := ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom) and "swell" in ast.unparse(node):
            exec(ast.unparse(node), names)
    seen = 0
    for node in ast.walk(tree):
        value = resolved(node.func if isinstance(node, ast.Call) else node, names)
        if value is None:
            continue
        seen += 1
        if isinstance(node, ast.Call) and callable(value):
            parameters = inspect.signature(value).parameters
            unknown = {word.arg for word in node.keywords if word.arg} - set(parameters)
            assert not unknown or any(p.kind is p.VAR_KEYWORD for p in parameters.values()), (ast.unparse(node), unknown)
    assert seen, "the code does not use swell"


def resolved(node, names):
    """The object that a dotted name of an imported module or class means; None if it is anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, names)
        if isinstance(owner, types.ModuleType):
            assert hasattr(owner, node.attr), f"{ast.unparse(node)} does not exist"
            return getattr(owner, node.attr)
    return None


def test_a_stale_name_is_found():
    with pytest.raises(AssertionError, match="swell.nothing does not exist"):
        check_names("import swell\nswell.nothing(3)")
    with pytest.raises(AssertionError, match="tolerance"):
        check_names("import swell\nswell.solve(A, b, tolerance=1)")
    with pytest.raises(SyntaxError):
        check_names("import swell\nswell.solve(")


def test_the_generated_pages_have_every_name(pages):
    """Each algorithm has its page, each public name is documented once, and each link to a source has its page."""
    from swell.core.registry import TABLE
    algorithms, api, sources = pages.algorithms(), pages.api(), pages.sources()
    for kind, rows in TABLE.items():
        assert all(f"algorithms/{kind}/{name}.md" in algorithms for name in rows)
    everything = "\n".join([*algorithms.values(), *(text for name, text in api.items() if "/swell." not in name)])
    public = {name for name in swell.__all__ if name != "__version__" and not isinstance(getattr(swell, name), types.ModuleType)}
    for name in public:
        directives = re.findall(rf"\.\. auto\w+:: (?:swell\.)?{name}\n(?!   :no-index:)", everything)
        assert len(directives) == 1, f"{name} is documented {len(directives)} times"
    assert "source/swell/krylov/cg.py.md" in sources and "source/examples/01_solve.py.md" in sources


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_the_text_of_an_algorithm_runs(path, pages, tmp_path, monkeypatch):
    """Each text has formulas, a run, advice, and loops and links that exist; the site draws the pictures."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text()
    assert "```{math}" in text and "\n## A run\n" in text and "\n## When to take it\n" in text
    there = str(path.relative_to(DOCS / "algorithms").with_suffix(""))
    assert there in pages.first_page().values() and "<!-- loop" not in pages.taught(there)
    page = pages.GENERATED / "algorithms" / f"{there}.md"
    for link in re.findall(r"\]\(([^)#:]+\.md)\)", text):
        target = (page.parent / link).resolve()
        assert target.exists() or str(target.relative_to(pages.GENERATED)) in pages.algorithms(), link
    names: dict[str, object] = {}
    for code in cells(path):
        if "from pictures" not in code:
            exec(code, names)


def test_a_page_of_two_kinds_has_its_text_once(pages):
    made = pages.algorithms()
    assert "## In formulas" in made["algorithms/precond/chebyshev.md"]
    assert "(../precond/chebyshev.md)" in made["algorithms/smoother/chebyshev.md"]
    assert "```python\ndef iterate(self):" in made["algorithms/method/cg.md"]


def test_links_lead_to_pages_of_the_site(pages):
    for target, wanted in (("../examples", "generated/scripts.md"), ("ALGORITHMS.md", "generated/algorithms/index.md"),
                           ("../examples/01_solve.py", "generated/source/examples/01_solve.py.md"),
                           ("AMG.md", "AMG.md"), ("multigrid.png", "multigrid.png")):
        assert pages.there(DOCS / "FEATURES.md", target) == wanted


def test_a_link_that_shows_a_file_name_gets_the_title_of_the_page(pages):
    for text, wanted in (("[AMG.md](AMG.md)", "[](AMG.md)"), ("[docs/AMG.md](../docs/AMG.md)", "[](../docs/AMG.md)"),
                         ("[AMG](AMG.md)", "[AMG](AMG.md)"), ("[A.md](AMG.md)", "[A.md](AMG.md)")):
        assert pages.NAMED.sub(r"[](\2)", text) == wanted


def test_plain_text_becomes_restructured_text(pages):
    assert pages.escaped("`x` and ``|y|``: |A|") == r"``x`` and ``|y|``: \|A\|"


def test_a_default_is_shown_by_its_name(pages):
    shown, _ = pages.short_defaults(None, "function", "f", None, None, "(shape, xp=<module 'numpy' from '/x/y.py'>, k=1)", None)
    assert shown == "(shape, xp=numpy, k=1)" and pages.short_defaults(*[None] * 7) == (None, None)


def test_broken_links_are_found(tmp_path, pages):
    broken = importlib.import_module("check_links").broken
    (tmp_path / "index.html").write_text('<a href="other.html#there">x</a><img src="data:image/png;base64,AA==">')
    (tmp_path / "other.html").write_text('<h1 id="there">x</h1><a href="index.html">x</a>')
    assert broken(tmp_path) == []
    (tmp_path / "other.html").write_text('<a href="gone.html">x</a><script src="//elsewhere.example/a.js"></script>')
    found = "\n".join(broken(tmp_path))
    assert "#there: that page has no such heading" in found
    assert "gone.html does not exist" in found and "a.js is not a part of this site" in found


@pytest.mark.parametrize("name", ["AMG", "CHOICE", "RIGHT_HAND_SIDES"])
def test_python_of_a_guide_runs_on_the_readers_matrix(name, tmp_path, monkeypatch):
    """Guides whose code begins with the reader's A and b; what is for a GPU runs on the CPU."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{name}.md").read_text()
    if "distributed" in text:
        pytest.importorskip("mpi4py.MPI", reason="needs mpi4py and an MPI", exc_type=(ImportError, RuntimeError))
    corners, triangles = swell.gallery.box_mesh((6, 6))
    A, points = swell.gallery.elastic_body(corners, triangles, corners[:, 0] == 0)
    sp.save_npz("A.npz", A)
    names = {"swell": swell, "np": np, "A": A, "A2": 2 * A, "points": points, "b": np.ones(A.shape[0]),
             "B": np.random.default_rng(0).random((A.shape[0], 5))}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block.replace('device="cuda"', 'device="cpu"'), names)
