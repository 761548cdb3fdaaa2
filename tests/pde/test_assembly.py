"""Assembly by cells: the same as face by face, into CSR and SELL, in place, and into a prepared solver."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.fields import metrics_of, on_all_patches

import swell
from swell.core.errors import InputError
from swell.core.devices import make_space
from swell.pde import fvm


def random_flux(space, faces, inner, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.standard_normal(m).astype(dtype) for m in (faces, inner, faces))
    return (a, b, c), fvm.Flux(*(space.from_host(v) for v in (a, b, c)))


def face_by_face(n, owner, neighbour, a, b, diagonal=0.0):
    """The textbook's loop."""
    A = np.zeros((n, n))
    for f, i in enumerate(owner):
        A[i, i] += a[f]
        if f < len(neighbour):
            j = neighbour[f]
            A[i, j] += b[f]
            A[j, j] -= b[f]
            A[j, i] -= a[f]
    return A + np.diag(np.broadcast_to(diagonal, n))


def polyhedra(n=60, inner=400, outer=50, seed=3):
    """A random graph in which cells share several faces, as polyhedral meshes have it; and cells without neighbours."""
    rng = np.random.default_rng(seed)
    pairs = np.sort(rng.integers(0, n - 2, (inner, 2)), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]].astype(np.int32)
    return n, np.concatenate([pairs[:, 0], rng.integers(0, n, outer).astype(np.int32)]), pairs[:, 1].copy()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_as_face_by_face(space, dtype):
    n, owner, neighbour = polyhedra()
    diagonal = np.arange(n).astype(dtype)
    with space.active():
        pattern = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour), dtype)
        (a, b, _), flux = random_flux(space, owner.size, neighbour.size, dtype)
        for extra in (None, diagonal):
            A = pattern.matrix(flux, None if extra is None else space.from_host(extra)).to_scipy()
            assert A.dtype == dtype and A.has_sorted_indices
            expected = face_by_face(n, owner, neighbour, a, b, 0 if extra is None else extra)
            assert np.allclose(A.toarray(), expected, atol=1e-12 if dtype == "float64" else 1e-4)
    adjacent = sp.coo_array((np.ones(neighbour.size), (owner[:neighbour.size], neighbour)), (n, n))
    assert pattern.nnz == ((adjacent + adjacent.T).tocsr() + sp.eye_array(n)).nnz


def test_one_cell():
    pattern = fvm.Pattern(make_space("cpu"), 1, np.zeros(6, np.int32), np.zeros(0, np.int32))
    _, flux = random_flux(pattern.space, 6, 0)
    assert pattern.matrix(flux).to_scipy().toarray() == pytest.approx(flux.a.sum())


def test_sums_over_faces_are_those_of_numpy(space):
    n, owner, neighbour = polyhedra()
    with space.active():
        pattern = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour))
        (_, _, c), flux = random_flux(space, owner.size, neighbour.size)
        for sign in (-1, 1):
            expected = np.bincount(owner, c, n) + sign * np.bincount(neighbour, c[:neighbour.size], n)
            assert np.allclose(space.to_host(pattern.collect(flux.c, sign)), expected)
        assert float(pattern.collect(flux.c).sum()) == pytest.approx(c[neighbour.size:].sum(), abs=1e-12)


@pytest.mark.parametrize("settings", [swell.SELL(), swell.SELL(window=1), swell.SELL(height=8, window=64)])
def test_straight_into_sell(space, settings):
    n, owner, neighbour = polyhedra(n=700, inner=2000)
    with space.active():
        pattern = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour))
        fluxes = [random_flux(space, owner.size, neighbour.size, seed=k)[1] for k in (1, 2)]
        sell = settings.build(pattern.matrix(fluxes[0]))
        values = sell.values
        assert pattern.matrix(fluxes[1], out=sell) is sell and sell.values is values
        assert (sell.to_csr().to_scipy() != pattern.matrix(fluxes[1]).to_scipy()).nnz == 0
        x, y = (space.from_host(np.random.default_rng(k).standard_normal(n)) for k in (4, 5))
        expected = pattern.matrix(fluxes[1]).to_scipy() @ space.to_host(x)
        sell.apply(x, y)
        assert np.allclose(space.to_host(y), expected)


