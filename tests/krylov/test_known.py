"""Krylov methods against what is known of them: exact termination, methods that coincide, other codes, breakdowns."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import complex_symmetric, hermitian, hermitian_indefinite, real_matrix, rng, unsymmetric

import swell
from swell import gallery
from swell.core.stopping import Reason

SHORT = ("bicgstab", "bicgstabl", "tfqmr", "qmr", "idrs")       # short recurrences for any square matrix
SYMMETRIC = ("cocg", "cocr")


def dense(n, dtype, symmetric=False):
    """A small full system of moderate condition."""
    parts = rng().standard_normal((2, n, n))
    A = parts[0] + (1j * parts[1] if dtype == "complex128" else 0)
    if symmetric:
        A = A + A.T
    A = A / np.sqrt(n) + 3 * np.eye(n)
    return sp.csr_array(A), A @ np.ones(n)


def history_of(solver, A, b, **more):
    """Relative residuals of a solver of SciPy after each iteration."""
    norms = [1.0]
    solver(A, b, atol=0.0, callback=lambda x: norms.append(np.linalg.norm(b - A @ x) / np.linalg.norm(b)), **more)
    return np.array(norms)


@pytest.mark.parametrize("method, products", [
    ("qmr", 24), ("tfqmr", 24), ("bicgstab", 24), ("cocg", 12), ("cocr", 12), ("bicgstabl(l=2)", 24),
    ("bicgstabl(l=4)", 24), ("bicgstabl(l=6)", 24), ("idrs(s=1)", 24), ("idrs(s=2)", 18),
    ("idrs(s=4)", 15), ("idrs(s=6)", 14)])
def test_exact_arithmetic_would_end_after_n_steps(method, products, dtype, device):
    """2 n products with two spaces, n with one, n + n/s with a shadow space of s: rounding allows little more."""
    A, b = dense(12, dtype, symmetric=method in SYMMETRIC)
    r = swell.solve(A, b, method=method, device=device, rtol=1e-7)
    assert r.converged and r.products - 1 <= products


@pytest.mark.parametrize("precond", [None, "jacobi"])
def test_bicgstabl_of_degree_one_is_bicgstab(precond, dtype):
    A, b = unsymmetric().astype(dtype), rng().standard_normal(200)
    one, plain = (swell.solve(A, b, method=m, precond=precond) for m in ("bicgstabl(l=1, convex=0)", "bicgstab"))
    assert abs(one.iterations - plain.iterations) <= 1
    assert one.history[:12] == pytest.approx(plain.history[:12], rel=1e-8)


def test_idr_of_one_dimension_is_bicgstab_with_longer_steps():
    """Both keep the cosine of (r, A r) above 0.7, and the same shadow vector."""
    A, b = unsymmetric(), rng().standard_normal(200)
    one, same = (swell.solve(A, b, method=m) for m in ("idrs(s=1)", "bicgstabl(l=1)"))
    assert one.history[:12] == pytest.approx(same.history[:12], rel=1e-8)


@pytest.mark.parametrize("precond", [None, "jacobi", "ic0"])
def test_cocg_on_a_real_system_is_cg(precond, device):
    A, b = gallery.poisson2d(20), rng().standard_normal(400)
    here, cg = (swell.solve(A, b, method=m, precond=precond, device=device) for m in ("cocg", "cg"))
    assert here.iterations == cg.iterations and here.history == pytest.approx(cg.history, rel=1e-6)


@pytest.mark.parametrize("method", ["minres", "cocr"])
def test_the_least_residuals_of_an_indefinite_matrix(method):
    """COCR on a real system is the method of conjugate residuals, which has the residuals of MINRES."""
    A, b = gallery.shifted_laplacian((9, 9), 0.5), rng().standard_normal(81)
    r = swell.solve(A, b, method=method, rtol=1e-9)
    V, H = np.linalg.qr(np.array([b]).T)[0], None
    least = [1.0]
    for k in range(1, 20):                                       # the least residual of each Krylov space
        V = np.linalg.qr(np.column_stack([V, A @ V[:, -1]]))[0]
        H = A @ V[:, :k]
        least.append(np.linalg.norm(b - H @ np.linalg.lstsq(H, b)[0]) / np.linalg.norm(b))
    assert r.converged and r.history[:20] == pytest.approx(np.array(least), rel=1e-5)
    assert (np.diff(r.history) <= 1e-12).all()


def stokes(n):
    """A saddle point of an n × n grid of Poisson matrices in two components, and the inverse of blocks of its diagonal."""
    K = sp.block_diag([gallery.poisson2d(n)] * 2)
    d = sp.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, -1])
    B = sp.hstack([sp.kron(sp.eye_array(n), d), sp.kron(d, sp.eye_array(n))])
    inverse = spla.splu(sp.csc_matrix(K))
    mass = 1 / (B @ inverse.solve(B.T.toarray())).diagonal()                 # in place of the Schur complement
    M = spla.LinearOperator((3 * n * n, 3 * n * n), dtype=float, matvec=lambda x: np.concatenate(
        [inverse.solve(x[:2 * n * n]), mass * x[2 * n * n:]]))
    return sp.csr_array(sp.block_array([[K, B.T], [B, None]])), M


@pytest.mark.parametrize("system", ["shifted", "hermitian", "stokes", "stokes with blocks"])
def test_minres_takes_the_iterations_of_scipys(system):
    """Whose count is of the same residuals, ‖b − A x‖₂ of each iterate."""
    A, M = gallery.shifted_laplacian((20, 20), 0.5), None
    if system == "hermitian":
        A = hermitian_indefinite()
    elif system != "shifted":
        A, M = stokes(8)
        M = M if "blocks" in system else None
    b = A @ rng().standard_normal(A.shape[0])
    ours = swell.solve(A, b, method="minres", M=M)
    theirs = history_of_minres(A, b, M)
    assert ours.converged and np.linalg.norm(b - A @ ours.x) <= 1e-8 * np.linalg.norm(b)
    assert abs(ours.iterations - np.flatnonzero(theirs <= 1e-8)[0]) <= 1 + 0.05 * ours.iterations
    same = min(20, ours.iterations)
    assert ours.history[:same] == pytest.approx(theirs[:same], rel=1e-6)


def history_of_minres(A, b, M):
    """Relative residuals of SciPy's minres; it has no complex numbers, and A is then [Re −Im; Im Re]."""
    if A.dtype.kind == "c":
        A, b = sp.csr_array(sp.block_array([[A.real, -A.imag], [A.imag, A.real]])), np.concatenate([b.real, b.imag])
    norms = [1.0]
    spla.minres(A, b, M=M, rtol=1e-14, callback=lambda x: norms.append(np.linalg.norm(b - A @ x) / np.linalg.norm(b)))
    return np.array(norms)


