"""The examples in docstrings, README and docs run, links lead somewhere, and everything public has a docstring."""
from __future__ import annotations

import ast
import doctest
import importlib
import itertools
import pathlib
import re

import numpy as np
import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "swell"
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__main__.py")


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", [p for p in FILES if ">>> " in p.read_text()], ids=module_name)
def test_examples(path):
    found = doctest.testmod(importlib.import_module(module_name(path)))
    assert found.attempted and not found.failed


def test_everything_public_is_documented():
    missing = []
    for path in FILES:
        tree = ast.parse(path.read_text())
        if tree.body and not ast.get_docstring(tree):
            missing.append(module_name(path))
        missing += [f"{module_name(path)}.{node.name}" for node in tree.body
                    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
                    and not ast.get_docstring(node)]
    assert not missing, "\n".join(["", *missing])


def test_the_tests_that_hold_promises_exist():
    """Every test that docs/RELIABILITY.md names is there, under that name."""
    root = PACKAGE.parent
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (root / "docs" / "RELIABILITY.md").read_text())
    assert len(named) > 20
    for path, function in named:
        assert (root / path).exists(), path
        assert not function or f"def {function}(" in (root / path).read_text(), f"{path}::{function}"


HOWTO = [f"docs/howto/{path.name}" for path in sorted((PACKAGE.parent / "docs" / "howto").glob("*.md")) if path.stem != "index"]


@pytest.mark.parametrize("page", ["README.md", "docs/CONVERGED.md", "docs/FEATURES.md", "docs/SADDLE_POINTS.md", "docs/BATCHES.md",
                                  "docs/FILES_AND_ARRAYS.md", "docs/WHICH_METHOD.md", "docs/FAQ.md", *HOWTO])
def test_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """What is for a GPU runs on the CPU."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", (PACKAGE.parent / page).read_text(), re.DOTALL):
        exec(block.replace('device="cuda"', 'device="cpu"'), names)
    assert names


def test_lines_for_those_who_come_from_elsewhere_run():
    """The last cells of the table of docs/COMING_FROM.md run in their order; those for a GPU run on the CPU here."""
    import scipy.sparse as sp

    import swell
    A = swell.gallery.poisson2d(20)
    A0 = sp.csr_array(A - sp.diags_array(A @ np.ones(400)))
    names = {"swell": swell, "A": A, "A2": 2 * A, "A0": A0, "b": np.ones(400), "b0": A0 @ np.arange(400.0),
             "M": sp.diags_array(1 / A.diagonal())}
    table = (PACKAGE.parent / "docs" / "COMING_FROM.md").read_text()
    lines = re.findall(r"^\|.*\| `([^|]+)` \|$", table, re.MULTILINE)
    assert len(lines) > 20
    for line in lines:
        line = line.replace('device="cuda"', 'device="cpu"')
        assigns = "; " in line or " = " in line.partition("(")[0]
        exec(line if assigns else f"found = {line}", names)
        assert getattr(names.pop("found", None), "converged", True) is True, line


def twins(text):
    """Pairs of paragraphs or list items that share over half of the four-word runs of the shorter one; no table rows."""
    runs = {}
    for part in re.split(r"\n(?=[-#|\n])", text):
        words = re.findall(r"\w+", part.lower())
        if len(words) >= 8 and not part.startswith("|"):
            runs[part.strip()] = set(zip(words, words[1:], words[2:], words[3:]))
    return [(a[:60], b[:60]) for a, b in itertools.combinations(runs, 2)
            if len(runs[a] & runs[b]) > 0.55 * min(len(runs[a]), len(runs[b]))]


@pytest.mark.parametrize("page", ["CHANGELOG.md", "README.md", "docs/INSTALL.md", "docs/FAQ.md"])
def test_nothing_is_said_twice(page):
    """A merge easily leaves two versions of one paragraph."""
    assert not twins((PACKAGE.parent / page).read_text())


def test_twins_are_found():
    first = "- Acoustics: eigenfrequencies and modes with checked residuals, and the response by modes."
    assert twins(f"{first}\n- Acoustics (docs/SOUND.md): eigenfrequencies and modes with checked residuals, and the response by modes, too.\n")
    assert not twins(f"{first}\n- Batches of small systems of one pattern, in one launch on a GPU, by CG or dense LU.\n")


def test_cells_are_short_and_links_lead_somewhere():
    root = PACKAGE.parent
    for page in (root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").glob("*.md"), *(root / "docs" / "howto").glob("*.md"),
                 *(root / "docs" / "measured").glob("*.md")):
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
        if page.name == "README.md":
            assert all(len(cell) <= 122 for line in text.splitlines() if line.startswith("|") for cell in line.split("|"))
            assert not re.search(r"\bcommit [0-9a-f]{7}", text)