def test_in_place_and_reproducible(space):
    n, owner, neighbour = polyhedra()
    with space.active():
        pattern = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour))
        _, flux = random_flux(space, owner.size, neighbour.size)
        A = pattern.matrix(flux)
        first = space.to_host(A.data).copy()
        A.data[...] = np.nan
        assert pattern.matrix(flux, out=A) is A
        assert np.array_equal(space.to_host(A.data), first)


def test_adjoint_follows_the_values(space):
    """A product with Aᴴ is made from a stored adjoint, which must not outlive the values."""
    n, owner, neighbour = polyhedra()
    with space.active():
        pattern = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour))
        A = pattern.matrix(random_flux(space, owner.size, neighbour.size, seed=1)[1])
        A.adjoint()
        pattern.matrix(random_flux(space, owner.size, neighbour.size, seed=2)[1], out=A)
        x, y = space.from_host(np.arange(n) * 1.0), space.empty(n, "float64")
        A.apply_adjoint(x, y)
        assert np.allclose(space.to_host(y), A.to_scipy().T @ np.arange(n))


@pytest.mark.parametrize("format", ["csr", "sell"])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_solver_takes_new_coefficients(device, format, in_place):
    """Assemble, update, solve: with arrays of the space throughout, and no second analysis."""
    mesh = fvm.box((12, 11, 10), perturb=0.2)
    metrics = metrics_of(mesh, device)
    space = metrics.space
    with space.active():
        laplacian = fvm.Laplacian(metrics, fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Dirichlet(0.0))))
        A = metrics.pattern.matrix(laplacian.flux())
        b = metrics.volumes.copy()
        solver = swell.prepare(A, method="cg", scaling="jacobi", format=format, rtol=1e-10)
        matrix = solver._prepare(0).setup.matrix
        assert solver.solve(b).converged
        for k in (2.0, 5.0):
            laplacian.diffuse(lambda x, k=k: k + x[:, 0])
            A2 = metrics.pattern.matrix(laplacian.flux(), out=A if in_place else None)
            result = solver.update(A2).solve(b)
            assert result.converged and solver._prepare(0).setup.matrix is matrix
            x = np.asarray(space.to_host(result.x))
            assert np.linalg.norm(space.to_host(b) - A2.to_scipy() @ x) <= 1.01e-10 * np.linalg.norm(space.to_host(b))


def test_a_solver_takes_a_matrix_in_another_format(space):
    """SELL values assembled in place, handed over as they are."""
    mesh = fvm.box((9, 8, 7))
    with space.active():
        metrics = fvm.Metrics(mesh, space)
        laplacian = fvm.Laplacian(metrics, fvm.Boundary.of(metrics, on_all_patches(mesh, fvm.Dirichlet(0.0))))
        sell = swell.SELL().build(metrics.pattern.matrix(laplacian.flux()))
        solver = swell.prepare(sell, method="cg", rtol=1e-10)
        laplacian.diffuse(3.0)
        metrics.pattern.matrix(laplacian.flux(), out=sell)
        result = solver.update(sell).solve(metrics.volumes)
        exact = metrics.pattern.matrix(laplacian.flux()).to_scipy()
        b = space.to_host(metrics.volumes)
        assert result.converged and result.format == "sell"
        assert np.linalg.norm(b - exact @ np.asarray(space.to_host(result.x))) <= 1.01e-10 * np.linalg.norm(b)


def test_another_pattern_is_refused(space):
    n, owner, neighbour = polyhedra()
    with space.active():
        small = fvm.Pattern(space, n, space.from_host(owner), space.from_host(neighbour))
        large = fvm.Pattern(space, n + 1, space.from_host(owner), space.from_host(neighbour))
        _, flux = random_flux(space, owner.size, neighbour.size)
        A = large.matrix(flux)
        for out in (A, swell.SELL().build(A)):
            with pytest.raises(InputError, match="pattern"):
                small.matrix(flux, out=out)
