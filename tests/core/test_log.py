"""The logger "swell": what is chosen, compiled and tried; silent until a program listens; and no print in the library."""
from __future__ import annotations

import ast
import logging
import subprocess
import sys

import numpy as np
import pytest
from tests.conftest import ROOT

import swell
from swell.core.log import LOG, tell

A = swell.gallery.poisson2d(20)
b = np.ones(400)


@pytest.fixture
def lines(caplog):
    """A function: the lines of a level since the last call."""
    caplog.set_level(logging.DEBUG, logger="swell")

    def since(level=logging.INFO):
        found = [record.getMessage() for record in caplog.records if record.levelno == level and record.name == "swell"]
        caplog.clear()
        return found
    return since


def test_what_is_chosen_and_tried(lines):
    r = swell.solve(A, b)
    choices, begun, done, tried = lines()
    assert choices.startswith("choices for 400 unknowns, float64, cpu: ") and "A is symmetric" in choices
    assert begun.startswith(f"setting up {r.method}") and done.startswith("set up in ")
    assert tried == f"tried: {r!r}" and not lines(logging.WARNING)


def test_what_failed(lines):
    r = swell.solve(A, b, method="cg", maxiter=2)
    assert lines(logging.WARNING) == [f"{r!r}: {r.message}"]
    plate = swell.gallery.poisson2d(70)
    r = swell.solve(plate @ plate, np.ones(4900))
    assert [line for line in lines() if line.startswith("tried")] == [f"tried: {a!r}" for a in (*r.attempts, r)]


def test_a_stop_that_was_asked_for_is_no_warning(lines):
    swell.solve(A, b, method="cg", monitor=lambda *_: True)
    assert not lines(logging.WARNING)


def test_a_failed_factorisation(lines):
    indefinite = A.tolil()
    indefinite[0, 0] = -1
    swell.solve(indefinite.tocsr(), b, method="cg", precond="ic0")
    assert any(line.startswith("ic failed: ") for line in lines())


def test_columns_least_squares_and_batches(lines):
    swell.solve(A, np.random.default_rng(0).random((400, 3)), method="cg", maxiter=2)
    assert [line.split(":")[0] for line in lines(logging.WARNING)] == [f"right-hand side {j}" for j in range(3)]
    swell.lstsq(A[:, :100], b, maxiter=1)
    swell.solve_batch(A, np.stack([A.data, 0 * A.data]), np.ones((2, 400)), method="cg")
    least, batch = lines(logging.WARNING)
    assert least.startswith("LeastSquaresResult(NOT converged") and batch.startswith("BatchResult(1 of 2")


# -- lines on stderr ---------------------------------------------------------------------------------------------------

def test_a_line_goes_to_the_log_or_to_stderr(monkeypatch, capsys, caplog):
    monkeypatch.setattr(logging.root, "handlers", [])
    tell(logging.WARNING, "a line")
    assert capsys.readouterr() == ("", "swell: a line\n")
    monkeypatch.setattr(logging.root, "handlers", [caplog.handler])
    tell(logging.INFO, "below the level")
    assert capsys.readouterr().err == "swell: below the level\n" and not caplog.records
    with caplog.at_level(logging.INFO, logger="swell"):
        tell(logging.INFO, "heard")
    assert not capsys.readouterr().err and [record.getMessage() for record in caplog.records] == ["heard"]


SILENT = """
import logging, numpy as np, swell
swell.solve(swell.gallery.poisson2d(20), np.ones(400), method="cg", maxiter=2)
"""


def test_nothing_is_written_until_a_program_listens():
    for before, expected in (("", ""), ("import logging; logging.basicConfig()\n", "WARNING:swell:Result(NOT converged")):
        done = subprocess.run([sys.executable, "-c", before + SILENT], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0 and not done.stdout
        assert done.stderr.startswith(expected) and done.stderr.count("\n") == (1 if expected else 0), done.stderr


def test_there_is_a_null_handler():
    assert any(isinstance(handler, logging.NullHandler) for handler in LOG.handlers) and LOG.level == logging.NOTSET


def test_the_library_prints_nothing():
    wrong = []
    for path in sorted((ROOT / "swell").rglob("*.py")):
        place = path.relative_to(ROOT / "swell")
        if place.parts[0] in ("cli", "bench", "__main__.py", "scipy_like") or str(place) == "core/log.py":
            continue                             # SciPy's calls print where show=True asks for it
        wrong += [f"{place}:{node.lineno}" for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not wrong, f"print, where the logger belongs: {', '.join(wrong)}"
