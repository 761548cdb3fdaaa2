"""What swell.torch and swell.jax share, with plain arrays: it needs neither of them."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell.autodiff.options import Options
from swell.autodiff.pattern import Pattern, from_csr, from_entries
from swell.autodiff.system import System
from tests.conftest import DEVICES, DOUBLES, space_or_skip

A = sp.csr_matrix(swell.gallery.convection_diffusion((5, 4)))           # not symmetric
N = A.shape[0]
ROWS = np.repeat(np.arange(N), np.diff(A.indptr))
B = np.random.default_rng(5).standard_normal(N)


def matrix_of(pattern, values):
    """The CSR matrix of a pattern with a user's values."""
    summed = values if pattern.place is None else np.bincount(pattern.place, values, pattern.nnz + 1)[:pattern.nnz]
    return sp.csr_matrix((summed, pattern.indices, pattern.indptr), shape=(pattern.n, pattern.n))


@pytest.mark.parametrize("device", DEVICES)
def test_patterns(device):
    """Values in CSR order, in any order, twice, and beside padding; with indices on a GPU, too."""
    space = space_or_skip(device)
    shuffled = np.random.default_rng(1).permutation(A.nnz)
    twice = np.append(shuffled, 7)
    rows, columns = (np.append(part[twice], [N, 2]) for part in (ROWS, A.indices))
    columns[-1] = N
    values = np.append(np.where(twice == 7, A.data[twice] / 2, A.data[twice]), [9.0, 9.0])
    with space.active():
        put = lambda array: space.from_host(np.ascontiguousarray(array))
        plain = from_csr(put(A.indptr.astype(np.int64)), put(A.indices.astype(np.int64)), (A.nnz,))
        entries = from_entries(put(rows), put(columns), N, values.shape, padded=True)
        backwards = from_csr(put(A.indptr), put(np.concatenate([A.indices[i:j][::-1] for i, j in zip(
            A.indptr, A.indptr[1:])])), (A.nnz,))
        for found in (plain, entries, backwards):
            assert np.array_equal(found.host.indices, A.indices) and np.array_equal(found.host.indptr, A.indptr)
            assert found.indices.dtype == np.int32
        assert plain.place is None and plain != entries
        assert plain == from_entries(put(ROWS), put(A.indices), N, (A.nnz,))
        place = space.to_host(entries.place)
    assert place[-1] == place[-2] == A.nnz and place.max() == A.nnz
    if device == "cpu":
        assert abs(matrix_of(entries, values) - A).max() == 0
        assert hash(plain) == hash(from_csr(A.indptr, A.indices, (A.nnz,)))
    turned, order = plain.transposed
    assert abs(matrix_of(turned, A.data[order]) - A.T).max() == 0


def test_padding_of_csr():
    padded = from_csr(A.indptr, np.append(A.indices, [0, 0]), (A.nnz + 2,), padded=True)
    assert np.array_equal(padded.indices, A.indices) and padded.place.tolist() == [*range(A.nnz), A.nnz, A.nnz]
    for indptr, indices, words in ((A.indptr, np.append(A.indices, 0), f"from 0 to {A.nnz + 1}"),
                                   (A.indptr[::-1], A.indices, "row pointers are inconsistent"),
                                   (A.indptr, A.indices + 1, f"an index of {N}: expected 0 to {N - 1}"),
                                   (A.indptr, A.indices - 1, "an index of -1")):
        with pytest.raises(swell.InputError, match=words):
            from_csr(indptr, indices, (A.nnz,))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DOUBLES)
def test_one_setup_solves_with_A_and_its_adjoint(device, dtype):
    space = space_or_skip(device)
    M = A.astype(dtype)
    if dtype == "complex128":
        M.data += 0.1j * B[M.indices]
    system = System(from_csr(M.indptr, M.indices, M.data.shape), Options(method="direct"))
    with space.active():
        values, b = space.from_host(M.data), space.from_host(B.astype(dtype))
        for k in (1, 1, 2):
            assert np.allclose(k * (M @ space.to_host(system.solve(k * values, b).x)), B)
            assert np.allclose(k * (M.conj().T @ space.to_host(system.solve(k * values, b, adjoint=True).x)), B)
        assert (system.setups, system.updates) == (1, 1)
        many, sides = space.from_host(np.stack([M.data, 2 * M.data])), space.from_host(np.stack([B, B]).astype(dtype))
        batch = System(system.pattern, Options(method="lu"))
        for transposed, one in ((False, M), (True, M.T)):
            x = space.to_host(batch.solve_batch(many, sides, transposed=transposed).x)
            assert np.allclose(one @ x[0], B) and np.allclose(x[0], 2 * x[1])


def test_a_dense_matrix_may_change_its_zeros():
    system = System(Pattern(3, None, None, None, (3, 3)), Options(method="direct"))
    M = np.diag([1.0, 2.0, 4.0])
    for one in (M, 2 * M, M + np.eye(3, k=1)):
        assert np.allclose(one @ system.solve(one, np.ones(3)).x, 1)
    assert (system.setups, system.updates) == (2, 1)


def test_derivatives_have_no_absolute_tolerance():
    system = System(from_csr(A.indptr, A.indices, A.data.shape), Options(method="gmres", rtol=1e-10, atol=1e3))
    assert not system.solve(A.data, B).x.any()
    assert np.allclose(A @ system.solve(A.data, B, relative=True).x, B)
    assert not system.solve(A.data, B).x.any()
    system = System(system.pattern, Options(rtol=0, atol=1e-3))
    with pytest.raises(swell.InputError, match="rtol=0 with atol=0.001: a derivative needs a relative tolerance"):
        system.solve(A.data, B, differentiable=True)


def test_options_of_a_batch():
    assert Options(method="lu", on_failure="warn").has_batch_form and not Options(scaling="jacobi").has_batch_form
    assert not Options(method="direct", precond="amg").has_batch_form
    with pytest.raises(swell.InputError, match="together=True has no effect in a batch: leave it out"):
        Options(together=True).check_batch()
