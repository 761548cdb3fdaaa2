"""Aᴴ x = b by the setup of A x = b: every algorithm, transforms, updates, columns, copies, and what has no adjoint."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.core.test_canaries import CHOICES, system
from tests.solving.test_together import on_host
from tests.support.cases import badly_scaled
from tests.support.during import during

import swell
from swell import InputError, gallery
from swell.solving.adjoint import AdjointSetup, own_adjoint

N = 133                 # no multiple of a warp, a pack or a slice
NONE = ("stationary",)  # methods without an adjoint


def nonsymmetric(dtype="float64", n=N):
    """Strictly dominant rows, complex ones turned; not near Hermitian or symmetric."""
    A = sp.csr_array(system(n, dtype)[0])
    A = A - 0.7 * sp.triu(A, 1)
    return sp.csr_array((A + 0.4j * sp.eye_array(n)) if np.dtype(dtype).kind == "c" else A).astype(dtype)


def vector(dtype="float64", n=N, k=None, seed=3):
    rng, shape = np.random.default_rng(seed), n if k is None else (n, k)
    b = rng.standard_normal(shape)
    return (b + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else b).astype(dtype)


def check(A, result, b, rtol=1e-8):
    """Converged, and b − Aᴴ x confirms it."""
    assert result.converged, result
    residual = np.linalg.norm(b - A.conj().T @ on_host(result.x), axis=0) / np.linalg.norm(b, axis=0)
    assert (residual <= 1.01 * rtol).all(), residual


@pytest.mark.parametrize("named", CHOICES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_algorithm(named, dtype, device):
    A, b = nonsymmetric(dtype), vector(dtype)
    with during(**named):
        try:
            s = swell.prepare(A, device=device, maxiter=300, **named)
        except InputError as refused:            # Hermitian matrices only, real ones only, a GPU only
            pytest.skip(str(refused))
        if named["method"].startswith(NONE):
            with pytest.raises(InputError, match="stationary has no form for Aᴴ"):
                s.require_adjoint()
            return
        if "smoother" in named:
            with pytest.raises(InputError, match="leave smoother out"):
                s.require_adjoint()
            return
        s.require_adjoint()
        forward, back = s.solve(b), s.solve(b, adjoint=True)
        assert forward.converged, forward
        check(A, back, b)
        assert back.iterations <= 2 * forward.iterations + 10    # Mᴴ is as good as M
        B = vector(dtype, k=3)
        check(A, s.solve(B, adjoint=True), B)
        check(2 * A, s.update(2 * A).solve(b, adjoint=True), b)
        assert s.solve(b).converged


@pytest.mark.parametrize("precond", ["amg", "amg(dtype=float32)", "air"])
def test_multigrid(precond, device):
    A = sp.csr_array(gallery.convection_diffusion((25, 25), 8.0))
    s = swell.prepare(A, method="gmres", precond=precond, device=device)
    b = vector(n=625)
    back = s.solve(b, adjoint=True)
    check(A, back, b)
    assert back.iterations <= 2 * s.solve(b).iterations + 5


@pytest.mark.parametrize("scaling", ["jacobi", "ruiz(symmetric=False)", "ruiz(p=inf)"])
@pytest.mark.parametrize("ordering", [None, "rcm"])
def test_transforms(scaling, ordering, device):
    A = sp.diags_array(np.logspace(-4, 4, N)) @ nonsymmetric() @ sp.diags_array(np.logspace(3, -4, N))
    s = swell.prepare(A, method="gmres(restart=200)", precond="ilu0", scaling=scaling, ordering=ordering, device=device,
                      maxiter=2000)
    b = A.T @ vector()
    check(A, s.solve(b, adjoint=True), b)


def test_residual_weights_stay_in_range(device):
    A = sp.csr_array(1e40 * nonsymmetric() @ sp.diags_array(np.full(N, 1e-25)))
    s = swell.prepare(A, method="bicgstab", scaling="ruiz(symmetric=False)", device=device)
    check(A, s.solve(vector(), adjoint=True), vector())


def test_a_hermitian_matrix_needs_no_more(device):
    A = gallery.poisson2d(15)
    s = swell.prepare(A, method="cg", precond="ic0", device=device)
    b = vector(n=225)
    assert own_adjoint(s.A) == "hermitian"
    assert np.array_equal(on_host(s.solve(b, adjoint=True).x), on_host(s.solve(b).x))
    assert s._prepare(0)._adjoint is None


def test_a_complex_symmetric_matrix_needs_no_more(device):
    A = gallery.helmholtz((13, 11), 0.3, 0.2)
    s = swell.prepare(A, method="cocg", precond="ilu0", device=device)
    b, B = vector("complex128", 143), vector("complex128", 143, 3)
    check(A, s.solve(b, adjoint=True), b)
    check(A, s.solve(B, adjoint=True), B)
    x0 = on_host(s.solve(b, adjoint=True).x)
    assert s.solve(b, x0, adjoint=True).iterations == 0
    assert own_adjoint(s.A) == "symmetric" and s._prepare(0)._adjoint is None


@pytest.mark.parametrize("change", [1e-11, 1e-3])
def test_what_is_not_quite_hermitian_is_not_taken_for_it(change, device):
    """CG's own test lets 1e-11 pass; the adjoint solve must still be judged with Aᴴ."""
    A = gallery.poisson2d(15).tolil()
    A[3, 4] *= 1 + change
    A = sp.csr_array(A)
    s = swell.prepare(A, method="bicgstab", device=device)
    b = vector(n=225)
    assert own_adjoint(s.A) is None
    check(A, s.solve(b, adjoint=True), b)


