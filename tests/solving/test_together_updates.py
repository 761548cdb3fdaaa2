"""Several right-hand sides after an update: buffers stay where only values changed, and results are a fresh setup's."""
from __future__ import annotations

import numpy as np
import pytest

import swell
from swell import gallery
from swell.core.sharing import Sharing
from swell.core.stopping import Stopping

N = 144


def systems():
    """Two matrices of one pattern, which differ in every diagonal entry, and three right-hand sides."""
    A = gallery.poisson2d(12)
    A.setdiag(A.diagonal() * np.linspace(1.0, 1.1, N))           # a scaling must have something to do
    other = A.copy()
    other.setdiag(A.diagonal() * np.linspace(1.1, 1.4, N))
    return A.tocsr(), other.tocsr(), np.random.default_rng(4).standard_normal((N, 3))


def on_host(x):
    return x.get() if hasattr(x, "get") else x


STAY = [{"method": "cg"}, {"method": "cg", "precond": "jacobi"}, {"method": "bicgstab", "scaling": "jacobi"},
        {"method": "cg", "precond": "jacobi", "format": "csr"}, {"method": "gmres", "precond": "block_jacobi"},
        {"method": "cg", "precond": "gauss_seidel(direction=symmetric)"},
        {"method": "bicgstab", "precond": "ilu0"}]
NEW = [{"method": "direct"}, {"method": "cg", "precond": "ic0"}, {"method": "cg", "precond": "amg"},
       {"method": "qmr", "precond": "jacobi"}, {"method": "cg", "precond": "chebyshev"},
       {"method": "bicgstab", "precond": "ilu0(solve=sweeps)"}, {"method": "cg", "precond": "direct"},
       {"method": "gmres", "precond": "deflation(inner=ilu0, vectors=4, steps=20)"}]


@pytest.mark.parametrize("settings", [*STAY, *NEW], ids=str)
def test_results_are_those_of_a_fresh_setup(settings, device):
    A, other, B = systems()
    solver = swell.prepare(A, device=device, **settings)
    solver.solve(B, together=True)
    companion = solver._prepare(0).companions[3, None]
    for new in (other, A, other):
        found = solver.update(new).solve(B, together=True)
        fresh = swell.prepare(new, device=device, **settings).solve(B, together=True)
        assert np.array_equal(on_host(found.x), on_host(fresh.x))
        assert [r.iterations for r in found] == [r.iterations for r in fresh] and found.converged
        assert [r.backward_error for r in found] == [r.backward_error for r in fresh]
    if settings in STAY:
        assert solver._prepare(0).companions[3, None] is companion


@pytest.mark.parametrize("precond", ["ilu0", "amg", "chebyshev"])
def test_a_kept_preconditioner_keeps_the_buffers(precond, device):
    A, other, B = systems()
    solver = swell.prepare(A, method="bicgstab", precond=precond, device=device)
    solver.solve(B, together=True)
    companion = solver._prepare(0).companions[3, None]
    together = solver.update(other, keep_preconditioner=True).solve(B, together=True)
    assert solver._prepare(0).companions[3, None] is companion
    assert np.array_equal(on_host(together.x), on_host(solver.solve(B, together=False).x)) and together.converged


def test_other_tolerances_keep_the_buffers(device):
    A, _, B = systems()
    solver = swell.prepare(A, method="cg", device=device)
    loose = solver.stop_by(Stopping(rtol=1e-2)).solve(B, together=True)
    companion = solver._prepare(0).companions[3, None]
    tight = solver.stop_by(Stopping(rtol=1e-11)).solve(B, together=True)
    assert solver._prepare(0).companions[3, None] is companion
    assert 1e-11 < loose.residual <= 1e-2 and tight.residual <= 1e-11 and tight.iterations > loose.iterations
    solver.stop_by(Stopping(rtol=1e-11, maxiter=3))              # more than tolerances: another loop
    assert (3, None) not in solver._prepare(0).companions
    assert [r.iterations for r in solver.solve(B, together=True)] == [3, 3, 3]


def test_copies_that_are_not_current_are_found():
    """A number, an array or a part that the original has replaced; or a copy that has made one of its own."""
    A, _, _ = systems()
    M = swell.prepare(A, method="cg", precond="chebyshev").M.operator
    for spoil in (lambda M, copy: setattr(M, "bounds", (1.0, 2.0)), lambda M, copy: setattr(M, "shape", [N, N]),
                  lambda M, copy: setattr(M, "A", A), lambda M, copy: setattr(copy, "_adjoint", np.ones(3))):
        before, sharing = dict(vars(M)), Sharing(M.space.another())
        copy = sharing(M)
        assert sharing.current()
        spoil(M, copy)
        assert not sharing.current()
        vars(M).update(before)
