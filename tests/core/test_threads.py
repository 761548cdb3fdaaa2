"""Several threads: right answers, the same ones every time, and one thread gives them too."""
from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import scipy.sparse as sp
from tests import conftest

import swell
from swell import gallery
from swell.core.registry import load, names
from swell.core.library import _native
from swell.core.cpu import SERIAL
from swell.core.devices import make_space

N = 24_000              # above the size up to which one thread is used whatever there is


@pytest.fixture(scope="module")
def system():
    A = gallery.p1_laplacian(N, mass=1e-2)
    return A, A @ np.random.default_rng(1).standard_normal(N)


@pytest.mark.parametrize("named", [{"method": "cg", "scaling": "jacobi"}, {"method": "gmres", "precond": "jacobi"},
                                   {"method": "bicgstab", "format": "csr"}], ids=lambda named: named["method"])
def test_threads(named, system, all_threads):
    if all_threads < 2:
        pytest.skip("there is one core")
    A, b = system
    solver = swell.prepare(A, **named)
    results = [solver.solve(b) for _ in range(3)]
    assert f"{all_threads} threads" in str(results[0])
    for r in results:
        assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
        assert (r.x == results[0].x).all()                       # sums are taken in a fixed order
    _native.limit_threads(1)
    alone = swell.solve(A, b, **named)
    assert alone.converged and abs(alone.iterations - results[0].iterations) <= 0.05 * alone.iterations + 1
    # The first steps only: bicgstab multiplies differences of rounding by a hundred a step.
    assert alone.history[:4] == pytest.approx(results[0].history[:4], rel=1e-9)


def solved(threads, A, b, steps=12, **named):
    """Return the norms of the first steps and the bytes of x, on ``threads`` threads; 0 means all."""
    _native.limit_threads(threads)
    r = swell.solve(A, b, rtol=1e-30, maxiter=steps, **named)
    return list(r.history), r.x.tobytes()


def same_bits(A, b, **named):
    one, *others = (solved(threads, A, b, **named) for threads in (1, 2, 0))
    assert len(one[0]) > 2
    assert all(other == one for other in others)


ITERATIVE = [m for m in names("method") if not load("method", m).gpu_only and m not in ("direct", "stationary")]


@pytest.mark.parametrize("named", [{"format": "csr", "precond": "jacobi"}, {"format": "sell", "precond": "ilu0"},
                                   {"format": "sell", "scaling": "jacobi"}],
                         ids=lambda named: "-".join(named.values()))
@pytest.mark.parametrize("method", ITERATIVE)
def test_bits_do_not_depend_on_threads(method, named, system, all_threads):
    """Of every step's norm and of x: sums are of parts whose bounds the number of rows alone decides."""
    if all_threads < 2:
        pytest.skip("there is one core")
    if not load("method", method).preconditionable and "precond" in named:
        pytest.skip(f"{method} applies no preconditioner")
    if load("method", method).symmetric_only or "cg" in method:
        named = {key: "ic0" if value == "ilu0" else value for key, value in named.items()}
    A, b = system
    same_bits(A, b, method=method, **named)


@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "cocg"])
def test_bits_of_complex_systems_do_not_depend_on_threads(method, system, all_threads):
    if all_threads < 2:
        pytest.skip("there is one core")
    A, b = system
    A = A + 0.5j * sp.diags_array(np.linspace(0, 1, N)) if method != "cg" else A.astype(complex)
    same_bits(A, b + 1j, method=method, format="csr", precond="jacobi")


