"""Poisson on a cube: its matrices against scikit-fem, its answers, what it refuses."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg as sla

import swell
from swell.pde import fvm
from swell.pde.poisson_cube import PoissonCube, element_matrix


def of_skfem(cube):
    """The matrix on the free nodes, in lexicographic order."""
    skfem = pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from skfem.helpers import dot, grad
    ticks = np.linspace(0, 1, cube.edge + 1)
    mesh = skfem.MeshHex.init_tensor(ticks, ticks, ticks)
    basis = skfem.Basis(mesh, skfem.ElementHex1())
    place = np.minimum((mesh.p[:, mesh.t].mean(axis=1) * cube.edge).astype(int), cube.edge - 1)
    k = cube.coefficients()[tuple(place)]
    A = skfem.BilinearForm(lambda u, v, w: w.k * dot(grad(u), grad(v))).assemble(
        basis, k=np.repeat(k[:, None], basis.X.shape[1], axis=1))
    inside = np.flatnonzero(((mesh.p > 1e-9) & (mesh.p < 1 - 1e-9)).all(axis=0))
    order = inside[np.lexsort(np.round(mesh.p[::-1, inside] * cube.edge))]
    return A.tocsr()[order][:, order]


@pytest.mark.parametrize("coefficient", ["constant", "checkerboard", "channels", "random"])
def test_the_matrix_is_that_of_scikit_fem(coefficient):
    if coefficient == "random":
        coefficient = np.random.default_rng(0).uniform(0.1, 10, (6, 6, 6))
    cube = PoissonCube(3, 2, coefficient=coefficient, jump=100.0)
    system = cube.assemble()
    difference = abs(system.A.to_scipy() - of_skfem(cube))
    assert difference.max() < 1e-12 * abs(system.A.data).max()
    assert abs(system.subdomains.assemble() - system.A.to_scipy()).max() < 1e-12 * abs(system.A.data).max()


def test_equal_subdomains_are_one_object():
    matrices = PoissonCube(2, 4).assemble().subdomains.matrices
    assert len({id(m) for m in matrices}) == 27 and len(matrices) == 64 and matrices[0].indices.dtype == np.int32


def test_the_shares_of_ranks():
    """Together they are what one process makes, and each makes its own alone."""
    cube = PoissonCube(2, 3, coefficient=np.random.default_rng(0).uniform(1, 2, (6, 6, 6)))
    whole = cube.assemble().subdomains
    parts = [part for rank in range(4) for part in cube.rank_subdomains(rank, 4)]
    assert [len(cube.rank_subdomains(rank, 4)) for rank in range(4)] == [6, 7, 7, 7]
    for (matrix, dofs), other, rows in zip(parts, whole.matrices, whole.dofs, strict=True):
        assert np.array_equal(dofs, rows) and abs(matrix - other).max() == 0
    with pytest.raises(swell.InputError, match="28 ranks and 27 subdomains"):
        cube.rank_subdomains(0, 28)


def test_an_element():
    K = element_matrix(0.5)
    assert np.allclose(K.sum(axis=1), 0) and np.allclose(K, K.T) and np.linalg.matrix_rank(K) == 7
    assert np.allclose(np.diag(K), 0.5 / 3)                      # h / 3


@pytest.mark.parametrize("levels", [2, 3])
def test_the_solution_is_the_direct_solvers(levels):
    r = PoissonCube(3, 4, levels, coefficient="checkerboard", jump=50.0).solve(rtol=1e-10)
    x = sla.spsolve(r.system.A.to_scipy().tocsc(), r.system.b)
    assert r.result.converged and abs(r.u[1:-1, 1:-1, 1:-1].ravel() - x).max() < 1e-8 * abs(x).max()
    assert r.u.shape == (13, 13, 13) and not r.u[0].any() and not r.u[:, :, -1].any()
    t = r.timings
    parts = sum(t.values()) - t["loading"] - t["setup"] - t["krylov"]
    assert {"schur", "interior", "decomposers", "coarse", "method"} <= set(t) and 0.8 < parts / t["setup"] < 1.001
    assert "3 levels" in str(r) if levels == 3 else "loading" in str(r)


def test_the_solution_converges_to_that_of_the_equation():
    """u(½, ½, ½) of −Δu = 1, from its Fourier series; the error falls as h²."""
    odd = np.arange(1, 60, 2)
    i, j, k = np.meshgrid(odd, odd, odd, indexing="ij")
    sign = (-1.0) ** ((i + j + k - 3) // 2)
    exact = (64 / np.pi**5 * sign / (i * j * k * (i**2 + j**2 + k**2))).sum()
    errors = [abs(PoissonCube(m, 2).solve(rtol=1e-10).u[m, m, m] - exact) for m in (3, 6, 12)]
    assert np.log2(errors[0] / errors[1]) > 1.8 and np.log2(errors[1] / errors[2]) > 1.8


def test_what_decomposers_get():
    """The interior subdomain's, of 178 rows for H/h = 5: indefinite, with a zero block; singular without border."""
    system = PoissonCube(5, 3).assemble()
    B = system.bordered(13)
    assert B.shape == (178, 178) and np.allclose(B, B.T, atol=1e-14) and not B[152:, 152:].any()
    values = np.linalg.eigvalsh(B)
    assert (values < 0).sum() == 26 and abs(np.linalg.eigvalsh(B[:152, :152])[0]) < 1e-12
    assert np.allclose(np.linalg.norm(B[152:], axis=1), 1) and abs(B[:152, :152].trace() / 152 - 1) < 1e-12


