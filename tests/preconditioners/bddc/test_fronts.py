"""BDDC's interiors on a CPU: nested dissection, the factors of its fronts, solves with them, inverses by Cholesky."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell.formats.csr import CSRMatrix
from swell.preconditioners.bddc.dissection import dissect, structure
from swell.preconditioners.bddc.elimination import Elimination
from swell.preconditioners.bddc.front_solves import FrontInverses, FrontSolver
from swell.preconditioners.bddc.inverse import by_cholesky, invert
from swell.preconditioners.bddc.layers import distances
from swell.preconditioners.bddc.schur import schur
from swell.preconditioners.bddc.symmetry import GENERAL, HERMITIAN, SYMMETRIC

RNG = np.random.default_rng(5)


def box(*shape):
    """The graph of a box of nodes, each coupled to its 26 neighbours, and the numbers of the nodes."""
    paths = [sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(m, m)) for m in shape]
    A = paths[0]
    for path in paths[1:]:
        A = sp.kron(A, path)
    return sp.csr_array(A), np.arange(A.shape[0]).reshape(shape)


def dissected(A, sides=(), small=20):
    A = sp.csr_array(A)
    return dissect(A, [distances(A, side) for side in ([], *sides)], small)


def matrix(kind, n=300):
    """A matrix of one kind on a grid, its rows in fronts, bordered by 20 more: (A, ends, number of interior rows)."""
    graph, _ = box(n // 12, 12)
    order, ends = dissected(graph)
    more = sp.random_array((20, graph.shape[0]), density=0.02, random_state=0)
    A = sp.csr_array(sp.block_array([[graph[order][:, order], more.T], [more, sp.eye_array(20)]]))
    A.data = RNG.standard_normal(A.nnz) + (1j * RNG.standard_normal(A.nnz) if kind[0] == "c" else 0)
    heavy = sp.eye_array(A.shape[0]) * 30
    full = {"real symmetric": A + A.T, "complex Hermitian": A + A.conj().T, "complex symmetric": A + A.T,
            "general": A, "complex": A}[kind] + heavy
    full = sp.csr_array(full)
    full.sort_indices()
    return full, ends, graph.shape[0]


SYMMETRIES = {"real symmetric": HERMITIAN, "complex Hermitian": HERMITIAN, "complex symmetric": SYMMETRIC,
              "general": GENERAL, "complex": GENERAL}


def test_distances():
    A, number = box(7, 5, 6)
    assert np.array_equal(distances(A, number[0].ravel()).reshape(7, 5, 6)[:, 0, 0], np.arange(7))
    twice = sp.csr_array(sp.block_diag([A, A]))
    found = distances(twice, number[-1].ravel())
    assert found[:210].max() == 6 and found[210] == 0 and found[210:].max() == 6       # the second from its first row
    assert distances(A, []).max() == 6 and not distances(sp.csr_array((3, 3)), []).any()


def test_separators_of_a_box_are_its_sections():
    A, number = box(15, 31, 9)
    order, ends = dissected(A, [number[0].ravel(), number[:, 0].ravel(), number[:, :, -1].ravel()], 200)
    assert np.array_equal(np.sort(order), np.arange(A.shape[0])) and (np.diff(ends) > 0).all()
    assert np.array_equal(np.sort(order[ends[-2]:]), np.sort(number[:, 15].ravel()))


@pytest.mark.parametrize("graph", [box(40)[0], box(12, 11)[0], sp.block_diag([box(9, 9)[0], box(30)[0]]),
                                   np.ones((30, 30)), sp.eye_array(50)])
def test_fronts_hold_the_factors(graph):
    """Every entry of the factors is in a front's own rows and rows below; parts are small where the graph allows it."""
    A = sp.csr_array(graph)
    order, ends = dissected(A, [[A.shape[0] - 1]])
    A = sp.csr_array(A[order][:, order].astype(float))
    A.sort_indices()
    below, parents = structure(CSRMatrix.from_scipy(A, space_or_skip("cpu")), ends)
    filled = A.toarray() != 0
    for j in range(len(filled)):
        rows = np.flatnonzero(filled[:, j] & (np.arange(len(filled)) > j))
        filled[np.ix_(rows, rows)] = True
    for k, (rows, parent) in enumerate(zip(below, parents, strict=True)):
        own = np.arange(ends[k], ends[k + 1])
        met = np.flatnonzero(filled[:, own].any(axis=1))
        assert np.isin(met[met >= ends[k + 1]], rows).all() and (np.diff(rows) > 0).all()
        assert parent == (np.searchsorted(ends, rows[0], side="right") - 1 if rows.size else -1)
    assert len(below) == 1 if A.nnz in (900, 50) else np.diff(ends).max() <= 20


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("kind", SYMMETRIES)
def test_factors_and_schur_complements_of_each_kind(kind, definite):
    symmetry, space = SYMMETRIES[kind], space_or_skip("cpu")
    if definite and symmetry is not HERMITIAN:
        pytest.skip("Cholesky is for Hermitian matrices")
    full, ends, n = matrix(kind)
    dense, wide = full.toarray(), CSRMatrix.from_scipy(full, space)
    factors = Elimination(CSRMatrix.from_scipy(full[:n, :n], space), ends, definite)
    assert len(factors) > 5
    r = RNG.standard_normal((n, 2)).astype(full.dtype)
    assert abs(dense[:n, :n] @ factors.solve(r) - r).max() < 1e-12
    S = schur(wide, np.arange(n), np.arange(n, n + 20), factors, symmetry)
    expected = dense[n:, n:] - dense[n:, :n] @ np.linalg.solve(dense[:n, :n], dense[:n, n:])
    assert abs(S - expected).max() < 1e-12 * abs(expected).max()
    for dtype, error in ((full.dtype, 1e-12), (np.dtype(full.dtype.char.lower().replace("d", "f")
                                                        if full.dtype.kind == "f" else "F"), 1e-4)):
        inverses = [FrontInverses(factors, dtype, symmetry)]
        factors = Elimination(CSRMatrix.from_scipy(full[:n, :n], space), ends, definite)       # `back` overwrites E
        places = [[RNG.permutation(2 * n)[:n]]]
        places[0].append(np.setdiff1d(np.arange(2 * n), places[0][0]))
        solver = FrontSolver(space, inverses, places, 2 * n, dtype, definite)
        x, z = RNG.standard_normal(2 * n).astype(dtype), np.ones(2 * n, dtype)
        for adjoint, A in ((False, dense[:n, :n]), (True, dense[:n, :n].conj().T)):
            z[...] = 1
            solver.apply(x, z, 2, -1, adjoint)
            for place in places[0]:
                assert abs(z[place] + 1 - 2 * np.linalg.solve(A, x[place])).max() < error


