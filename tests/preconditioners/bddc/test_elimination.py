"""What BDDC's Schur complements and interiors are made of: parts of matrices, layers, block tridiagonal factors."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.elimination import Elimination
from swell.preconditioners.bddc.layers import layers
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.problems import eliminations
from swell.preconditioners.bddc.renumbering import equal, numbers, renumbered
from swell.preconditioners.bddc.schur import schur
from swell.preconditioners.bddc.symmetry import HERMITIAN
from swell.preconditioners.bddc.unknowns import Unknowns

RNG = np.random.default_rng(3)
RANDOM = 10.0 ** np.random.default_rng(0).uniform(-3, 3, (27,) * 3)


@pytest.mark.parametrize("coefficient, different", [("constant", 1), ("checkerboard", 2), (RANDOM, 27)])
def test_interiors_by_blocks(device, coefficient, different):
    """The inverse of A_II, of one interior, two or as many as subdomains."""
    space_or_skip(device)
    system = PoissonCube(9, 3, coefficient=coefficient, jump=1e3).assemble(device)
    space = system.A.space
    with space.active(system.cube.n):
        level = swell.BDDC(subdomains=system.subdomains, interior="blocks").build(system.A).level
        assert f"{different} different interiors" in level.interiors.solver.describe()
        inside = np.ones(system.cube.n, bool)
        inside[level.interface.dofs] = False
        x = RNG.standard_normal(int(inside.sum()))
        y = space.from_host(system.A.to_scipy()[inside][:, inside] @ x)
        for alpha, beta in ((1, 0), (2, -1)):
            z = space.from_host(np.ones_like(x))
            level.interiors.solver.apply(y, z, alpha, beta)
            assert abs(space.to_host(z) - (alpha * x + beta)).max() < 1e-9


@pytest.mark.parametrize("panel", [50, 2048])
@pytest.mark.parametrize("coefficient", ["constant", RANDOM])
def test_schur_complements(device, coefficient, panel, monkeypatch):
    """Of every different subdomain; symmetric; of a floating one, zero for constants."""
    space_or_skip(device)
    monkeypatch.setattr("swell.preconditioners.bddc.schur.PANEL", panel)
    system = PoissonCube(9, 3, coefficient=coefficient).assemble(device)
    space, found = system.A.space, 0
    with space.active(system.cube.n):
        for interior in eliminations(space, system.subdomains, Interface(system.A, system.subdomains, Unknowns(1))):
            factors = interior.factors(HERMITIAN)
            assert len(factors) > 1
            for one in interior.subdomains:
                S = space.to_host(schur(one.A, one.order, one.own, factors))
                A = one.A.to_scipy().toarray()
                inner, own = one.inner, one.own
                expected = A[np.ix_(own, own)] - A[np.ix_(own, inner)] @ np.linalg.solve(A[np.ix_(inner, inner)],
                                                                                       A[np.ix_(inner, own)])
                assert abs(S - expected).max() < 1e-12 * abs(A).max() and abs(S - S.T).max() < 1e-13 * abs(A).max()
                if one.members == [13]:
                    assert abs(S.sum(axis=1)).max() < 1e-11 * abs(A).max()
                found += 1
    assert found == 27


def test_factors_of_what_is_not_positive_definite(device):
    """Said so, wherever in the layers."""
    space = space_or_skip(device)
    A = gallery.poisson2d(40).tocsr()
    order, ends = layers(A, [])
    A = A[order][:, order].tolil()
    A[1500, 1500] = -4
    with space.active(1600), pytest.raises(FactorisationError, match="not positive definite"):
        Elimination(CSRMatrix.from_scipy(A.tocsr(), space), ends)


def test_layers_couple_none_but_neighbours():
    """Of a box the layers are its smallest sections, where these are offered; in two pieces, of both."""
    shape, number = (15, 30, 20), np.arange(9000).reshape(15, 30, 20)
    path = [sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(m, m)) for m in shape]
    A = sp.csr_array(sp.kron(sp.kron(path[0], path[1]), path[2]))                   # a row of 27 entries
    sides = [number[0].ravel(), number[:, 0].ravel(), number[:, :, -1].ravel()]
    order, ends = layers(A, sides)
    assert np.diff(ends).tolist() == [300] * 30 and np.array_equal(np.sort(order[:300]), np.sort(sides[1]))
    order, ends = layers(A, [])
    block = np.searchsorted(ends, np.argsort(order), side="right")
    entries = A.tocoo()
    assert abs(block[entries.row] - block[entries.col]).max() == 1 and np.diff(ends).max() > 300
    twice = sp.block_diag([A, A], "csr")
    order, ends = layers(sp.csr_array(twice), sides)
    assert ends[-1] == 18000 and np.array_equal(np.sort(order), np.arange(18000)) and len(ends) > 2


@pytest.mark.parametrize("how", ["ascending", "permuted", "some"])
def test_matrices_in_another_order(device, how):
    space = space_or_skip(device)
    A = gallery.convection_diffusion((7, 6), 3.0, "upwind").tocsr()
    rows = {"ascending": np.arange(42), "permuted": RNG.permutation(42), "some": RNG.permutation(42)[:17]}[how]
    columns = rows if how != "some" else np.sort(RNG.permutation(42)[:20])
    found = renumbered(CSRMatrix.from_scipy(A, space), numbers(space, rows, 42), numbers(space, columns, 42),
                       (rows.size, columns.size)).to_scipy()
    assert np.array_equal(found.toarray(), A.toarray()[np.ix_(rows, columns)])
    assert all((np.diff(found.indices[a:b]) > 0).all() for a, b in zip(found.indptr, found.indptr[1:], strict=False))


def test_equal_arrays():
    a, b = np.arange(5000.0), np.arange(5000.0)
    b[1234] = 0                                  # where no sample is taken
    every = [(a, a), (a, b), (a.copy(), b.copy()), (a, a), (a[:-1], a), (a.reshape(50, 100), a)]
    assert equal(every) == [[0, 3], [1, 2], [4], [5]] and equal([]) == []


def test_a_singular_interior_is_found_whatever_its_scale():
    """A grid at its first resonance, with coefficients over 36 decades and rows in random order. Pivots alone accept a
    third of these; an eigenvalue of 1e-11 beside them is accepted."""
    m, rng = 30, np.random.default_rng(0)
    line = sp.diags_array([-np.ones(m - 1), 2 * np.ones(m), -np.ones(m - 1)], offsets=[-1, 0, 1])
    K, first = sp.kron(line, sp.eye_array(m)) + sp.kron(sp.eye_array(m), line), 4 - 4 * np.cos(np.pi / (m + 1))

    def factored(frequency, order, scale):
        A = (scale @ (K - frequency * sp.eye_array(m * m)) @ scale).tocsr()[order][:, order]
        A = sp.csr_array((A + A.T) / 2)
        A.sort_indices()
        return Elimination(CSRMatrix.from_scipy(A, space_or_skip("cpu")), np.array([0, m * m]))

    for _ in range(8):
        order, scale = rng.permutation(m * m), sp.diags_array(10.0 ** rng.uniform(-9, 9, m * m))
        with pytest.raises(FactorisationError, match="not positive definite"):
            factored(first, order, scale)
        assert factored(first - 1e-11, order, scale).definite
