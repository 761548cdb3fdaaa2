"""The contract of every ordering: a bijection that does what it is for, and a system that is solved as before."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import rng

import swell
from swell import gallery
from swell.core.registry import names, resolve
from swell.formats.csr import CSRMatrix

MATRICES = {
    "shuffled mesh": lambda: shuffled(gallery.p1_laplacian(400)),
    "unsymmetric": lambda: shuffled(gallery.convection_diffusion((12, 12), 5.0, "upwind")),
    "in parts": lambda: shuffled(sp.block_diag([gallery.poisson2d(5), gallery.poisson1d(9), sp.eye_array(3)]).tocsr()),
    "triangular": lambda: sp.csr_array(sp.tril(gallery.poisson2d(7))),
    "1 x 1": lambda: sp.csr_array([[2.0]]),
}


@pytest.fixture(params=names("ordering"))
def ordering(request):
    return request.param


def shuffled(A):
    order = rng().permutation(A.shape[0])
    return sp.csr_array(A)[order][:, order]


def bandwidth(A):
    A = A.tocoo()
    return int(abs(A.row - A.col).max(initial=0))


@pytest.mark.parametrize("name", MATRICES)
def test_a_bijection(ordering, name):
    A = MATRICES[name]()
    order = resolve("ordering", ordering).order(A)
    assert (np.sort(order) == np.arange(A.shape[0])).all()


@pytest.mark.parametrize("name", ["shuffled mesh", "unsymmetric"])
def test_a_narrow_band(ordering, name):
    A = MATRICES[name]()
    order = resolve("ordering", ordering).order(A)
    assert bandwidth(A[order][:, order]) <= 4 * np.sqrt(A.shape[0]) < bandwidth(A) / 2


def test_one_is_the_reverse_of_the_other():
    A = MATRICES["shuffled mesh"]()
    orders = [resolve("ordering", name).order(A) for name in ("rcm", "cuthill_mckee")]
    assert (orders[0] == orders[1][::-1]).all()


@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_the_solution_is_that_of_the_system_as_given(ordering, scaling, device):
    A = MATRICES["unsymmetric"]()
    A = A + sp.diags_array(rng().random(A.shape[0]))
    x = rng().standard_normal(A.shape[0])
    r = swell.solve(A, A @ x, method="gmres", ordering=ordering, scaling=scaling, device=device, rtol=1e-11, x0=0.9 * x)
    assert r.converged and np.allclose(r.x, x, atol=1e-8) and r.ordering == ordering


def test_permuted_matrix(ordering, space):
    A = MATRICES["unsymmetric"]()
    A.sort_indices()
    with space.active():
        csr = CSRMatrix.from_scipy(A, space)
        permutation = resolve("ordering", ordering).build(csr)
        found = permutation.matrix(csr).to_scipy()
        order = space.to_host(permutation.order)
    expected = A[order][:, order]
    expected.sort_indices()
    assert (found != expected).nnz == 0 and (found.indices == expected.indices).all()
