"""Compiling, on a GPU, is told apart from setup and solve, and a line says so."""
from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import swell
from swell.core import compilation
from swell.core.compilation import Stopwatch, counted
from swell.gallery import poisson


def test_a_stopwatch_tells_compiling_from_the_rest():
    start, watch = time.perf_counter(), Stopwatch()
    with counted():
        time.sleep(0.02)
        with counted():                          # a function that it calls
            time.sleep(0.02)
    time.sleep(0.02)
    assert watch.compiled >= 0.04 and watch.seconds >= 0.02
    assert watch.compiled + watch.seconds <= time.perf_counter() - start         # nothing is counted twice


def test_results_tell_it():
    A = poisson((8, 8))
    solver = swell.prepare(A)
    solver.solve(np.ones(64))
    result = solver.solve(np.ones(64))
    assert result.timings["compile"] >= 0 and "compiling" not in str(swell.solve(A, np.ones(64)))


# -- the line on stderr ------------------------------------------------------------------------------------------------

@pytest.fixture
def clock(monkeypatch):
    """A clock that tells at once."""
    monkeypatch.setattr(compilation, "LONG", 0.01)
    monkeypatch.setattr(compilation, "of_cupy", lambda: "FOLDER")
    made = compilation._Clock()
    made.quiet = False
    return made


def compile_for(clock, seconds=0.1):
    """Compile for so long."""
    clock.begin()
    time.sleep(seconds)
    clock.end()


def test_a_line_tells_once_what_takes_long(clock, capsys):
    clock.serve("cg with ic0")
    for _ in range(2):
        compile_for(clock)
    clock.serve("gmres")
    threads = [threading.Thread(target=compile_for, args=[clock]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out, err = capsys.readouterr()
    assert not out and err.splitlines() == [f"swell: compiling kernels for {name} (once; kept in FOLDER)…"
                                            for name in ("cg with ic0", "gmres")]


def test_the_first_line_holds_for_the_first_configuration(clock, capsys):
    compile_for(clock)
    clock.serve("cg")
    compile_for(clock)
    assert capsys.readouterr().err == "swell: compiling kernels (once; kept in FOLDER)…\n"


def test_no_line_if_quiet(clock, capsys):
    clock.quiet = True
    compile_for(clock)
    assert capsys.readouterr() == ("", "")


def test_quiet(monkeypatch):
    monkeypatch.setattr(compilation._clock, "quiet", False)
    swell.quiet()
    assert compilation._clock.quiet
    swell.quiet(False)
    assert not compilation._clock.quiet


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_rests_while_kernels_are_compiled(collects, clock):
    before = gc.isenabled()
    try:
        gc.enable() if collects else gc.disable()
        clock.begin()
        assert not gc.isenabled()
        clock.end()
        assert gc.isenabled() == collects
    finally:
        gc.enable() if before else gc.disable()


def test_all_compiling_of_a_call_is_told(monkeypatch):
    """Kernels that read the matrix or choose compile before any setup begins."""
    from swell import inputs

    def slowly(*arguments, read=inputs.read_matrix, **named):
        with counted():
            time.sleep(0.02)
        return read(*arguments, **named)
    monkeypatch.setattr(inputs, "read_matrix", slowly)
    A, b = swell.gallery.poisson2d(8), np.ones(64)
    for result in (swell.solve(A, b), swell.prepare(A).solve(b), swell.prepare(A, method="cg").solve(b)):
        assert result.timings["compile"] >= 0.02
    assert swell.solve(A, np.ones((64, 2))).timings["compile"] >= 0.02
