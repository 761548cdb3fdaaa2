"""The contract of smoothers: their formulas, what the theory promises of them, and how they are used."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from tests.support.cases import real_matrix, rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.registry import names, resolve
from swell.core.stopping import Reason
from swell.formats.csr import CSRMatrix
from swell.smoothers.chebyshev import coefficients
from swell.smoothers.smoother import SmootherOperator

N = 300                 # no multiple of any slice's height
REAL = ["nos7", "gr_30_30", "1138_bus", "bcsstk14", "ml_elasticity", "hypre_beam_tet_dof2475"]


def general(dtype):
    """Rows of many lengths, a pattern that is not symmetric, a dominant diagonal, couplings near and far."""
    random = rng()
    offsets = [-31, -5, -1, 1, 2, 33, 40]
    near = sp.diags_array([random.standard_normal(N) for _ in offsets], offsets=offsets, shape=(N, N))
    A = near + sp.random_array((N, N), density=0.01, rng=random)
    A = sp.csr_array(A).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A.data = A.data * np.exp(1j * random.random(A.nnz))
    A = A + sp.diags_array(1 + np.asarray(abs(A).sum(axis=1)).ravel() * (1 + random.random(N)))
    A = sp.csr_array(A)
    A.sort_indices()
    return A.astype(dtype)


def vector(seed, dtype, n=N):
    values = np.random.default_rng(seed).standard_normal((n, 2)) @ [1, 1j]
    return values.astype(dtype) if np.dtype(dtype).kind == "c" else values.real.astype(dtype)


def built(settings, A, space) -> SmootherOperator:
    return resolve("smoother", settings).build(CSRMatrix.from_scipy(sp.csr_array(A), space))


def smoothed(operator, b, x, sweeps):
    """x after so many sweeps, on the host."""
    space = operator.space
    x = space.from_host(x.copy())
    operator.smooth(space.from_host(b), x, sweeps)
    return space.to_host(x)


# -- the formulas, in dense algebra ------------------------------------------------------------------------------------

def jacobi_sweep(A, b, x, omega):
    return x + omega * (b - A @ x) / np.diag(A)                                # (4.1)


def forward(A, b, x):
    return la.solve_triangular(np.tril(A), b - np.triu(A, 1) @ x, lower=True)  # (4.2)


def backward(A, b, x):
    return la.solve_triangular(np.triu(A), b - np.tril(A, -1) @ x)             # (4.4)


def warp_wise(A, b, y):
    """(4.14), its roles of the lower and the upper part corrected: D, N = L + D + U of the warps, M below, O above."""
    warp = np.arange(len(b)) // 32
    same, below = warp[:, None] == warp, warp[:, None] > warp
    M, N_, D = A * below, A * same, np.diag(np.diag(A))
    new, old = M + np.tril(N_, -1), np.triu(N_, 1) + A * ~(same | below)
    return np.linalg.solve(D + new, b - old @ y)


def cg(A, b, sweeps):
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    for _ in range(sweeps):
        q = A @ p
        alpha = np.vdot(r, r).real / np.vdot(p, q).real
        x, new = x + alpha * p, r - alpha * q
        p, r = new + np.vdot(new, new).real / np.vdot(r, r).real * p, new
    return x


def inner_solve(inner, A, b, sweeps, omega=1.0):
    y = np.zeros_like(b)
    if inner == "exact":
        return np.linalg.solve(A, b)
    if inner == "cg":
        return cg(A, b, sweeps)
    for _ in range(sweeps):
        y = jacobi_sweep(A, b, y, omega) if inner == "jacobi" else warp_wise(A, b, y)
    return y


def block_sweep(A, b, x, inner, sweeps, height, in_turn=False, omega=1.0):
    """(4.8) and (4.9); in turn: block Gauss–Seidel."""
    old, new = x.copy(), x.copy()
    for first in range(0, len(x), height):
        rows = slice(first, first + height)
        r = b[rows] - A[rows] @ (new if in_turn else old)
        new[rows] += inner_solve(inner, A[rows, rows], r, sweeps, omega)
    return new


def hermitian(dtype):
    """Positive definite, for inner conjugate gradients."""
    A = general(dtype)
    return sp.csr_array(A + A.conj().T)


def compare(settings, A, sweep, space, sweeps=(1, 2, 3)):
    """Some sweeps on a guess, and the preconditioner from zero, against the formula."""
    dtype, dense = A.dtype, A.toarray()
    with space.active():
        operator = built(settings, A, space)
        b, x = vector(1, dtype), vector(2, dtype)
        for count in sweeps:
            expected = x
            for _ in range(count):
                expected = sweep(dense, b, expected)
            assert np.allclose(smoothed(operator, b, x, count), expected, rtol=1e-11, atol=1e-13)
        out = space.xp.full(N, np.nan, dtype)
        operator.apply(space.from_host(b), out)
        expected = np.zeros(N, dtype)
        for _ in range(operator.settings.sweeps):
            expected = sweep(dense, b, expected)
        assert np.allclose(space.to_host(out), expected, rtol=1e-11, atol=1e-13)
        return operator


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("omega", [1.0, 0.6])
def test_jacobi(omega, sweeps, dtype, space):
    compare(swell.JacobiSmoother(sweeps=sweeps, omega=omega), general(dtype),
            lambda A, b, x: jacobi_sweep(A, b, x, omega), space)


SWEEPS = {"forward": forward, "backward": backward, "symmetric": lambda A, b, x: backward(A, b, forward(A, b, x))}


@pytest.mark.parametrize("direction", SWEEPS)
def test_gauss_seidel_in_natural_order(direction, dtype):
    compare(swell.GaussSeidel(direction=direction, coloring="natural", sweeps=2), general(dtype), SWEEPS[direction],
            space_or_skip("cpu"))


@pytest.mark.parametrize("coloring", ["greedy", "jones_plassmann"])
@pytest.mark.parametrize("direction", SWEEPS)
def test_gauss_seidel_by_colours_is_that_of_the_sorted_matrix(direction, coloring, dtype, space):
    from swell.orderings import multicolor
    A = general(dtype)
    own = CSRMatrix.from_scipy(A, space_or_skip("cpu"))
    order = np.argsort(getattr(multicolor, coloring)(own), kind="stable")

    def sweep(dense, b, x):
        new = np.empty_like(x)
        new[order] = SWEEPS[direction](dense[np.ix_(order, order)], b[order], x[order])
        return new

    operator = compare(swell.GaussSeidel(direction=direction, coloring=coloring), A, sweep, space)
    assert operator.colors > 2


def iterated(inner, sweeps):
    """How many inner sweeps there are, for an inner solver that has any."""
    return {} if inner == "exact" else {"inner_sweeps": sweeps}


@pytest.mark.parametrize("height", [32, 128, 320])
@pytest.mark.parametrize("inner", ["jacobi", "gauss_seidel", "cg", "exact"])
def test_block_jacobi(inner, height, dtype, space):
    A = hermitian(dtype) if inner == "cg" else general(dtype)
    compare(swell.BlockJacobiSmoother(inner=inner, height=height, **iterated(inner, 3)), A,
            lambda A, b, x: block_sweep(A, b, x, inner, 3, height), space)


@pytest.mark.parametrize("height", [32, 320])
def test_inner_jacobi_damped(height, dtype, space):
    compare(swell.BlockJacobiSmoother(omega=0.6, height=height, inner_sweeps=4), general(dtype),
            lambda A, b, x: block_sweep(A, b, x, "jacobi", 4, height, omega=0.6), space)


def test_one_inner_sweep_of_jacobi_is_jacobi(dtype, space):
    """The remark at the end of section 4.3.1."""
    compare(swell.BlockJacobiSmoother(inner_sweeps=1), general(dtype), lambda A, b, x: jacobi_sweep(A, b, x, 1.0),
            space)


@pytest.mark.parametrize("inner", ["jacobi", "gauss_seidel", "cg", "exact"])
def test_block_gauss_seidel(inner, dtype):
    A = hermitian(dtype) if inner == "cg" else general(dtype)
    compare(swell.BlockGaussSeidel(inner=inner, direction="forward", height=96, **iterated(inner, 3)), A,
            lambda A, b, x: block_sweep(A, b, x, inner, 3, 96, in_turn=True), space_or_skip("cpu"))


def test_block_gauss_seidel_goes_back_too():
    A = general("float64")
    back = swell.BlockGaussSeidel(direction="backward", height=96)

    def sweep(A, b, x):
        blocks, new = [slice(k, k + 96) for k in range(0, N, 96)], x.copy()
        for rows in blocks[::-1]:
            new[rows] += np.linalg.solve(A[rows, rows], b[rows] - A[rows] @ new)
        return new

    compare(back, A, sweep, space_or_skip("cpu"))


@pytest.mark.parametrize("inner", ["jacobi", "gauss_seidel", "cg"])
def test_inner_sweeps_end_at_their_tolerance(inner, space):
    """The squared norm of what is left of every block's residual is below the tolerance, and not without need."""
    A, b, x = hermitian("float64"), vector(1, "float64"), vector(2, "float64")
    with space.active():
        def run(**more):
            return smoothed(built(swell.BlockJacobiSmoother(inner=inner, height=128, **more), A, space), b, x, 1)

        blocks = np.arange(N) // 128
        D = A.toarray() * (blocks[:, None] == blocks)
        start = b - A @ x                        # what the inner solves begin with
        for tolerance in (1e-4, 1e-20):
            left = start - D @ (run(inner_sweeps=1000, inner_tolerance=tolerance) - x)
            norms2 = [np.vdot(left[blocks == k], left[blocks == k]) for k in range(blocks.max() + 1)]
            assert all(1e-8 * tolerance < norm2 <= tolerance for norm2 in norms2)
        nothing = run(inner_sweeps=1000, inner_tolerance=1e30)
        assert (nothing == x).all()


