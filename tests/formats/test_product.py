"""Products of sparse matrices beside SciPy's and NumPy's, on every device."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.canaries import guarded_allocations, guarded_kernels
from tests.support.cases import rng
from tests.conftest import DTYPES, space_or_skip
from tests.support.during import during
from tests.support.host_reads import host_reads
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.products import build, vector

import swell
from swell import gallery
from swell.core.cpu import CpuSpace
from swell.core.library import _native, native_kernels
from swell.core.errors import InputError, OutOfMemory
from swell.formats import product as module
from swell.formats.csr import CSRMatrix
from swell.formats.product import Product, TripleProduct

SHAPES = [(1, 1, 1), (1, 40, 1), (40, 1, 40), (7, 90, 33), (300, 200, 1000), (1000, 30, 50)]


def matrix(rows, columns, density, dtype="float64", seed=0):
    """Random pattern and values; some rows stay empty."""
    A = sp.csr_array(sp.random_array((rows, columns), density=density, rng=np.random.default_rng(seed)))
    A.data = vector(A.nnz, dtype, seed)
    return A


def moved(A, space):
    """A copy in the space."""
    A = sp.csr_array(A)
    A.sum_duplicates()
    return CSRMatrix.from_scipy(A.copy(), space)


def multiplied(space, A, B):
    """C on the host."""
    with space.active():
        return Product(moved(A, space), moved(B, space)).C.to_scipy()


def assert_product(C, A, B):
    """The pattern of C is the factors' alone; each entry is right to rounding."""
    A, B, C = (sp.csr_array(M) for M in (A, B, C))
    ones = [sp.csr_array((np.ones(M.nnz), M.indices, M.indptr), shape=M.shape) for M in (A, B)]
    pattern = sp.csr_array(ones[0] @ ones[1])
    pattern.sort_indices()
    assert C.shape == pattern.shape and C.dtype == np.result_type(A.dtype, B.dtype)
    np.testing.assert_array_equal(C.indptr, pattern.indptr)
    np.testing.assert_array_equal(C.indices, pattern.indices)
    double = np.result_type(C.dtype, np.float64)
    size = (abs(A).astype(np.float64) @ abs(B).astype(np.float64)).toarray()
    error = abs(C.astype(double).toarray() - (A.astype(double) @ B.astype(double)).toarray())
    assert (error <= 4 * (A.shape[1] + 4) * np.finfo(C.dtype).eps * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_scipy_agrees(dtype, space):
    for shape in SHAPES:
        with during(shape=shape):
            m, k, n = shape
            for density in (0.02, 0.3):
                A, B = matrix(m, k, density, dtype), matrix(k, n, density, dtype, 1)
                assert_product(multiplied(space, A, B), A, B)


@pytest.mark.parametrize("types", [("float32", "complex64"), ("complex64", "float64"), ("float64", "float32"),
                                   ("float64", "complex128")], ids=str)
def test_mixed_types_are_promoted(types, space):
    A, B = matrix(40, 50, 0.1, types[0]), matrix(50, 60, 0.1, types[1], 1)
    assert_product(multiplied(space, A, B), A, B)
    assert_product(multiplied(space, B.T, A.T), B.T, A.T)


@pytest.mark.parametrize("wide", ["A", "B", "C", "ABC"])
def test_64_bit_indices(wide, space, monkeypatch):
    """Of one of the factors, of C alone, or of all."""
    A, B = matrix(80, 90, 0.05), matrix(90, 70, 0.1, seed=1)
    types = {name: np.dtype(np.int64 if name in wide else np.int32) for name in "ABC"}
    shapes = {(80, 90): "A", (90, 70): "B", (80, 70): "C"}
    for place in (module, swell.formats.csr):
        monkeypatch.setattr(place, "index_type", lambda rows, columns, stored: types[shapes[rows, columns]])
    with space.active():
        factors = moved(A, space), moved(B, space)
        product = Product(*factors)
        assert product.C.indices.dtype == product.C.indptr.dtype == types["C"]
        assert_product(product.C.to_scipy(), A, B)
        product.update(factors[0].with_values(2 * factors[0].data), factors[1])
        assert_product(product.C.to_scipy(), 2 * A, B)


SPECIAL = {
    "n = 0": (sp.csr_array((0, 0)), sp.csr_array((0, 0))),
    "no rows": (sp.csr_array((0, 5)), matrix(5, 4, 0.5)),
    "no columns": (matrix(4, 5, 0.5), sp.csr_array((5, 0))),
    "nothing between": (sp.csr_array((4, 0)), sp.csr_array((0, 3))),
    "A is empty": (sp.csr_array((40, 50)), matrix(50, 60, 0.2)),
    "B is empty": (matrix(40, 50, 0.2), sp.csr_array((50, 60))),
    "identity": (sp.csr_array(sp.eye_array(77)), matrix(77, 33, 0.1)),
    "dense": (sp.csr_array(rng().standard_normal((70, 40))), sp.csr_array(rng().standard_normal((40, 90)))),
    "one dense row of A": (sp.vstack([matrix(30, 3000, 1e-3), np.ones((1, 3000)), matrix(30, 3000, 1e-3)]),
                           matrix(3000, 3000, 3e-3)),
    "one dense row of B": (matrix(300, 41, 0.1), sp.vstack([matrix(20, 9000, 1e-3), np.ones((1, 9000)),
                                                            matrix(20, 9000, 1e-3)])),
    "one dense column of A": (sp.hstack([np.ones((500, 1)), matrix(500, 60, 0.05)]), matrix(61, 200, 0.1)),
    "one dense column of B": (matrix(500, 300, 0.02), sp.hstack([np.ones((300, 1)), matrix(300, 200, 0.02)])),
    "outer product": (sp.csr_array(np.ones((150, 1))), sp.csr_array(np.ones((1, 170)))),
    "inner product": (sp.csr_array(np.ones((1, 9000))), sp.csr_array(np.ones((9000, 1)))),
    "rows of every length": (sp.csr_array(np.tri(130)), sp.csr_array(sp.eye_array(130, 20_000, k=7))),
    "every length, columns descend": (sp.csr_array(np.tri(150)), sp.csr_array(np.fliplr(np.eye(150)))),
    "twice as long": (sp.csr_array(np.ones((2, 600))), sp.csr_array(sp.eye_array(600, 700, k=7))),
    "Poisson": (gallery.poisson3d(12), gallery.poisson3d(12)),
    "long rows": (matrix(12, 300, 0.5), matrix(300, 9000, 0.05)),
    "rows of some thousand": (matrix(20, 100, 0.3), matrix(100, 3000, 0.03)),
    "far apart": (matrix(3, 60, 0.8), matrix(60, 700_000, 3e-5)),
}


def test_special_cases(space):
    for name, factors in SPECIAL.items():
        with during(name=name):
            A, B = (sp.csr_array(M) for M in factors)
            assert_product(multiplied(space, A, B), A, B)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_any_small_matrices(m, k, n, density, seed):
    A, B = matrix(m, k, density, seed=seed), matrix(k, n, density, seed=seed + 1)
    assert_product(multiplied(CpuSpace(), A, B), A, B)


def test_entries_that_cancel_stay_in_the_pattern(space):
    A = sp.csr_array([[1.0, -1], [0, 2]])
    C = multiplied(space, A, sp.csr_array([[3.0, 0, 1], [3, 0, 1]]))
    assert C.nnz == 4 and (C.toarray() == [[0, 0, 0], [6, 0, 2]]).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_multiplied(value, space):
    A, B = gallery.poisson2d(6), gallery.poisson2d(6)
    A.data[3] = value
    np.testing.assert_array_equal(np.isfinite(multiplied(space, A, B).toarray()), np.isfinite((A @ B).toarray()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_update_is_a_fresh_product_to_the_bit(dtype, space):
    A, B = matrix(300, 400, 0.03, dtype), matrix(400, 350, 0.04, dtype, 1)
    with space.active():
        first = [moved(M, space) for M in (A, B)]
        product = Product(*first)
        C = product.C
        _ = C.norm_inf(), C.adjoint()
        new = [M.with_values(space.from_host(vector(M.nnz, dtype, seed))) for seed, M in enumerate(first, 5)]
        product.update(*new)
        fresh = Product(*new).C
        assert product.C is C and C.norm_inf() == fresh.norm_inf()
        assert C.adjoint().to_scipy().data.tobytes() == fresh.adjoint().to_scipy().data.tobytes()
        assert all((space.to_host(a) == space.to_host(b)).all() for a, b in ((C.indptr, fresh.indptr),
                                                                              (C.indices, fresh.indices)))
        assert space.to_host(C.data).tobytes() == space.to_host(fresh.data).tobytes()
        product.update(*first)
        assert space.to_host(C.data).tobytes() == space.to_host(Product(*first).C.data).tobytes()


def test_negative_zeros_do_not_tell_an_update_from_a_fresh_product(space):
    A, B = sp.csr_array([[-1.0]]), sp.csr_array(([0.0], ([0], [0])), shape=(1, 1))
    with space.active():
        product = Product(moved(A, space), moved(B, space))
        fresh = space.to_host(product.C.data).tobytes()
        product.update(moved(A, space), moved(B, space))
        assert space.to_host(product.C.data).tobytes() == fresh


def test_the_same_bits_twice(space):
    A = matrix(2000, 2000, 0.01, "float32")
    found = [multiplied(space, A, A) for _ in range(2)]
    assert found[0].data.tobytes() == found[1].data.tobytes()


def test_the_same_bits_for_any_number_of_threads(all_threads):
    A, B = matrix(24_000, 25_000, 3e-4), matrix(25_000, 23_000, 3e-4, seed=1)      # more rows than SERIAL
    found = []
    for threads in sorted({1, 2, all_threads} & set(range(1, all_threads + 1))):
        _native.limit_threads(threads)
        space = CpuSpace()
        with space.active():
            C = Product(moved(A, space), moved(B, space)).C
        found.append((C.indptr.tobytes(), C.indices.tobytes(), C.data.tobytes()))
    assert len(set(found)) == 1


def test_chunks_are_joined_in_pieces_of_any_size(all_threads):
    """Parts of a product that several threads left apart, by much, by little, and not at all."""
    close_gaps = native_kernels("swell.formats", "product").close_gaps
    gen = rng()
    for most in (0, 3, 2000, 90_000):
        counts, bounds = gen.integers(0, 40, 300), np.array([0, 0, 20, 90, 200, 300, 300])
        starts = np.append(0, np.cumsum(counts + gen.integers(0, most + 1, 300)))
        indptr = np.append(0, np.cumsum(counts))
        indices, data = np.full(starts[-1], -1), np.full(starts[-1], np.nan)
        for first, last in zip(bounds[:-1], bounds[1:]):
            size = indptr[last] - indptr[first]
            indices[starts[first]:starts[first] + size] = np.arange(indptr[first], indptr[last])
            data[starts[first]:starts[first] + size] = np.arange(indptr[first], indptr[last])
        close_gaps(bounds, starts, indptr, indices, data)
        np.testing.assert_array_equal(indices[:indptr[-1]], np.arange(indptr[-1]))
        np.testing.assert_array_equal(data[:indptr[-1]], np.arange(indptr[-1]))


def test_more_threads_than_rows(all_threads):
    A = matrix(1, 5, 1.0)
    assert_product(multiplied(CpuSpace(), A, A.T), A, A.T)


def two_passes(monkeypatch):
    """As where little memory is free."""
    monkeypatch.setattr(module, "SHARE", 0.0)
    monkeypatch.setattr(module, "UNCHECKED", 0)


def test_little_memory_means_two_passes(monkeypatch):
    """The same bits; and the room is that of C."""
    A = gallery.poisson3d(9)
    expected = multiplied(CpuSpace(), A, A)
    two_passes(monkeypatch)
    found = multiplied(CpuSpace(), A, A)
    assert found.data.tobytes() == expected.data.tobytes() and (found.indices == expected.indices).all()


def test_what_does_not_fit_is_said_before_it_is_allocated(monkeypatch):
    A = moved(gallery.poisson2d(30), CpuSpace())
    with_little = CpuSpace()
    monkeypatch.setattr(with_little, "memory", lambda: (50_000, 100_000))
    A.space = with_little
    monkeypatch.setattr(module, "UNCHECKED", 1000)
    with pytest.raises(OutOfMemory, match="a product of 900 × 900"):
        Product(A, A)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_triple_product_is_two(dtype, space):
    A = matrix(400, 400, 0.02, dtype)
    P = matrix(400, 90, 0.02, "float64", 1)
    with space.active():
        R, A, P = moved(P.T, space), moved(A, space), moved(P, space)
        triple = TripleProduct(R, A, P)
        assert_product(triple.C.to_scipy(), R.to_scipy(), (A.to_scipy() @ P.to_scipy()).astype(dtype))
        new = A.with_values(3 * A.data)
        triple.update(R, new, P)
        fresh = TripleProduct(R, new, P).C
        assert space.to_host(triple.C.data).tobytes() == space.to_host(fresh.data).tobytes()


@pytest.mark.gpu
def test_two_host_reads():
    """The room for the pattern, and nnz(C); an update has none."""
    space = space_or_skip("cuda")
    with space.active():
        A = moved(gallery.poisson2d(30), space)
        with host_reads(space) as sizes:
            product = Product(A, A)
            assert sizes == [8, 8]
            product.update(A, A)
            assert sizes == [8, 8]


def test_inner_sizes_must_fit(space):
    with space.active(), pytest.raises(InputError, match="A is 3 × 4 and B is 5 × 6: expected"):
        Product(moved(matrix(3, 4, 1.0), space), moved(matrix(5, 6, 1.0), space))


def in_runs(lengths, columns, dtype="float64", seed=0):
    """A matrix with runs of rows of equal columns, of these lengths; values differ, and every fifth run is empty."""
    random = np.random.default_rng(seed)
    patterns = [random.random(columns) < (0 if k % 5 == 4 else 0.2) for k in range(len(lengths))]
    A = sp.csr_array(np.repeat(np.array(patterns, float), lengths, axis=0))
    A.data = vector(A.nnz, dtype, seed)
    return A


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_with_equal_columns(dtype, space):
    """Runs of every length up to thrice the most that are computed together; fresh and updated, the same bits as one
    row after the other."""
    lengths = [*range(1, 26), 3, 3, 3, 6, 6, 1, 1, 2]
    A, B = in_runs(lengths, 70, dtype), in_runs([1, 2, 3, 3, 3, 8, 20, 30], 400, dtype, seed=1)
    A_of_space, B_of_space = moved(A, space), moved(B, space)
    with space.active():
        product = Product(A_of_space, B_of_space, alike=True)
        single = [Product(moved(A[[i]], space), B_of_space).C.to_scipy() for i in range(A.shape[0])]
        C = product.C.to_scipy().copy()                          # an update overwrites it
        assert_product(C, A, B)
        np.testing.assert_array_equal(C.data, sp.vstack(single, format="csr").data)
        product.update(A_of_space.with_values(2 * A_of_space.data), B_of_space)
        np.testing.assert_array_equal(product.C.to_scipy().data, 2 * C.data)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_long_rows_with_equal_columns(index, space):
    """Sums that fill shared memory, and some that do not fit."""
    A, B = in_runs([6, 3, 8, 2, 7], 30), matrix(30, 6000, 0.4)
    A_of_space, B_of_space = (moved(M, space) for M in (A, B))
    with space.active():
        for M in (A_of_space, B_of_space):
            M.indptr, M.indices = M.indptr.astype(index), M.indices.astype(index)
        alike, plain = (Product(A_of_space, B_of_space, alike=alike).C.to_scipy() for alike in (True, False))
    assert_product(alike, A, B)
    np.testing.assert_array_equal(alike.data, plain.data)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_few_alike_rows(rows, space):
    A, B = in_runs([rows] if rows else [], 9) if rows else sp.csr_array((0, 9)), matrix(9, 4, 0.5)
    with space.active():
        assert_product(Product(moved(A, space), moved(B, space), alike=True).C.to_scipy(), A, B)


def test_an_update_needs_the_same_pattern_and_a_type_that_fits(space):
    with space.active():
        A, B = moved(matrix(9, 9, 0.5), space), moved(matrix(9, 9, 0.4, seed=1), space)
        product = Product(A, B)
        with pytest.raises(InputError, match="the new A .* has another pattern"):
            product.update(B, B)
        with pytest.raises(InputError, match="the new B .* has another pattern"):
            product.update(A, A)
        with pytest.raises(InputError, match="the new B is complex128 and the product float64"):
            product.update(A, B.astype("complex128"))


@pytest.mark.parametrize("name", SPECIAL)
def test_no_kernel_leaves_its_buffers(name, space, monkeypatch):
    A, B = SPECIAL[name]
    with guarded_kernels() if space.name == "cpu" else guarded_allocations(space.xp):
        C = multiplied(space, A, B)
        two_passes(monkeypatch)
        assert (multiplied(space, A, B) != C).nnz == 0
        with space.active():
            A, B = moved(A, space), moved(B, space)
            Product(A, B).update(A, B)


# -- swell.multiply ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "bsr_matrix", "lil_array"])
def test_multiply_takes_any_sparse_matrix(kind, device):
    A, B = matrix(30, 40, 0.1), matrix(40, 20, 0.2, seed=1)
    theirs = getattr(sp, kind)(A)
    C = swell.multiply(theirs, B, device=device)
    assert type(C) is (sp.csr_array if kind.endswith("array") else sp.csr_matrix) and C.has_canonical_format
    assert_product(C, A, B)
    assert (theirs != A).nnz == 0


def test_multiply_sums_duplicates_and_sorts():
    rows, columns, values = [0, 0, 1, 0], [2, 1, 0, 2], [1.0, 2, 3, 4]
    A = sp.coo_array((values, (rows, columns)), shape=(2, 3))
    unsorted = sp.csr_array((np.array([1.0, 2, 3]), np.array([2, 0, 1]), np.array([0, 2, 2, 3])), shape=(3, 3))
    before = unsorted.indices.copy()
    assert (swell.multiply(A, unsorted).toarray() == A.toarray() @ unsorted.toarray()).all()
    assert (unsorted.indices == before).all()


def test_multiply_takes_dense_and_integers(device):
    A, B = np.array([[1, 2], [0, 3]]), sp.csr_array(np.array([[1, 0], [1, 1]]))
    C = swell.multiply(A, B, device=device)
    assert isinstance(C, sp.csr_matrix) and C.dtype == np.float64 and (C.toarray() == A @ B.toarray()).all()


def test_multiply_says_which_matrices_do_not_fit():
    with pytest.raises(InputError, match="matrix 2 of multiply is 9 × 9 and matrix 3 is 5 × 5: expected as many rows"):
        swell.multiply(gallery.poisson2d(3), gallery.poisson2d(3), sp.eye_array(5))


def test_multiply_three_is_a_triple_product(device):
    A, P = gallery.poisson2d(12), matrix(144, 30, 0.05)
    C = swell.multiply(P.T, A, P, device=device)
    assert_product(C, P.T, A @ P)


def test_multiply_keeps_what_is_not_finite():
    A = sp.csr_array([[np.nan, 0], [0, 1.0]])
    assert np.array_equal(swell.multiply(A, sp.eye_array(2)).toarray(), A.toarray(), equal_nan=True)


@pytest.mark.parametrize("format", ["csr", "sell", "ell"])
def test_multiply_takes_our_own_formats(format, space):
    A = gallery.poisson2d(7)
    M = build(A, format, space)
    C = swell.multiply(M, A)
    assert isinstance(C, CSRMatrix) and C.space is space
    assert_product(C.to_scipy(), A, A)
    assert swell.multiply(M, A, device=space.name).space is space


def test_multiply_gives_back_on_the_gpu_what_is_there(space):
    if space.name == "cpu":
        pytest.skip("for GPUs")
    from cupyx.scipy.sparse import csr_matrix
    A = sp.csr_matrix(gallery.poisson2d(7))
    C = swell.multiply(csr_matrix(A), csr_matrix(A))
    assert isinstance(C, csr_matrix)
    assert_product(C.get(), A, A)


@pytest.mark.parametrize("factors, message", [
    ((sp.eye_array(3),), "multiply got 1 matrices: expected two or more"),
    ((sp.eye_array(3), sp.eye_array(4)), "matrix 1 of multiply is 3 × 3 and matrix 2 is 4 × 4"),
    ((sp.eye_array(3), np.ones(3)), "A is ndarray: expected a matrix with entries"),
    ((sp.eye_array(3), sp.linalg.aslinearoperator(np.eye(3))), "expected a matrix with entries"),
    ((sp.eye_array(3), None), "A is NoneType"),
    ((sp.eye_array(3).astype("longdouble").tocsr(), sp.eye_array(3)), "expected one of float32")])
def test_multiply_says_what_is_wrong(factors, message):
    with pytest.raises(InputError, match=message):
        swell.multiply(*factors)


def test_a_device_that_is_no_name():
    with pytest.raises(swell.InputError, match="device=5: expected 'cpu'"):
        swell.multiply(sp.eye_array(3), sp.eye_array(3), device=5)