def test_minres_with_blocks_takes_as_many_steps_on_a_finer_grid():
    counts = []
    for n in (8, 16):
        A, M = stokes(n)
        counts.append(swell.solve(A, np.ones(3 * n * n), method="minres", M=M).iterations)
    assert counts[1] <= 1.5 * counts[0] <= 90


def test_minres_solves_a_singular_system_that_has_solutions(device):
    A = gallery.neumann((20, 20))
    b = A @ rng().standard_normal(400)
    r = swell.solve(A, b, method="minres", device=device)
    assert r.converged and abs(r.x.sum()) <= 1e-6 * np.linalg.norm(r.x)          # nothing of the null space came in


@pytest.mark.parametrize("seed", range(3))
def test_minres_stays_near_the_least_squares_solution_of_a_system_that_has_none(seed, device):
    """It ends where rounding would spoil x: the residual is the part of b that is not in the range."""
    A, b = gallery.neumann((12, 12)), np.random.default_rng(seed).standard_normal(144)
    r = swell.solve(A, b, method="minres", device=device)
    assert r.reason is Reason.BREAKDOWN
    assert r.residual == pytest.approx(abs(b.sum()) / 12 / np.linalg.norm(b), rel=0.1)


@pytest.mark.parametrize("M", [-np.eye(144), np.diag(np.r_[-1.0, np.ones(143)]), np.zeros((144, 144))])
def test_minres_with_a_preconditioner_that_is_not_definite(M):
    A = gallery.poisson2d(12)
    r = swell.solve(A, np.ones(144), method="minres", M=M)
    assert r.reason is Reason.INDEFINITE and "minres: the preconditioner" in r.message
    assert np.linalg.norm(np.ones(144) - A @ r.x) == pytest.approx(12 * r.residual)