def test_chebyshev_is_the_polynomial(dtype, space):
    """By its error: p(D⁻¹A) e with p(t) = T_k((high + low − 2t) / (high − low)) / T_k((high + low) / (high − low))."""
    A = hermitian(dtype)
    with space.active():
        operator = built(swell.Chebyshev(degree=4, fraction=0.2), A, space)
        low, high = operator.bounds
        scale = np.sqrt(A.diagonal().real)
        values, vectors = np.linalg.eigh(A.toarray() / np.outer(scale, scale))
        assert low == pytest.approx(0.2 * high) and high >= values[-1]
        T = np.polynomial.chebyshev.Chebyshev.basis(4)
        p = T((high + low - 2 * values) / (high - low)) / T((high + low) / (high - low))
        x = vector(2, dtype)
        for sweeps in (1, 2):
            expected = (vectors * p**sweeps) @ (vectors.conj().T @ (scale * x)) / scale
            assert np.allclose(smoothed(operator, np.zeros(N, dtype), x, sweeps), expected, rtol=1e-10, atol=1e-12)


def test_chebyshev_on_a_point_is_richardson():
    assert np.allclose(coefficients(2.0, 2.0, 3), [0, 0.5] * 3)


# -- what the theory promises ------------------------------------------------------------------------------------------

