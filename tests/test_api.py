"""Prepare once, solve often: reuse, updates, and what a result tells."""
from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import badly_scaled, rng

import swell
from swell import gallery
from swell.core.stopping import Reason

CONFIGURATIONS = [{"method": "cg"}, {"method": "cg", "scaling": "jacobi", "ordering": "rcm"}, {"method": "direct"},
                  {"method": "gmres", "precond": "jacobi", "format": "sell"}, {"method": "fgmres", "precond": "direct"},
                  {"method": "bicgstab", "format": "csr"}, {}]


@pytest.fixture(params=CONFIGURATIONS, ids=lambda c: ",".join(c.values()) or "auto")
def configuration(request):
    return request.param


def test_update_is_a_fresh_preparation(configuration, device):
    A = badly_scaled()
    changed = sp.csr_array(A * 2 + sp.diags_array(A.diagonal() * rng().random(A.shape[0])))
    b = changed @ rng().standard_normal(A.shape[0])
    solver = swell.prepare(A, device=device, rtol=1e-6, **configuration)
    solver.solve(b)
    assert solver.update(changed) is solver
    fresh = swell.solve(changed, b, device=device, rtol=1e-6, **configuration)
    updated = solver.solve(b)
    assert (updated.x == fresh.x).all() and updated.reason is fresh.reason


def test_update_chooses_anew_where_the_advisors_choice_does_not_suit():
    A, b = gallery.poisson2d(120), np.ones(120**2)
    solver, changed = swell.prepare(A), A.copy()
    assert solver.solve(b).method == "cg"
    changed.data = A.data * (1 + 0.01 * rng().random(A.nnz))
    r = solver.update(changed).solve(b)
    assert r.converged and r.method != "cg" and np.linalg.norm(b - changed @ r.x) <= 1e-7 * np.linalg.norm(b)
    with pytest.raises(swell.InputError, match="cg needs a Hermitian matrix"):
        swell.prepare(A, method="cg").update(changed)
    r = swell.prepare(A).update(changed, keep_preconditioner=True).solve(b)
    assert r.converged and any("the preconditioner was not kept" in note for note in r.notes)


def test_update_refuses_another_pattern():
    A = gallery.poisson2d(10)
    solver = swell.prepare(A, method="cg")
    for other in (gallery.poisson2d(11), sp.csr_array(A + sp.eye_array(100, k=5)), sp.csr_array(sp.eye_array(100))):
        with pytest.raises(swell.InputError, match="another pattern.*prepare again"):
            solver.update(other)
    with pytest.raises(swell.InputError, match="NaN"):
        solver.update(A * np.nan)
    with pytest.raises(swell.InputError, match="imaginary"):
        solver.update(A * 1j)
    assert solver.solve(np.ones(100)).converged                  # and is as it was


@pytest.mark.parametrize("format", ["csr", "sell", "bsr(block=1)"])
def test_update_binds_anew_where_an_adjoint_is_rebuilt(format):
    """A captured graph holds the addresses of the old one, also where the prepared matrix is the user's own."""
    A = gallery.convection_diffusion((6, 6))
    for method, anew in (("qmr", True), ("bicgstab", False)):
        solver = swell.prepare(A, method=method, format=format)
        assert solver.solve(np.ones(36)).converged
        bound = solver._prepared[0].iteration
        solver.update(2 * A)
        assert (solver._prepared[0].iteration is not bound) == anew
        assert solver.solve(np.ones(36)).converged


def test_update_keeps_the_users_preconditioner():
    A = gallery.poisson2d(10)
    from swell.core.devices import make_space
    from swell.formats.csr import CSRMatrix
    M = CSRMatrix.from_scipy(sp.csr_array(sp.eye_array(100) / 4), make_space("cpu"))
    solver = swell.prepare(A, method="cg", M=M)
    solver.update(2 * A)
    assert (M.data == 0.25).all() and solver.solve(np.ones(100)).converged


def test_update_after_a_factorisation_that_failed():
    A = sp.csr_array(np.array([[1.0, 1], [1, 1]]))
    solver = swell.prepare(A, method="direct")
    first = solver.solve(np.array([1.0, 2]))
    assert first.reason is Reason.SINGULAR and any("zero pivot" in note for note in first.notes)
    assert (first.x == 0).all()
    solver.update(sp.csr_array(np.array([[2.0, 1], [1, 1]])))
    assert np.allclose(solver.solve(np.array([1.0, 2])).x, [-1, 3])
    solver.update(A)
    assert solver.solve(np.array([1.0, 2])).reason is Reason.SINGULAR


