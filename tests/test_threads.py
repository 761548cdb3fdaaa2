"""Several threads: right answers, the same ones every time, and one thread gives them too."""
from __future__ import annotations

import os

import numba
import numpy as np
import pytest

import swell
from swell import gallery
from swell.core.space import CpuSpace

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
    numba.set_num_threads(1)
    alone = swell.solve(A, b, **named)
    assert alone.converged and abs(alone.iterations - results[0].iterations) <= 0.05 * alone.iterations + 1
    # The first steps only: bicgstab multiplies differences of rounding by a hundred a step.
    assert alone.history[:4] == pytest.approx(results[0].history[:4], rel=1e-9)


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
