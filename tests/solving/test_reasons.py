"""Every Reason but RUNNING has a system here that ends with it, and every sentence says what to do."""
from __future__ import annotations

import gc
import os
import signal
import weakref

from tests.support import cases
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import swell
from swell import gallery
from swell.core.stopping import Reason


def interrupted():
    def monitor(iteration, residual):
        if iteration == 5:
            signal.raise_signal(signal.SIGINT)
    return swell.solve(gallery.poisson2d(20), np.ones(400), method="cg", monitor=monitor)


def false_convergence():
    """A product with an error of 1e-6 in it: CG's recursion goes on falling, the true residual cannot."""
    A = gallery.poisson2d(20)
    noise = np.random.default_rng(3)
    inexact = spla.LinearOperator(A.shape, dtype=A.dtype, matvec=lambda x: A @ x * (1 + 1e-5 * noise.random(400)))
    return swell.solve(inexact, np.ones(400), method="cg")


def attainable():
    """Condition 1e12: rounding x alone changes A x by more than the tolerance."""
    A = gallery.poisson1d(2000)
    return swell.solve(A @ A, np.ones(2000), method="direct", rtol=1e-12)


def too_large():
    """A factorisation that the setting refuses."""
    A = gallery.poisson2d(110)
    return swell.solve(A, np.ones(A.shape[0]), method=swell.Direct(largest=1000))


def nonfinite():
    A = gallery.poisson2d(10)
    return swell.solve(A, np.ones(100), method="gmres", M=lambda r: r * np.inf)


def named(make, method, b=None, **more):
    def solve():
        A = make()
        return swell.solve(A, np.ones(A.shape[0]) if b is None else b, method=method, **more)
    return solve


def out_of_memory():
    """The second choice does not fit."""
    solver = swell.prepare(cases.indefinite())
    prepare = solver._prepare

    def short(k):
        if k:
            raise MemoryError("nothing is left")
        return prepare(k)
    solver._prepare = short
    return solver.solve(np.ones(100))


def overtaken():
    """By a watch that always prefers something else."""
    solver = swell.prepare(gallery.poisson2d(10), method="cg")
    return solver._prepare(0).run(np.ones(100), watch=lambda norm, threshold: norm < 1)


def unsolved_rows():
    """A value prescribed by a penalty of 1e30: rounding its row hides the residual of all others."""
    A, b = gallery.poisson2d(10).tolil(), np.zeros(100)
    A[0, 0], b[0] = 1e30, 1e30
    return swell.solve(A.tocsr(), b, method="cg", precond="jacobi")


REASONS = {
    Reason.UNSOLVED_ROWS: unsolved_rows,
    Reason.CONVERGED: named(lambda: gallery.poisson2d(10), "cg"),
    Reason.MAXITER: named(lambda: gallery.poisson2d(10), "cg", maxiter=3),
    Reason.STAGNATED: named(lambda: sp.csr_array(np.roll(np.eye(600), 1, axis=1)), "gmres(restart=5, lengthen=False)",
                            np.eye(600)[0]),
    Reason.DIVERGED: named(cases.empty_rows, "cg"),
    Reason.NONFINITE: nonfinite,
    Reason.BREAKDOWN: named(lambda: gallery.neumann((12, 12)), "bicgstab"),
    Reason.INDEFINITE: named(cases.indefinite, "cg"),
    Reason.INTERRUPTED: interrupted,
    Reason.STOPPED: named(lambda: gallery.poisson2d(10), "cg", monitor=lambda k, residual: k == 2),
    Reason.FALSE_CONVERGENCE: false_convergence,
    Reason.ATTAINABLE_ACCURACY: attainable,
    Reason.SINGULAR: named(cases.empty_rows, "direct"),
    Reason.NOT_FACTORED: too_large,
    Reason.OUT_OF_MEMORY: out_of_memory, Reason.OVERTAKEN: overtaken,
}
# A part of each sentence that is advice.
ADVICE = {
    Reason.MAXITER: "raise maxiter", Reason.STAGNATED: "method='direct'", Reason.DIVERGED: "try method='gmres'",
    Reason.NONFINITE: "rescale", Reason.BREAKDOWN: "try method='gmres'",
    Reason.INDEFINITE: "use method='gmres'",
    Reason.INTERRUPTED: "x0=x", Reason.FALSE_CONVERGENCE: "try method='gmres'", Reason.ATTAINABLE_ACCURACY: "relax rtol",
    Reason.SINGULAR: "give its null space", Reason.NOT_FACTORED: "iterative method",
    Reason.OUT_OF_MEMORY: "float32",
}


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.RUNNING], ids=lambda r: r.name)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_every_reason_is_produced(reason, nothing_outright):
    r = REASONS[reason]()
    assert r.reason is reason, str(r)
    assert r.converged == (reason is Reason.CONVERGED)
    assert ADVICE.get(reason, "") in r.message and r.message in str(r) + Reason.CONVERGED.sentence
    assert r.as_dict()["reason"] == reason.name