def energy(A, x):
    """‖x‖_A, the error's norm where the solution is 0."""
    return float(np.sqrt(max(np.vdot(x, A @ x).real, 0.0)))


def energies(settings, A, space, sweeps=20):
    """‖e‖_A before and after every sweep, from a random error."""
    with space.active():
        operator = built(settings, A, space)
        x, zero = vector(3, A.dtype, A.shape[0]), np.zeros(A.shape[0], A.dtype)
        found = [energy(A, x)]
        for _ in range(sweeps):
            x = smoothed(operator, zero, x, 1)
            found.append(energy(A, x))
        return np.array(found), operator


def falls(history):
    return (np.diff(history) <= 1e-12 * history[0]).all() and history[-1] < history[0]


def largest(A):
    """The largest eigenvalue of D⁻¹A."""
    import scipy.sparse.linalg as spla
    d = sp.diags_array(1 / np.sqrt(A.diagonal()))
    return float(spla.eigsh(sp.csr_array(d @ A @ d), 1, which="LA", return_eigenvectors=False, tol=1e-8)[0])


def definite(A):
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


GALLERY = {"poisson2d": lambda: gallery.poisson2d(24), "p1": lambda: gallery.p1_laplacian(800),
           "anisotropic": lambda: gallery.anisotropic2d(20), "jumping": lambda: gallery.jumping_diffusion((9, 9, 9)),
           "elasticity": lambda: gallery.elasticity2d(14)}


