"""What one pass over a matrix finds out, beside NumPy's answers, on every device."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng

import swell
from swell import gallery
from swell.formats import csr
from swell.formats.csr import CSRMatrix
from swell.formats.facts import gather


def raw(space, A, columns=None):
    """CSR arrays as they are, unchecked, as a matrix of the space."""
    with space.active():
        return CSRMatrix(space, *(space.from_host(a) for a in (A.indptr, A.indices, A.data)),
                         (A.shape[0], A.shape[1] if columns is None else columns))


def facts(space, A, columns=None):
    with space.active():
        return gather(raw(space, A, columns))


def random(n, density, dtype):
    """Random entries, some rows of them long, some empty; half the diagonal is there."""
    A = sp.random_array((n, n), density=density, rng=rng()).tolil()
    A[n // 3, :] = rng().standard_normal(n)
    A[n // 2, :] = 0
    A.setdiag(np.where(np.arange(n) % 2, rng().standard_normal(n), 0))
    A = sp.csr_array(A).astype(dtype)
    A.eliminate_zeros()
    if np.dtype(dtype).kind == "c":
        A.data = (A.data * np.exp(1j * np.arange(A.nnz))).astype(dtype)
    return A


@pytest.mark.parametrize("n, density", [(3, 1.0), (40, 0.1), (700, 0.01), (700, 0.2), (9000, 2e-4)])
def test_numpy_agrees(n, density, dtype, space):
    A = random(n, density, dtype)
    f, d = facts(space, A), A.diagonal().astype("complex128")
    moduli = abs(A.astype("complex128"))
    sums, lengths = np.asarray(moduli.sum(axis=1)).ravel(), np.diff(A.indptr)
    rows = np.repeat(np.arange(n), lengths)
    assert (f.n, f.nnz, f.not_finite, f.canonical, f.in_range) == (n, A.nnz, 0, True, True)
    assert (f.zero_diagonal, f.empty_rows) == ((d == 0).sum(), (lengths == 0).sum())
    assert f.zero_diagonal == 0 or f.first_zero == np.flatnonzero(d == 0)[0]
    assert (f.longest_row, f.bandwidth) == (lengths.max(), abs(rows - A.indices).max(initial=0))
    assert f.row_spread == pytest.approx(lengths.std() / lengths.mean())
    assert f.norm_inf == pytest.approx(sums.max()) and f.norm_frobenius == pytest.approx(np.sqrt((moduli**2).sum()))
    assert f.diagonal_range == pytest.approx((abs(d).min(), abs(d).max()))
    assert f.gershgorin == pytest.approx((d.real.min(), (2 * d.real - sums).min(), sums.max()))
    assert f.dominant_rows * n == pytest.approx((abs(d) >= (sums - abs(d)) * (1 - 1e-12)).sum())
    beside = (np.diff(A.indices) == 1) & (np.diff(rows) == 0)
    assert f.adjoining == pytest.approx(beside.sum() / A.nnz)
    for conjugate, other in ((False, A.T), (True, A.conj().T)):
        assert f.asymmetry(conjugate) == pytest.approx(sp.linalg.norm((A - other).astype("complex128")), rel=1e-5)


def test_the_same_bits_twice(space):
    A = random(3000, 0.01, "float64")
    assert (facts(space, A).values == facts(space, A).values).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite_are_counted(value, space):
    A = gallery.poisson2d(30)
    A.data[[3, 700, 4000]] = value
    assert facts(space, A).not_finite == 3


def test_columns_in_disorder_and_twice(space):
    A = gallery.poisson2d(30)
    A.indices[[0, 1]] = A.indices[[1, 0]]
    assert not facts(space, A).canonical
    B = gallery.poisson2d(30)
    B.indices[1] = B.indices[0]
    assert not facts(space, B).canonical and facts(space, gallery.poisson2d(30)).canonical


@pytest.mark.parametrize("column", [-1, 900, 2**30])
def test_columns_that_are_not_there_are_not_followed(column, space):
    A = gallery.poisson2d(30)
    A.indices[[5, 2000]] = column
    f = facts(space, A)
    assert not f.in_range and f.values[1] == 2


def test_row_pointers_that_make_no_sense_are_not_followed(space):
    for place, pointer in ((10, -5), (10, 10**8), (100, 3)):
        A = gallery.poisson2d(30)
        A.indptr[place] = pointer
        assert not facts(space, A).in_range


def test_rectangles_have_no_symmetry(space):
    A = sp.csr_array(gallery.poisson2d(30)[:400])
    f = facts(space, A)
    assert f.norm_inf == 8 and not f.hermitian and f.in_range


@pytest.mark.parametrize("size, equal", [(1e-18, True), (1e-3, False)])
def test_an_entry_without_mirror_image_is_a_difference(size, equal, space):
    """SciPy's sums drop exact zeros, and keep the rounding errors of the other triangle."""
    A = gallery.poisson2d(8).tolil()
    A[3, 40] = size
    facts = CSRMatrix.from_scipy(sp.csr_matrix(A), space).facts()
    assert facts.hermitian == facts.symmetric == equal and not facts.pattern_symmetric


def test_facts_follow_the_values(space):
    A = gallery.poisson2d(10)
    with space.active():
        M, N = CSRMatrix.from_scipy(A, space), CSRMatrix.from_scipy(3 * A, space)
        assert M.norm_inf() == 8
        M.update(N)
        assert M.norm_inf() == 24 and M.facts().hermitian


def test_facts_follow_values_that_are_changed_where_they_are(space):
    A = raw(space, sp.csr_array(gallery.poisson2d(6)))
    with space.active():
        assert A.norm_inf() == 8
        A.data *= 2
        A.discard_adjoint()
        assert A.norm_inf() == 16


def test_an_update_passes_over_the_entries_once(monkeypatch):
    A = sp.csr_array(gallery.poisson2d(10))
    solver = swell.prepare(A, method="gmres", format="csr")
    passes = []
    monkeypatch.setattr(csr, "gather", lambda A, search=True: passes.append(A) or gather(A, search))
    solver.update(3 * A)
    assert len(passes) == 1 and solver._prepared[0].setup.norm_A == 24


def test_a_diagonal_is_constant_to_rounding_about_its_middle(space):
    eps = np.finfo(float).eps
    d = np.full(50, 3.0)
    d[7], d[9] = 3 * (1 + 3 * eps), 3 * (1 - 3 * eps)
    A = sp.diags_array(d).tocsr()
    assert facts(space, A).constant_diagonal(4 * eps) == pytest.approx(3.0)
    assert facts(space, A).constant_diagonal(eps) == 0 and facts(space, -A).constant_diagonal(4 * eps) == 0
