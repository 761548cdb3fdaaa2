"""The examples in public docstrings run, and everything public has a docstring."""
from __future__ import annotations

import ast
import doctest
import importlib
import pathlib
import re

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


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_everything_public_is_documented(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body, path
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path}: {node.name}"


def test_the_tests_that_hold_promises_exist():
    """Every test that docs/RELIABILITY.md names is there, under that name."""
    root = PACKAGE.parent
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (root / "docs" / "RELIABILITY.md").read_text())
    assert len(named) > 20
    for path, function in named:
        assert (root / path).exists(), path
        assert not function or f"def {function}(" in (root / path).read_text(), f"{path}::{function}"