@pytest.fixture(params=[*GALLERY, *(pytest.param(n, marks=pytest.mark.data) for n in REAL)])
def spd(request):
    """An SPD matrix of moderate size."""
    name = request.param
    A = GALLERY[name]() if name in GALLERY else real_matrix(request.getfixturevalue("data"), name)
    return sp.csr_array(A).astype(np.float64)    # some come with integers


def test_gauss_seidel_reduces_the_energy(spd, space):
    for settings in (swell.GaussSeidel(), swell.GaussSeidel(direction="forward"),
                     swell.GaussSeidel(direction="backward", coloring="jones_plassmann"),
                     swell.GaussSeidel(coloring="greedy")):
        assert falls(energies(settings, spd, space)[0]), settings


def test_block_gauss_seidel_reduces_the_energy(spd):
    for settings in (swell.BlockGaussSeidel(), swell.BlockGaussSeidel(direction="forward", height=128)):
        assert falls(energies(settings, spd, space_or_skip("cpu"), 8)[0]), settings


def test_jacobi_reduces_the_energy_where_2d_minus_a_is_definite(spd, space):
    most = largest(spd)
    safe = swell.JacobiSmoother(omega=min(1.9 / most, 1.0))
    assert falls(energies(safe, spd, space)[0])
    plain = energies(swell.JacobiSmoother(), spd, space, 200)[0]
    if most < 2:
        assert falls(plain)
    elif most > 2.2:                             # and not elsewhere: it diverges
        assert plain[-1] > plain[100]


def test_block_jacobi_reduces_the_energy_where_theory_says_so(spd, space):
    height = 64
    A = spd.toarray()
    block = np.arange(A.shape[0]) // height
    D = A * (block[:, None] == block)
    history = energies(swell.BlockJacobiSmoother(inner="exact", height=height), spd, space)[0]
    if definite(2 * D - A):
        assert falls(history)
    else:
        assert not falls(energies(swell.BlockJacobiSmoother(inner="exact", height=height), spd, space, 400)[0][300:])


def test_chebyshev_reduces_the_energy(spd, space):
    history, operator = energies(swell.Chebyshev(degree=4), spd, space)
    assert operator.bounds[1] >= largest(spd) * (1 - 1e-8)
    assert falls(history)


@pytest.mark.parametrize("inner", ["jacobi", "gauss_seidel", "cg", "exact"])
def test_asynchronous_sweeps_converge(inner, space):
    A = gallery.poisson2d(55)                    # an M-matrix, for which any order of updates converges
    settings = swell.BlockJacobiSmoother(inner=inner, asynchronous=True, height=64, **iterated(inner, 10))
    in_step = swell.BlockJacobiSmoother(inner=inner, height=64, **iterated(inner, 10))
    with space.active():
        operator = built(settings, A, space)
        x, zero = vector(3, A.dtype, A.shape[0]), np.zeros(A.shape[0])
        after = energy(A, smoothed(operator, zero, x, 300))
        synchronous = energy(A, smoothed(built(in_step, A, space), zero, x, 200))
    assert operator.variable and after < 0.1 * energy(A, x)
    assert after <= synchronous                  # the paper finds no gain; at least not half as many again are needed


@pytest.mark.data
def test_flat_cells(data, space):
    """foam_hump_p, condition 1e10: every smoother still reduces the energy."""
    A = real_matrix(data, "foam_hump_p")
    for settings in ("gauss_seidel", "chebyshev", "block_jacobi_sweeps(inner='exact', height=64)", "jacobi_sweeps(omega=0.9)"):
        assert falls(energies(settings, A, space, 5)[0]), settings


# -- use ---------------------------------------------------------------------------------------------------------------

