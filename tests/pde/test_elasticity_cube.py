"""The elastic cube: its matrices against scikit-fem, its energies, what it refuses."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg as sla

import swell
from swell.pde.elasticity_cube import ElasticityCube, element_matrices, patch_matrix


def of_skfem(cube):
    """The matrix on the free nodes, in the order of the cube's unknowns."""
    skfem = pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from skfem.helpers import ddot, eye, sym_grad, trace
    ticks = [np.linspace(0, 1, cube.edge + 1)] * cube.axes
    mesh = (skfem.MeshQuad if cube.axes == 2 else skfem.MeshHex).init_tensor(*ticks)
    element = skfem.ElementVector(skfem.ElementQuad1() if cube.axes == 2 else skfem.ElementHex1())
    basis = skfem.Basis(mesh, element)
    place = tuple(np.minimum((mesh.p[:, mesh.t].mean(axis=1) * cube.edge).astype(int), cube.edge - 1))
    E = cube.values(cube.young, cube.jump, (slice(None),) * cube.axes)[place]
    nu = cube.poisson if np.ndim(cube.poisson) == 0 else \
        cube.values(cube.poisson, 1, (slice(None),) * cube.axes)[place]
    lame, shear = (np.repeat(part[:, None], basis.X.shape[1], axis=1)
                   for part in (E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))))
    form = skfem.BilinearForm(lambda u, v, w: ddot(
        2 * w.shear * sym_grad(u) + eye(w.lame * trace(sym_grad(u)), cube.axes), sym_grad(v)))
    A = form.assemble(basis, lame=lame, shear=shear).tocsr()
    free = np.flatnonzero(mesh.p[0] > 1e-9)
    nodes = free[np.lexsort(np.round(mesh.p[::-1, free] * cube.edge))]
    rows = basis.nodal_dofs[:, nodes].T.ravel()
    return A[rows][:, rows]


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("young, poisson", [("constant", 0.3), ("checkerboard", 0.4), ("random", "random")])
def test_the_matrix_is_that_of_scikit_fem(axes, young, poisson):
    rng = np.random.default_rng(0)
    if young == "random":
        young, poisson = rng.uniform(0.1, 10, (4,) * axes), rng.uniform(-0.2, 0.45, (2,) * axes)
    cube = ElasticityCube(2, 2, young=young, jump=50.0, poisson=poisson, axes=axes)
    system = cube.assemble()
    A = system.A.to_scipy()
    assert abs(A - of_skfem(cube)).max() < 1e-12 * abs(A).max()
    assert abs(system.subdomains.assemble() - A).max() < 1e-12 * abs(A).max()


@pytest.mark.parametrize("axes, motions", [(2, 3), (3, 6)])
def test_elements(axes, motions):
    """Rigid motions have no energy; a patch has the energy of its mean divergence."""
    volumetric, shear = element_matrices(axes, 0.5)
    assert np.linalg.matrix_rank(volumetric + shear, tol=1e-10) == len(shear) - motions
    points = np.array(np.unravel_index(np.arange(3 ** axes), (3,) * axes)).T * 0.5
    u = (points * np.arange(1, axes + 1)).ravel()                # div u = 1 + … + axes
    assert u @ patch_matrix(axes, 0.5) @ u == pytest.approx(sum(range(1, axes + 1)) ** 2)
    assert np.linalg.matrix_rank(patch_matrix(axes, 0.5)) == 1


def test_patches_add_pressures_alone():
    """The energies of a displacement of constant divergence are equal for both."""
    one, other = (ElasticityCube(2, 2, axes=2, poisson=0.4, pressure=pressure).assemble()
                  for pressure in ("none", "patches"))
    u = (one.cube.points * [2.0, 0.0]).ravel()
    assert u @ (one.A.to_scipy() @ u) == pytest.approx(u @ (other.A.to_scipy() @ u))
    assert np.allclose(other.subdomains.assemble().toarray(), other.A.to_scipy().toarray())


@pytest.mark.parametrize("axes", [2, 3])
def test_the_solution_is_the_direct_solvers(axes):
    r = ElasticityCube(2, 3, axes=axes).solve(rtol=1e-10)
    x = sla.spsolve(r.system.A.to_scipy().tocsc(), r.system.b)
    inside = r.u[1:]
    assert r.result.converged and abs(inside.ravel() - x).max() < 1e-8 * abs(x).max()
    assert not r.u[0].any() and r.u[-1, ..., -1].max() < 0       # it sags
    assert r.system.b.sum() == pytest.approx(-1 + 1 / 12)        # the clamped nodes carry half a layer of 1/6
    assert "Elasticity on a" in str(r)


@pytest.mark.parametrize("settings, words", [
    ({"axes": 4}, "2, a square, or 3"), ({"poisson": 0.5}, "between -1 and 0.5"), ({"poisson": "soft"}, "between"),
    ({"young": "soft"}, "expected one of"), ({"young": -np.ones((4, 4))}, "positive"), ({"young": np.ones(3)}, "shape"),
    ({"jump": 0}, "jump=0"), ({"pressure": "p0"}, "'none' or 'patches'"),
    ({"pressure": "patches", "elements": 3}, "even number"), ({"levels": 3}, "one subdomain"),
])
def test_bad_settings(settings, words):
    with pytest.raises(swell.InputError, match=words):
        ElasticityCube(**{"elements": 2, "subdomains": 2, "axes": 2, **settings})


def test_materials_that_jump_within_patches():
    cube = ElasticityCube(4, 2, axes=2, young="channels", pressure="patches")
    with pytest.raises(swell.InputError, match="differs within a patch"):
        cube.assemble()
