"""∇·(u p) and ∂p/∂t: orders, conservation, boundedness, exact rows."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.fields import error, metrics_of, on_all_patches, orders, wave, wave_gradient, wave_laplacian

from swell.core.errors import InputError
from swell.pde import fvm
from swell.pde.fvm.convection import SCHEMES, face_flux

VELOCITY = (1.0, 0.5, 0.0)


def source(x, k=0.05):
    return wave_gradient(x) @ np.array(VELOCITY) - k * wave_laplacian(x)


def steady(mesh, scheme, device="cpu"):
    problem = fvm.ScalarTransport(mesh, on_all_patches(mesh, fvm.Dirichlet(wave)), VELOCITY, 0.05, source, scheme=scheme)
    solution = problem.solve(rtol=1e-9, device=device)
    assert solution.converged, str(solution)
    return solution


@pytest.mark.parametrize("scheme, least, most",
                         [("upwind", 0.8, 1.2), ("linear", 1.9, 2.1), ("linear_upwind", 1.8, 2.6)])
def test_order(scheme, least, most, device):
    errors = [error(m, steady(m, scheme, device).p) for m in (fvm.box((n, n)) for n in (16, 32, 64))]
    assert (orders(errors) > least).all() and (orders(errors) < most).all(), orders(errors)


@pytest.mark.parametrize("scheme", ["linear", "linear_upwind"])
def test_second_order_on_perturbed_meshes(scheme):
    errors = [error(m, steady(m, scheme).p) for m in (fvm.box((n, n), perturb=0.2) for n in (16, 32, 64))]
    assert (orders(errors) > 1.7).all(), orders(errors)


def test_rows_of_upwind_and_linear():
    """A row of three cells with unit faces, φ = 2 everywhere: entries by hand."""
    mesh = fvm.box((3, 1, 1), upper=(3.0, 1.0, 1.0))
    walls = {name: fvm.Neumann() for name in ("ymin", "ymax", "zmin", "zmax")}
    metrics = metrics_of(mesh)
    boundary = fvm.Boundary.of(metrics, {"xmin": fvm.Dirichlet(7.0), "xmax": fvm.Neumann(0.0), **walls})
    phi = face_flux(metrics, (2.0, 0.0, 0.0))
    flux = fvm.Convection(metrics, boundary, phi, "upwind").flux()
    assert np.allclose(metrics.pattern.matrix(flux).to_scipy().toarray(), [[2, 0, 0], [-2, 2, 0], [0, -2, 2]])
    assert np.allclose(-metrics.divergence(flux.c), [14, 0, 0])
    flux = fvm.Convection(metrics, boundary, phi, "linear").flux()
    assert np.allclose(metrics.pattern.matrix(flux).to_scipy().toarray(), [[1, 1, 0], [-1, 0, 1], [0, -1, 1]])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_deferred_and_implicit_agree_and_conserve(scheme, device):
    mesh = fvm.box((9, 8, 7), perturb=0.2)
    solution = steady(mesh, scheme, device)
    balance = solution.conservation()
    assert balance["relative"] < 1e-8
    # To rounding, whatever p is: what the cells lose together leaves through the boundary.
    metrics = metrics_of(mesh)
    lost = metrics.divergence(solution.fluxes)
    assert abs(lost.sum() - solution.fluxes[mesh.neighbour.size:].sum()) < 1e-13 * np.abs(solution.fluxes).sum()


def test_upwind_is_bounded_where_linear_is_not():
    """A front carried without diffusion to speak of."""
    mesh = fvm.box((40,))
    ends = {"xmin": fvm.Dirichlet(0.0), "xmax": fvm.Dirichlet(1.0)}
    run = {s: fvm.ScalarTransport(mesh, ends, (1.0, 0.0, 0.0), 1e-3, scheme=s).solve(method="direct", precond=None).p
           for s in ("upwind", "linear")}
    assert run["upwind"].min() > -1e-9 and run["upwind"].max() < 1 + 1e-9
    assert run["linear"].min() < -0.1


def test_upwind_is_an_m_matrix():
    mesh = fvm.box((6, 5, 4), perturb=0.2)
    problem = fvm.ScalarTransport(mesh, on_all_patches(mesh, fvm.Dirichlet(0.0)), VELOCITY, 0.01, scheme="upwind")
    A = problem.assemble().A.to_scipy()
    off = A.copy()
    off.setdiag(0)
    assert off.data.max() <= 0 and (A.diagonal() > 0).all()


def test_velocities_of_every_kind():
    mesh = fvm.box((5, 4, 3))
    metrics = metrics_of(mesh)
    expected = mesh.face_areas @ np.array(VELOCITY)
    for velocity in (VELOCITY, np.tile(VELOCITY, (mesh.n_cells, 1)), lambda x: np.tile(VELOCITY, (len(x), 1))):
        assert np.allclose(face_flux(metrics, velocity), expected)
    assert abs(metrics.divergence(face_flux(metrics, VELOCITY))).max() < 1e-14
    with pytest.raises(InputError, match=r"velocity has shape \(2,\)"):
        face_flux(metrics, (1.0, 2.0))
    with pytest.raises(InputError, match="scheme='quick'"):
        fvm.ScalarTransport(mesh, on_all_patches(mesh, fvm.Dirichlet(0.0)), VELOCITY, scheme="quick")


@pytest.mark.parametrize("time, order", [("euler", 1), ("bdf2", 2)])
def test_order_in_time(time, order):
    """Heat conduction, against the exact decay on the same mesh, so that the error of time alone counts."""
    mesh, k, end = fvm.box((8, 8)), 0.05, 1.0
    mode = lambda x: np.sin(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 1])                      # noqa: E731
    walls = on_all_patches(mesh, fvm.Dirichlet(0.0))
    system = fvm.ScalarTransport(mesh, walls, diffusivity=k).assemble()
    import scipy.linalg
    p0 = mode(mesh.centres)
    exact = scipy.linalg.expm(-end * system.A.to_scipy().toarray() * mesh.n_cells) @ p0      # V = 1/n
    errors = []
    for steps in (10, 20, 40):
        problem = fvm.ScalarTransport(mesh, walls, diffusivity=k)
        solution = problem.advance(p0, end / steps, steps, time=time, method="cg", precond="jacobi", rtol=1e-11)
        assert solution.converged
        errors.append(abs(solution.p - exact).max())
    assert (abs(orders(errors) - order) < 0.25).all(), orders(errors)


def test_time_steps_on_a_device(device):
    mesh = fvm.box((12, 12), perturb=0.2)
    vortex = lambda x: np.stack([np.sin(np.pi * x[:, 0]) * np.cos(np.pi * x[:, 1]),          # noqa: E731
                                 -np.cos(np.pi * x[:, 0]) * np.sin(np.pi * x[:, 1]), 0 * x[:, 0]], 1)
    problem = fvm.ScalarTransport(mesh, on_all_patches(mesh, fvm.Neumann()), vortex, 0.01)
    with pytest.raises(InputError, match="dt=-1"):
        problem.advance(0.0, -1, 3)
    with pytest.raises(InputError, match="time scheme 'rk4'"):
        problem.advance(0.0, 0.1, 3, time="rk4")
    start = wave(mesh.centres)
    solution = problem.advance(start, 0.05, 5, rtol=1e-10, device=device)
    assert solution.converged
    assert (mesh.volumes * (solution.p - start)).sum() == pytest.approx(0, abs=1e-3)  # φ conserves to O(h²) only


@pytest.mark.data
def test_openfoams_own_operator(data):
    """foam_hump_U is upwind with the face fluxes phi and a viscosity that varies: what upwind alone makes unsymmetric
    agrees entry by entry, and what is left over is a diffusion of no less than the molecular viscosity."""
    import gzip

    import scipy.io
    mesh = fvm.read_polymesh(data / "openfoam" / "hump")
    theirs = scipy.io.mmread(data / "matrices" / "foam_hump_U.mtx.gz").tocsr()
    text = gzip.open(data / "openfoam" / "hump" / "phi.gz", "rt").read()
    metrics = metrics_of(mesh)
    phi = np.zeros(mesh.n_faces)                                 # those of the boundary stand on the diagonal only
    phi[:metrics.n_internal] = text[text.index("\n(") + 2:text.index("\n)")].split()
    boundary = fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Neumann()))
    ours = metrics.pattern.matrix(fvm.Convection(metrics, boundary, phi, "upwind").flux()).to_scipy()
    scale = abs(phi).max()
    assert abs((ours - ours.T) - (theirs - theirs.T)).max() < 1e-12 * scale
    own, other = mesh.owner[:metrics.n_internal], mesh.neighbour
    g = (metrics.area / metrics.normal_distance)[:metrics.n_internal]
    left = -np.asarray((theirs - ours)[own, other]).ravel() / g
    assert left.min() > 1.0683e-6