def test_minres_with_a_diagonal_of_both_signs_as_its_preconditioner(device):
    A = gallery.poisson2d(12) - 8 * sp.diags_array(np.r_[1.0, np.zeros(143)])
    r = swell.solve(A, np.ones(144), method="minres", precond="jacobi", device=device)
    assert r.reason is Reason.INDEFINITE and np.isfinite(r.x).all()
    assert swell.solve(A, np.ones(144), method="minres", device=device).converged


def test_minres_refuses_what_is_not_hermitian_with_the_place(device):
    A = gallery.poisson2d(12).tolil()
    A[7, 8] = 5
    with pytest.raises(swell.InputError, match=r"minres needs a Hermitian matrix.*\((7, 8|8, 7)\).*'gmres'"):
        swell.solve(A.tocsr(), np.ones(144), method="minres", device=device)
    with pytest.raises(swell.InputError, match="minres needs a preconditioner that is its own adjoint"):
        swell.solve(gallery.poisson2d(12), np.ones(144), method="minres", precond="ilu(drop=0.001)", device=device)


def test_tfqmr_has_the_residuals_of_scipys(dtype):
    """SciPy's shadow vector is r; ours is random, so the same start is made by hand: r = shadow."""
    from swell.core.devices import make_space
    A = unsymmetric().astype(dtype)
    shadow = np.empty(200, dtype)
    make_space("cpu").random(1, shadow)
    ours = swell.solve(A, shadow, method="tfqmr", rtol=1e-9).history
    theirs = history_of(spla.tfqmr, A, shadow, rtol=1e-9)[::2]   # it calls back after every half of an iteration
    assert ours[:10] == pytest.approx(theirs[:10], rel=1e-7)


def test_qmr_has_the_residuals_of_scipys():
    """Whose first left vector is r as well."""
    from swell.core.devices import make_space
    A, first = unsymmetric(), np.empty(200)
    make_space("cpu").random(1, first)
    ours = swell.solve(A, first, method="qmr", rtol=1e-9).history
    theirs = history_of(spla.qmr, A, first, rtol=1e-9)
    assert ours[:15] == pytest.approx(theirs[:15], rel=1e-7)


@pytest.mark.parametrize("method", [*SHORT, *SYMMETRIC])
@pytest.mark.parametrize("precond", [None, "jacobi", "ilu0"])
def test_a_damped_wave(method, precond, device):
    A = complex_symmetric()
    b = A @ rng().standard_normal(225)
    r = swell.solve(A, b, method=method, precond=precond, device=device)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
    assert r.history[-1] == pytest.approx(r.residual, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("method, per_iteration", [("bicgstab", 2), ("tfqmr", 2), ("qmr", 2), ("cocg", 1), ("cocr", 1),
                                                   ("bicgstabl(l=1)", 2), ("bicgstabl(l=8)", 16), ("idrs(s=4)", 5)])
def test_products_of_an_iteration(method, per_iteration):
    A = complex_symmetric()
    r = swell.solve(A, np.ones(225), method=method)
    assert r.converged and r.products == per_iteration * r.iterations + 1                    # one for the true residual


@pytest.mark.parametrize("precond", ["jacobi", "block_jacobi(block=5)", "ilu0", "ilu(level=1)", "ilu(fill=10)", "schwarz",
                                     "chebyshev", "gauss_seidel", "direct"])
@pytest.mark.parametrize("update", [False, True])
def test_qmr_has_the_adjoint_of_every_preconditioner(precond, update, device):
    if device == "cuda" and precond in ("schwarz", "ilu(fill=10)", "direct", "gauss_seidel"):
        pytest.skip("covered on the CPU")
    A = unsymmetric().astype(complex) + 1j * sp.diags_array(rng().random(200))
    b = rng().standard_normal(200)
    solver = swell.prepare(A, method="qmr", precond=precond, device=device, b_like=b)
    assert solver.solve(b).converged
    if update:                                                   # captured work and adjoints follow the new values
        solver.update(2 * A + 1j * sp.eye_array(200))
        r = solver.solve(b)
        fresh = swell.solve(2 * A + 1j * sp.eye_array(200), b, method="qmr", precond=precond, device=device)
        assert r.converged and r.iterations == fresh.iterations
        assert r.x == pytest.approx(fresh.x, rel=1e-12)


def test_qmr_without_an_adjoint_says_so():
    A = unsymmetric()
    with pytest.raises(swell.InputError, match="no adjoint product"):
        swell.solve(spla.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=A.dtype), np.ones(200), method="qmr")
    with pytest.raises(swell.InputError, match="no adjoint product"):
        swell.solve(A, np.ones(200), method="qmr", M=lambda x: x)