SMOOTHERS = ["jacobi_sweeps(omega=0.8)", "gauss_seidel", "gauss_seidel(coloring='greedy')", "block_jacobi_sweeps",
             "chebyshev", "block_jacobi_sweeps(inner='exact', height=64)"]


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_cg_takes_fewer_iterations(smoother, device):
    A = gallery.poisson2d(40)
    b = vector(1, "float64", 1600)
    plain = swell.solve(A, b, method="cg", scaling=None, device=device)
    for sweeps in (1, 2):
        settings = resolve("smoother", smoother)
        settings = type(settings)(**{**vars(settings), "sweeps": sweeps})
        result = swell.solve(A, b, method="cg", precond=settings, scaling=None, device=device)
        assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
        # The undamped Jacobi inside blocks, or little damping, with one sweep is no better than the diagonal.
        assert result.iterations < plain.iterations or (sweeps == 1 and "jacobi_sweeps(omega" in smoother)


def test_names_of_smoothers_are_preconditioners(device):
    A, b = gallery.poisson2d(20), np.ones(400)
    for name in ("jacobi_sweeps", "gauss_seidel", "block_jacobi_sweeps", "chebyshev"):
        assert swell.solve(A, b, method="cg", precond=name, device=device).converged
    assert swell.solve(A, b, method="cg", precond=swell.BlockGaussSeidel(), device="cpu").converged


def test_an_asynchronous_preconditioner_needs_a_flexible_method(device):
    A, b = gallery.poisson2d(40), np.ones(1600)
    M = swell.BlockJacobiSmoother(asynchronous=True, height=64)
    with pytest.raises(swell.InputError, match="fgmres"):
        swell.solve(A, b, method="cg", precond=M, device=device)
    assert swell.solve(A, b, method="fgmres", precond=M, device=device).converged
    assert swell.solve(A, b, method="fgmres", precond=swell.BlockJacobiSmoother(inner="cg"), device=device).converged


@pytest.mark.parametrize("smoother", names("smoother"))
def test_a_smoother_alone(smoother, device):
    if smoother == "block_gauss_seidel" and device == "cuda":
        pytest.skip("on a CPU only")
    A, b = gallery.poisson2d(12), np.ones(144)
    method = swell.Stationary(smoother=smoother, every=7)
    solver = swell.prepare(A, method=method, device=device)
    result = solver.solve(b)
    assert result.converged and result.method == "stationary"
    assert np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
    assert result.preconditioner_applications == 7 * result.iterations
    again = solver.update(3 * A).solve(b)        # captured work takes the new values
    assert again.converged and np.linalg.norm(b - 3 * A @ again.x) <= 1e-8 * np.linalg.norm(b)
    assert (again.iterations, again.history[1]) == (result.iterations, pytest.approx(result.history[1]))
    short = swell.solve(A, b, method=method, maxiter=2, device=device)
    assert short.reason is Reason.MAXITER and short.iterations == 2


def test_an_odd_number_of_sweeps_leaves_x_alone_after_the_end(device):
    """Graphs run on after the judge has spoken: two buffers must not be exchanged then."""
    A, b = gallery.poisson2d(12), np.ones(144)
    for every in (1, 3):
        result = swell.solve(A, b, method=swell.Stationary(smoother="jacobi_sweeps", every=every), device=device, rtol=1e-6)
        assert result.converged and result.history[-1] == pytest.approx(result.residual, rel=1e-6)


def test_a_smoother_that_diverges_is_said(device):
    A = sp.csr_array(np.kron(np.eye(50), 0.1 * np.eye(3) + 0.9))               # SPD, but 2D − A is indefinite
    result = swell.solve(A, np.ones(150), method=swell.Stationary(smoother="jacobi_sweeps"), device=device)
    assert result.reason is Reason.DIVERGED


@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize("smoother", names("smoother"))
def test_smoothers_take_every_type(smoother, kind, device):
    if smoother == "block_gauss_seidel" and device == "cuda":
        pytest.skip("on a CPU only")
    space = space_or_skip(device)
    A = hermitian(kind)
    with space.active():
        x = smoothed(built(smoother, A, space), np.zeros(N, kind), vector(2, kind), 3)
    assert x.dtype == kind and energy(A, x) < energy(A, vector(2, kind))


def test_an_empty_system(device):
    space = space_or_skip(device)
    A = sp.csr_array((0, 0))
    with space.active():
        for name in names("smoother"):
            if device == "cpu" or name != "block_gauss_seidel":
                x = space.empty(0, np.float64)
                built(name, A, space).smooth(x, x)


