"""Compiling is told apart from setup and solve."""
from __future__ import annotations

import time

import numba
import numpy as np

import swell
from swell.core.compilation import Stopwatch, count_numba, counted
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


def test_what_numba_compiles_counts_once():
    count_numba()
    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) * 2)
    start, watch = time.perf_counter(), Stopwatch()
    assert outer(1) == 4
    elapsed = time.perf_counter() - start
    assert 0 < watch.compiled <= elapsed
    again = Stopwatch()
    assert outer(2) == 6 and again.compiled == 0


def test_results_tell_it():
    A = poisson((8, 8))
    solver = swell.prepare(A)
    solver.solve(np.ones(64))
    result = solver.solve(np.ones(64))
    assert result.timings["compile"] >= 0 and "compiling" not in str(swell.solve(A, np.ones(64)))