def test_a_second_solve_sets_nothing_up(configuration, monkeypatch):
    A = gallery.poisson2d(12)
    solver = swell.prepare(A, **configuration)
    first = solver.solve(np.ones(144))
    monkeypatch.setattr("swell.solver.Prepared", None)
    second = solver.solve(np.ones(144))
    assert (second.x == first.x).all() and second.iterations == first.iterations


def test_what_a_result_tells():
    A = badly_scaled()
    b = A @ np.ones(144)
    r = swell.solve(A, b, method="gmres(restart=25)", precond="jacobi", format="sell", ordering="rcm")
    text = str(r)
    for part in ("converged in", "GMRES(restart=25) on 144 unknowns", "ReverseCuthillMcKee()", "Jacobi()", "sell, height 16",
                 "products", "setup", "MiB", "rtol 1e-08"):
        assert part in text
    told = json.loads(json.dumps(r.as_dict()))
    assert (told["method"], told["precond"], told["format"], told["ordering"], told["scaling"]) == (
        "gmres", "jacobi", "sell", "rcm", "none")
    assert told["converged"] and told["reason"] == "CONVERGED" and told["setup_seconds"] > 0 and told["solve_seconds"] > 0
    assert r.tolerance == 1e-8 and r.timings["setup"] >= r.timings["format"]
    assert r.memory["matrix"] > 0 and r.memory["workspace"] >= 27 * 144 * 8 and r.memory["preconditioner"] == 144 * 8
    norm_A, x = abs(A).sum(axis=1).max(), r.x
    assert r.backward_error == pytest.approx(abs(b - A @ x).max() / (norm_A * abs(x).max() + abs(b).max()), rel=1e-6)


def test_atol():
    A = gallery.poisson2d(10)
    loose = swell.solve(A, np.ones(100), method="cg", rtol=0, atol=1e-2)
    assert loose.converged and 1e-12 < loose.residual * 10 <= 1e-2 and loose.tolerance == pytest.approx(1e-3)
    at_once = swell.solve(A, np.full(100, 1e-5), method="cg", atol=1.0)
    assert at_once.converged and at_once.iterations == 0 and not at_once.x.any()


def test_history_and_tries_agree_when_a_recursion_is_restarted():
    """A condition of 1e11: the recursive residual leaves the true one behind, and the solve goes on from x."""
    A = sp.csr_array(gallery.poisson1d(400) @ gallery.poisson1d(400))
    seen = []
    r = swell.solve(A, A @ np.ones(400), method="cg", rtol=1e-13, maxiter=20_000,
                    monitor=lambda k, residual: seen.append(k))
    assert r.history.size == r.iterations + 1
    assert seen == sorted(seen) and seen[-1] == r.iterations


def test_the_default_limit_and_window():
    assert swell.Stopping().limit(10) == 1000 and swell.Stopping().limit(5000) == 5000
    assert swell.Stopping().limit(10**6) == 20_000 and swell.Stopping(maxiter=7).limit(10**6) == 7


def test_a_window_ends_a_solve_that_stands_still():
    shift = sp.csr_array(np.roll(np.eye(300), 1, axis=1))
    named = {"method": "gmres(restart=5, lengthen=False)"}
    r = swell.solve(shift, np.eye(300)[0], stopping=swell.Stopping(window=40), **named)
    assert r.reason is Reason.STAGNATED and 40 <= r.iterations <= 50
    never = swell.solve(shift, np.eye(300)[0], stopping=swell.Stopping(window=0, maxiter=500), **named)
    assert never.reason is Reason.MAXITER and never.iterations == 500


@pytest.mark.parametrize("method", ["direct", "stationary"])
def test_a_preconditioner_is_not_left_out_in_silence(method):
    with pytest.raises(swell.InputError, match="no place for a preconditioner"):
        swell.solve(gallery.poisson2d(5), np.ones(25), method=method, precond="jacobi")


def test_every_choice_takes_new_values(nothing_outright):
    """The second choice, once it is set up, is updated when it is tried: M of 3 A is M / 3."""
    A = gallery.convection_diffusion((20, 20))
    s = swell.prepare(A)
    k = next(k for k, choice in enumerate(s.choices) if k and s._prepare(k).setup.M is not None)

    def image():
        setup, out = s._prepare(k).setup, np.empty(400)
        setup.M.expect(20.0)
        setup.M.apply(np.ones(400), out)
        return out, setup.norm_A
    before, norm = image()
    s.update(3 * A)
    after, norm_after = image()
    assert norm_after == pytest.approx(3 * norm) and np.allclose(after, before / 3, rtol=1e-5)
