"""Systems that are singular on purpose."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import gallery
from swell.formats.matrix import Matrix
from swell.transforms.left_null import left_null_vector


def neumann(n=20):
    """The graph Laplacian of a grid: symmetric, its null space the constants."""
    A = gallery.poisson2d(n)
    return sp.csr_array(A - sp.diags_array(np.asarray(A.sum(axis=1)).reshape(-1)))


def free_triangles():
    """The stiffness of springs between random points of the plane: free to move and to turn."""
    points = rng().random((40, 2))
    pairs = [(i, j) for i in range(40) for j in range(i) if np.linalg.norm(points[i] - points[j]) < 0.35]
    K = np.zeros((80, 80))
    for i, j in pairs:
        e = (points[i] - points[j]) / np.linalg.norm(points[i] - points[j])
        g = np.zeros(80)
        g[2 * i:2 * i + 2], g[2 * j:2 * j + 2] = e, -e
        K += np.outer(g, g)
    return sp.csr_array(K), points


@pytest.mark.parametrize("more", [{}, {"scaling": "jacobi"}, {"ordering": "rcm"}, {"precond": "jacobi"}])
def test_constants(more, device):
    A = neumann()
    b = A @ rng().standard_normal(400)
    r = swell.solve(A, b, method="cg", nullspace="constants", device=device, **more)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b)
    assert abs(r.x.sum()) <= 1e-10 * np.linalg.norm(r.x)         # the solution of least norm
    assert "null space: constants" in str(r)


def test_an_incompatible_right_hand_side_is_refused_with_its_size(device):
    A = neumann()
    b = A @ rng().standard_normal(400)
    b += 0.25 * np.linalg.norm(b) / np.sqrt(400)                 # a constant part of 0.25 ‖b‖
    with pytest.raises(swell.InputError, match=r"2\.4.e-01 ‖b‖ in the null space"):
        swell.solve(A, b, method="cg", nullspace="constants", device=device)
    r = swell.solve(A, b, method="cg", nullspace=swell.NullSpace(project=True), device=device)
    assert r.converged and any("taken out of b" in note for note in r.notes)
    rest = b - b.mean()
    assert np.linalg.norm(rest - A @ r.x) <= 1e-8 * np.linalg.norm(rest)


def test_a_right_hand_side_in_the_null_space():
    r = swell.solve(neumann(), np.ones(400), method="cg", nullspace=swell.NullSpace(project=True))
    assert r.converged and not r.x.any()


def test_rigid_body_modes(device):
    K, points = free_triangles()
    modes = swell.rigid_body_modes(points)
    assert abs(K @ modes).max() < 1e-12 and np.linalg.matrix_rank(modes) == 3
    b = K @ rng().standard_normal(80)
    r = swell.solve(K, b, method="cg", nullspace=modes, device=device)
    assert r.converged and abs(modes.T @ r.x).max() < 1e-9 * np.linalg.norm(r.x) and "3 vectors" in str(r)
    assert swell.rigid_body_modes(rng().random((5, 3))).shape == (15, 6)


def stretched():
    """A Neumann problem on a stretched grid, and the volumes of its cells: A 1 = 0 and volumes ᵀ A = 0."""
    volumes = rng().uniform(1, 2, 400)
    return sp.csr_array(sp.diags_array(1 / volumes) @ neumann()), volumes


def upwind(returning=True):
    """Diffusion, and convection along the rows of the grid: A 1 = 0, and no scaling of rows makes A symmetric.

    ``returning=False``: nothing comes back from the last unknown, so that the left null vector is zero elsewhere."""
    flow = sp.diags_array(np.r_[0.0, np.ones(399)]) - sp.diags_array(np.ones(399), offsets=-1)
    A = sp.lil_array(neumann() + flow)
    if not returning:
        A[399] = 0
    return sp.csr_array(A)


def test_left_and_right_null_spaces(device):
    """An unsymmetric singular matrix needs both. The left one, if it is not given, is computed, with a note."""
    A, volumes = stretched()
    for M, left in ((A, volumes), (upwind(), None), (sp.csr_array(A * (1 + 1j)), volumes)):
        b = M @ rng().standard_normal(400)
        r = swell.solve(M, b, method="gmres", precond="ilu0", nullspace="constants", device=device)
        assert r.converged and abs(r.x.sum()) <= 1e-9
        assert any("the null space of its adjoint was computed" in note for note in r.notes)
        b = b + 1e-3 * np.linalg.norm(b)
        with pytest.raises(swell.InputError, match=r"b is incompatible.*NullSpace\(\.\.\., project=True\)"):
            swell.solve(M, b, method="gmres", precond="ilu0", nullspace="constants", device=device)
        r = swell.solve(M, b, method="gmres", precond="ilu0", nullspace=swell.NullSpace(project=True), device=device)
        assert r.converged and np.linalg.norm(b - M @ r.x) > 1e-4 * np.linalg.norm(b)
        if left is not None:
            given = swell.solve(M, b, method="gmres", precond="ilu0", device=device,
                                nullspace=swell.NullSpace("constants", left=left, project=True))
            assert given.converged and np.linalg.norm(given.x - r.x) <= 1e-6 * np.linalg.norm(r.x)
            assert not any("computed" in note for note in given.notes)
    direct = swell.solve(A, A @ np.arange(400.0), method="direct", nullspace="constants", device=device)
    assert direct.converged


def test_a_left_null_space_in_parts():
    """Two parts that are not coupled, each with its own constant; and an update finds new volumes."""
    A, volumes = stretched()
    two = sp.block_diag([A, A[::-1, ::-1]], format="csr")
    basis = np.repeat(np.eye(2), 400, axis=0)
    solver = swell.prepare(two, method="gmres", precond="jacobi", nullspace=basis)
    for scale in (np.ones(800), 1 / rng().uniform(1, 2, 800)):
        M = sp.csr_array(sp.diags_array(scale) @ two)
        r = solver.update(M).solve(M @ rng().standard_normal(800))
        assert r.converged and abs(basis.T @ r.x).max() <= 1e-8


def test_a_left_null_vector_where_nothing_comes_back():
    v = left_null_vector(upwind(returning=False), np.ones(400))
    assert (v == np.eye(400)[399]).all()
    assert left_null_vector(sp.csr_array(np.array([[0.0, 0, 0], [1, -2, 1], [0, 0, 0]])), np.ones(3)) is None


def test_a_left_null_space_that_is_not_found():
    """One constant for two parts: the null space of Aᴴ has two dimensions. The advice works."""
    import scipy.linalg
    T = np.array([[1.0, -1], [-2, 2]])
    A = sp.block_diag([T, T], format="csr")
    with pytest.raises(swell.InputError, match=r"left=scipy\.linalg\.null_space\(A\.toarray\(\)\.conj\(\)\.T\)"):
        swell.solve(A, A @ np.arange(4.0), method="gmres", nullspace="constants")
    N = swell.NullSpace("constants", left=scipy.linalg.null_space(A.toarray().conj().T))
    assert swell.solve(A, A @ np.arange(4.0), method="gmres", nullspace=N).converged


@pytest.mark.parametrize("given, words", [
    (np.ones(7), r"shape \(7, 1\): expected \(400,\)"), ("rigid", r"'constants'.*swell\.rigid_body_modes"),
    (np.zeros(400), "vector 0 is zero"),
    (np.ones((400, 2)), "vector 1 depends"), (np.arange(400.0), "vector 0 is not annihilated"),
    (np.full(400, np.nan), "NaN"), (np.full(400, 1j), "complex")])
def test_bad_vectors(given, words):
    with pytest.raises(swell.InputError, match=words):
        swell.solve(neumann(), np.zeros(400), method="cg", nullspace=given)


def test_points_of_another_shape():
    with pytest.raises(swell.InputError, match=r"expected \(m, 2\) or \(m, 3\)"):
        swell.rigid_body_modes(np.ones(3))


def test_update_checks_again():
    A = neumann()
    s = swell.prepare(A, method="cg", nullspace="constants")
    assert s.update(2 * A).solve(A @ np.arange(400.0)).converged
    with pytest.raises(swell.InputError, match="not annihilated"):
        s.update(A + sp.diags_array(np.ones(400)))


def test_the_adjoint_is_built_for_a_matrix_that_is_not_hermitian_alone(device, monkeypatch):
    """A new adjoint has the graph of a solve captured again after each update."""
    built, adjoint = [], Matrix.adjoint
    monkeypatch.setattr(Matrix, "adjoint", lambda self: built.append(1) or adjoint(self))
    A = neumann()
    swell.prepare(A, method="cg", nullspace="constants", device=device).update(2 * A)
    assert not built
    swell.prepare(upwind(), method="gmres", nullspace="constants", device=device).update(2 * upwind())
    assert built


def test_a_real_graph_laplacian(data):
    from scipy.io import mmread
    A = sp.csr_array(mmread(data / "matrices" / "4elt_lap.mtx.gz"))
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", scaling="jacobi", nullspace="constants", rtol=1e-7)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-7 * np.linalg.norm(b)
