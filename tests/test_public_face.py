"""What a newcomer and a type checker see of swell: the catalogue of ``help(swell)``, the stubs, the types."""
from __future__ import annotations

import ast
import fnmatch
import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

import swell
from swell.core.registry import TABLE

ROOT = pathlib.Path(__file__).parents[1]
LAZY = [p for p in sorted((ROOT / "swell").rglob("__init__.py")) if "swell.core.lazy" in p.read_text()]
GROUPS = {"methods (method)": "method", "methods of lstsq": "least_squares", "preconditioners (precond)": "precond",
          "smoothers (smoother)": "smoother", "triangular solves (solve)": "triangular", "scalings (scaling)": "scaling",
          "orderings (ordering)": "ordering", "formats (format)": "format"}

USER = """import swell
class Mine(swell.LinearOperator):
    nnz, self_adjoint, notes = 5, True, ("a note",)
    def apply(self, x, out, alpha=1, beta=0):
        out[:] = x
norm: float = swell.solve(None, None).residual
choices: int = len(swell.prepare(None).choices)
"""


def catalogue():
    """The words of each group in swell's docstring: the title takes 26 columns."""
    paragraph = next(part for part in swell.__doc__.split("\n\n") if part.startswith("solve "))
    groups = {}
    for line in paragraph.splitlines():
        if line[0] != " ":
            words = groups.setdefault(line[:26].strip(), set())
        words |= set(re.findall(r"\w+", line[26:]))
    return groups


def test_help_is_a_catalogue_of_one_screen():
    assert len(swell.__doc__.splitlines()) <= 40
    assert max(map(len, swell.__doc__.splitlines())) <= 100
    words = set().union(*catalogue().values())
    public = set(swell.__all__) - {"__version__"}
    assert public <= words, f"not in the docstring of swell: {', '.join(sorted(public - words))}"
    stale = {word for word in words if not word.islower() or "_" in word} - public - {"A", "LU", "SciPy"}
    assert not stale, f"in the docstring of swell, but not public: {', '.join(sorted(stale))}"


def test_the_groups_are_those_of_the_registry():
    rows = {kind: {row.rpartition(":")[2] for row in TABLE[kind].values()} for kind in TABLE}
    rows["precond"] -= rows["smoother"]                                          # listed once
    groups = catalogue()
    for title, kind in GROUPS.items():
        assert rows[kind] <= groups[title], f"{title}: {', '.join(sorted(rows[kind] - groups[title]))} missing"
        others = set().union(*rows.values()) - rows[kind]
        assert not groups[title] & others, f"{title}: {', '.join(sorted(groups[title] & others))} registered elsewhere"


@pytest.mark.parametrize("path", LAZY, ids=lambda p: p.parent.name)
def test_a_stub_lists_exactly_the_public_names(path):
    package = importlib.import_module(".".join(path.parent.relative_to(ROOT).parts))
    found = {}
    for node in ast.parse(path.with_suffix(".pyi").read_text()).body:
        if isinstance(node, ast.AnnAssign):
            found[node.target.id] = getattr(package, node.target.id)
            continue
        (alias,) = node.names
        assert alias.name == alias.asname, "a checker takes 'from m import x as x' for public, and nothing else"
        source = importlib.import_module(node.module)
        found[alias.name] = getattr(source, alias.name)
    assert found.keys() == set(package.__all__), "run python docs/generate.py"
    for name, value in found.items():
        assert value is getattr(package, name)


def test_old_names_of_attributes_warn_and_work():
    solver = swell.prepare(swell.gallery.poisson2d(9))
    for owner, old, new in ((solver, "chain", "choices"), (solver.choices[0], "estimate", "prediction"),
                            (solver.solve(81 * [1.0]), "considered", "choices")):
        with pytest.warns(FutureWarning, match=f"{type(owner).__name__}.{old} is called {new} now"):
            assert getattr(owner, old) == getattr(owner, new)


def test_the_wheel_has_the_stubs():
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["exclude"]
    assert (ROOT / "swell" / "py.typed").exists()
    assert not any(fnmatch.fnmatch(f"swell/{name}", pattern) for pattern in excluded for name in ("py.typed", "__init__.pyi"))


def test_types_hold_in_the_examples(tmp_path):
    """mypy knows every public name, and finds no error in the examples and the stubs."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy: pip install 'swell[test]'")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(USER + "swell.solv\nswell.GMRES(restat=5)\nswell.pde.fvm.box\nswell.dense.nothing\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports",
                           "--scripts-are-modules", "--cache-dir", str(tmp_path / "cache"), str(wrong),
                           *map(str, sorted((ROOT / "examples").glob("*.py"))),
                           *(str(path.with_suffix(".pyi")) for path in LAZY)],
                          capture_output=True, text=True, cwd=ROOT)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    planted = [line for line in errors if line.startswith(str(wrong))]
    first = USER.count("\n") + 1
    assert [int(line.split(":")[1]) - first for line in planted] == [0, 1, 3], done.stdout + done.stderr
    assert errors == planted, done.stdout
