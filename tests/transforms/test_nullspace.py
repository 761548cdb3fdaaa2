"""Systems that are singular on purpose."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import gallery
from swell.formats.matrix import Matrix


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


def test_left_and_right_null_spaces():
    """An unsymmetric singular matrix needs both."""
    A = sp.csr_array(sp.diags_array(rng().uniform(1, 2, 400)) @ neumann())
    left = 1 / A.diagonal() * neumann().diagonal()
    b = A @ rng().standard_normal(400)
    with pytest.raises(swell.InputError, match="not Hermitian, so give"):
        swell.solve(A, b, method="gmres", nullspace="constants")
    r = swell.solve(A, b, method="gmres", nullspace=swell.NullSpace("constants", left=left))
    assert r.converged and abs(r.x.sum()) <= 1e-9


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
    upwind = sp.csr_array(A + sp.diags_array(np.ones(399), offsets=-1) - sp.diags_array(np.r_[0.0, np.ones(399)]))
    with pytest.raises(swell.InputError, match="‖Aᴴ z‖∞ is .* so give the null space of its adjoint too"):
        swell.prepare(upwind, method="gmres", nullspace="constants", device=device)
    assert built


def test_a_real_graph_laplacian(data):
    from scipy.io import mmread
    A = sp.csr_array(mmread(data / "matrices" / "4elt_lap.mtx.gz"))
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", scaling="jacobi", nullspace="constants", rtol=1e-7)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-7 * np.linalg.norm(b)