@pytest.mark.parametrize("method", SYMMETRIC)
def test_what_is_not_symmetric_is_refused_with_the_place(method, device):
    A = complex_symmetric().tolil()
    A[7, 8] = 2 - 1.5j
    with pytest.raises(swell.InputError, match=rf"{method} needs.*A = Aᵀ.*\((7, 8|8, 7)\).*-1\.5j.*method='bicgstab'"):
        swell.solve(A.tocsr(), np.ones(225), method=method, device=device)
    with pytest.raises(swell.InputError, match="'cg' where A = Aᴴ"):
        swell.solve(hermitian(), np.ones(144), method=method, device=device)


@pytest.mark.parametrize("method", SYMMETRIC)
@pytest.mark.parametrize("precond", ["gauss_seidel(direction='forward')", "ilu(drop=0.001)"])
def test_a_preconditioner_known_not_to_be_symmetric_is_refused(method, precond):
    with pytest.raises(swell.InputError, match="its own adjoint|M = Mᵀ"):
        swell.solve(complex_symmetric(), np.ones(225), method=method, precond=precond)


@pytest.mark.parametrize("method", SYMMETRIC)
def test_a_vector_whose_form_vanishes_is_a_breakdown(method, device):
    """(1, i)ᵀ (1, i) = 0 at the start: there is no first step, and no x is spoilt."""
    r = swell.solve(sp.csr_array(2 * np.eye(2, dtype=complex)), np.array([1, 1j]), method=method, device=device)
    assert r.reason is Reason.BREAKDOWN and not np.isnan(r.x).any() and r.residual == 1


@pytest.mark.parametrize("method", SHORT)
def test_a_skew_matrix(method, device):
    """(A r, r) = 0 for each r: polynomials of degree one (bicgstab, idrs) stagnate, which is told; others do not."""
    turn = sp.csr_array(np.kron(np.eye(20), [[0.0, 1.0], [-1.0, 0.0]]))
    A = turn @ sp.diags_array(np.repeat(np.arange(1.0, 21), 2))
    b = rng().standard_normal(40)
    r = swell.solve(A, b, method=method, device=device)
    assert r.converged == (np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b))
    assert r.reason in (Reason.CONVERGED, Reason.BREAKDOWN), str(r)
    assert method in ("bicgstab", "idrs") or r.converged


@pytest.mark.parametrize("method", ["bicgstab", "bicgstabl", "tfqmr"])
def test_a_breakdown_is_taken_up_with_another_shadow(method, monkeypatch):
    """(r̂, r) = 0 at the start: by itself that ends the solve; with the next seed it converges."""
    from swell.core.devices import make_space
    A = gallery.convection_diffusion((12, 12), 5.0, "upwind")
    shadow, b = np.empty(144), np.ones(144)
    make_space("cpu").random(1, shadow)
    for _ in range(2):
        b -= shadow * (shadow @ b) / (shadow @ shadow)
    assert swell.solve(A, b, method=method).converged
    monkeypatch.setattr("swell.solving.solve.MAX_RUNS", 1)
    alone = swell.solve(A, b, method=method)
    assert alone.reason is Reason.BREAKDOWN and alone.iterations <= 1 and np.isfinite(alone.x).all()


