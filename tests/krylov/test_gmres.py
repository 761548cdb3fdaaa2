"""What GMRES promises beyond the contract of all methods."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import gallery

METHODS = ["gmres", "fgmres"]


def basis_of(A, b, method, steps):
    """The orthonormal basis of one cycle of that many steps."""
    solver = swell.prepare(A, method=f"{method}(restart={steps})", b_like=b, rtol=1e-15, maxiter=steps)
    solver.solve(b)
    iteration = solver._prepared[0].iteration
    return np.asarray(iteration.V[:steps])       # x0 = 0 and one cycle: the basis still stands


def ill_conditioned(n, condition):
    """A full-rank unsymmetric matrix with singular values from 1 to 1/condition."""
    left, right = (np.linalg.qr(rng().standard_normal((n, n)) + k)[0] for k in (0, 1))
    return sp.csr_array(left @ np.diag(np.logspace(0, -np.log10(condition), n)) @ right)


def test_no_basis_vector_is_read_that_nobody_wrote():
    """At a limit inside a cycle the next vector is missing. Ranks would add up what its memory held."""
    A = gallery.poisson2d(12)
    solver = swell.prepare(A, method="gmres", maxiter=5, rtol=1e-14, device="cpu")
    solver.solve(np.ones(144))
    bound = solver._prepared[0].iteration
    bound.V[5:] = np.inf
    bound.V[5:, ::2] = -np.inf
    assert solver.solve(np.ones(144)).iterations == 5 and np.isfinite(bound.sums).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("condition", [10, 1e8, 1e14])
def test_the_basis_is_orthonormal_to_working_precision(method, condition, dtype):
    A = ill_conditioned(120, condition)
    if dtype == "complex128":
        A = sp.csr_array(A @ sp.diags_array(np.exp(1j * np.arange(120.0))))
    V = basis_of(A, np.ones(120, dtype), method, 60)
    assert np.linalg.norm(np.eye(len(V)) - V.conj() @ V.T, 2) <= 120 * np.finfo(float).eps


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("restart", [1, 4, 25])
@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_the_residual_never_grows(method, restart, scaling, device):
    A = gallery.convection_diffusion((15, 15), 30.0)
    if scaling:
        A = A @ sp.diags_array(rng().uniform(1, 3, 225))
    r = swell.solve(A, np.ones(225), method=f"{method}(restart={restart})", scaling=scaling, device=device, maxiter=200)
    growth = r.history[1:] / r.history[:-1]
    # In a scaled system GMRES minimises the scaled residual, and what is reported is the original one.
    assert growth.max() <= (1 + 1e-10 if scaling is None else 3)


@pytest.mark.parametrize("method", METHODS)
def test_recursive_equals_true_after_a_restart(method, device):
    A = gallery.convection_diffusion((15, 15), 30.0)
    b = np.ones(225)
    short = swell.solve(A, b, method=f"{method}(restart=10)", maxiter=10, device=device)
    inside = swell.solve(A, b, method=f"{method}(restart=11)", maxiter=10, device=device)    # stops inside its cycle
    assert short.residual == pytest.approx(np.linalg.norm(b - A @ short.x) / 15, rel=1e-12)
    assert short.history == pytest.approx(inside.history, rel=1e-10)
    assert inside.residual == pytest.approx(inside.history[-1], rel=1e-10)


def test_full_gmres_ends_in_n_steps(dtype):
    A = ill_conditioned(40, 1e3).astype(dtype)
    r = swell.solve(A, np.ones(40), method="gmres(restart=40)", rtol=1e-10)
    assert r.converged and r.iterations <= 40


def test_the_residuals_are_least_squares_residuals():
    """Against the textbook: min ‖b − A K y‖ over the Krylov space, by a dense least-squares solution."""
    A = gallery.convection_diffusion((8, 8), 30.0).toarray()
    b = rng().standard_normal(64)
    K = [b / np.linalg.norm(b)]
    history = swell.solve(A, b, method="gmres(restart=12)", maxiter=12).history
    for k in range(1, 13):
        Q = np.linalg.qr(np.column_stack(K))[0]
        best = np.linalg.norm(b - A @ Q @ np.linalg.lstsq(A @ Q, b, rcond=None)[0])
        assert history[k] == pytest.approx(best / np.linalg.norm(b), rel=1e-8)
        K.append(A @ Q[:, -1] if k == 1 else A @ (K[-1] / np.linalg.norm(K[-1])))


def test_a_variable_preconditioner_makes_gmres_flexible_and_is_refused_by_the_others():
    A = gallery.poisson2d(12)
    turn = [0]

    def M(r):
        turn[0] += 1
        return r / 4 if turn[0] % 2 else r / 3 + 0.01 * A @ r
    user = swell.User(M, variable=True)
    for method in ("cg", "bicgstab"):
        with pytest.raises(swell.InputError, match="fgmres"):
            swell.solve(A, np.ones(144), method=method, precond=user)
    for method in ("gmres(restart=20)", "fgmres(restart=20)"):
        r = swell.solve(A, np.ones(144), method=method, precond=user)
        assert r.converged and np.linalg.norm(1 - A @ r.x) <= 1e-8 * 12 and r.method == "fgmres"
        assert any("gmres became fgmres" in note for note in r.notes) == method.startswith("gmres")
        assert "FGMRES(restart=20)" in str(r)


# name: (matrix, preconditioner)
SYSTEMS = {
    "upwind": (lambda: gallery.convection_diffusion((12, 12, 12), 10.0, "upwind"), None),
    "convection": (lambda: gallery.convection_diffusion((40, 40), 1.0), "ilu0"),
    "jumps": (lambda: gallery.jumping_diffusion((40, 40)), "ilu0"),
    "helmholtz": (lambda: gallery.helmholtz((24, 24)), "ilu0"),
    "transport": (lambda: gallery.coupled_transport((10, 10, 10), 3), "ilu(block=3)"),
    "circuit": (lambda: gallery.multiconductor(2500, 2), "ilu(block=2)"),
}
REAL = {"sherman5": "ilu0", "hypre_beam_tet_dof2475": "ilu0", "fasp_spe01_bsr3": "ilu0", "Grond4e4": "ilu0"}


def to_1e_8(A, method, precond, device):
    """A solve whose claim is checked."""
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(A, b, method=method, precond=precond, device=device, maxiter=5000)
    error = np.linalg.norm(b - A @ r.x) / np.linalg.norm(b)
    assert r.converged == (error <= 1e-8 * (1 + 1e-6)) and r.residual == pytest.approx(error, rel=1e-3)
    return r


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_batch_gives_the_same_numbers(method, name, device):
    build, precond = SYSTEMS[name]
    A = sp.csr_array(build())
    whole = to_1e_8(A, f"{method}(restart=13)", precond, device)
    for batch in (1, 3, 4, 12, 13):
        r = to_1e_8(A, f"{method}(restart=13, batch={batch})", precond, device)
        assert abs(r.iterations - whole.iterations) <= 1 + 0.02 * whole.iterations
        assert r.history[:14] == pytest.approx(whole.history[:14], rel=1e-9)
        assert r.reductions == pytest.approx(whole.reductions, abs=3 + 0.02 * whole.reductions)


def launches(method, steps, precond=None):
    """How often each kernel is called in one cycle."""
    solver = swell.prepare(gallery.poisson2d(12), method=method, precond=precond, rtol=1e-30, maxiter=steps)
    iteration, counted = solver._prepared[0].iteration, {}
    for name in ("first", "dots", "subtract", "update", "close", "combine", "compress"):
        def call(*arguments, kernel=getattr(iteration.step, name), name=name):
            counted[name] = counted.get(name, 0) + 1
            kernel(*arguments)
        setattr(iteration.step, name, call)
    solver.solve(np.ones(144))
    return counted


def test_a_batch_is_one_launch():
    """Of step j there are j vectors: ⌈j/batch⌉ launches of either kind, and never none."""
    each = {"first": 2, "close": 1, "combine": 1, "update": 9}
    assert launches("gmres(restart=9)", 9) == each | {"dots": 10}
    assert launches("gmres(restart=9, batch=9)", 9) == each | {"dots": 10}
    assert launches("gmres(restart=9, batch=4)", 9) == each | {"dots": 1 + 4 * 1 + 4 * 2 + 3, "subtract": 4}
    assert launches("gmres(restart=9, batch=1)", 9) == each | {"dots": 1 + sum(range(1, 10)), "subtract": sum(range(8))}
    assert launches("gmres(restart=9, basis=single)", 9) == each | {"dots": 10}
    assert launches("fgmres(restart=9, basis=single)", 9, "jacobi") == each | {"dots": 10, "compress": 9}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_basis_in_single_precision_takes_as_many_iterations(method, name, device):
    """A cycle reduces the residual by 1e-7 at best: where the whole solve is one cycle, it takes one or two more."""
    build, precond = SYSTEMS[name]
    A = sp.csr_array(build())
    full, single = (to_1e_8(A, f"{method}(basis={basis})", precond, device) for basis in ("full", "single"))
    assert full.converged and single.converged
    assert single.iterations <= max(full.iterations + 2, 1.03 * full.iterations)
    assert single.memory["workspace"] < 0.7 * full.memory["workspace"]


@pytest.mark.data
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", REAL)
def test_a_basis_in_single_precision_on_real_systems(method, name, data, device):
    """Long cycles: with 30 steps, rounding of b alone took Grond4e4 to 665 or 897 iterations."""
    A = swell.io.read_matrix(str(data / "matrices" / f"{name}.mtx.gz"))
    full, single = (to_1e_8(sp.csr_array(A), f"{method}(restart=100, basis={basis})", REAL[name], device)
                    for basis in ("full", "single"))
    assert full.converged and single.converged
    assert single.iterations <= max(full.iterations + 2, 1.03 * full.iterations)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("condition", [1e6, 1e10])
def test_a_basis_in_single_precision_claims_nothing_that_is_not_so(method, condition):
    A = ill_conditioned(120, condition)
    for basis in ("full", "single"):
        to_1e_8(A, f"{method}(restart=60, basis={basis})", None, "cpu")


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_system_in_single_precision_has_its_basis_in_it(dtype, device):
    A = gallery.convection_diffusion((12, 12), 1.0).astype(dtype)
    full, single = (swell.solve(A, np.ones(144, dtype), method=f"gmres(basis={basis})", device=device, rtol=1e-4)
                    for basis in ("full", "single"))
    assert full.converged and (full.x == single.x).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("settings, complaint", [("batch=-1", "at least 0"), ("batch=2.5", "an integer"),
                                                 ("basis=half", "'full'.*or 'single'"), ("restart=501", "at most 500")])
def test_settings_that_mean_nothing(method, settings, complaint):
    with pytest.raises(swell.InputError, match=complaint):
        swell.solve(gallery.poisson2d(3), np.ones(9), method=f"{method}({settings})")


def test_a_variable_preconditioner_keeps_the_settings():
    A = gallery.poisson2d(12)
    r = swell.solve(A, np.ones(144), method="gmres(restart=20, batch=3, basis=single)",
                    precond=swell.User(lambda r: r / 4, variable=True))
    assert r.converged and "FGMRES(restart=20, batch=3, basis='single')" in str(r)


def shift(n):
    """A cyclic shift: from a unit vector GMRES has no progress before step n."""
    return sp.csr_array(np.roll(np.eye(n), 1, axis=1)), np.eye(n)[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precond", [None, "jacobi"])
def test_a_restart_is_lengthened_where_the_limit_would_come_first(method, precond, dtype, device):
    """Two cycles of the given length, one of each longer one; the next solve begins as this one did."""
    A, b = shift(100)
    A = (A + 0j * sp.eye_array(100) if dtype == "complex128" else A) + 1e-3 * sp.eye_array(100)
    solver = swell.prepare(A, method=method, precond=precond, device=device, b_like=b)
    r, again = solver.solve(b), solver.solve(b)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 and r.iterations <= 30 + 30 + 60 + 100
    assert any("restart lengthened from 30 to 60 to 100" in note for note in r.notes)
    assert r.history.size == r.iterations + 1 and r.method == method
    assert (again.x == r.x).all() and again.notes == r.notes and again.products == r.products


@pytest.mark.parametrize("method", METHODS)
def test_a_restart_that_must_not_be_lengthened(method, device):
    A, b = shift(100)
    r = swell.solve(A, b, method=f"{method}(lengthen=False)", device=device)
    assert r.reason is swell.Reason.STAGNATED and not r.notes and r.residual == 1
    with pytest.raises(swell.InputError, match="lengthen=2.*expected True or False"):
        swell.solve(A, b, method=f"{method}(lengthen=2)")


def test_a_longer_basis_has_to_fit(monkeypatch):
    """What does not fit is left out with a note, and the x that there is stays."""
    from swell.core.cpu import CpuSpace
    A, b = shift(1000)
    solver = swell.prepare(A, method="gmres")
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (8000 * 100, 8000 * 100))
    r = solver.solve(b)
    assert r.reason is swell.Reason.STAGNATED and r.residual == 1
    assert any("30 to 60:" in note for note in r.notes)
    assert any("GMRES(restart=120) was to go on from there and was left out" in note for note in r.notes)


def test_a_longer_basis_does_not_spoil_x():
    """n vectors of a singular matrix: the last of them are rounding, and so would x be."""
    from tests.support.cases import empty_rows
    r = swell.solve(empty_rows(), np.ones(64), method="gmres", maxiter=500)
    alone = swell.solve(empty_rows(), np.ones(64), method="gmres(lengthen=False)", maxiter=500)
    assert r.reason is swell.Reason.STAGNATED and "lengthened" in str(r)
    assert r.residual <= alone.residual * (1 + 1e-6) and abs(r.x).max() <= 1e6


@pytest.mark.data
@pytest.mark.parametrize("method", ["gmres", "gmres(restart=200)", "fgmres"])
def test_qc324_without_a_preconditioner(method, data):
    """Stagnates with 30 and with 200 vectors; n = 324 of them do."""
    from tests.support.cases import real_matrix
    A = real_matrix(data, "qc324")
    for b in (A @ np.ones(324), np.ones(324)):
        short = swell.solve(A, b, method=method.rstrip(")") + (", " if "(" in method else "(") + "lengthen=False)")
        r = swell.solve(A, b, method=method)
        assert not short.converged and short.residual > 1e-5
        assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
        assert any("to 324" in note for note in r.notes)


@pytest.mark.parametrize("method", METHODS)
def test_a_singular_preconditioner_leaves_the_least_residual(method):
    """A M is singular, and the last column of H is rounding: x without it has the least residual."""
    A, M, b = np.diag([2.0, 3.0, 4.0]), np.diag([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])
    r = swell.solve(A, b, x0=np.array([1.0, 0.0, 0.0]), M=M, method=method, rtol=1e-15)
    assert r.reason is swell.Reason.BREAKDOWN
    assert np.allclose(M @ A @ r.x, M @ b) and r.residual == pytest.approx(1 / np.sqrt(2))


@pytest.mark.parametrize("method", METHODS)
def test_a_singular_matrix_leaves_the_least_residual(method, device):
    A, b = sp.diags_array([2.0, 3.0, 0.0], format="csr"), np.array([0.0, 1.0, 1.0])
    r = swell.solve(A, b, x0=np.array([1.0, 0.0, 0.0]), method=method, rtol=1e-15, device=device)
    assert not r.converged and np.allclose(r.x[:2], [0, 1 / 3]) and r.residual == pytest.approx(1 / np.sqrt(2))
