"""The contract of transforms: there and back, and the judge stays on the original residual."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import badly_scaled, rng

import swell
from swell import gallery
from swell.core.registry import names, resolve
from swell.formats.csr import CSRMatrix

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


def test_jacobi_scaling_leaves_a_constant_diagonal_and_symmetry(dtype, space):
    A = badly_scaled().astype(dtype)
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        scaled = resolve("scaling", "jacobi").build(csr).matrix(csr).to_scipy()
    assert np.allclose(abs(scaled.diagonal()), abs(scaled.diagonal()[0]), rtol=1e-14)
    assert abs(scaled - scaled.conj().T).max() <= 1e-15 * abs(scaled).max()


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


@pytest.mark.parametrize("factor", [1e-60, 1e60])
def test_any_range_of_values(factor):
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    r = swell.solve(factor * A, factor * b, method="cg", scaling="jacobi")
    assert r.converged and r.iterations < 60


def test_a_zero_on_the_diagonal_is_named():
    A = gallery.saddle_point(3)
    with pytest.raises(swell.InputError, match="9 of 33 diagonal entries are zero"):
        swell.solve(A, np.ones(33), method="gmres", scaling="jacobi")
