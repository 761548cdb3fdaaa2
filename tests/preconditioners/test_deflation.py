"""Deflation: its definition, the vectors it finds, what it saves, and how it follows a matrix that changes."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import distributed, gallery
from swell.formats.csr import CSRMatrix
from swell.pde import helmholtz
from swell.preconditioners.deflation import harmonic_ritz

KINDS = {"symmetric": lambda: gallery.poisson2d(12), "hermitian": lambda: hermitian(gallery.poisson2d(12)),
         "waves": lambda: gallery.helmholtz((12, 12)), "convection": lambda: skewed(gallery.poisson2d(12))}


def hermitian(A):
    D = sp.diags_array(np.exp(1j * np.arange(A.shape[0])))
    return sp.csr_array(D @ A @ D.conj())


def skewed(A):
    return sp.csr_array(A + 0.3 * sp.triu(A, 1))


def outliers(n=400, many=6):
    """A diagonal matrix with a few tiny entries, in another basis that leaves it sparse."""
    d = np.linspace(1, 2, n)
    d[:many] = np.geomspace(1e-5, 1e-3, many)
    d[:] = rng().permutation(d)
    L = sp.eye_array(n) + 0.3 * sp.eye_array(n, k=1)
    return sp.csr_array(L.T @ sp.diags_array(d) @ L)


def built(settings, A, space):
    return settings.build(CSRMatrix.from_scipy(sp.csr_array(A), space))


def applied(operator, x, step="apply"):
    out = operator.space.empty(x.size, operator.dtype)
    getattr(operator, step)(operator.space.from_host(x.astype(operator.dtype)), out)
    return operator.space.to_host(out)


@pytest.mark.parametrize("kind", KINDS)
def test_the_definition(kind, space):
    """B from U in dense arithmetic, and its adjoint; U is what is stored, in single precision."""
    A = KINDS[kind]()
    n, D = A.shape[0], A.toarray()
    x = rng().standard_normal((n, 2)) @ ([1, 1j] if D.dtype.kind == "c" else [1, 0])
    with space.active():
        operator = built(swell.Deflation("jacobi", vectors=7), A, space)
        U = space.to_host(operator._U)[:, :n].T.astype(D.dtype)
        found, adjoint = applied(operator, x), applied(operator, x, "apply_adjoint")
    W, M, one = D @ U, np.diag(1 / np.diag(D)), np.eye(n)
    if kind == "convection":
        Q = U @ np.linalg.solve(W.conj().T @ W, W.conj().T)
        B = M @ (one - D @ Q) + Q
    else:
        left = U.T if kind == "waves" else U.conj().T
        Q = U @ np.linalg.solve(left @ W, left)
        B = (one - Q @ D) @ M @ (one - D @ Q) + Q
    for mine, expected in ((found, B @ x), (adjoint, B.conj().T @ x)):
        assert abs(mine - expected).max() <= 2e-6 * abs(expected).max()


def test_harmonic_ritz_values_of_a_whole_space_are_eigenvalues():
    for dtype in (float, complex):
        H = np.triu(rng().standard_normal((8, 7)), -1).astype(dtype)
        H[7] = 0                                 # an invariant subspace
        values, basis = harmonic_ritz(H, 3)
        assert np.allclose(abs(values), np.sort(abs(np.linalg.eigvals(H[:7])))[:3])
        assert basis.dtype == dtype and np.allclose(basis.conj().T @ basis, np.eye(basis.shape[1]))


@pytest.mark.parametrize("method", ["cg", "cocg", "gmres", "idrs", "qmr"])
def test_outliers_cost_no_iterations(method, device):
    A = outliers()
    b = rng().standard_normal(A.shape[0])
    counts = []
    for precond in ("jacobi", swell.Deflation("jacobi", vectors=8, steps=80)):
        r = swell.solve(A, b, method=method, precond=precond, device=device)
        assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
        counts.append(r.iterations)
    assert counts[1] <= 0.6 * counts[0]


def test_without_symmetry(device):
    A = sp.csr_array(outliers() + 0.05 * sp.eye_array(400, k=3))
    b = rng().standard_normal(400)
    counts = [swell.solve(A, b, method="gmres", precond=precond, device=device).iterations
              for precond in ("jacobi", swell.Deflation("jacobi", vectors=8, steps=80))]
    assert counts[1] <= 0.6 * counts[0]


def test_keeping_the_preconditioner_follows_the_values(space):
    """U and M stay, W = A U and E are those of the new values; an update begins anew."""
    first, second = gallery.poisson2d(12), sp.csr_array(gallery.poisson2d(12) + 0.1 * sp.eye_array(144))
    x = rng().standard_normal(144)
    with space.active():
        operator, other = (built(swell.Deflation("jacobi", vectors=5), A, space) for A in (first, second))
        U = space.to_host(operator._U)[:, :144].T.astype(float)
        operator.keep_for(CSRMatrix.from_scipy(second, space))
        found = applied(operator, x)
        operator.update(CSRMatrix.from_scipy(second, space))
        assert np.array_equal(applied(operator, x), applied(other, x))
    D, M = second.toarray(), np.diag(1 / first.diagonal())
    Q = U @ np.linalg.solve(U.T @ D @ U, U.T)
    expected = (np.eye(144) - Q @ D) @ M @ (np.eye(144) - D @ Q) @ x + Q @ x
    assert abs(found - expected).max() <= 2e-6 * abs(expected).max()


@pytest.fixture(scope="module")
def room():
    """K, M, B of a box with a damping wall, at frequencies with some waves inside; and a source."""
    K = gallery.neumann((18, 14, 9))
    n = K.shape[0]
    B = sp.diags_array((np.arange(n) < 300).astype(float))
    b = np.zeros(n)
    b[n // 3] = 1
    return K, 0.5 * sp.eye_array(n, format="csr"), 0.3 * sp.csr_array(B), b


def swept(room, device="cpu", **settings):
    K, M, B, b = room
    sweep = helmholtz.Sweep(K, M, B, device=device, rtol=1e-9, method="cocg", **settings)
    total = 0
    for omega in np.arange(0.5, 0.9, 0.05):
        r = sweep.solve(omega, b)
        sweep._worth = np.inf                    # iterations that a setup would take: measured by the clock, so fixed here
        x = sweep.space.to_host(r.x)
        assert r.converged
        assert np.linalg.norm(b - (K @ x - omega**2 * (M @ x) + 1j * omega * (B @ x))) <= 1e-9 * np.linalg.norm(b)
        total += r.iterations
    return total, sweep


def test_a_sweep_recycles_its_vectors(room, device):
    """They are found once, at the first frequency, and follow the others."""
    without, _ = swept(room, device, precond="ilu0", remember=0)
    total, sweep = swept(room, device, precond="deflation(vectors=20)", remember=0)
    assert sweep.setups == 1 and total <= 0.5 * without


def test_a_sweep_follows_without_a_product(room, space):
    """W by the terms of A(ω) is A U, to single precision, and E is Uᵀ A U to more."""
    K, M, B, b = room
    sweep = helmholtz.Sweep(K, M, B, method="cocg", precond="deflation(inner=jacobi, vectors=6)", device=space.name)
    for omega in (0.5, 0.1, 1.7):
        sweep.solve(omega, b)
        operator = sweep.solver._prepared[0].setup.M
        assert operator._terms
        n = K.shape[0]
        U, W, inverse = (space.to_host(array).astype(complex) for array in (operator._U, operator._W, operator._inverse))
        U, W = U[:, :n].T, W[:, :n].T
        AU = K @ U - omega**2 * (M @ U) + 1j * omega * (B @ U)
        assert abs(W - AU).max() <= 1e-6 * abs(K @ U).max()
        assert np.allclose(inverse @ (U.T @ AU), np.eye(6), atol=1e-6)


@pytest.mark.parametrize("inner", ["jacobi", "schwarz(kind='additive', inner='ic0', overlap=1)"])
def test_across_ranks(inner):
    """The same iterations for an inner preconditioner that no part changes, and nearly so for others."""
    A = outliers()
    b = rng().standard_normal(400)
    settings = swell.Deflation(inner, vectors=8, steps=80)
    alone = swell.solve(A, b, method="cg", precond=settings).iterations

    def solve(ranks):
        M = distributed.scatter(ranks, A)
        r = swell.solve(M, b[M.rows], method="cg", precond=settings)
        return r, M.gather(r.x)

    for r, x in distributed.run(3, solve):
        assert r.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(r.iterations - alone) <= (1 if inner == "jacobi" else 5)


@pytest.mark.parametrize("kind, inner, method", [("symmetric", "jacobi", "cg"), ("waves", "ilu0", "cocg"),
                                                 ("waves", "ilu(fill=10)", "bicgstab"), ("convection", "ilu0", "bicgstab")])
def test_the_advisor_knows_whether_it_is_symmetric(kind, inner, method):
    r = swell.solve(KINDS[kind](), np.ones(144), precond=swell.Deflation(inner, vectors=5))
    assert r.converged and r.method == method and "Deflation() of 5 vectors" in str(r)


def test_what_an_exact_inner_leaves():
    """A M = I: one direction is all there is, and the solve is done at once."""
    r = swell.solve(gallery.poisson2d(10), np.ones(100), method="cg", precond=swell.Deflation("direct", vectors=5))
    assert r.converged and r.iterations <= 2


@pytest.mark.parametrize("settings, message", [
    ({"vectors": 0}, "at least 1"), ({"vectors": 300}, "at most 250"), ({"vectors": 20, "steps": 10}, "at least as many steps"),
    ({"inner": "none"}, "expected a preconditioner"), ({"inner": "nothing"}, "unknown precond")])
def test_settings_that_mean_nothing(settings, message):
    with pytest.raises(swell.InputError, match=message):
        swell.Deflation(**settings)
