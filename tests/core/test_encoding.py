"""A result can be printed whatever stdout's encoding lacks."""
from __future__ import annotations

import ast
import io
import pathlib
import sys

import numpy as np
import pytest

import swell
from swell.core.encoding import encodable

PACKAGE = pathlib.Path(swell.__file__).parent
A = swell.gallery.poisson2d(6)
RESULTS = {
    "Result": lambda: swell.solve(A, np.ones(36), method="cg"),
    "Results": lambda: swell.solve(A, np.ones((36, 2)), method="cg"),
    "LeastSquaresResult": lambda: swell.lstsq(A[:, :20], np.ones(36)),
    "BatchResult": lambda: swell.solve_batch([A], B=np.ones((1, 36))),
}


@pytest.fixture
def stdout(monkeypatch):
    """``stdout(encoding, errors)`` becomes sys.stdout; its bytes are in ``.buffer``."""
    def made(encoding, errors="strict"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors, newline="\n")
        monkeypatch.setattr(sys, "stdout", stream)
        return stream
    return made


def shown(stream, given):
    print(given)
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_printed_in_ascii(stdout, name):
    result = RESULTS[name]()
    text = shown(stdout("ascii"), result)
    assert "||b - Ax||/||b||" in text and "?" not in text
    assert "‖b − Ax‖/‖b‖" in shown(stdout("utf-8"), result)


def test_only_what_the_encoding_lacks_is_replaced(stdout):
    text = "‖r‖ ≤ 3 × 10⁻⁸, 北"
    stdout("latin-1")
    assert encodable(text) == "||r|| <= 3 × 10^-^8, ?"
    stdout("utf-8")
    assert encodable(text) == text and encodable("a\udc80") == "a?"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_stdout_without_an_encoding(monkeypatch, stream):
    monkeypatch.setattr(sys, "stdout", stream)
    assert encodable("‖") == "‖"


def test_every_text_can_be_printed():
    """Each ``__str__`` of swell is ``printable``."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__str__":
                assert [ast.unparse(decorator) for decorator in node.decorator_list] == ["printable"], path


def test_every_text_is_read_in_its_own_encoding():
    """Not in the locale's, which a library may change: NVRTC before 12.9 makes it ASCII."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("read_text", "write_text"):
                named = len(node.args) > (node.func.attr == "write_text") or "encoding" in [word.arg for word in node.keywords]
                assert named, f"{path}:{node.lineno}"