# -- errors ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("smoother", names("smoother"))
def test_a_zero_on_the_diagonal_is_named(smoother, device):
    if smoother == "block_gauss_seidel" and device == "cuda":
        pytest.skip("on a CPU only")
    A = general("float64").tolil()
    A[5, 5] = 0
    space = space_or_skip(device)
    with space.active(), pytest.raises(swell.InputError, match="first in row 5"):
        built(smoother, A.tocsr(), space)


@pytest.mark.parametrize("settings, words", [
    ("jacobi_sweeps(omega=3)", "at most 2"), ("gauss_seidel(direction='up')", "'forward', 'backward' or 'symmetric'"),
    ("jacobi_sweeps(sweeps=0)", "at least 1"), ("gauss_seidel(coloring='red')", "jones_plassmann"),
    ("block_jacobi_sweeps(height=100)", "multiple of 32"), ("block_jacobi_sweeps(height=2048)", "at most 1024"),
    ("block_jacobi_sweeps(inner='lu')", "exact"), ("chebyshev(fraction=2)", "0.1"), ("gauss_siedel", "gauss_seidel"),
    ("block_jacobi_sweeps(inner_tolerance=-1)", "at least 0"), ("block_jacobi_sweeps(omega=0)", "above 0")])
def test_settings_are_checked(settings, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("smoother", settings)


def test_a_misspelt_smoother_of_a_method_is_told_at_once():
    with pytest.raises(swell.InputError, match="did you mean 'jacobi_sweeps'"):
        swell.Stationary(smoother="jacobi_sweep")


def test_a_matrix_must_be_square():
    space = space_or_skip("cpu")
    with pytest.raises(swell.InputError, match="square"):
        built("jacobi_sweeps", sp.csr_array(np.ones((2, 3))), space)


def test_chebyshev_wants_a_positive_spectrum():
    with pytest.raises(swell.InputError, match="positive definite"):
        built("chebyshev", gallery.shifted_laplacian((20, 20), 0.5), space_or_skip("cpu"))


def test_inverses_that_do_not_fit(monkeypatch):
    space = space_or_skip("cpu")
    monkeypatch.setattr(type(space), "memory", lambda self: (1 << 20, 1 << 30))
    with pytest.raises(swell.OutOfMemory, match="choose a height below 512, or inner='jacobi'"):
        built("block_jacobi_sweeps(inner='exact')", gallery.poisson2d(40), space)


def test_a_singular_block_is_named():
    A = sp.csr_array(sp.block_diag([np.eye(64), np.ones((64, 64)), np.eye(64)]))
    with pytest.raises(swell.InputError, match="singular"):
        built("block_jacobi_sweeps(inner='exact', height=64)", A, space_or_skip("cpu"))


def test_forward_inner_sweeps_have_no_adjoint():
    A = general("float64")
    space = space_or_skip("cpu")
    for settings in ("block_jacobi_sweeps(inner='gauss_seidel')", "block_jacobi_sweeps(inner='cg')"):
        with pytest.raises(swell.InputError, match="adjoint"):
            built(settings, A, space).apply_adjoint(vector(1, "float64"), vector(2, "float64"))


@pytest.mark.gpu
def test_what_a_gpu_cannot_do_is_said():
    space = space_or_skip("cuda")
    with space.active():
        with pytest.raises(swell.InputError, match="jones_plassmann"):
            built("gauss_seidel(coloring='natural')", gallery.poisson2d(10), space)
        with pytest.raises(swell.InputError, match="asynchronous"):
            built("block_gauss_seidel", gallery.poisson2d(10), space)
        dense = sp.csr_array(np.ones((1024, 1024)) + 2000 * np.eye(1024))
        with pytest.raises(swell.InputError, match="exact"):
            built("block_jacobi_sweeps(height=1024)", dense, space)
        banded = sp.csr_array(sp.diags_array([np.ones(2048)] * 60, offsets=range(-30, 30), shape=(2048, 2048)))
        banded = sp.csr_array(banded + 100 * sp.eye_array(2048))
        with pytest.raises(swell.InputError, match="height=352 or less fits"):
            built("block_jacobi_sweeps(height=1024)", banded, space)
        built("block_jacobi_sweeps(height=352)", banded, space)
