"""A maximum transversal: the order of rows whose diagonal has the largest product, and matrices that have none."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import real_matrix, rng
from scipy.optimize import linear_sum_assignment

import swell
from swell import gallery


def vector(A):
    return rng().standard_normal(A.shape[0])


def test_a_transversal_has_the_largest_product():
    A = abs(rng().standard_normal((6, 6))) * (rng().random((6, 6)) < 0.7) + np.roll(np.diag(np.full(6, 0.1)), 2, axis=1)
    order = swell.transversal(sp.csr_array(A))
    products = [np.prod(A[list(p), range(6)]) for p in itertools.permutations(range(6))]
    assert sorted(order) == list(range(6)) and np.prod(A[order, range(6)]) == pytest.approx(max(products))


def test_a_transversal_makes_ilu_possible(device):
    A = sp.csr_array(gallery.convection_diffusion((12, 12), 3.0))[rng().permutation(144)]
    b = A @ vector(A)
    with pytest.raises(swell.InputError, match=r"swell\.transversal"):
        swell.solve(A, b, method="gmres", precond="ilu0", device=device)
    order = swell.transversal(A)
    result = swell.solve(A[order], b[order], method="gmres", precond="ilu0", device=device)
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("precond", ["ilu0", "ilu(level=1)", "ilu(fill=10)", "ilu(block=2)", "jacobi", "gauss_seidel"])
def test_no_order_is_advised_for_an_empty_row(precond, device):
    """Nor for an empty column; what is advised instead works."""
    A = sp.lil_array(gallery.convection_diffusion((6, 6), 3.0))
    for rows, columns, name in (([10], [], "10"), ([], [10], "10"), ([10, 11], [10, 11], "")):
        B = A.copy()
        B[rows], B[:, columns], B[10, 10] = 0, 0, 0
        if precond.startswith("block"):                          # a block is empty if its rows are
            B[[10, 11]] = 0
        with pytest.raises(swell.InputError, match=f"row.* {name}.* is empty, so that A is") as e:
            swell.solve(B.tocsr(), np.ones(36), method="gmres", precond=precond, device=device)
        assert "transversal" not in str(e.value) and "direct" not in str(e.value)
        B[rows + columns + [10, 11], rows + columns + [10, 11]] = 1
        assert swell.solve(B.tocsr(), np.ones(36), method="gmres", precond=precond, device=device).converged


@pytest.mark.parametrize("density", [0.02, 0.1, 1])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_transversal_costs_no_more_than_a_dense_assignment(density, dtype):
    n = 150
    A = random_entries(n, density, dtype)
    cost = np.full((n, n), 1e4)
    np.log(abs(A), out=cost, where=A != 0)
    cost = np.where(A != 0, -cost, cost)
    order = swell.transversal(sp.csr_array(A))
    assert (np.sort(order) == np.arange(n)).all()
    assert cost[order, range(n)].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum(), rel=1e-5)


def random_entries(n, density, dtype):
    """Entries of many sizes, with a transversal of small ones."""
    g = rng()
    A = 10 ** g.uniform(-3, 3, (n, n)) * (g.random((n, n)) < density)
    A[g.permutation(n), np.arange(n)] += 1e-4
    return (A * np.exp(1j * A)).astype(dtype) if dtype == "complex128" else A.astype(dtype)


def test_a_transversal_of_blocks_in_disorder_takes_no_time():
    """SciPy's matching does not come to an end on these rows (its issue 26147)."""
    A = gallery.coupled_transport((12, 12, 12), 3)
    shuffled = A[rng().permutation(A.shape[0])]
    assert (abs(shuffled[swell.transversal(shuffled)].diagonal()) == abs(A.diagonal())).all()


def test_a_ladder_without_transversal():
    """Every step of this ladder doubles the paths down it; only a search that marks dead ends comes back from there."""
    n = 200
    step = sp.csr_array(np.ones((2, 2)))
    ladder = sp.kron(sp.diags_array([np.ones(n), np.ones(n - 1)], offsets=[0, 1]), step).tolil()
    ladder[-1] = ladder[-2] = 0
    with pytest.raises(swell.InputError, match=f"structurally singular, 2 of {2 * n} rows"):
        swell.transversal(ladder.tocsr())


@pytest.mark.data
def test_a_transversal_of_a_real_system(data):
    """west0479 has zeros on its diagonal; with its rows in this order ILUT runs."""
    A = sp.csr_array(real_matrix(data, "west0479"))
    order = swell.transversal(A)
    assert (A[order].diagonal() != 0).all() and (A.diagonal() == 0).any()
    result = swell.solve(A[order], (A @ np.ones(479))[order], method="gmres", precond="ilu(drop=1e-6, fill=50.0)")
    assert result.converged


def test_what_has_no_transversal_is_told():
    A = sp.csr_array([[1.0, 1, 0], [1, 1, 0], [1, 1, 0]])
    with pytest.raises(swell.InputError, match="structurally singular, 1 of 3 rows"):
        swell.transversal(A)
    A = sp.block_diag([sp.csr_array(np.ones((40, 40))), sp.csr_array((60, 60)), gallery.poisson2d(6)]).tolil()
    A[0:40, 40:100] = 1                                              # sixty columns want the forty rows of others
    with pytest.raises(swell.InputError, match=r"structurally singular, 60 of 136 rows .*\(row (4|5|6|7|8|9)\d among"):
        swell.transversal(A.tocsr())
    with pytest.raises(swell.InputError, match="square"):
        swell.transversal(sp.csr_array((2, 3)))
