"""The dense end of algebraic multigrid, kernel by kernel: filling a dense matrix, and its inverse by symmetric sweeps."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.support.during import during
from scipy.linalg import block_diag

from swell import gallery
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg.coarsest import PANEL, SINGULAR, DenseInverse

SIZES = [0, 1, 15, 16, 17, 33, 64, 100, 300]


def kernels(space):
    return space.kernels("swell.preconditioners.amg", "dense", np.float64)


def inverse(space, A):
    """(the generalised inverse of a dense matrix, the least ratio of a pivot to its diagonal entry)."""
    n = len(A)
    with space.active():
        matrix, worst = space.from_host(A.reshape(-1).copy()), space.empty(1, np.float64)
        work, record = space.empty((1 + 2 * PANEL) * n, np.float64), space.from_host(np.zeros(1, np.int64))
        kernels(space).invert(matrix, work[:n], work[n:], SINGULAR, worst, record)
        G, least = space.to_host(matrix).reshape(n, n), float(space.to_host(worst)[0])
    np.testing.assert_array_equal(G, G.T)
    return G, least


def one_at_a_time(A):
    """The same by one sweep after the other, as coarsest.py tells it."""
    A, before, least = A.copy(), A.diagonal().copy(), 1.0
    for k in range(len(A)):
        row, pivot = A[k].copy(), A[k, k]
        ratio = pivot / before[k] if before[k] > 0 else min(pivot, 0.0)
        least = min(least, ratio)
        if ratio > SINGULAR:
            A -= np.outer(row, row) / pivot
            A[k] = A[:, k] = row / pivot
            A[k, k] = -1 / pivot
        else:
            A[k] = A[:, k] = 0
    return -A, least


def definite(n):
    B = rng().standard_normal((n, n))
    return B @ B.T + 0.1 * n * np.eye(n)


def neumann(n):
    return gallery.neumann((n,)).toarray() if n > 1 else np.zeros((n, n))


def in_parts(n):
    """Parts without boundary values between parts that have them; rows in random order."""
    sizes = [n // 3, n // 4, n // 5]
    parts = [neumann(sizes[0]), definite(sizes[1]), 7 * neumann(sizes[2]), 2 * np.eye(n - sum(sizes))]
    order = rng().permutation(n)
    return block_diag(*(part for part in parts if part.size), np.empty((0, 0)))[order][:, order]


def close(found, expected, tolerance):
    assert np.isfinite(found).all()
    assert abs(found - expected).max(initial=0) <= tolerance * abs(expected).max(initial=0)


def test_definite(space):
    for n in SIZES:
        A = definite(n)
        expected, known = np.linalg.inv(A), one_at_a_time(A)[1]
        for by in (1, 1e100, 1e-100):
            with during(n=n, by=by):
                G, least = inverse(space, by * A)
                close(by * G, expected, 1e-12)
                assert least == pytest.approx(known, rel=1e-10)


@pytest.mark.parametrize("make", [neumann, in_parts])
def test_singular(make, space):
    """A G A = A, and G is zero in the rows whose pivots are rounding: the same as sweeps one at a time leave out."""
    for n in SIZES:
        A = make(n)
        expected, known = one_at_a_time(A)
        for by in (1, 1e100, 1e-100):
            with during(n=n, by=by):
                G, least = inverse(space, by * A)
                assert abs(A @ (by * G) @ A - A).max(initial=0) <= 1e-9 * abs(A).max(initial=0)
                np.testing.assert_array_equal(abs(G).sum(axis=1) == 0, abs(expected).sum(axis=1) == 0)
                assert abs(least - known) <= 1e-10
                close(by * G, expected, 1e-9)


def test_a_whole_panel_that_is_left_out(space):
    """Sixteen copies of each unknown: one of them is solved for, fifteen pivots are rounding."""
    A = np.kron(definite(5), np.ones((16, 16)))
    G, least = inverse(space, A)
    kept = abs(G).sum(axis=1) > 0
    assert kept.reshape(5, 16).sum(axis=1).tolist() == [1] * 5 and abs(least) <= SINGULAR
    close(A @ G @ A, A, 1e-10)
    for zero in (np.zeros((40, 40)), np.diag(np.arange(40) % 2.0)):
        np.testing.assert_array_equal(inverse(space, zero)[0], zero)


@pytest.mark.parametrize("rounding", [1.5e-11, 3e-10])
def test_a_last_pivot_that_is_more_rounding_than_usual(rounding, space):
    """A box of 64³ cells without boundary values left 1.5e-11 of the diagonal: G then made CG's preconditioner
    indefinite, in single precision, where 1/pivot drowns all else."""
    A = neumann(60)
    A[-1, -1] *= 1 + rounding
    G = inverse(space, A)[0].astype(np.float32)
    b = rng().standard_normal((60, 20)).astype(np.float32)
    b -= b.mean(axis=0)
    assert abs(G).max() < 1e4 and (np.einsum("ij,ij->j", b, G @ b) > 0).all()


def test_indefinite(space):
    """The least ratio tells a negative eigenvalue, wherever its pivot comes."""
    for n in [1, 2, 16, 20, 50, 100]:
        with during(n=n):
            for at in {0, n // 2, n - 1}:
                A = definite(n)
                A[at, at] -= 10 / np.linalg.inv(A)[at, at]       # changes this pivot's sign, whatever came before
                least, known = inverse(space, A)[1], one_at_a_time(A)[1]
                assert least < 0 and least == pytest.approx(known, rel=1e-6)


def test_a_diagonal_entry_that_is_not_positive(space):
    """It is never a pivot."""
    A = np.diag([2.0, -3.0, 0.0, 4.0])
    G, least = inverse(space, A)
    np.testing.assert_array_equal(G, np.diag([0.5, 0, 0, 0.25]))
    assert least == -3


def test_the_same_bits_again(space):
    A = definite(130)
    np.testing.assert_array_equal(inverse(space, A)[0], inverse(space, A)[0])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scatter(index, space):
    for n in SIZES:
        with during(n=n):
            A = sp.random_array((n, n), density=0.1, rng=rng(), format="csr") if n else sp.csr_array((0, 0))
            A.sort_indices()
            scales = rng().random(n)
            with space.active():
                dense = space.from_host(np.full(n * n, np.nan))
                given = [space.from_host(a) for a in (A.indptr.astype(index), A.indices.astype(index), A.data, scales)]
                kernels(space).scatter(*given, dense)
                found = space.to_host(dense).reshape(n, n)
            np.testing.assert_array_equal(found, scales[:, None] * A.toarray() * scales)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_coarsest_level(dtype, space):
    A, scales = gallery.poisson2d(13), 0.5 + rng().random(169)
    expected = np.linalg.inv(scales[:, None] * A.toarray() * scales)
    with space.active():
        end = DenseInverse(CSRMatrix.from_scipy(A, space), space.from_host(scales), np.dtype(dtype))
        close(space.to_host(end.inverse).reshape(169, 169), expected, 1e-12 if dtype == "float64" else 1e-6)
