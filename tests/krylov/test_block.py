"""Block methods: right-hand sides that share a Krylov space. The contract of single solves is in test_krylov.py."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import gallery
from swell.core.errors import InputError
from swell.core.library import native_kernels
from swell.core.slots import Flag, Limit
from swell.core.stopping import Reason, Stopping
from swell.krylov.block import side_of
from swell.krylov.slots import BlockGMRES
from swell.solving.together import bound
from tests.conftest import space_or_skip
from tests.support.cases import rng
from tests.support.during import during

N = 195                 # no multiple of a warp, a pack or a slice
METHODS = {"block_cg": "cg", "block_gmres(restart=12)": "gmres(restart=12)"}
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
each = pytest.mark.parametrize("method", METHODS)


def system(method, dtype="float64", n=N):
    """A Hermitian positive definite matrix; for GMRES, with convection besides."""
    A = gallery.poisson((n // 15, 15)) + sp.diags_array(0.02 * rng().random(n))
    if "gmres" in method:
        A = A + sp.diags_array([np.full(n - 1, 0.5)], offsets=[1])
    if np.dtype(dtype).kind == "c":
        phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, n)))
        A = phase @ A @ phase.conj()
    return sp.csr_array(A).astype(dtype)


def columns(k, dtype="float64", n=N):
    """k random right-hand sides."""
    B = rng().standard_normal((n, k))
    return (B + 1j * rng().standard_normal((n, k)) if np.dtype(dtype).kind == "c" else B).astype(dtype)


def on_host(x):
    return x.get() if hasattr(x, "get") else np.asarray(x)


def residuals(A, B, X):
    """The true relative residual of each column."""
    norms = np.linalg.norm(B, axis=0)
    return np.linalg.norm(B - A @ on_host(X), axis=0) / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("dtype, precond, scaling", [("float64", None, None), ("complex128", "jacobi", None),
                                                     ("float64", None, "jacobi"), ("complex128", None, "jacobi")])
@each
def test_fewer_iterations_than_independent_columns(method, dtype, precond, scaling, device):
    A = system(method, dtype)
    for k in (2, 3, 8):
        with during(k=k):
            B = columns(k, dtype)
            one, other = (swell.solve(A, B, method=name, precond=precond, scaling=scaling, device=device)
                          for name in (method, METHODS[method]))
            assert one.converged and (residuals(A, B, one.x) <= 1.01e-8).all()
            assert one.notes[0] == "solved together"
            assert max(r.iterations for r in one) <= (1 if k < 8 else 0.85) * max(r.iterations for r in other)
            for r in one:
                assert r.history.size == r.iterations + 1 and r.history[0] == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@each
def test_single_precision(method, dtype):
    A, B = system(method, dtype), columns(4, dtype)
    found = swell.solve(A, B, method=method, rtol=1e-4)
    assert found.converged and found.x.dtype == dtype and (residuals(A, B, found.x) <= 1.5e-4).all()


@each
def test_dependent_columns(method, device):
    """Copies, sums, nearly equal columns, a zero column, and sizes that differ by 24 orders of magnitude."""
    A, B = system(method), columns(8)
    B[:, 3], B[:, 5], B[:, 6] = B[:, 1], 0, B[:, 0] + 2 * B[:, 1]
    B[:, 4] = B[:, 2] + 1e-7 * B[:, 4]
    B[:, 7] *= 1e-12
    B[:, 0] *= 1e12
    found = swell.solve(A, B, method=method, device=device, rtol=1e-10)
    assert found.converged and (residuals(A, B, found.x) <= 1.01e-10).all()
    assert found[5].iterations == 0 and not on_host(found.x)[:, 5].any()


@each
def test_equal_columns_are_one_direction(method, device):
    """The block then has rank 1, and every column takes the steps of a single solve."""
    A, b = system(method), columns(1)
    found = swell.solve(A, np.repeat(b, 4, axis=1), method=method, device=device)
    alone = swell.solve(A, b[:, 0], method=METHODS[method], device=device)
    assert found.converged and all(abs(r.iterations - alone.iterations) <= 1 for r in found)


@each
def test_a_solved_column_keeps_its_x(method, device):
    A, X = system(method), columns(4)
    B, X0 = A @ X, np.zeros((N, 4))
    X0[:, 2] = X[:, 2]
    found = swell.solve(A, B, x0=X0, method=method, device=device)
    assert found.converged and found[2].iterations == 0 and found[0].iterations > 5
    assert (on_host(found.x)[:, 2] == X[:, 2]).all()


@each
def test_columns_of_different_difficulty(method, device):
    """An easy column ends early, and later steps do not change its x."""
    A, B = system(method), columns(3)
    B[:, 1] = A @ np.eye(N)[7]
    found = swell.solve(A, B, method=method, device=device, rtol=1e-10)
    assert found.converged and (residuals(A, B, found.x) <= 1.01e-10).all()
    alone = swell.solve(A, B[:, 1], method=METHODS[method], device=device, rtol=1e-10)
    assert found[1].iterations <= alone.iterations + 2


@each
def test_nan_in_one_column(method, device):
    """Input with NaN is refused at the door; here it comes in behind it."""
    A, B = system(method), columns(4)
    s = swell.prepare(A, method=method, device=device)
    B[3, 1] = np.nan
    with s.space.active(N):
        found = bound(s._prepare(0), 4).run(B)
    assert [r.reason for r in found] == [Reason.CONVERGED, Reason.NONFINITE, Reason.CONVERGED, Reason.CONVERGED]
    for j in (0, 2, 3):
        assert np.linalg.norm(B[:, j] - A @ on_host(found[j].x)) <= 1.01e-8 * np.linalg.norm(B[:, j])


@each
def test_nan_in_the_shared_space(method):
    """A preconditioner that fails in its seventh call reaches every column, and none is called converged."""
    A, B, calls = system(method), columns(3), []

    def fails(r):
        calls.append(1)
        return r * (np.nan if len(calls) == 7 else 0.25)
    found = swell.solve(A, B, method=method, M=fails)
    assert found.reasons == [Reason.NONFINITE] * 3


@pytest.mark.parametrize("shift", [-3.0, -0.7])
def test_indefinite_matrices_end_block_cg(shift, device):
    """-0.7 leaves the diagonal positive."""
    A = sp.csr_array(gallery.poisson2d(12) + shift * sp.eye_array(144))
    found = swell.solve(A, columns(4, n=144), method="block_cg", device=device)
    assert {r.reason for r in found} == {Reason.INDEFINITE}


def test_an_indefinite_preconditioner_ends_block_cg():
    A = gallery.poisson2d(12)
    signs = np.where(np.arange(144) % 3, 1.0, -1.0)
    found = swell.solve(A, columns(4, n=144), method="block_cg", M=lambda r: signs * r)
    assert {r.reason for r in found} == {Reason.INDEFINITE}


@pytest.mark.parametrize("n", [6, 20, 100])
def test_the_space_may_become_the_whole(n, device):
    """Fewer unknowns than 8 columns times 30 steps."""
    A = sp.csr_array(rng().standard_normal((n, n)) + 3 * np.eye(n))
    B = columns(8, n=n)
    found = swell.solve(A, B, method="block_gmres", device=device, rtol=1e-11)
    assert found.converged and (residuals(A, B, found.x) <= 1.01e-11).all()
    assert max(r.iterations for r in found) <= -(-n // 8) + 2


def test_invariant_subspaces(device):
    """Three eigenvalues: an eigenvector ends in a step, a sum of three in three, and the space loses its directions."""
    Q = np.linalg.qr(rng().standard_normal((60, 60)))[0]
    A = sp.csr_array(Q @ np.diag(1.0 + np.arange(60) // 20) @ Q.T)
    B = Q[:, :8].copy()
    B[:, 4] = Q[:, 1] + Q[:, 25] + Q[:, 50]
    for method in METHODS:
        found = swell.solve(A, B, method=method, device=device, rtol=1e-11)
        assert found.converged and found[0].iterations == 1 and found[4].iterations <= 3, method


@each
def test_many_columns(method, device):
    A, B = system(method), columns(33)
    found = swell.solve(A, B, method=method, device=device)
    assert found.converged and (residuals(A, B, found.x) <= 1.01e-8).all()
    assert "in groups of 32, 1" in found.notes[0]


@each
def test_limits_and_monitors(method, device):
    A, B = system(method), columns(3)
    found = swell.solve(A, B, method=method, device=device, maxiter=5)
    assert found.reasons == [Reason.MAXITER] * 3 and all(r.iterations == 5 for r in found)
    seen = []
    swell.solve(A, B, method=method, device=device, monitor=lambda k, norm: seen.append(k))
    assert seen == list(range(len(seen))) and len(seen) > 5


@pytest.mark.gpu
@each
def test_launches_do_not_grow_with_the_columns(method):
    pytest.importorskip("cupy")
    launches = []
    for k in (2, 8):
        s = swell.prepare(system(method), method=method, precond="jacobi", device="cuda", maxiter=4)
        with s.space.active(N):
            group = bound(s._prepare(0), k)
        B = columns(k)
        group.run(B)
        before = group.space.launches
        assert all(r.host_reads == 0 for r in group.run(B))
        launches.append(group.space.launches - before)
    assert launches[0] == launches[1]


@pytest.mark.parametrize("k", [1, 3, 8, 32])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_inner_products(dtype, k, device):
    space = space_or_skip(device)
    for n in (1, 31, 1500):
        with during(n=n), space.active(n):
            loop = space.loop(Stopping(), n)
            P, Q = (columns(k, dtype, n).T.copy() for _ in range(2))
            bounds = np.unique([0, n // 3, n])
            kind = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
            partial = space.empty((bounds.size - 1, k, k), kind)
            loop.begin(0.0, 1.0, 0)
            loop.block_kernels("swell.krylov", "gram", P.dtype).gram(
                space.from_host(P), space.from_host(Q), partial, space.from_host(bounds), k, 128)
            found = space.to_host(partial).sum(axis=0)
            loop.end()
            expected = P.astype(kind).conj() @ Q.astype(kind).T
            assert abs(found - expected).max() <= 1e-13 * n


def factored(G):
    """(rank, factor, inverse) by the kernel that orthonormalises the residuals with which a cycle of GMRES begins."""
    k = len(G)
    states = np.zeros((k, len(Flag)), np.int64), np.zeros((k, len(Limit))), np.zeros((k, 1))
    small = np.empty((len(BlockGMRES), k, k), G.dtype)
    native_kernels("swell.krylov", "block_gmres").normalise(states, G[None], np.eye(k, dtype=G.dtype), small,
                                                            64 * k * 2.0**-52, k, side_of(k))
    factor, inverse = small[BlockGMRES.ALPHA], small[BlockGMRES.INVERSE]
    return np.count_nonzero(factor.any(axis=1)), factor, inverse


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_pivoted_cholesky(dtype):
    for k, rank in ((1, 1), (5, 5), (8, 3), (32, 20)):
        with during(k=k, rank=rank):
            W = columns(rank, dtype, n=50) @ columns(k, dtype, n=rank)
            W *= 10.0 ** np.linspace(-8, 8, k)
            G = W.conj().T @ W
            found, factor, inverse = factored(G)
            assert found == rank and not factor[rank:].any() and not inverse[:, rank:].any()
            scale = np.sqrt(np.diag(G).real)
            assert (abs(factor.conj().T @ factor - G) <= 1e-12 * np.outer(scale, scale)).all()
            assert abs((W @ inverse).conj().T @ (W @ inverse) - np.diag(np.arange(k) < rank)).max() < 1e-6


def test_sides_are_powers_of_two():
    assert [side_of(k) for k in (1, 2, 3, 4, 5, 8, 9, 17, 32)] == [1, 2, 4, 4, 8, 8, 16, 32, 32]


def test_bad_input():
    for bad in ("block_gmres(restart=0)", "block_gmres(restart=501)", "block_cg(restart=3)"):
        with pytest.raises(InputError):
            swell.prepare(system("gmres"), method=bad)
    with pytest.raises(InputError, match="smoother"):
        swell.prepare(system("cg"), method="block_cg", smoother="gauss_seidel")
    with pytest.raises(InputError, match="block_cg needs a Hermitian matrix"):
        swell.prepare(system("gmres"), method="block_cg")
    with pytest.raises(InputError, match="block_cg needs a preconditioner that is its own adjoint"):
        swell.prepare(system("cg"), method="block_cg", precond="ilu(drop=0.001)")


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("method", list(METHODS))
def test_a_space_that_the_block_fills(method, dtype, device):
    """The last candidates are rounding only: nothing that is scaled by it may overflow."""
    A = gallery.poisson2d(5)
    B = np.random.default_rng(3).standard_normal((25, 20))
    found = swell.solve(A, B, method=method, dtype=dtype, rtol=2e-5, device=device)
    left = np.linalg.norm(B - A @ on_host(found.x), axis=0) / np.linalg.norm(B, axis=0)
    assert found.converged and left.max() < 4e-5 and max(r.iterations for r in found) <= 20
