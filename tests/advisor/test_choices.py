"""The choices: each has what the user named, what cannot have it is left out and said, and each is tried."""
from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import complex_symmetric, hermitian, rng, unsymmetric, zero_diagonal
from tests.support.solves import true_residual

import swell
from swell import gallery
from swell.advisor.attempts import _final
from swell.solver import Solver
from swell.solving.run import Prepared
from swell.core.registry import name_of
from swell.core.stopping import Reason

MATRICES = {
    "dominant": lambda: gallery.poisson2d(8), "definite": lambda: gallery.shifted_laplacian((8, 8), -0.1),
    "indefinite": lambda: gallery.shifted_laplacian((8, 8), 0.5), "neumann": lambda: gallery.neumann((8, 8)),
    "convection": lambda: gallery.convection_diffusion((8, 8), 10.0, "upwind"), "unsymmetric": unsymmetric,
    "hermitian": hermitian, "complex symmetric": complex_symmetric, "zero diagonal": zero_diagonal,
    "real in complex": lambda: gallery.shifted_laplacian((8, 8), 0.5).astype(complex),
}
NAMED = {
    "precond": ["jacobi", "ic", "ilu", "none"], "scaling": ["jacobi", "ruiz", "none"], "ordering": ["rcm"],
    "format": ["sell", "csr"], "nullspace": ["constants"], "smoother": ["jacobi_sweeps"],
}
PAIRS = [dict(pair) for pair in itertools.chain(
    ([(kind, name)] for kind, some in NAMED.items() for name in some),
    ([("nullspace", "constants"), (kind, name)] for kind, some in NAMED.items() for name in some if kind != "nullspace"),
    ([("precond", "ilu"), ("ordering", "rcm")], [("scaling", "ruiz"), ("precond", "none")]))]


@pytest.mark.parametrize("matrix", MATRICES)
def test_every_choice_has_all_that_was_named(matrix, monkeypatch):
    """Lists alone: whether they can be set up is another question."""
    monkeypatch.setattr(Solver, "_prepare", lambda self, k: None)
    A = sp.csr_array(MATRICES[matrix]())
    for named in PAIRS:
        solver = swell.prepare(A, **named)
        assert solver.choices
        for choice, (kind, name) in itertools.product(solver.choices, named.items()):
            part = getattr(choice, kind)
            if name == "none":
                assert part is None, (named, choice)
            elif kind == "nullspace":
                assert part.basis == name, (named, choice)
            else:
                assert name_of(kind, type(part)) == name, (named, choice)
        methods = [choice.name("method") for choice in solver.choices]
        if {"precond", "smoother"} & named.keys() and named.get("precond") != "none" and len(methods) > 1:
            assert "direct" not in methods and any("direct" in note for note in solver._left_out), named


def test_what_was_left_out_is_said_where_nothing_converged():
    A = gallery.shifted_laplacian((9, 9), 0.5)
    r = swell.solve(A, np.ones(81), precond="jacobi", maxiter=3)
    assert not r.converged
    assert any("'direct' was not tried, since it has no place for precond='jacobi'" in note for note in r.notes)


@pytest.mark.parametrize("more", [{}, {"scaling": "jacobi"}, {"ordering": "rcm", "scaling": "ruiz"}], ids=str)
def test_direct_solves_what_a_null_space_is_named_for(more, device):
    """As the fall-back of the advisor, and by name; the solution is the one of least norm."""
    A, n = gallery.neumann((12, 12)), 144
    b = rng().standard_normal(n)
    b -= b.mean()
    solver = swell.prepare(A, method="direct", nullspace="constants", device=device, **more)
    r = solver.solve(b)
    assert r.converged and true_residual(A, b, r.x) <= 1e-8 and abs(r.x.sum()) <= 1e-8 * abs(r.x).sum()
    assert np.allclose(solver.update(sp.csr_array(2 * A)).solve(b).x, r.x / 2, rtol=1e-10)
    solver = swell.prepare(A, nullspace="constants", device=device)
    k = [choice.name("method") for choice in solver.choices].index("direct")
    last = solver.prefer(k).solve(b)
    assert last.method == "direct" and last.converged and abs(last.x.sum()) <= 1e-8 * abs(last.x).sum()


def test_direct_with_two_null_spaces():
    """Of an unsymmetric matrix, of rank n − 2."""
    U, S, V = np.linalg.svd(rng().standard_normal((8, 8)))
    S[-2:] = 0
    A = U @ np.diag(S) @ V
    b = A @ rng().standard_normal(8)
    r = swell.solve(A, b, method="direct", nullspace=swell.NullSpace(V[-2:].T, left=U[:, -2:]))
    assert r.converged and np.allclose(r.x, np.linalg.pinv(A, rcond=1e-10) @ b)