def test_a_small_block_beside_large_rows_counts():
    """A norm of the whole matrix would overlook it."""
    A = sp.block_diag([sp.csr_array([[1.0, 0.5], [0.0, 1.0]]), 1e20 * sp.eye_array(2)]).tocsr()
    assert own_adjoint(swell.prepare(A, method="bicgstab").A) is None


@pytest.mark.parametrize("named", [{}, {"method": "cg"}], ids=str)
def test_without_names(named, device):
    A = sp.csr_array(gallery.convection_diffusion((14, 14), 6.0)) if not named else gallery.poisson2d(14)
    b = vector(n=196)
    check(A, swell.prepare(A, device=device, **named).solve(b, adjoint=True), b)


@pytest.mark.usefixtures("nothing_outright")
def test_every_choice_of_the_advisor(device):
    A = sp.csr_array(gallery.convection_diffusion((14, 14), 6.0))
    s, b = swell.prepare(A, device=device), vector(n=196)
    for k in range(len(s.choices)):
        check(A, s.prefer(0).solve(b, adjoint=True), b)
        s.prefer(len(s.choices) - 1)


def test_starting_vectors_tolerances_and_monitor(device):
    A, b, seen = nonsymmetric(), vector(), []
    s = swell.prepare(A, method="gmres", precond="ilu0", device=device)
    first = s.solve(b, adjoint=True, monitor=lambda k, r: seen.append(k))
    assert seen[-1] == first.iterations
    assert s.solve(b, first.x, adjoint=True).iterations == 0
    check(A, s.stop_by(swell.Stopping(rtol=1e-12)).solve(b, adjoint=True), b, 1e-12)


def test_copies_and_pickles():
    import pickle
    A, b = nonsymmetric(), vector()
    s = swell.prepare(A, method="gmres", precond="ilu0")
    x = s.solve(b, adjoint=True).x
    for other in (s.copy(), pickle.loads(pickle.dumps(s))):
        assert np.array_equal(other.solve(b, adjoint=True).x, x)
    check(3 * A, s.copy().update(3 * A).solve(b, adjoint=True), b)
    check(A, s.solve(b, adjoint=True), b)


def test_the_setup_is_made_once(monkeypatch):
    A, b, made = nonsymmetric(), vector(), []
    s = swell.prepare(A, method="gmres", precond="ilu0")
    before = AdjointSetup.__init__
    monkeypatch.setattr(AdjointSetup, "__init__", lambda self, setup: (made.append(1), before(self, setup))[1])
    for _ in range(3):
        s.solve(b, adjoint=True)
    assert len(made) == 1
    s.update(2 * A)
    assert len(made) == 1
    s.solve(b, adjoint=True), s.solve(b, adjoint=True)
    assert len(made) == 2


def test_matrix_free():
    A, b = nonsymmetric("complex128"), vector("complex128")
    operator = spla.LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda x: A.conj().T @ x, dtype=A.dtype)
    check(A, swell.prepare(operator, method="gmres").solve(b, adjoint=True), b)
    with pytest.raises(InputError, match="give a LinearOperator with rmatvec"):
        without = spla.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=A.dtype)
        swell.prepare(without, method="gmres").solve(b, adjoint=True)


def test_own_preconditioners():
    A, b = nonsymmetric(), vector()
    d = A.diagonal()
    M = spla.LinearOperator(A.shape, matvec=lambda r: r.ravel() / d, rmatvec=lambda r: r.ravel() / d)
    check(A, swell.prepare(A, method="fgmres", M=M).solve(b, adjoint=True), b)
    check(A, swell.prepare(A, method="gmres", M=sp.diags_array(1 / d)).solve(b, adjoint=True), b)
    with pytest.raises(InputError, match="not a fixed linear map and has no adjoint"):
        swell.prepare(A, method="fgmres", precond=swell.User(lambda r: r / d, variable=True)).require_adjoint()
    with pytest.raises(InputError, match="user function <lambda>, has no adjoint: give a LinearOperator with rmatvec"):
        swell.prepare(A, method="gmres", M=lambda r: r / d).require_adjoint()


def test_bad_input():
    s = swell.prepare(nonsymmetric(), method="gmres")
    with pytest.raises(InputError, match="adjoint='yes': expected True, to solve with Aᴴ, or False"):
        s.solve(vector(), adjoint="yes")


@pytest.mark.parametrize("method", ["gmres", "direct"])
def test_null_spaces_change_places(method, device):
    L = sp.csr_array(np.eye(40, k=1) + np.eye(40, k=-1))
    L = sp.diags_array(L.sum(axis=1)) - L
    d = np.linspace(1, 2, 40)
    A = sp.csr_array(sp.diags_array(d) @ L)                      # A 1 = 0, and Aᵀ (1 / d) = 0
    s = swell.prepare(A, method=method, nullspace=swell.NullSpace("constants", left=1 / d), device=device)
    b = vector(n=40) - vector(n=40).mean()
    r = s.solve(b, adjoint=True)
    check(A, r, b)
    assert abs((1 / d) @ on_host(r.x)) <= 1e-10                  # the x of least norm
    with pytest.raises(InputError, match="b is incompatible"):
        s.solve(b + 1, adjoint=True)
    check(A.T, s.solve(A @ b), A @ b)


def test_a_singular_matrix_is_said():
    s = swell.prepare(sp.csr_array([[1.0, 2, 0], [2, 4, 0], [1, 0, 1]]), method="direct")
    r = s.solve(np.ones(3), adjoint=True)
    assert r.reason is swell.Reason.SINGULAR and not r.converged


def test_what_the_result_tells():
    s = swell.prepare(nonsymmetric(), method="gmres", precond="ilu0")
    text = str(s.solve(vector(), adjoint=True))
    assert "matrix: adjoint of" in text and "preconditioner: " in text