def test_settings_that_mean_nothing():
    for wrong in ("bicgstabl(l=0)", "bicgstabl(l=9)", "bicgstabl(convex=1)", "idrs(s=0)", "idrs(s=9)", "tfqmr(seed=-1)",
                  "qmr(seed=1.5)"):
        with pytest.raises(swell.InputError, match="expected"):
            swell.solve(np.eye(3), np.ones(3), method=wrong)


@pytest.mark.parametrize("method, products", [("bicgstab", 1400), ("bicgstabl(l=4)", 880), ("bicgstabl(l=8)", 850),
                                              ("tfqmr", 810), ("qmr", 960), ("idrs(s=4)", 640), ("cocg", 440),
                                              ("cocr", 440)])
def test_products_of_a_damped_wave(method, products):
    """Point source, ILU(0), to a true 1e-9: about as many products as for the real cabin below."""
    A = gallery.helmholtz((90, 90), 0.1, 0.05)
    b = np.zeros(A.shape[0], complex)
    b[0] = 1
    r = swell.solve(A, b, method=method, precond="ilu0", rtol=1e-9)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-9
    assert r.products <= products


@pytest.mark.data
@pytest.mark.parametrize("method, products", [("idrs(s=4)", 400), ("cocg", 300)])
def test_the_real_cabin_at_300_hertz(method, products, data):
    """Point source, ILU(0), to a true 1e-9."""
    A = real_matrix(data, "car_cabin")
    b = np.zeros(A.shape[0], complex)
    b[0] = 1
    r = swell.solve(A, b, method=method, precond="ilu0", rtol=1e-9)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-9
    assert r.products <= products


@pytest.mark.parametrize("named, method", [
    ({}, "cocg"), ({"precond": "ilu(level=1)"}, "cocg"), ({"scaling": "jacobi"}, "cocg"),
    ({"precond": "gauss_seidel"}, "cocg"), ({"precond": "shifted_laplacian(inner=gauss_seidel)"}, "cocg"),
    ({"precond": "jacobi_sweeps"}, "cocg"), ({"precond": "gauss_seidel(direction=forward)"}, "bicgstab"),
    ({"precond": "ilu(level=1, solve='sweeps(count=4)')"}, "cocg"), ({"precond": "ilu(drop=0.001)"}, "bicgstab"),
    ({"scaling": "ruiz"}, "bicgstab"), ({"M": lambda r: r}, "bicgstab")])
def test_the_advisor_takes_cocg_where_all_is_symmetric(named, method, nothing_outright):
    A = complex_symmetric()
    r = swell.solve(A, np.ones(225), **named)
    assert r.converged and r.method == method and not r.attempts
    assert method == "bicgstab" or "complex symmetric" in str(r)


@pytest.mark.parametrize("precond", ["ilu(fill=10)", "schwarz", "gauss_seidel(direction=forward)", "ilu0(solve=isai)"])
def test_the_advisor_takes_no_cg_with_what_is_not_symmetric(precond):
    """The user named it: the method has to fit, where it was refused."""
    for A in (gallery.poisson2d(15), gallery.helmholtz((15, 15), 0.3, 0.0), hermitian()):
        r = swell.solve(A, np.ones(A.shape[0]), precond=precond)
        assert r.converged and r.method == "bicgstab" and "with a preconditioner that is not" in str(r)


@pytest.mark.parametrize("k2h2, first", [(0.3, ["cg"]), (7.0, [])])
def test_the_advisor_takes_cocg_where_nothing_damps_a_wave(k2h2, first, nothing_outright):
    """Real entries of a complex type, indefinite: before a factorisation, after cg where the diagonal does not tell."""
    A = gallery.helmholtz((15, 15), k2h2, 0.0)
    assert not A.imag.count_nonzero() and np.linalg.eigvalsh(A.toarray())[0] < 0
    assert (A.diagonal().real.min() > 0) == bool(first)
    methods = [c.name("method") for c in swell.prepare(A).choices]
    assert methods[0] == (first[0] if first else "cocg") and "cocg" in methods and "bicgstab" not in methods
    r = swell.solve(A, np.ones(225))
    assert r.converged and r.method != "cg" and [a.method for a in r.attempts][:len(first)] == first
    definite = swell.solve(A + sp.diags_array(np.full(225, k2h2 + 1)), np.ones(225))
    assert definite.converged and definite.method == "cg"
