"""The contract of transforms: there and back, and the judge stays on the original residual."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import badly_scaled, rng

import swell
from swell import gallery
from swell.core.columns import plain
from swell.core.devices import make_space
from swell.core.registry import names, resolve
from swell.formats.csr import CSRMatrix
from swell.solving.together import bound
from swell.transforms.scaling import gershgorin

TRANSFORMS = [*(("scaling", s) for s in names("scaling")), *(("ordering", o) for o in names("ordering"))]


@pytest.fixture(params=TRANSFORMS, ids=lambda pair: pair[1])
def named(request):
    return request.param


def matrix(dtype):
    A = sp.csr_array(badly_scaled()).astype(dtype)
    if dtype == "complex128":
        A.data = A.data * np.exp(1j * rng().uniform(0, 6, A.nnz))
    A.sort_indices()
    return A


def test_there_and_back(named, dtype, space):
    """A' x' = b' if A x = b, with the residuals that the weights say."""
    A = matrix(dtype)
    x, b = rng().standard_normal((2, A.shape[0])).astype(dtype)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        transform = resolve(*named).build(csr)
        there, rhs, back = (space.empty(b.size, dtype) for _ in range(3))
        transform.forward_x(space.from_host(x), there)
        transform.forward_b(space.from_host(b), rhs)
        transform.backward_x(there, back)
        assert np.allclose(space.to_host(back), x, rtol=1e-14)
        r = space.empty(b.size, dtype)
        transform.matrix(csr).residual(there, rhs, r)
        weights = transform.residual_weights()
        norm2 = float((abs(r)**2 * (1 if weights is None else weights)).sum())
    assert np.sqrt(norm2) == pytest.approx(np.linalg.norm(b - A @ x), rel=1e-6)     # weights are in single precision


class Apart:
    """A transform that refuses to write where it reads, as every transform may: NumPy buffers it, a GPU has a race."""

    def __init__(self, transform):
        self._transform = transform

    def __getattr__(self, name):
        method = getattr(self._transform, name)
        if name not in ("forward_b", "forward_x", "backward_x"):
            return method

        def checked(source, out):
            assert plain(source) is not plain(out), f"{name} of {type(self._transform).__name__} in place"
            method(source, out)
        return checked


def apart(setup):
    setup.transforms = [Apart(transform) for transform in setup.transforms]
    return setup.transforms


def test_three_transforms_never_write_where_they_read(device):
    """b, x0 and x pass null space, ordering and scaling, of A and of Aᴴ, in more rows than a GPU runs at a time."""
    n = 10_000
    rows = rng().uniform(1, 2, n)
    A = sp.csr_array(sp.diags_array(rows) @ gallery.neumann((100, 100)))
    left = 1 / rows
    s = swell.prepare(A, method="gmres", nullspace=swell.NullSpace("constants", left=left), ordering="rcm",
                      scaling="ruiz(p=inf)", device=device)
    for matrix, null, adjoint in ((A, np.ones(n), False), (A.T, left, True)):
        prepared = s._preparing(adjoint)(0)
        assert len(apart(prepared.setup)) == 3
        x = rng().standard_normal(n)
        x -= null * (null @ x) / (null @ null)                   # the solution of least norm
        r = s.solve(matrix @ x, x0=x, adjoint=adjoint)
        assert r.converged and r.iterations == 0 and abs(r.x - x).max() < 1e-13, adjoint


def test_columns_never_write_where_they_read(device):
    A = gallery.poisson2d(100)
    X = rng().standard_normal((10_000, 2))
    s = swell.prepare(A, method="cg", ordering="rcm", scaling="ruiz", device=device)
    together = bound(s._prepared[0], 2)
    assert len(apart(together.prepared.setup)) == 2
    r = s.solve(A @ X, x0=X, together=True)
    assert all(one.iterations == 0 for one in r) and abs(r.x - X).max() < 1e-13


def test_a_singular_system_with_an_ordering_and_a_scaling(device):
    A = gallery.neumann((100, 100))
    x = rng().standard_normal(10_000)
    x -= x.mean()
    r = swell.solve(A, A @ x, method="cg", precond="amg", nullspace="constants", ordering="rcm", scaling="ruiz(p=inf)",
                    device=device)
    assert r.converged and abs(r.x - x).max() < 1e-5


def test_jacobi_scaling_leaves_a_constant_diagonal_and_symmetry(dtype, space):
    A = badly_scaled().astype(dtype)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        scaled = resolve("scaling", "jacobi").build(csr).matrix(csr).to_scipy()
    assert np.allclose(abs(scaled.diagonal()), abs(scaled.diagonal()[0]), rtol=1e-14)
    assert abs(scaled - scaled.conj().T).max() <= 1e-15 * abs(scaled).max()


@pytest.mark.parametrize("p", [1, 2, 4, np.inf])
@pytest.mark.parametrize("symmetric", [True, False])
def test_ruiz_equilibrates_rows_and_columns(p, symmetric, dtype, space):
    A = badly_scaled().astype(dtype)
    if not symmetric:                            # with connections far apart: on a grid the norms settle very slowly
        A = sp.random_array((90, 90), density=0.2, rng=rng()) + sp.eye_array(90)
        A = sp.csr_array(sp.diags_array(10.0 ** rng().uniform(-4, 4, 90)) @ A).astype(dtype)
        A.sort_indices()
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        transform = resolve("scaling", swell.RuizScaling(p=p)).build(csr)
        scaled = abs(transform.matrix(csr).to_scipy().toarray())
    assert transform.symmetric is symmetric and transform.deviation <= 1e-8
    for axis in (0, 1):
        assert np.linalg.norm(scaled, p, axis=axis) == pytest.approx(np.ones(A.shape[0]), abs=1.1e-8)