def test_solves_do_not_depend_on_the_number_of_threads():
    from swell.core.library import _native
    full, ends, n = matrix("real symmetric", 6000)
    space = space_or_skip("cpu")
    factors = Elimination(CSRMatrix.from_scipy(full[:n, :n], space), ends)
    places = [[np.arange(k * n, (k + 1) * n) for k in range(8)]]
    solver = FrontSolver(space, [FrontInverses(factors, np.dtype(float))], places, 8 * n, float)
    x, results = RNG.standard_normal(8 * n), []
    for count in (1, 2):
        before = _native.set_threads(count)
        results.append(np.empty_like(x))
        solver.apply(x, results[-1])
        _native.set_threads(before)
    assert np.array_equal(*results)


@pytest.mark.parametrize("dtype", [float, complex])
def test_bordered_inverses_by_cholesky(dtype):
    """S is singular, and indefinite on what C fixes; not so for `by_cholesky` where C does not hold it."""
    n, c, space = 60, 4, space_or_skip("cpu")
    Q = np.linalg.qr(RNG.standard_normal((n, n)) + (1j * RNG.standard_normal((n, n)) if dtype is complex else 0))[0]
    C = Q[:, :c].conj().T
    S = (Q * np.concatenate((np.zeros(c), np.linspace(1, 9, n - c)))) @ Q.conj().T
    B = np.block([[S, C.conj().T], [C, np.zeros((c, c))]])[None]
    X = by_cholesky(B, c)
    assert abs(X[0] @ B[0] - np.eye(n + c)).max() < 1e-12 and abs(X[0] - X[0].conj().T).max() < 1e-14
    found, condition, _ = invert(space, None, None, B, border=c)
    assert np.allclose(found.X, X) and np.isclose(condition[0], np.linalg.cond(B[0], 1))
    B[0, :n, :n] -= 3 * np.eye(n)
    assert by_cholesky(B, c) is None
    found, condition, _ = invert(space, None, None, B, border=c)                 # by LU
    assert abs(found.X[0] @ B[0] - np.eye(n + c)).max() < 1e-12


def test_a_named_decomposer_gives_the_same_iterations():
    from swell.pde.poisson_cube import PoissonCube
    system = PoissonCube(6, 2, coefficient="checkerboard", jump=1e3).assemble()
    b = RNG.standard_normal(system.A.shape[0])
    every = [swell.solve(system.A.to_scipy(), b, method="cg", rtol=1e-9,
                         precond=swell.BDDC(subdomains=system.subdomains, **named))
             for named in ({}, {"dense_lu": "getrf"}, {"interior": "blocks"}, {"interior": swell.Direct()})]
    assert len({r.iterations for r in every}) == 1 and all(r.converged for r in every)
