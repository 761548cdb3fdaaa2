"""Transposes of CSR matrices against SciPy's, and where their values come from."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.support.during import during
from tests.conftest import DTYPES

from swell.formats.csr import CSRMatrix
from swell.formats.transpose import LONG, transposed


def filled(pattern, dtype):
    """A canonical CSR matrix with random values where a matrix has entries."""
    A = sp.csr_array(pattern)
    A.sum_duplicates()
    values = rng().standard_normal(A.nnz)
    return sp.csr_array(((values + 1j * values[::-1] if np.dtype(dtype).kind == "c" else values).astype(dtype),
                         A.indices, A.indptr), A.shape)


def sparse(m, n, density):
    return sp.random_array((m, n), density=density, rng=rng(), format="csr")


def with_a_line(m, n, row=None, column=None):
    """Few entries, and a dense row or a dense column."""
    A = sparse(m, n, 2 / n).tolil()
    if row is not None:
        A[row] = 1
    if column is not None:
        A[:, [column]] = 1
    return A


SHAPES = {
    "empty": lambda: sp.csr_array((0, 0)),
    "no rows": lambda: sp.csr_array((0, 5)),
    "no columns": lambda: sp.csr_array((5, 0)),
    "no entries": lambda: sp.csr_array((40, 30)),
    "one": lambda: sp.csr_array(np.ones((1, 1))),
    "identity": lambda: sp.eye_array(300),
    "square": lambda: sparse(500, 500, 0.01),
    "wide": lambda: sparse(40, 3000, 0.05),
    "tall": lambda: sparse(3000, 40, 0.05),
    "short rows and long ones": lambda: sp.vstack([sparse(1000, 200, 0.002), sparse(90, 200, 0.7)]),
    "empty rows and columns": lambda: sp.block_diag([sparse(9, 9, 0.5), sp.csr_array((300, 70)), sparse(5, 5, 0.9)]),
    "dense": lambda: np.ones((70, 90)),
    "dense row": lambda: with_a_line(700, 800, row=333),
    "dense column": lambda: with_a_line(800, 700, column=699),
    "dense row and column": lambda: with_a_line(1500, 1500, 0, 0),
    "as long as a warp sorts": lambda: sp.vstack([sp.csr_array(np.tri(LONG + 1, LONG + 1)), sp.csr_array((9, LONG + 1))]),
}


def check(A, M, MT, order):
    expected = sp.csr_array(A.T)
    expected.sort_indices()
    found, order = MT.to_scipy(), M.space.to_host(order)
    assert MT.shape == A.shape[::-1] and found.dtype == A.dtype
    assert MT.indices.dtype == M.indices.dtype == order.dtype
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)
    np.testing.assert_array_equal(found.data, A.data[order])


@pytest.mark.parametrize("dtype", DTYPES)
def test_against_scipy(dtype, device, space):
    for name, make in SHAPES.items():
        with during(name=name), space.active():
            A = filled(make(), dtype)
            M = CSRMatrix.from_scipy(A, space)
            MT, order = transposed(M)
            check(A, M, MT, order)
            plain = M.transpose()
            for a, b in ((plain.indptr, MT.indptr), (plain.indices, MT.indices), (plain.data, MT.data)):
                np.testing.assert_array_equal(space.to_host(a), space.to_host(b))
            np.testing.assert_array_equal(M.transpose(conjugate=True).to_scipy().toarray(), A.toarray().conj().T)


def test_indices_of_64_bits(space):
    with space.active():
        A = filled(with_a_line(900, 700, 5, 6), "float64")
        M = CSRMatrix.from_scipy(A, space)
        M.indptr, M.indices = M.indptr.astype(np.int64), M.indices.astype(np.int64)
        MT, order = transposed(M)
        assert order.dtype == np.int64
        MT.indptr, MT.indices = MT.indptr.astype(np.int64), MT.indices.astype(np.int64)    # a small matrix has 32 bits
        check(A, M, MT, order)


@pytest.mark.parametrize("m, n", [(70_000, 3), (66_000, 66_000)])
def test_rows_longer_than_one_range_of_bits(m, n, space):
    """Blocks share a row whose entries are from more than 65 536 rows."""
    with space.active():
        A = filled(with_a_line(m, n, column=1), "float64")
        M = CSRMatrix.from_scipy(A, space)
        check(A, M, *transposed(M))


def test_the_same_bits_twice(space):
    with space.active():
        M = CSRMatrix.from_scipy(filled(sparse(3000, 2000, 0.02), "float64"), space)
        (first, order), (second, again) = transposed(M), transposed(M)
        for a, b in ((first.indptr, second.indptr), (first.indices, second.indices), (first.data, second.data),
                     (order, again)):
            np.testing.assert_array_equal(space.to_host(a), space.to_host(b))


def test_new_values_are_a_gather(space):
    with space.active():
        A = filled(sparse(300, 200, 0.1), "float64")
        M = CSRMatrix.from_scipy(A, space)
        MT, order = transposed(M)
        np.testing.assert_array_equal(MT.with_values((3 * M.data)[order]).to_scipy().toarray(), 3 * A.toarray().T)


def test_the_block_size_is_kept(space):
    with space.active():
        M = CSRMatrix.from_scipy(filled(np.ones((6, 6)), "float64"), space, block=3)
        assert transposed(M)[0].known_block == M.transpose().known_block == 3
