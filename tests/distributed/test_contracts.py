"""Kernels of a rank's rows, called directly: blocks of every size, empty rows, no rows. ``make sanitize`` runs them in
a library that checks every access."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from swell.core.library import native_kernels

halo, window, split = (native_kernels("swell.distributed", stem) for stem in ("halo", "window", "split"))
TYPES = np.float64, np.float32, np.complex128, np.complex64


def values(count, dtype, rng):
    made = rng.standard_normal(count) + (1j * rng.standard_normal(count) if np.dtype(dtype).kind == "c" else 0)
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows, block", [(0, 1), (1, 1), (30_000, 1), (9, 2), (9, 3), (9, 4), (9, 7)])
def test_products_of_ghosts(rows, block, dtype):
    rng = np.random.default_rng(rows + block)
    A = sp.random(rows, 50, 0.1 if rows < 100 else 1e-3, "csr", random_state=1)
    blocks = values(A.nnz * block * block, dtype, rng)
    dense = sp.bsr_array((blocks.reshape(-1, block, block), A.indices, A.indptr), shape=(rows * block, 50 * block))
    count = rows * block
    at = np.sort(rng.permutation(count + 5)[:count]).astype(np.int32)
    x, y, w = values(50 * block, dtype, rng), values(count + 5, dtype, rng), values(count + 5, dtype, rng)
    wanted, dots = y.copy(), np.ones(2, np.result_type(dtype, np.float64))
    wanted[at] += dense @ x
    close = {"rtol": 1e-4, "atol": 1e-4} if np.finfo(dtype).eps > 1e-10 else {}
    tight = 1e-3 if close else 1e-12
    first = y.copy()
    halo.add_product(at, A.indptr, A.indices, blocks, x, first, block, dtype(1))
    assert np.allclose(first, wanted, **close)
    halo.add_product_dot(at, A.indptr, A.indices, blocks, x, first := y.copy(), w, dots, block)
    assert np.allclose(first, wanted, **close) and dots[1] == 1
    assert abs(dots[0] - 1 - (np.vdot(w, wanted) - np.vdot(w, y))) <= tight * (1 + abs(dense @ x).sum())
    packed = np.empty(count, dtype)
    halo.pack(at, y, packed)
    assert np.array_equal(packed, y[at])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("rows", [0, 1, 300])
def test_rows_split_and_joined_again(rows, index):
    rng, low = np.random.default_rng(rows), 7
    high, columns = low + rows, rows + 20
    A = sp.random(rows, columns, 0.2, "csr", random_state=2)
    indptr, indices = A.indptr.astype(index), A.indices.astype(index)
    counts, touched = np.empty(rows, index), np.empty(rows, np.uint8)
    window.outside(indptr, indices, low, high, counts, touched)
    outs, places = (np.concatenate([[0], np.cumsum(part)]).astype(index) for part in (counts, touched))
    outer, edge = int(outs[-1]), int(places[-1])
    own = indptr - outs, np.empty(A.nnz - outer, index), np.empty(A.nnz - outer)
    boundary = np.empty(edge, np.int32)
    rest = np.zeros(edge + 1, np.int32), np.empty(outer, np.int32), np.empty(outer)
    window.split(indptr, indices, A.data, low, high, outs, places, *own, boundary, *rest)
    assert np.array_equal(sp.csr_array((own[2], own[1], own[0]), (rows, rows)).toarray(), A.toarray()[:, low:high])
    at = np.full(rows, -1, np.int32)
    at[boundary] = np.arange(edge)
    joined = np.empty(A.nnz, index), np.empty(A.nnz)
    window.join(*own, at, *rest, low, indptr, *joined)
    assert np.array_equal(joined[0], indices) and np.array_equal(joined[1], A.data)
    inside = split.count_inside(indices, low, high)
    parts = (np.zeros(rows + 1, index), np.empty(inside, index), np.empty(inside),
             np.zeros(rows + 1, index), np.empty(outer, np.int64), np.empty(outer))
    split.split(indptr, indices, A.data, low, high, *parts)
    assert inside == A.nnz - outer and all(np.array_equal(*pair) for pair in zip(own, parts))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_places_and_numbers_are_inverse(index):
    ghosts = np.array([2, 5, 9, 41, 60])
    numbers = np.concatenate([ghosts, np.arange(10, 40)])
    there, back = np.empty(numbers.size, index), np.empty(numbers.size, np.int64)
    window.places(numbers, 10, 40, 3, ghosts, there)
    window.global_numbers(there, 10, 40, 3, ghosts, back)
    assert np.array_equal(back, numbers) and sorted(there) == [*range(35)]


def test_several_threads_mark_one_ghost():
    marked = np.zeros(3, np.uint8)
    window.mark_ghosts(np.tile(np.array([0, 2, 5], np.int32), 20_000), 1, 4, marked)         # column 2 is an own one
    assert marked.tolist() == [1, 0, 1]
