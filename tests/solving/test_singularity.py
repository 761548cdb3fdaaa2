"""Why a matrix is singular: what is said of it, and that the advice works."""
from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph  # noqa: F401  the advice names it

import swell
from swell import distributed, gallery
from swell.formats.csr import CSRMatrix
from swell.solving.singularity import CompatiblePart, reasons_for_singularity


def grid(n, seed):
    """The weighted graph Laplacian of a chain with some shortcuts."""
    r = np.random.default_rng(seed)
    i, j = np.r_[np.arange(n - 1), r.integers(0, n - 3, n // 2)], np.r_[np.arange(1, n), r.integers(n - 2, n, n // 2)]
    W = sp.coo_array((r.uniform(3, 100, i.size), (i, j)), shape=(n, n))
    W = W + W.T
    return sp.csr_array(sp.diags_array(W.sum(axis=1)) - W)


def power_grid():
    """A grid with its slack bus taken out, an island of 30 buses without one, and an isolated bus, the last row."""
    return sp.csr_array(sp.block_diag([grid(120, 1)[1:, 1:], grid(30, 2), sp.csr_array((1, 1))]))


def stretched(n=12):
    """A Neumann problem with A 1 = 0; the left null vector holds the cell volumes, which are returned too."""
    volumes = np.random.default_rng(0).uniform(1, 3, n)
    return sp.csr_array(sp.diags_array(1 / volumes) @ grid(n, 3)), volumes


def said(A, b=None, space=None):
    A = sp.csr_matrix(A)
    A.sort_indices()
    A = CSRMatrix.from_scipy(A, space)
    with space.active():
        return reasons_for_singularity(A, None if b is None else space.from_host(b))


def advised(sentences, A):
    """The nullspace that the advice names, evaluated as a user would."""
    code = re.search(r"nullspace=(.*?)( with part = (.*))?$", sentences[-1])
    part = eval(code[3]) if code[3] else None                    # noqa: S307
    return eval(code[1], {"swell": swell, "part": part})         # noqa: S307


def test_islands(space):
    A = power_grid()
    b = np.random.default_rng(0).standard_normal(150)
    found = said(A, b, space)
    assert found[:3] == [
        "A has 3 connected components",
        "row 149 is empty: take such equations out with their unknowns, or put a 1 on their diagonal",
        "component 2 of 3 (30 unknowns, from row 119) has rows that all sum to zero, so that nothing fixes its level"]
    part = np.hypot(b[119:149].sum() / np.sqrt(30), b[149]) / np.linalg.norm(b)
    assert f"b is incompatible: its part in the null space of Aᴴ is {part:.1e} ‖b‖" in found[3]
    r = swell.solve(A, b, nullspace=advised(found, A), device=space.name)
    assert r.converged and np.linalg.norm(b - A @ r.x) == pytest.approx(part * np.linalg.norm(b), rel=1e-6)
    compatible = A @ b
    found = said(A, compatible, space)
    assert len(found) == 4 and not any("incompatible" in sentence for sentence in found)
    assert swell.solve(A, compatible, nullspace=advised(found, A), device=space.name).converged


def test_a_left_null_vector(space):
    """On a stretched grid b is measured along the volumes, not along the constants."""
    A, volumes = stretched()
    f = np.random.default_rng(1).standard_normal(12)
    f -= volumes * (volumes @ f) / (volumes @ volumes)
    b = f + 1e-6 * np.linalg.norm(f) * volumes / np.linalg.norm(volumes)
    assert said(A, f, space) == ["A has rows that all sum to zero, so that nothing fixes its level",
                                 "fix one unknown, or give nullspace='constants'"]
    found = said(A, b, space)
    assert "is 1.0e-06 ‖b‖" in found[1]
    for given, sentences in ((f, said(A, f, space)), (b, found)):
        assert swell.solve(A, given, nullspace=advised(sentences, A), device=space.name).converged
    conservative = said(A.T, b, space)
    assert conservative[0] == "A has columns that all sum to zero, so that b must sum to zero there"
    assert f"{abs(b.sum()) / np.sqrt(12) / np.linalg.norm(b):.1e} ‖b‖" in conservative[1]


def test_what_else_is_said(space):
    many = said(sp.block_diag([grid(6, k) for k in range(5)]), space=space)
    assert len(many) == 6 and many[4] == "the same holds for 2 more components" and "nullspace=basis with" in many[5]
    zeros = sp.csr_array(np.array([[2.0, 1, 0], [0, 1, 0], [0, 1, 3]]))
    zeros.data[[2, 3]] = 0                                       # row 1 and an entry of row 2: stored, and yet not there
    assert said(zeros, space=space)[0] == "A has 2 connected components"
    assert said(zeros, space=space)[1].startswith("row 1 is empty")
    column = said(np.array([[0.0, 1, 0], [0, 2, 1], [0, 0, 3]]), space=space)
    assert any(sentence.startswith("column 0 is empty") for sentence in column)
    dependent = said(np.array([[1.0, 1], [2, 2]]), space=space)
    assert len(dependent) == 1 and dependent[0].startswith("A has 1 connected component, no empty row")
    single = said(grid(12, 3).astype(np.float32), space=space)
    assert single == ["A has rows that all sum to zero, so that nothing fixes its level",
                      "fix one unknown, or give nullspace='constants'"]


@pytest.mark.parametrize("named", [{}, {"method": "direct"}])
def test_an_incompatible_b_ends_the_search_and_no_huge_x_is_recommended(named):
    """The part of b that no x produces is small, so that a factorisation's x of 1e11 leaves only rounding errors. The
    x that is returned leaves nothing but this part."""
    A = sp.csr_array(sp.kronsum(gallery.neumann((40,)), gallery.neumann((40,))))
    b = np.random.default_rng(0).standard_normal(1600)
    b += 1e-6 - b.mean()
    solver = swell.prepare(A, **named)
    r = solver.solve(b)
    assert r.reason.name == "SINGULAR" and len(r.attempts) <= 1 and not r.exact_to_rounding
    assert np.isclose(r.residual, 1e-6 / np.linalg.norm(b) * 40, rtol=0.01) and abs(r.x).max() < 1e3
    assert np.isclose(r.residual, np.linalg.norm(b - A @ r.x) / np.linalg.norm(b), rtol=1e-3)
    assert any(note.startswith("b is incompatible: its part in the null space of Aᴴ is 1.0e-06") for note in r.notes)
    again = solver.solve(b - b.mean())           # the choice was not at fault
    assert again.converged and (again.method, again.precond) == (r.method, r.precond)


def test_what_is_known_of_a_matrix_ends_with_its_values(space):
    """A matrix without known null vectors is remembered; new values, in place or in a new matrix, are looked at anew."""
    singular, b = sp.csr_array(gallery.neumann((8,))), np.ones(8)
    regular = sp.csr_array(singular + sp.eye_array(8))
    with space.active():
        A, part = CSRMatrix.from_scipy(regular, space), CompatiblePart()
        assert part(A, b)[1] == part(A, b)[1] == 0
        other = CSRMatrix.from_scipy(singular, space)
        assert np.isclose(part(other, b)[1], 1) and part(A, b)[1] == 0
        A.update(other)
        rest, bound = part(A, b)
        assert np.isclose(bound, 1) and not rest.any()


def test_across_ranks():
    A = sp.csr_matrix(power_grid())
    def of(communicator):
        M, N = (distributed.scatter(communicator, B if communicator.rank == 0 else None)
                for B in (A, sp.csr_matrix(grid(20, 1))))
        return reasons_for_singularity(M), reasons_for_singularity(N)
    (islands, floating), other = distributed.run(2, of)
    assert (islands, floating) == other
    assert islands[0].startswith("1 of 150 rows are empty (the first is row 149)")
    assert floating[0].startswith("A has rows that all sum to zero") and "not across ranks" in floating[-1]


def test_a_matrix_without_entries():
    from swell.core.devices import make_space
    from swell.core.operator import CallableOperator
    assert reasons_for_singularity(CallableOperator((2, 2), np.dtype(float), make_space("cpu"), abs)) == []
