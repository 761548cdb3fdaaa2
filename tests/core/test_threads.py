"""Several threads: right answers, the same ones every time, and one thread gives them too."""
from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import scipy.sparse as sp
from tests import conftest

import swell
from swell import _native
from swell import gallery
from swell.core import compiled
from swell.core.registry import load, names
from swell.core.cpu import CpuSpace
from swell.core.devices import make_space

N = 24_000              # above the size up to which one thread is used whatever there is
SOME = sorted({1, min(2, numba.config.NUMBA_NUM_THREADS), numba.config.NUMBA_NUM_THREADS})


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
    numba.set_num_threads(1)
    alone = swell.solve(A, b, **named)
    assert alone.converged and abs(alone.iterations - results[0].iterations) <= 0.05 * alone.iterations + 1
    # The first steps only: bicgstab multiplies differences of rounding by a hundred a step.
    assert alone.history[:4] == pytest.approx(results[0].history[:4], rel=1e-9)


def solved(threads, A, b, steps=12, **named):
    """The norms of the first steps, and x, by so many threads."""
    numba.set_num_threads(threads)
    r = swell.solve(A, b, rtol=1e-30, maxiter=steps, **named)
    return list(r.history), r.x.tobytes()


def same_bits(A, b, **named):
    one, *others = (solved(threads, A, b, **named) for threads in SOME)
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
    for threads in SOME:
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
    assert numba.get_num_threads() == all_threads                # and the setting is left alone


@pytest.mark.parametrize("given, policy, spins", [({}, "passive", "1000"), ({"OMP_WAIT_POLICY": "active"}, "active", None),
                                                  ({"GOMP_SPINCOUNT": "7"}, None, "7")])
def test_how_threads_wait_is_the_users_if_they_say_so(monkeypatch, given, policy, spins):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    CpuSpace()
    assert (os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT")) == (policy, spins)


@pytest.mark.parametrize("cores, workers, threads", [(16, 14, "2"), (16, 4, "4"), (4, 2, "2"), (2, 2, None), (1, 4, None)])
def test_workers_of_the_suite_share_the_cores(monkeypatch, cores, workers, threads):
    """None: Numba's own number, the cores."""
    monkeypatch.setattr(conftest, "CORES", cores)
    for given, blas in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3", "NUMBA_NUM_THREADS": "5"}, "3")):
        monkeypatch.setattr(os, "environ", dict(given))
        conftest.share_cores(workers)
        assert os.environ["OPENBLAS_NUM_THREADS"] == blas and os.environ["OMP_WAIT_POLICY"] == "passive"
        assert os.environ.get("NUMBA_NUM_THREADS") == given.get("NUMBA_NUM_THREADS", threads)


WORKQUEUE = """
import threading
import numpy as np, swell
A = swell.gallery.poisson2d(160)
solver = swell.prepare(A, method="cg", precond="jacobi")
solvers = [solver, *(solver.copy() for _ in range(3))]
reasons = []
threads = [threading.Thread(target=lambda s=s: reasons.append(s.solve(np.ones(25600)).reason.name)) for s in solvers]
for thread in threads: thread.start()
for thread in threads: thread.join()
import numba
print(numba.threading_layer(), *reasons)
"""


@pytest.mark.parametrize("layer", ["workqueue", "default"])
def test_solvers_in_threads_on_each_threading_layer(layer):
    """Numba ends a process in which two threads run parallel loops on its layer "workqueue" at the same time."""
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", WORKQUEUE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found, *reasons = done.stdout.split()
    assert reasons == 4 * ["CONVERGED"] and (layer == "default" or found == layer)


def test_only_the_layer_workqueue_has_a_lock(monkeypatch, all_threads):
    def kernel_on(layer):
        @compiled.njit(parallel=True)
        def kernel(x):
            for i in numba.prange(x.size):
                x[i] += 1
        monkeypatch.setattr(numba, "threading_layer", lambda: layer)
        kernel(np.zeros(2))
        return type(kernel)
    assert kernel_on("workqueue") is compiled.OneAtATime
    assert kernel_on("omp") is kernel_on("tbb") is CPUDispatcher