def test_ruiz_on_real_systems(data):
    from scipy.io import mmread
    for name, p in (("bcsstk14", 2), ("1138_bus", 1), ("foam_hump_p", 2), ("orsirr_1", np.inf), ("west0479", np.inf)):
        A = sp.csr_array(mmread(data / "matrices" / f"{name}.mtx.gz"))
        csr = CSRMatrix.from_scipy(A, make_space("cpu"))
        transform = swell.RuizScaling(p=p, maxiter=500).build(csr)
        norms = np.concatenate([np.linalg.norm(transform.matrix(csr).to_scipy().toarray(), p, axis=axis) for axis in (0, 1)]
                               if A.shape[0] < 5000 else [sp.linalg.norm(transform.matrix(csr).to_scipy(), p, axis=1)])
        assert transform.deviation <= 1e-8 and abs(norms - 1).max() <= 1.1e-8, name


def test_ruiz_says_where_it_stopped():
    """Without total support no scaling has rows and columns of norm 1: the iteration goes on and on."""
    A = sp.csr_array(np.array([[1.0, 1.0], [0.0, 1.0]]))
    r = swell.solve(A, np.ones(2), method="gmres", scaling="ruiz")
    assert r.converged and "not the 1e-08 asked for" in str(r)
    assert "not the" not in str(swell.solve(A, np.ones(2), method="gmres", scaling=swell.RuizScaling(p=np.inf)))


@pytest.mark.parametrize("settings, words", [({"p": 0.5}, "at least 1"), ({"tolerance": 0}, "between 0 and 1"),
                                             ({"maxiter": 0}, "maxiter=0"), ({"symmetric": "yes"}, "True, False or None")])
def test_ruiz_settings_that_mean_nothing(settings, words):
    with pytest.raises(swell.InputError, match=words):
        swell.RuizScaling(**settings)


def test_ruiz_names_an_empty_column_and_a_false_claim():
    A = sp.csr_array(np.array([[1.0, 0, 1], [1, 0, 2], [3, 0, 1]]))
    with pytest.raises(swell.InputError, match="1 columns of A .* first is column 1"):
        swell.solve(A, np.ones(3), method="gmres", scaling="ruiz")
    with pytest.raises(swell.InputError, match="not symmetric"):
        swell.solve(gallery.convection_diffusion((5, 5), 3.0), np.ones(25), method="gmres",
                    scaling=swell.RuizScaling(symmetric=True))


def test_bounds_on_the_condition():
    """(5.31) bounds the condition from above, (5.33) its distance from the best; CG's estimate bounds it from below."""
    A = badly_scaled() + sp.diags_array(0.05 * badly_scaled().diagonal())
    r = swell.solve(A, np.ones(A.shape[0]), method="cg", scaling="jacobi", rtol=1e-12)
    csr = CSRMatrix.from_scipy(sp.csr_array(A), make_space("cpu"))
    scaled = swell.JacobiScaling().build(csr).matrix(csr)
    true = np.linalg.cond(scaled.to_scipy().toarray())
    assert gershgorin(scaled) >= true and r.spectrum.condition == pytest.approx(true, rel=0.01)
    assert r.spectrum.condition <= 1.0001 * true
    assert f"condition at most {gershgorin(scaled):.2e} by Gershgorin's circles" in str(r)
    assert "condition at most 5 times that of the best diagonal scaling" in str(r)


def test_a_constant_diagonal_is_not_scaled():
    r = swell.solve(gallery.poisson2d(9), np.ones(81), method="cg", scaling="jacobi")
    assert r.converged and any("would change nothing" in note for note in r.notes)


def test_jacobi_scaling_is_jacobi_preconditioning_for_cg(device):
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    scaled = swell.solve(A, b, method="cg", scaling="jacobi", device=device)
    preconditioned = swell.solve(A, b, method="cg", precond="jacobi", device=device)
    assert scaled.converged and abs(scaled.iterations - preconditioned.iterations) <= 1
    assert scaled.history == pytest.approx(preconditioned.history[:scaled.history.size], rel=1e-4)


def test_the_judge_stays_on_the_original_residual(device):
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    for method in ("cg", "gmres", "bicgstab"):
        r = swell.solve(A, b, method=method, scaling="jacobi", ordering="rcm", device=device, maxiter=25)
        assert r.residual == pytest.approx(np.linalg.norm(b - A @ r.x) / np.linalg.norm(b), rel=1e-6)
        assert r.history[-1] == pytest.approx(r.residual, rel=1e-4)


@pytest.mark.parametrize("scaling", names("scaling"))
@pytest.mark.parametrize("factor", [1e-60, 1e60])
def test_any_range_of_values(factor, scaling):
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(factor * A, factor * b, method="cg", scaling=scaling)
    assert r.converged and r.iterations < 60 and r.history[-1] == pytest.approx(r.residual, rel=1e-4)


def test_a_zero_on_the_diagonal_is_named():
    A = gallery.saddle_point(3)
    with pytest.raises(swell.InputError, match="9 of 33 diagonal entries are zero"):
        swell.solve(A, np.ones(33), method="gmres", scaling="jacobi")
