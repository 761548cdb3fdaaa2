"""Block Jacobi and additive Schwarz: against dense linear algebra, and what they are for."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.formats.csr import CSRMatrix
from swell.preconditioners.schwarz import overlapping, subdomains


def built(settings, A, space):
    return settings.build(CSRMatrix.from_scipy(sp.csr_array(A), space))


def applied(operator, x, **more):
    space = operator.space
    out = space.xp.full(operator.shape[0], np.nan, operator.dtype)
    operator.apply(space.from_host(x), out, **more)
    return space.to_host(out)


def unsymmetric(n=60, dtype="float64"):
    A = sp.random_array((n, n), density=0.08, rng=rng()) + 3 * sp.eye_array(n)
    A = sp.csr_array(A).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A.data = A.data * np.exp(1j * rng().uniform(0, 0.5, A.nnz))
    A.sort_indices()
    return A


# -- block Jacobi ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("block", [1, 2, 3, 7, 32])
def test_blocks_are_inverted(block, dtype, space):
    """60 rows: with blocks of 7 and 32 the last one is smaller."""
    A = unsymmetric(dtype=dtype)
    dense = A.toarray()
    for k in range(0, 60, block):
        dense[k:k + block, :k] = dense[k:k + block, k + block:] = 0
    x = rng().standard_normal(60).astype(dtype)
    with space.active():
        M = built(swell.BlockJacobi(block=block), A, space)
        assert np.allclose(applied(M, x), np.linalg.solve(dense, x), rtol=1e-12)
        out = space.empty(60, dtype)
        M.apply_adjoint(space.from_host(x), out)
        assert np.allclose(space.to_host(out), np.linalg.solve(dense.conj().T, x), rtol=1e-12)


@pytest.mark.parametrize("kind", ["dependent", "zero"])
def test_a_singular_block_is_named(kind, space):
    A = gallery.poisson2d(6).tolil()
    A[8:10, 8:10] = 1 if kind == "dependent" else 0
    with space.active(), pytest.raises(swell.core.errors.FactorisationError, match=r"block 4 \(rows 8 to 9\) is singular"):
        built(swell.BlockJacobi(block=2), A.tocsr(), space)
    r = swell.solve(A.tocsr(), np.ones(36), method="gmres", precond="block_jacobi(block=2)", device=space.device_name)
    assert r.reason is swell.Reason.NOT_FACTORED and "block 4" in str(r)


@pytest.mark.parametrize("block", [-1, 33, 2.5])
def test_block_sizes_that_mean_nothing(block):
    with pytest.raises(swell.InputError, match="block"):
        swell.BlockJacobi(block=block)


def test_blocks_pay_where_unknowns_come_in_groups(device):
    """Two unknowns a node whose coupling is strong: the point Jacobi preconditioner does not see it."""
    A = sp.kron(gallery.poisson2d(16), sp.csr_array([[1.0, 0.99], [0.99, 1.0]])).tocsr()
    b = A @ rng().standard_normal(A.shape[0])
    counts = [swell.solve(A, b, method="cg", precond=p, device=device).iterations for p in ("jacobi", "block_jacobi")]
    assert counts[1] < 0.75 * counts[0]


def test_real_block_systems(data):
    from scipy.io import mmread
    for name, block in (("ml_elasticity", 3), ("hypre_beam_tet_dof2475", 3)):
        A = sp.csr_array(mmread(data / "matrices" / f"{name}.mtx.gz"))
        b = A @ np.ones(A.shape[0])
        point, blocks = (swell.solve(A, b, method="cg", precond=p) for p in ("jacobi", f"block_jacobi(block={block})"))
        assert blocks.converged and blocks.iterations <= point.iterations


# -- Schwarz -----------------------------------------------------------------------------------------------------------

def dense_schwarz(A, owner, overlap, restricted):
    """Σ R̃ᵀ (R A Rᵀ)⁻¹ R by the definition."""
    dense, graph = A.toarray(), (A.toarray() != 0) | (A.toarray() != 0).T
    M = np.zeros_like(dense)
    for d in range(owner.max() + 1):
        inside = owner == d
        for _ in range(overlap):
            inside = inside | graph[:, inside].any(axis=1)
        rows = np.flatnonzero(inside)
        inverse = np.linalg.inv(dense[np.ix_(rows, rows)])
        if restricted:
            inverse[owner[rows] != d] = 0
        M[np.ix_(rows, rows)] += inverse
    return M


@pytest.mark.parametrize("overlap, kind", [(0, "restricted"), (1, "restricted"), (1, "additive"), (3, "restricted"),
                                           (3, "additive")])
def test_the_definition(kind, overlap, dtype):
    """With exact solves on the subdomains."""
    A, space = unsymmetric(dtype=dtype), space_or_skip("cpu")
    x = rng().standard_normal(60).astype(dtype)
    settings = swell.Schwarz(domains=7, overlap=overlap, kind=kind, inner="direct")
    M = built(settings, A, space)
    owner = subdomains(CSRMatrix.from_scipy(A, space), settings)
    assert np.bincount(owner).tolist() == [9, 9, 9, 9, 8, 8, 8]                # the first mod(60, 7) get one more
    expected = dense_schwarz(A, owner, overlap, kind == "restricted")
    assert np.allclose(applied(M, x), expected @ x, rtol=1e-11)
    out = np.empty(60, dtype)
    M.apply_adjoint(x, out)
    assert np.allclose(out, expected.conj().T @ x, rtol=1e-11)
    assert M.domains == 7 and "7 subdomains" in M.describe()


@pytest.mark.parametrize("partition", ["rows", "graph"])
def test_parts_cover_all_rows_once(partition):
    if partition == "graph":
        pytest.importorskip("pymetis", reason="needs pymetis: pip install 'swell[partition]'")
    A = CSRMatrix.from_scipy(sp.csr_array(gallery.poisson2d(30)), space_or_skip("cpu"))
    settings = swell.Schwarz(domains=9, partition=partition)
    owner = subdomains(A, settings)
    assert owner.size == 900 and len(np.unique(owner)) == 9 and np.bincount(owner).min() > 80
    rows, domain, owned = overlapping(A, owner, 1)
    assert (np.sort(rows[owned]) == np.arange(900)).all() and rows.size > 900
    assert (np.lexsort((rows, domain)) == np.arange(rows.size)).all()


def test_overlap_and_fewer_domains_help(device):
    A = gallery.poisson2d(40)
    b = A @ rng().standard_normal(1600)
    count = {(d, o): swell.solve(A, b, method="gmres(restart=100)", device=device,
                                 precond=swell.Schwarz(domains=d, overlap=o, inner="ic0")).iterations
             for d, o in ((16, 0), (16, 2), (64, 0))}
    assert count[16, 2] < count[16, 0] < count[64, 0]


def test_symmetric_kind_serves_cg_and_restricted_does_not(device):
    A = gallery.poisson2d(30)
    b = np.ones(900)
    r = swell.solve(A, b, method="cg", precond=swell.Schwarz(domains=8, kind="additive", inner="ic0"), device=device)
    assert r.converged and "8 subdomains" in str(r)
    with pytest.raises(swell.InputError, match="its own adjoint"):
        swell.solve(A, b, method="cg", precond=swell.Schwarz(domains=8, inner="ic0"), device=device)


def test_weights_keep_the_symmetry():
    """Σ Rᵀ D B⁻¹ D R, D one over the copies of a row."""
    A, space = gallery.poisson2d(8), space_or_skip("cpu")
    settings = swell.Schwarz(domains=4, overlap=2, kind="weighted", inner="direct")
    M = built(settings, A, space)
    W = np.diag(1 / np.bincount(M.copies))
    expected, x = np.zeros((64, 64)), rng().standard_normal(64)
    ends = np.flatnonzero(np.diff(M.copies) <= 0) + 1
    for rows in np.split(M.copies, ends):
        expected[np.ix_(rows, rows)] += W[np.ix_(rows, rows)] @ np.linalg.inv(A.toarray()[np.ix_(rows, rows)]) \
            @ W[np.ix_(rows, rows)]
    assert np.allclose(applied(M, x), expected @ x, rtol=1e-11) and M.domains == 4
    assert swell.solve(A, x, method="cg", precond=settings).converged


@pytest.mark.parametrize("sign", [1, -1])
def test_robin_from_rows_lets_a_wave_out(sign, space):
    """A string: the last copy takes d e^(∓ikh), with which a wave that leaves has next to no residual there."""
    kh = 0.2
    A = gallery.neumann((12,)).astype(complex) - kh ** 2 * sp.diags_array(np.r_[0.5, np.ones(10), 0.5])
    A = sp.csr_array(A + sign * 1e-9j * sp.eye_array(12))
    with space.active():
        M = built(swell.Schwarz(domains=2, overlap=1, transmission="robin", inner="jacobi"), A, space)
        copies, data = space.to_host(M.copies), M._matrix.to_scipy().toarray()
    assert copies.tolist() == [0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10, 11]
    assert data[6, 6] == pytest.approx(2 - kh ** 2 - np.exp(-1j * sign * kh), abs=1e-7)
    wave = np.exp(-1j * sign * np.arange(7) * 2 * np.arcsin(kh / 2))            # the string's own: 2 − 2 cos θ = (kh)²
    assert abs(data[6, :7] @ wave) < kh ** 3 / 20 < abs(A.toarray()[6, :7] @ wave)
    assert abs(data[:6, :7] - A.toarray()[:6, :7]).max() == 0


def test_update_keeps_the_subdomains(space):
    A = gallery.poisson2d(12)
    settings = swell.Schwarz(domains=5, inner="ic0")
    x = rng().standard_normal(144)
    with space.active():
        M = built(settings, A, space)
        M.update(CSRMatrix.from_scipy(sp.csr_array(A + sp.diags_array(A.diagonal())), space))
        fresh = built(settings, A + sp.diags_array(A.diagonal()), space)
        assert (applied(M, x) == applied(fresh, x)).all()


@pytest.mark.parametrize("settings, words", [({"kind": "both"}, "'additive' or 'weighted'"), ({"domains": -1}, "domains"),
                                             ({"overlap": 0.5}, "overlap"), ({"partition": "cells"}, "'rows' or 'graph'"),
                                             ({"inner": None}, "inner=None"), ({"inner": "ic9"}, "unknown precond")])
def test_settings_that_mean_nothing(settings, words):
    with pytest.raises(swell.InputError, match=words):
        swell.Schwarz(**settings)


def test_registered():
    assert resolve("precond", "schwarz(domains=3, inner='ic0')") == swell.Schwarz(domains=3, inner="ic0")


# -- the second level --------------------------------------------------------------------------------------------------

def dense_balanced(A, M, owner, modes):
    """(I − Q A) M (I − A Q) + Q by the definition; M: the one-level preconditioner, a dense matrix."""
    A, T = A.toarray(), np.zeros((len(owner), 0))
    for d in range(owner.max() + 1):
        T = np.hstack([T, np.linalg.qr(np.where((owner == d)[:, None], modes, 0))[0]])
    moduli = abs(A).sum(axis=1)
    values = np.linalg.eigvals(A / moduli[:, None]).real
    P = T - 4 / 3 / min(1, values.max()) * (A @ T) / moduli[:, None]
    Q = P @ np.linalg.solve(P.T @ A @ P, P.T)
    I = np.eye(len(A))
    return (I - Q @ A) @ M @ (I - A @ Q) + Q


@pytest.mark.parametrize("kind", ["additive", "restricted", "weighted"])
def test_the_second_level_is_its_definition(kind, space):
    """Up to the estimate of an eigenvalue, which changes the smoothing of the vectors a little."""
    A = sp.csr_array(gallery.poisson2d(9))
    modes = np.column_stack([np.ones(81), np.arange(81) % 9])
    with space.active():
        one, two = (built(swell.Schwarz(domains=5, kind=kind, inner="jacobi", **more), A, space)
                    for more in ({}, {"coarse": "nicolaides", "near_nullspace": modes}))
        M, B = (np.column_stack([applied(m, e) for e in np.eye(81)]) for m in (one, two))
        owner = subdomains(CSRMatrix.from_scipy(A, space), swell.Schwarz(domains=5))
        x, out = rng().standard_normal(81), space.empty(81, float)
        two.apply_adjoint(space.from_host(x), out)
        adjoint = space.to_host(out).copy()
        out.fill(1)
        two.apply(space.from_host(x), out, 2, -3)
        assert two.size == 10 and np.allclose(space.to_host(out), 2 * B @ x - 3, rtol=1e-12)
    assert np.allclose(B, dense_balanced(A, M, owner, modes), atol=0.02 * abs(B).max())
    assert np.allclose(adjoint, B.T @ x, rtol=1e-11) and two.self_adjoint == one.self_adjoint
    if kind != "restricted":
        assert np.allclose(B, B.T, atol=1e-12 * abs(B).max()) and np.linalg.eigvalsh(B)[0] > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_update_of_the_second_level_is_a_fresh_build(dtype, space):
    A = sp.csr_array(gallery.poisson2d(12)).astype(dtype)
    new = A + sp.diags_array(np.linspace(0, 1, 144).astype(dtype))
    x = rng().standard_normal(144).astype(dtype)
    settings = swell.Schwarz(domains=6, kind="additive", inner="ic0", coarse="nicolaides")
    with space.active():
        M = built(settings, A, space)
        M.update(CSRMatrix.from_scipy(sp.csr_array(new), space))
        assert np.array_equal(applied(M, x), applied(built(settings, new, space), x))


def test_iterations_hardly_grow_with_the_number_of_subdomains():
    pytest.importorskip("pymetis", reason="the partition of a graph needs pymetis")
    A = gallery.poisson2d(48)
    b = rng().standard_normal(A.shape[0])

    def counts(coarse):
        return [swell.solve(A, b, method="cg", precond=swell.Schwarz(
            domains=k, kind="additive", inner="direct", partition="graph", coarse=coarse)).iterations for k in (4, 64)]

    one, two = counts("none"), counts("nicolaides")
    assert one[1] > 1.8 * one[0] and two[1] < 1.2 * two[0] and two[1] < 0.6 * one[1], (one, two)


def test_rigid_motions_in_the_second_level(device):
    """A clamped beam of sixteen subdomains: constants do not help where it bends."""
    points, cells = gallery.box_mesh((32, 2, 2), (16.0, 1.0, 1.0))
    A, nodes = gallery.elastic_body(points, cells, points[:, 0] == 0)
    b, counts = rng().standard_normal(A.shape[0]), []
    for more in ({}, {"coarse": "nicolaides"}, {"coarse": "nicolaides", "near_nullspace": swell.rigid_body_modes(nodes)}):
        r = swell.solve(A, b, method="cg", device=device,
                        precond=swell.Schwarz(domains=16, kind="additive", inner="direct" if device == "cpu" else "ic0", **more))
        assert r.converged
        counts.append(r.iterations)
    assert counts[2] < 0.5 * min(counts[:2]), counts


def test_a_singular_system_with_a_second_level():
    A = gallery.neumann((20, 20))
    b = A @ rng().standard_normal(400)
    r = swell.solve(A, b, method="cg", nullspace="constants",
                    precond=swell.Schwarz(domains=9, kind="additive", inner="ic0", coarse="nicolaides"))
    assert r.converged and r.iterations < 60


NO_SECOND_LEVEL = {
    "a complex matrix": (lambda: gallery.helmholtz((8, 8)), {}, "expected a real one"),
    "an unsymmetric matrix": (unsymmetric, {}, "Hermitian"),
    "modes of another length": (lambda: gallery.poisson2d(8), {"near_nullspace": np.ones(5)}, r"expected \(64, k\)"),
    "dependent modes": (lambda: gallery.poisson2d(8), {"near_nullspace": np.ones((64, 2))}, "2 columns of rank 1"),
    "too many vectors": (lambda: gallery.poisson2d(70), {"domains": 4800}, "4096 coarse unknowns"),
}


@pytest.mark.parametrize("what", NO_SECOND_LEVEL)
def test_what_has_no_second_level_is_told(what):
    A, more, message = NO_SECOND_LEVEL[what]
    A = A()
    with pytest.raises(swell.InputError, match=message):
        swell.solve(A, np.ones(A.shape[0]), method="gmres", precond=swell.Schwarz(coarse="nicolaides", **more))


@pytest.mark.parametrize("options, message", [({"coarse": "two"}, "expected 'none' or 'nicolaides'"),
                                              ({"near_nullspace": np.ones(4)}, "coarse='nicolaides'"),
                                              ({"coarse": "nicolaides", "near_nullspace": "rigid"}, "expected 'constants'")])
def test_bad_settings_of_the_second_level(options, message):
    with pytest.raises(swell.InputError, match=message):
        swell.Schwarz(**options)


def test_an_indefinite_matrix_has_no_second_level():
    A = sp.csr_array(gallery.poisson2d(20) - 3 * sp.eye_array(400))
    r = swell.solve(A, np.ones(400), method="gmres", precond=swell.Schwarz(domains=9, inner="ilu0", coarse="nicolaides"))
    assert r.reason is swell.Reason.NOT_FACTORED and "leave coarse out" in str(r)
