"""``swell warm-up``: after it a solve on a GPU compiles nothing."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.conftest import ROOT

from swell.cli import BAD_INPUT, main

SOLVE = """
import numpy as np, swell
from cupy.cuda import compiler
original, compiled = compiler._NVRTCProgram.compile, []

def compile(self, *arguments, **named):
    if self.src:                                 # CuPy compiles an empty text to learn the compiler's version
        compiled.append(self.name_expressions or self.src[:60])
    return original(self, *arguments, **named)

compiler._NVRTCProgram.compile = compile
for side in (10, 30, 160):
    swell.solve(swell.gallery.poisson2d(side), np.ones(side**2), method="cg", precond="jacobi", device="cuda")
print(compiled)
"""


@pytest.mark.gpu
def test_after_it_a_solve_compiles_nothing(tmp_path):
    environment = {**os.environ, "CUPY_CACHE_DIR": str(tmp_path)}
    warm_up = [sys.executable, "-m", "swell", "warm-up", "--method", "cg", "--precond", "jacobi"]
    done = subprocess.run(warm_up, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "cg with jacobi, 144 and 900 unknowns: " in done.stdout and f"kernels are kept in {tmp_path}" in done.stdout
    solved = subprocess.run([sys.executable, "-c", SOLVE], capture_output=True, text=True, cwd=ROOT, env=environment)
    assert solved.stdout == "[]\n", solved.stdout + solved.stderr


@pytest.mark.parametrize("arguments, words", [
    (["--precond", "ic0"], "without --method"), (["--method", "gmers"], "did you mean 'gmres'"),
    (["--method", "cg", "--precond", "ic9"], "unknown precond")])
def test_what_it_refuses(arguments, words, capsys):
    assert main(["warm-up", *arguments]) == BAD_INPUT
    assert words in capsys.readouterr().err


@pytest.mark.gpu
def test_a_folder_that_cannot_be_written(monkeypatch, capsys):
    monkeypatch.setenv("CUPY_CACHE_DIR", "/dev/null/x")
    assert main(["warm-up", "--method", "cg"]) == BAD_INPUT
    err = capsys.readouterr().err
    assert "cannot be kept in /dev/null/x: name a folder that can be written with CUPY_CACHE_DIR" in err


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["warm-up"]) == BAD_INPUT
    assert "needs CuPy" in capsys.readouterr().err


@pytest.mark.gpu
def test_a_solve_that_fails_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    assert main(["warm-up", "--method", "cocr", "--precond", "air", "--complex"]) == BAD_INPUT
    assert "cocr with air, 144 and 900 unknowns: " in capsys.readouterr().err