@pytest.mark.parametrize("A, settings", [(cases.empty_rows(), {"method": "direct"}),
                                         (-gallery.poisson2d(6), {"method": "cg", "precond": "ic0"})])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_a_start_that_meets_the_tolerance_needs_no_factors(A, settings, columns):
    b = np.ones((A.shape[0], *columns))
    r = swell.solve(A, b, atol=1e3, **settings)
    assert np.all(r.converged) and not r.x.any()
    assert not np.any(swell.solve(A, b, atol=1e-3, **settings).converged)
    x0 = np.full(b.shape, 1e-6)
    assert (swell.solve(A, b, x0=x0, atol=1e3, **settings).x == x0).all()


def test_an_incomplete_factorisation_that_fails_is_not_called_the_direct_solver():
    r = swell.solve(-gallery.poisson2d(6), np.ones(36), method="cg", precond="ic0")
    assert r.reason is Reason.NOT_FACTORED and "direct solver" not in r.message and "preconditioner" in r.message


def test_codes_are_unique():
    assert len({r.code for r in Reason}) == len(Reason)
    assert all(Reason.of(r.code) is r for r in Reason)


def test_the_classification_does_not_depend_on_row_scaling():
    """A badly row-scaled matrix has a tiny normwise backward error long before rounding has a say."""
    A = sp.csr_array(sp.diags_array(np.logspace(0, 12, 400)) @ gallery.poisson2d(20))
    r = swell.solve(A, np.ones(400), method="gmres(restart=5)", maxiter=50)
    assert r.reason is Reason.MAXITER and r.residual > 1e-4


def test_a_first_choice_that_failed_is_kept(nothing_outright):
    r = swell.solve(cases.indefinite(), np.ones(100))
    assert r.converged and r.method in ("direct", "minres")
    assert [(a.method, a.reason) for a in r.attempts] == [("cg", Reason.INDEFINITE)]
    assert "also tried: cg" in str(r) and r.as_dict()["attempts"][0]["reason"] == "INDEFINITE"


def test_an_empty_row_is_named():
    others = sp.diags_array(np.where(np.arange(400) == 7, 0.0, 1.0))
    A = sp.csr_array(others @ gallery.poisson2d(20) @ others)
    A.eliminate_zeros()
    r = swell.solve(A, np.ones(400))
    assert r.reason is Reason.SINGULAR and "1 of 400 rows are empty (the first in row 7)" in str(r)


def test_each_reason_is_explained_once():
    r = swell.solve(gallery.poisson2d(20), np.ones(400), maxiter=0)
    assert len(r.attempts) > 1 and {a.reason for a in r.attempts} == {r.reason} == {Reason.MAXITER}
    assert str(r).count("(MAXITER)") == 1 + len(r.attempts) and str(r).count(r.message) == 1


@pytest.mark.parametrize("columns", [None, 3])
def test_memory_is_freed_without_the_garbage_collector(columns, device):
    """A monitor, and the advisor's watch, hold the solve; the solve holds the system with its factors and buffers."""
    A = gallery.poisson2d(40)
    b = np.ones(1600 if columns is None else (1600, columns))
    gc.collect()
    gc.disable()
    try:
        solver = swell.prepare(A, method="cg", precond="ic0", device=device)
        solver.solve(b, monitor=lambda k, r: None)
        held = weakref.ref(solver._prepare(0))
        del solver
        assert held() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("load, told", [(3.0, True), (1.0, False), (None, False)])
def test_a_busy_machine_is_told_beside_predictions(load, told, monkeypatch):
    """Predicted seconds are for an idle one. Windows has no load average."""
    if load is None:
        monkeypatch.delattr(os, "getloadavg", raising=False)
    else:
        monkeypatch.setattr(os, "getloadavg", lambda: (load * os.cpu_count(), 0, 0), raising=False)
    assert ("this machine is busy (a load of" in str(swell.solve(gallery.poisson2d(5), np.ones(25)))) == told