def test_settings_that_have_no_effect_are_errors():
    A = gallery.poisson2d(6)
    with pytest.raises(swell.InputError, match="none is named: add smoother="):
        swell.solve(A, np.ones(36), method="cg(between=5, every=10)")
    with pytest.raises(swell.InputError, match="no effect without between"):
        swell.solve(A, np.ones(36), method="cg(every=10)", smoother="jacobi_sweeps")


def test_attainable_for_one_method_is_not_the_end(monkeypatch, nothing_outright):
    """The next one is tried, and its answer taken; a method that was named ends there, and says so."""
    A, b = gallery.convection_diffusion((9, 9), 10.0, "upwind"), np.ones(81)
    run = Prepared.run

    def at_its_limit(self, b, x0=None, monitor=None, watch=None):
        result = run(self, b, x0, monitor, watch)
        if result.method in ("bicgstab", "gmres"):
            result.reason, result.residual = Reason.ATTAINABLE_ACCURACY, 1e-6
        return result
    monkeypatch.setattr(Prepared, "run", at_its_limit)
    r = swell.solve(A, b)
    assert r.converged and r.method == "direct" and r.attempts[0].reason is Reason.ATTAINABLE_ACCURACY
    alone = swell.solve(A, b, method="bicgstab")
    assert alone.reason is Reason.ATTAINABLE_ACCURACY and "for this method" in alone.message


@pytest.mark.parametrize("A, b, x0", [
    ([[5e-324]], [1.0], None), ([[1e-200, 0], [0, 1]], [1e120, 1], None), ([[1e-300]], [1e10], None),
    ([[1.0, 0], [0, 1]], [1.0, 1], [1e130, 0])])
@pytest.mark.parametrize("method", [None, "direct", "gmres", "bicgstab"])
def test_no_infinite_residual_is_called_attainable(A, b, x0, method):
    with np.errstate(all="ignore"):
        r = swell.solve(np.array(A), np.array(b), x0=None if x0 is None else np.array(x0), method=method)
        residual = true_residual(np.array(A), np.array(b), r.x)
    assert r.reason is not Reason.ATTAINABLE_ACCURACY or np.isfinite(r.residual)
    assert r.converged == bool(residual <= 1e-8)


@pytest.mark.filterwarnings("ignore:.*(overflow|invalid value|divide)")
@pytest.mark.parametrize("method", [None, "gmres", "fgmres", "bicgstab", "bicgstabl", "tfqmr", "qmr", "idrs"])
def test_an_infinite_entry_of_x_is_never_converged(method, device):
    """A column of zeros hides it from b − A x, which is then zero."""
    systems = [(np.float64([[1e-250, 0], [1, 0]]), np.array([1e-190, 1e60]), {}),
               (np.float32([[1e-30, 0], [1, 0]]), np.float32([1e-20, 1e10]), {}),
               (np.array([[1.0, 0], [1, 0]]), np.array([1e10, 1e10]), {"M": np.diag([1.0, 1e300])})]
    for A, b, more in systems[:2] if method == "qmr" else systems:           # qmr multiplies by Mᴴ
        if device == "cuda" and more:
            continue                             # M is an array of the host
        r = swell.solve(A, b, method=method, device=device, maxiter=40, **more)
        assert not r.converged or np.isfinite(r.x).all()
        assert np.isfinite(r.residual) == np.isfinite(r.x).all()


@pytest.mark.parametrize("error", [MemoryError("no"), swell.OutOfMemory("no")], ids=["raw", "ours"])
def test_memory_that_runs_out_later_keeps_the_best_x(error, monkeypatch, nothing_outright):
    A, b = gallery.shifted_laplacian((9, 9), 0.5), np.ones(81)
    prepare = Solver._prepare

    def short(self, k):
        if k:
            raise error
        return prepare(self, k)
    monkeypatch.setattr(Solver, "_prepare", short)
    r = swell.solve(A, b, maxiter=5)
    assert r.reason is Reason.OUT_OF_MEMORY and np.isfinite(r.x).all()
    assert r.residual == pytest.approx(true_residual(A, b, r.x))
    assert any("left out: no" in note for note in r.notes)


def test_memory_that_runs_out_at_once_is_swells_own_error(monkeypatch):
    def short(self, *rest):
        raise MemoryError("no")
    monkeypatch.setattr(Prepared, "_allocate", short)
    with pytest.raises(swell.OutOfMemory, match="ran out of memory"):
        swell.solve(gallery.poisson2d(5), np.ones(25))


@pytest.mark.parametrize("last", [Reason.BREAKDOWN, Reason.MAXITER])
def test_the_reason_is_one_that_a_user_can_get(last):
    """The best x may belong to an attempt that was left for another choice; that is no reason to stop."""
    attempts = [SimpleNamespace(reason=reason, residual=residual, final=False, converged=False) for reason, residual in
                ((Reason.OVERTAKEN, 0.1), (Reason.STAGNATED, 0.5), (last, 0.1))]
    assert _final(attempts, False) is attempts[0] and attempts[0].reason is last
