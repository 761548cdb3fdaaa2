"""Minimum degree: its counts beside a factorisation of the pattern by its definition, its limits and its special rows."""
from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.support.during import during

from swell import gallery
from swell.bench import elements
from swell.core.library import native_kernels
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings import minimum_degree
from swell.orderings.minimum_degree import Elimination, FactorisationCost, eliminate, factorisation_cost, unready
from swell.orderings.pivots import eliminate_with_pivots


def csr(A):
    A = sp.csr_matrix(A).astype(float)
    A.sum_duplicates()
    return CSRMatrix.from_scipy(A, make_space("cpu"))


def by_definition(A, order):
    """The cost of factors of the pattern of A + Aᵀ in that order."""
    pattern = (abs(A) + abs(A).T).toarray()[np.ix_(order, order)] != 0
    entries = flops = 0
    for k in range(len(order)):
        below = k + 1 + np.flatnonzero(pattern[k + 1:, k])
        pattern[np.ix_(below, below)] = True
        entries += 2 * below.size + 1
        flops += below.size + 2 * below.size**2
    return FactorisationCost(entries, flops)


def random_pattern(seed):
    """Small, of any density; some in 2 × 2 blocks, some with a full column."""
    random = np.random.default_rng(seed)
    n, density = int(random.integers(1, 50)), float(random.choice([0, 0.02, 0.05, 0.1, 0.3, 0.7]))
    A = sp.random_array((n, n), density=density, rng=random, format="csr")
    if seed % 3 == 0:
        A = sp.kron(A, np.ones((2, 2))).tocsr()
    if seed % 5 == 0:
        A = A.tolil()
        A[:, random.integers(A.shape[0])] = 1
    return sp.csr_array(A)


NAMED = {
    "0 x 0": sp.csr_array((0, 0)), "1 x 1": sp.csr_array([[2.0]]), "empty": sp.csr_array((9, 9)),
    "diagonal": sp.eye_array(40), "full": sp.csr_array(np.ones((60, 60))), "grid": gallery.poisson2d(13),
    "box": gallery.poisson3d(5), "in parts": sp.block_diag([gallery.poisson2d(5), sp.eye_array(3), np.ones((9, 9))]),
    "triangular": sp.tril(gallery.poisson2d(8)), "elasticity": gallery.elasticity2d(6),
    "saddle point": gallery.saddle_point(6),
}


def test_the_cost_is_that_of_the_order():
    """Exactly, as long as no row is put last."""
    for name in (*NAMED, *range(60)):
        with during(name=name):
            A = sp.csr_array(NAMED[name] if name in NAMED else random_pattern(name))
            found = eliminate(csr(A))
            order = found.order()
            assert (np.sort(order) == np.arange(A.shape[0])).all()
            assert found.cost == by_definition(A, order) and found.cost.complete


@pytest.mark.parametrize("dense", [1, 4, 7])
def test_rows_put_last_are_counted_from_above(dense, monkeypatch):
    monkeypatch.setattr(minimum_degree, "DENSE", (dense, 0, 0))
    for seed in range(30):
        with during(seed=seed):
            A = random_pattern(seed)
            found = eliminate(csr(A))
            order, expected = found.order(), by_definition(A, found.order())
            assert (np.sort(order) == np.arange(A.shape[0])).all()
            assert found.cost.entries >= expected.entries and found.cost.flops >= expected.flops
            last = np.flatnonzero(found.group < 0)
            assert (np.sort(order[order.size - last.size:]) == last).all()


def test_a_dense_row_comes_last():
    """An arrow: eliminated from its point, it would be full."""
    A = sp.eye_array(2000).tolil()
    A[3, :] = A[:, 3] = 1
    found = eliminate(csr(A.tocsr()))
    assert found.order()[-1] == 3 and found.cost == FactorisationCost(3 * 2000 - 2, 3 * 1999)


def test_a_dense_matrix_has_no_dense_rows():
    found = eliminate(csr(np.ones((700, 700))))
    assert (found.group >= 0).all() and found.cost.entries == 700**2


def test_known_costs():
    """A line has no fill; the fill of a grid of m × m grows like m² log m, in natural order like m³."""
    assert factorisation_cost(csr(gallery.poisson1d(500))).entries == 3 * 500 - 2
    m = 60
    assert factorisation_cost(csr(gallery.poisson2d(m))).entries < 8 * m**2 * math.log2(m)


