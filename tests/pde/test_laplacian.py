"""−∇·(k ∇p): order, symmetry, exactness for linear fields, the real OpenFOAM matrix."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.io
from tests.support.fields import error, metrics_of, mixed, on_all_patches, orders, plane, wave, wave_laplacian

from swell.core.errors import InputError
from swell.pde import fvm
from swell.pde.fvm.laplacian import CORRECTIONS

DISTORTED = {"perturbed": dict(perturb=0.3), "sheared": dict(skew=(0.5, 0.0)), "graded": dict(grading=(5.0, 0.2))}


def solved(mesh, device="cpu", conditions=None, k=1.0, **settings):
    conditions = conditions or on_all_patches(mesh, fvm.Dirichlet(wave))
    problem = fvm.Poisson(mesh, conditions, k, lambda x: -k * wave_laplacian(x), **settings)
    solution = problem.solve(rtol=1e-10, device=device)
    assert solution.converged
    return solution


def test_second_order_on_orthogonal_meshes(device):
    errors = [error(m, solved(m, device).p) for m in (fvm.box((n, n)) for n in (8, 16, 32, 64))]
    assert (abs(orders(errors) - 2) < 0.05).all()


@pytest.mark.parametrize("kind", DISTORTED)
def test_order_on_distorted_meshes_with_correction(kind):
    errors = [error(m, solved(m).p) for m in (fvm.box((n, n), **DISTORTED[kind]) for n in (16, 32, 64))]
    assert (orders(errors) >= 1.8).all(), orders(errors)


def test_order_in_three_dimensions_with_warped_faces():
    errors = [error(m, solved(m).p) for m in (fvm.box((n, n, n), perturb=0.2) for n in (6, 12, 24))]
    assert (orders(errors) >= 1.8).all(), orders(errors)


@pytest.mark.parametrize("kind", ["perturbed", "sheared"])
def test_without_correction_the_order_is_lost(kind):
    errors = [error(m, solved(m, corrections=0).p) for m in (fvm.box((n, n), **DISTORTED[kind]) for n in (16, 32, 64))]
    assert (orders(errors) < 1).all(), orders(errors)


def test_order_with_all_kinds_of_conditions():
    for kwargs in ({}, dict(skew=(0.4, 0.0)), dict(perturb=0.2)):
        meshes = [fvm.box((n, n), **kwargs) for n in (16, 32, 64)]
        errors = [error(m, solved(m, conditions=mixed(m)).p) for m in meshes]
        assert (orders(errors) >= 1.8).all(), (kwargs, orders(errors))


@pytest.mark.parametrize("correction", CORRECTIONS[:3])
def test_linear_fields_are_exact_on_distorted_meshes(correction):
    """What the correction is for: a constant gradient through oblique faces."""
    mesh = fvm.box((6, 5, 4), perturb=0.25)
    gradient = lambda x: np.tile([2.0, -3.0, 0.5], (len(x), 1))   # noqa: E731
    p = fvm.Poisson(mesh, mixed(mesh, plane, gradient), correction=correction).solve(rtol=1e-11)
    assert p.converged and abs(p.p - plane(mesh.centres)).max() < 1e-8


@pytest.mark.parametrize("interpolation", ["harmonic", "linear"])
def test_matrix_is_exactly_symmetric(interpolation):
    """(2.14), whatever the mesh, the correction and the diffusivity are: bit by bit."""
    mesh = fvm.box((7, 6, 5), perturb=0.3, grading=(3.0, 1.0, 0.2))
    metrics = metrics_of(mesh)
    k = np.exp(np.random.default_rng(1).standard_normal(mesh.n_cells) * 3)
    for correction in CORRECTIONS:
        laplacian = fvm.Laplacian(metrics, fvm.Boundary.of(metrics, mixed(mesh)), k, correction, interpolation)
        A = metrics.pattern.matrix(laplacian.flux()).to_scipy()
        assert (A != A.T).nnz == 0
        d = A.diagonal()
        off = np.asarray(abs(A).sum(axis=1)).ravel() - d
        assert (d > 0).all() and (d >= off * (1 - 1e-14)).all()               # weakly dominant, (2.13)
        assert np.linalg.eigvalsh(A.toarray()).min() > 0                      # and definite, with Dirichlet data


def test_entries_are_those_of_the_paper():
    """(2.13)–(2.16) on an orthogonal box, with numbers computed by hand."""
    mesh = fvm.box((3, 1, 1), upper=(3.0, 2.0, 1.0))
    walls = {name: fvm.Neumann(0.0) for name in ("ymin", "ymax", "zmin", "zmax")}
    system = fvm.Poisson(mesh, {"xmin": fvm.Dirichlet(5.0), "xmax": fvm.Neumann(7.0), **walls}, 1.0, 0.25).assemble()
    assert np.allclose(system.A.to_scipy().toarray(), [[2 / 0.5 + 2, -2, 0], [-2, 4, -2], [0, -2, 2]])
    assert np.allclose(system.b, [0.5 + 4 * 5.0, 0.5, 0.5 + 7.0 * 2])


def test_layers_are_exact_with_the_harmonic_mean():
    """k jumps by 1e4 at a face: the flux is that of resistances in series."""
    mesh = fvm.box((8,), grading=(3.0,))
    k = np.where(mesh.centres[:, 0] < mesh.centres[3:5, 0].mean(), 1.0, 1e4)
    p = fvm.Poisson(mesh, {"xmin": fvm.Dirichlet(1.0), "xmax": fvm.Dirichlet(0.0)}, k).solve(rtol=1e-12)
    face = mesh.face_centres[[f for f in range(mesh.neighbour.size) if mesh.owner[f] == 3][0], 0]
    assert p.conservation()["patches"]["xmax"] == pytest.approx(1 / (face + (1 - face) / 1e4), rel=1e-9)


def test_diffusivity_by_faces_and_by_a_function():
    mesh = fvm.box((6, 5))
    walls = on_all_patches(mesh, fvm.Dirichlet(wave))
    by_number = fvm.Poisson(mesh, walls, 3.0, 1.0).solve()
    assert np.allclose(fvm.Poisson(mesh, walls, np.full(mesh.n_faces, 3.0), 1.0).solve().p, by_number.p)
    assert np.allclose(fvm.Poisson(mesh, walls, lambda x: 3 + 0 * x[:, 0], 1.0).solve().p, by_number.p)


def test_a_correction_that_diverges_is_not_called_converged():
    mesh = fvm.box((32, 32), skew=(0.8, 0.0))
    p = fvm.Poisson(mesh, on_all_patches(mesh, fvm.Dirichlet(wave)), correction="minimum").solve()
    assert not p.converged and not p.residual < 1e-8


def constant(x):
    return np.tile([2.0, -3.0, 0.5], (len(x), 1))


@pytest.mark.parametrize("kind", ["mixed", "values", "nothing"])
def test_least_squares_gradients_of_linear_fields_are_exact(kind, device):
    mesh = fvm.box((6, 5, 4), perturb=0.3)
    conditions = {"mixed": mixed(mesh, plane, constant), "values": on_all_patches(mesh, fvm.Dirichlet(plane)),
                  "nothing": on_all_patches(mesh, fvm.Extrapolated())}[kind]
    metrics = metrics_of(mesh, device)
    with metrics.space.active():
        g = fvm.LeastSquares(metrics, fvm.Boundary.of(metrics, conditions))(metrics.full(plane, "p"))
        assert np.allclose(metrics.space.to_host(g), np.array([[2.0], [-3.0], [0.5]]), atol=1e-9)


def test_gauss_gradients():
    mesh = fvm.box((6, 5, 4), skew=(0.3, 0.1))
    metrics = metrics_of(mesh)
    g = fvm.Gauss(metrics, fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Dirichlet(plane))))(plane(mesh.centres))
    assert np.allclose(g, constant(mesh.centres).T, atol=1e-10)
    total = (g * metrics.volumes).sum(1)                          # the sum over the cells is that over the boundary
    outside = metrics.s[:, metrics.n_internal:] * plane(mesh.face_centres[metrics.n_internal:])
    assert np.allclose(total, outside.sum(1))


def test_least_squares_on_perturbed_cells_and_in_two_dimensions():
    for mesh in (fvm.box((6, 5, 4), perturb=0.3), fvm.box((6, 5), perturb=0.3)):
        metrics = metrics_of(mesh)
        flat = lambda x: 1 + 2 * x[:, 0] - 3 * x[:, 1]            # noqa: E731
        boundary = fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Extrapolated()))
        g = fvm.LeastSquares(metrics, boundary)(flat(mesh.centres))
        assert np.allclose(g, np.array([[2.0], [-3.0], [0.0]]), atol=1e-10)


@pytest.mark.data
def test_openfoams_own_matrix(data):
    """foam_hump_p is the over-relaxed Laplacian of the hump with p given at the outlet, entry by entry."""
    mesh = fvm.read_polymesh(data / "openfoam" / "hump")
    theirs = scipy.io.mmread(data / "matrices" / "foam_hump_p.mtx.gz").tocsr()
    theirs.sort_indices()
    walls = on_all_patches(mesh, fvm.Neumann(0.0))
    ours = fvm.Poisson(mesh, {**walls, "b5-outlet": fvm.Dirichlet(0.0)}).assemble().A.to_scipy()
    assert np.array_equal(ours.indptr, theirs.indptr) and np.array_equal(ours.indices, theirs.indices)
    assert abs(ours.data - theirs.data).max() <= 1e-10 * abs(theirs.data).max()
    off = ours.data < 0
    assert abs(ours.data[off] / theirs.data[off] - 1).max() < 1e-10


def test_bad_input():
    mesh = fvm.box((4, 4))
    metrics = metrics_of(mesh)
    boundary = fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Dirichlet(0.0)))
    with pytest.raises(InputError, match="correction='over'.*over_relaxed"):
        fvm.Laplacian(metrics, boundary, correction="over")
    with pytest.raises(InputError, match="diffusivity must be positive"):
        fvm.Laplacian(metrics, boundary, np.r_[-1.0, np.ones(15)])
    with pytest.raises(InputError, match=r"diffusivity has shape \(7,\)"):
        fvm.Laplacian(metrics, boundary, np.ones(7))
    with pytest.raises(InputError, match="gradient='green'"):
        fvm.Laplacian(metrics, boundary, gradient="green")
    with pytest.raises(InputError, match="every face"):
        fvm.Laplacian(metrics, fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Extrapolated())))