def test_other_methods_have_no_spectrum():
    r = PoissonCube(3, 2).solve(method="gmres")
    assert r.result.converged and np.isnan(r.extremes).all() and "eigenvalues" not in str(r)


@pytest.mark.parametrize("interior", ["nonsense", None, 3])
def test_what_cannot_solve_in_interiors(interior):
    with pytest.raises(swell.InputError, match=rf"interior={interior!r}\): expected 'direct', 'blocks', or .* 'ic0'"):
        PoissonCube(2, 2).solve(interior=interior)


@pytest.mark.parametrize("settings, words", [
    ({"elements": 1}, "elements"), ({"subdomains": 1}, "subdomains"), ({"levels": 1}, "levels"),
    ({"subdomains": 3, "levels": 3}, "at least 4"), ({"coefficient": "stripes"}, "stripes"), ({"jump": 0}, "jump"),
    ({"coefficient": np.ones((2, 2, 2))}, r"expected \(32, 32, 32\)"), ({"elements": 2.5}, "elements"),
    ({"elements": 2, "subdomains": 2, "coefficient": -np.ones((4, 4, 4))}, "positive"),
])
def test_what_is_refused(settings, words):
    with pytest.raises(swell.InputError, match=words):
        PoissonCube(**settings)


def test_finite_volumes_are_split():
    """The matrix of cells, cut into boxes of cells: those at an interface are duplicated."""
    mesh = fvm.box((12, 12, 12))
    walls = {p.name: fvm.Dirichlet(0.0) for p in mesh.patches}
    system = fvm.Poisson(mesh, walls, source=1.0).assemble()
    from swell.preconditioners.bddc.splitting import split
    place = (mesh.centres * 3).astype(int)
    subdomains = split(system.A.to_scipy(), place @ [9, 3, 1])
    r = swell.solve(system.A, system.b, method="cg", precond=swell.BDDC(subdomains=subdomains))
    assert len(subdomains) == 27 and r.converged and r.iterations < 12
    assert abs(r.spectrum.extremes[0] - 1) < 1e-2


def test_too_large_is_said_before_it_is_tried():
    with pytest.raises(swell.core.errors.OutOfMemory, match="assembly of 63952011999 unknowns needs about .* GiB"):
        PoissonCube(1000, 4).assemble()


def test_coefficients_that_are_none():
    k = np.ones((4, 4, 4))
    k[1, 2, 3] = -1
    with pytest.raises(swell.InputError, match=r"is -1.0 in element \(1, 2, 3\)"):
        PoissonCube(2, 2, coefficient=k)