@pytest.mark.parametrize("limit", ["entries", "flops"])
def test_it_gives_up_at_a_limit(limit):
    """With lower bounds that are past it; at exactly the cost it does not."""
    A = csr(gallery.poisson3d(12))
    whole = factorisation_cost(A)
    for share in (0, 0.01, 0.5, 0.999):
        part = factorisation_cost(A, **{limit: share * getattr(whole, limit)})
        assert not part.complete and share * getattr(whole, limit) < getattr(part, limit) <= getattr(whole, limit)
    assert factorisation_cost(A, **{limit: getattr(whole, limit)}) == whole


def test_gaps_in_memory_are_closed(monkeypatch):
    """With hardly any room for new lists, order and cost are the same."""
    A = csr(gallery.poisson3d(7))
    kernels = native_kernels("swell.orderings", "minimum_degree")
    expected, calls = eliminate(A), []
    original = kernels.eliminate

    def cramped(start, length, lists, free, *rest):
        calls.append(free)
        return original(start, length, lists[:free + A.shape[0]].copy(), free, *rest)
    monkeypatch.setattr(kernels, "eliminate", cramped)
    found = eliminate(csr(gallery.poisson3d(7)))
    assert calls and found.cost == expected.cost and (found.order() == expected.order()).all()


def test_an_analysis_gives_up_after_a_number_of_visits():
    """Lower bounds are left, and every variable is in the order once."""
    A = csr(gallery.poisson2d(20))
    part, whole = eliminate(A, visits=500), eliminate(A)
    assert whole.cost.complete and not part.cost.complete and 0 < part.cost.entries < whole.cost.entries
    assert sorted(part.order()) == list(range(400)) and eliminate(A, visits=1) is whole, "it is kept"


def test_wide_indices(monkeypatch):
    A = csr(gallery.convection_diffusion((9, 9), 5.0, "upwind"))
    expected = eliminate(A)
    monkeypatch.setattr(minimum_degree, "index_type", lambda *sizes: np.dtype(np.int64))
    found = eliminate(csr(gallery.convection_diffusion((9, 9), 5.0, "upwind")))
    assert found.pivots.dtype == np.int64
    assert found.cost == expected.cost and (found.order() == expected.order()).all()


def test_less_fill_than_in_a_random_order():
    A = gallery.poisson2d(20)
    order = eliminate(csr(A)).order()
    assert by_definition(A, order).entries < by_definition(A, rng().permutation(400)).entries / 2


def test_weak_pivots_wait_where_ranks_allow_it():
    """A saddle point's zeros wait; those between cells of mixed elements would meet zero pivots where the fluxes of a
    cell are coupled, and rows move. Couplings that are rounding errors do not count."""
    darcy = elements.darcy(800)
    coupled = darcy.copy()
    coupled.data[(abs(darcy.data) < 1e-15)] = 1e-3
    for A, moves in ((gallery.saddle_point(12), False), (darcy, False), (coupled, True),
                     (sp.csr_array(gallery.poisson2d(9))[rng().permutation(81)], True)):
        M = csr(A)
        found, match = eliminate_with_pivots(M)
        assert (match.column != np.arange(A.shape[0])).any() == moves and found.cost.complete
        scaled = sp.diags_array(match.row_factors) @ sp.csr_array(A) @ sp.diags_array(match.column_factors)
        assert abs(scaled).max() <= 4.1
        if moves:
            matched = abs(scaled)[np.arange(A.shape[0]), match.column]
            assert matched.min() >= 0.24 and sorted(match.column) == list(range(A.shape[0]))


@pytest.mark.parametrize("outlets, lacking", [(0, 1), (1, 0)])
def test_ranks_are_counted_for_a_ring_of_cells(outlets, lacking):
    """Three cells with a flux between each two of them: without a flux out of the ring the last pivot is zero."""
    between = [(0, 1), (1, 2), (2, 0), (0,)][:3 + outlets]
    A = sp.eye_array(3 + len(between)).tolil()
    for flux, cells in enumerate(between, 3):
        for cell in cells:
            A[flux, cell] = A[cell, flux] = 1
    weak = np.arange(A.shape[0]) < 3
    order = np.argsort(weak, kind="stable")      # the fluxes first
    found = Elimination(FactorisationCost(0, 0), order, np.arange(A.shape[0]))
    assert unready(csr(A), found, weak) == (lacking, 1)