@pytest.mark.parametrize("form", [f for f in names("format") if f not in ("csr", "sell", "tuned")])
def test_bits_of_products_do_not_depend_on_threads(form, system, all_threads):
    if all_threads < 2:
        pytest.skip("there is one core")
    same_bits(*system, method="cg", format=form)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_bits_of_sums_do_not_depend_on_threads(dtype, all_threads):
    """Every sum that a space offers, of a length that threads cannot share evenly."""
    if all_threads < 2:
        pytest.skip("there is one core")
    space, random = make_space("cpu"), np.random.default_rng(2)
    x, y, w = (random.standard_normal(N + 37).astype(dtype) * (1 + 0.3j if dtype == "complex128" else 1)
               for _ in range(3))
    kernels, found = space.kernels("swell.core", "vector", x.dtype), []
    for threads in (1, 2, 0):
        _native.set_threads(threads)
        out, z = np.zeros(9, x.dtype), y.copy()
        space.dot(x, y, out[0:])
        space.norm(x, out[1:])
        space.dots(x, y, out[2:])
        space.weighted_norm2(x, w.real.astype(np.float32), out[4:])
        space.axpy_dots(0.3, x, z, w, out[5:])
        kernels.multiply_dots(w, x, y.copy(), y, out[7:])
        found.append(out.tobytes() + z.tobytes())
    _native.set_threads(0)
    assert all(other == found[0] for other in found)


def test_small_systems_run_on_one_thread(all_threads):
    r = swell.solve(gallery.poisson2d(20), np.ones(400))
    assert "1 thread" in str(r)
    assert _native.threads() == all_threads                      # and the setting is left alone


@pytest.mark.parametrize("cores, workers, threads", [(16, 14, "2"), (16, 4, "4"), (4, 2, "2"), (2, 2, None), (1, 4, None)])
def test_workers_of_the_suite_share_the_cores(monkeypatch, cores, workers, threads):
    """None: swell's own number, the cores."""
    monkeypatch.setattr(conftest, "CORES", cores)
    for given, blas in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3", "SWELL_NUM_THREADS": "5"}, "3")):
        monkeypatch.setattr(os, "environ", dict(given))
        conftest.share_cores(workers)
        assert os.environ["OPENBLAS_NUM_THREADS"] == blas
        assert os.environ.get("SWELL_NUM_THREADS") == given.get("SWELL_NUM_THREADS", threads)


def test_solvers_in_threads(system):
    """Four threads of Python solve at a time: one loop has the threads, the others run on their caller."""
    A, b = system
    solver = swell.prepare(A, method="cg", precond="jacobi")
    alone, results = solver.solve(b), []
    threads = [threading.Thread(target=lambda s=s: results.append(s.solve(b)))
               for s in (solver, *(solver.copy() for _ in range(3)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and all(r.converged and (r.x == alone.x).all() for r in results)


def test_the_number_of_threads(monkeypatch):
    """SWELL_NUM_THREADS comes before OMP_NUM_THREADS, and a limit before both."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    said = "from swell.core.library import _native as n; print(n.threads()); n.limit_threads(1); print(n.threads())"
    for given, expected in ((None, "3 1"), ("2", "2 1")):
        if given:
            monkeypatch.setenv("SWELL_NUM_THREADS", given)
        done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected.split()


def test_small_systems_run_on_one_thread_inside_larger_ones_too(all_threads):
    if all_threads < 2:
        pytest.skip("there is one core")
    space = make_space("cpu")
    with space.active(SERIAL):
        assert _native.threads() == all_threads
        with space.active(SERIAL - 1):
            assert _native.threads() == 1
            with space.active():                 # within, without a number: the same
                assert _native.threads() == 1
        assert _native.threads() == all_threads


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(400,), (400, 3)])
def test_the_memory_of_x_is_of_the_callers_stream(shape):
    """Else a solve of another thread could reuse it while kernels on the caller's stream still read x."""
    conftest.space_or_skip("cuda")
    import cupy
    solver = swell.prepare(gallery.poisson2d(20), device="cuda", method="cg")
    stream, streams = cupy.cuda.Stream(non_blocking=True), {}

    def allocate(size):
        memory = cupy.get_default_memory_pool().malloc(size)
        streams[memory.ptr] = cupy.cuda.get_current_stream().ptr
        return memory

    with stream, cupy.cuda.using_allocator(allocate):
        solved = solver.solve(cupy.ones(shape))
        x = solved.x if len(shape) == 1 else solved[0].x
        assert streams[x.data.ptr] == stream.ptr
