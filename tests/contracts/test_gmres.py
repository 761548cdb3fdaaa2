"""What GMRES promises beyond the contract of all methods."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import rng

import swell
from swell import gallery

METHODS = ["gmres", "fgmres"]


def basis_of(A, b, method, steps):
    """The orthonormal basis of one cycle of that many steps."""
    solver = swell.prepare(A, method=f"{method}(restart={steps})", b_like=b, rtol=1e-15, maxiter=steps)
    solver.solve(b)
    iteration = solver._prepared[0].iteration
    # x0 = 0 and one cycle: the basis still stands, but for v₀, which the next cycle's residual has replaced.
    return np.asarray(iteration.V[1:steps])


def ill_conditioned(n, condition):
    """A full-rank unsymmetric matrix with singular values from 1 to 1/condition."""
    left, right = (np.linalg.qr(rng().standard_normal((n, n)) + k)[0] for k in (0, 1))
    return sp.csr_array(left @ np.diag(np.logspace(0, -np.log10(condition), n)) @ right)


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
