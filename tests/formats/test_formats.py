"""The contract of every format in the registry: what it stores is the matrix, and its products are SciPy's."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import DTYPES, space_or_skip
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.during import during
from tests.support.products import assert_product, build, product, random_matrix, tolerance, vector

import swell.formats.block_sell
import swell.formats.blocks
import swell.formats.bsr
import swell.formats.csr
import swell.formats.ell
import swell.formats.modified_sell
import swell.formats.sell
import swell.formats.staircase_sell
from swell import gallery
from swell.core.registry import names
from swell.core.cpu import CpuSpace
from swell.core.space import accumulator
from swell.formats.csr import CSR, CSRMatrix
from swell.formats.sell import PAD, SELL

FORMATS = [*names("format"), "sell(window=1)", "sell(height=32)", "sell(height=8, window=16)",
           "sell(height=128, window=65536)", "csr(lanes=4)", "sell(task=64)",
           "staircase_sell(window=256)", "modified_sell(height=32)", "bsr(block=3, pad=True)",
           "block_sell(block=3, pad=True)"]
FEW = ["csr", "sell", "sell(window=1)", "ell", "staircase_sell", "modified_sell", "bsr(block=3, pad=True)",
       "block_sell(block=3, pad=True)"]


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FEW)
def test_types(format, dtype, space):
    A = random_matrix(100, 0.05, dtype)
    M = build(A, format, space)
    assert M.dtype == dtype and M.nnz == A.nnz and M.shape == A.shape
    assert_product(M, A, dtype)
    w, x = vector(100, dtype, 1), vector(100, dtype, 2)
    with space.active():
        out, dots = space.empty(100, dtype), space.empty(2, accumulator(dtype))
        M.apply_dots(space.from_host(x), out, space.from_host(w), dots)
        y, dots = A @ x, space.to_host(dots)
    assert space.to_host(out) == pytest.approx(y, rel=tolerance(dtype), abs=tolerance(dtype))
    assert dots[0] == pytest.approx(np.vdot(w, y), rel=1e-4 if "64" not in dtype or dtype == "complex64" else 1e-12)
    assert dots[1] == pytest.approx(np.vdot(y, y), rel=1e-4 if "64" not in dtype or dtype == "complex64" else 1e-12)


def test_alpha_beta(format, dtype, space):
    A = random_matrix(70, 0.1, dtype)
    M, x, y = build(A, format, space), vector(70, dtype, 1), vector(70, dtype, 2)
    for alpha, beta in [(1, 0), (-1, 1), (0.5, 0), (2, -0.25), (0, 0), (0, 1)]:
        with during(alpha=alpha, beta=beta), space.active():
            out = space.from_host(y.copy() if beta else np.full_like(y, np.nan))
            M.apply(space.from_host(x), out, alpha, beta)
            found = space.to_host(out)
            expected = alpha * (A @ x) + (beta * y if beta else 0)
            assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_complex_alpha(space):
    A = random_matrix(70, 0.1, "complex128")
    x = vector(70, "complex128")
    for name in FEW:
        assert np.allclose(product(build(A, name, space), x, alpha=2 - 1j), (2 - 1j) * (A @ x), rtol=1e-13)


def test_adjoint(format, dtype, space):
    A = random_matrix(90, 0.05, dtype)
    M = build(A, format, space)
    x, y = vector(90, dtype, 1), vector(90, dtype, 2)
    with space.active():
        out = space.xp.full(90, np.nan, dtype)
        M.apply_adjoint(space.from_host(x), out)
        found = space.to_host(out)
    assert np.allclose(found, A.conj().T @ x, rtol=1e-13, atol=1e-13)
    assert np.vdot(y, A @ x) == pytest.approx(np.vdot(product(M, vector(90, dtype, 2)) * 0 + A.conj().T @ y, x))


def test_rectangular(format, space):
    A = sp.random_array((75, 40), density=0.1, rng=rng(), format="csr")
    M = build(A, format, space)
    assert_product(M, A, "float64")
    assert (M.to_csr().to_scipy() != A).nnz == 0


def test_to_csr(format, dtype, space):
    A = random_matrix(130, 0.04, dtype)
    back = build(A, format, space).to_csr().to_scipy()
    assert (back.indptr == A.indptr).all() and (back.indices == A.indices).all() and (back.data == A.data).all()


def test_update(format, dtype, space):
    A = random_matrix(130, 0.04, dtype)
    B = A.copy()
    B.data = vector(A.nnz, dtype, 5)
    M = build(A, format, space)
    x = vector(130, dtype)
    with space.active():
        M.apply_adjoint(space.from_host(x), space.empty(130, dtype))       # so that there is an adjoint to forget
        M.update(CSRMatrix.from_scipy(B, space))
        out = space.empty(130, dtype)
        M.apply_adjoint(space.from_host(x), out)
    fresh = build(B, format, space)
    assert (product(M, x) == product(fresh, x)).all()
    assert np.allclose(space.to_host(out), B.conj().T @ x)


def test_sizes_around_slices_and_windows(format, space):
    for n in [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257]:
        with during(n=n):
            A = random_matrix(n, min(1.0, 5 / max(n, 1)), "float64", n)
            M = build(A, format, space)
            assert_product(M, A, "float64")
            assert (M.to_csr().to_scipy() != A).nnz == 0


SHAPES = {
    "no entries": sp.csr_array((90, 90)),
    "diagonal": sp.csr_array(sp.eye_array(90)),
    "last row only": sp.csr_array(([1.0, 2], ([89, 89], [0, 89])), shape=(90, 90)),
    "one dense row": sp.csr_array(sp.vstack([sp.eye_array(40, 90), np.ones((1, 90)), sp.eye_array(49, 90)])),
    "one dense column": sp.csr_array(sp.hstack([np.ones((90, 1)), sp.eye_array(90, 89)])),
    "dense": sp.csr_array(rng().random((90, 90))),
    "stored zeros": sp.csr_array((np.zeros(90), np.arange(90), np.arange(91)), shape=(90, 90)),
}


def test_shapes(format, space):
    for name, A in SHAPES.items():
        with during(name=name):
            M = build(A, format, space)
            assert_product(M, A, "float64")
            assert M.to_csr().nnz == A.nnz


@pytest.mark.parametrize("format", FEW)
def test_64_bit_indices(format, space, monkeypatch):
    for module in ("csr", "sell", "ell", "staircase_sell", "modified_sell", "blocks", "bsr", "block_sell"):
        module = getattr(swell.formats, module)
        monkeypatch.setattr(module, "index_type", lambda *sizes: np.dtype(np.int64))
    A = random_matrix(100, 0.05, "float64")
    M = build(A, format, space)
    assert M.to_csr().indices.dtype == np.int64
    assert_product(M, A, "float64")
    assert (M.to_csr().to_scipy() != A).nnz == 0


def test_64_bit_input_becomes_32_bit_where_it_fits():
    A = random_matrix(50, 0.1, "float64")
    A.indptr, A.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    M = build(A, "csr", space_or_skip("cpu"))
    assert M.indices.dtype == np.int32 and M.indptr.dtype == np.int32


# -- SELL alone --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("window", [1, 256])
def test_offsets_around_16_bits(window, space):
    """Two rows of one slice whose first entries lie so far apart; other slices stay narrow."""
    for spread in [65533, 65534, 65535, 65536, 70000, 200_000]:
        with during(spread=spread):
            n = spread + 40
            first = sp.coo_array(([1.0, 2, 3, 4], ([0, 1, 1, 2], [3, 3 + spread, 5 + spread, 8])), shape=(n, n))
            A = (first + sp.eye_array(n)).tocsr()
            A.data = A.data + np.arange(A.nnz) % 7
            M = build(A, f"sell(window={window})", space)
            assert (M.high.size > 0) == (spread >= PAD)          # the base of that slice column is 3
            assert M.high.size <= M.height * 4                   # the one slice
            assert_product(M, A, "float64")
            assert (M.to_csr().to_scipy() != A).nnz == 0


def test_the_widest_offset_that_fits(space):
    for spread, wide in [(65533, False), (65534, False), (65535, True), (65536, True)]:
        with during(spread=spread, wide=wide):
            A = sp.csr_array(([1.0, 2], ([0, 1], [0, spread])), shape=(32, spread + 1))
            M = build(A, "sell", space)
            assert (M.high.size > 0) == wide
            assert_product(M, A, "float64")
            assert (M.to_csr().to_scipy() != A).nnz == 0


def test_columns_whose_lower_half_looks_like_padding(space):
    columns = np.array([65535, 131071, 0, 65534])
    A = sp.csr_array((np.arange(1.0, 5), (np.arange(4), columns)), shape=(32, 200_000))
    M = build(A, "sell", space)
    assert M.high.size
    assert_product(M, A, "float64")
    assert (M.to_csr().to_scipy() != A).nnz == 0


@pytest.mark.parametrize("settings_", ["sell", "sell(window=1)", "sell(height=8, window=64)"])
@pytest.mark.parametrize("wide", [False, True])
def test_padding_is_never_used(settings_, wide, space):
    A = random_matrix(150, 0.05, "float64")
    if wide:
        A = sp.block_diag([A, sp.csr_array((70_000, 70_000)), sp.eye_array(30)], format="lil")
        A[0, A.shape[1] - 1] = 2
        A = A.tocsr()
    M = build(A, settings_, space)
    with space.active():
        stored = M.offsets == PAD
        if wide:
            assert M.high.size
            return_to_csr = M.to_csr().to_scipy()
            assert (return_to_csr != A).nnz == 0
            keep = space.xp.zeros(M.values.size, bool)
            keep[M._where(CSRMatrix.from_scipy(A, space))] = True
            stored = ~keep
        M.values[stored] = np.nan
    assert int(stored.sum()) == M.values.size - M.nnz
    assert_product(M, A, "float64")
    with space.active():
        out, dots = space.empty(A.shape[0], "float64"), space.empty(2, "float64")
        x = space.from_host(vector(A.shape[1], "float64"))
        M.apply_dots(x, out, x if A.shape[0] == A.shape[1] else out, dots)
        assert np.isfinite(space.to_host(dots)).all() and np.isfinite(space.to_host(out)).all()


@pytest.mark.parametrize("height", [8, 16, 32, 64, 128])
def test_heights_and_windows(height, space):
    for window in [1, 128, 256, 65536]:
        with during(window=window):
            A = random_matrix(700, 0.01, "float64")
            M = build(A, f"sell(height={height}, window={window})", space)
            assert_product(M, A, "float64")
            assert (M.to_csr().to_scipy() != A).nnz == 0
            if window > 1:
                assert M.padding <= build(A, f"sell(height={height}, window=1)", space).padding


def test_transposed(space):
    for shape, conjugate in itertools.product([(50, 50), (7, 90), (90, 7), (0, 5), (5, 0)], [False, True]):
        with during(shape=shape, conjugate=conjugate):
            A = sp.random_array(shape, density=0.2, rng=rng()).tocsr() * (1 + 2j)
            A.sort_indices()
            with space.active():
                found = CSRMatrix.from_scipy(A, space).transpose(conjugate)
            expected = (A.conj() if conjugate else A).T.tocsr()
            assert found.shape == expected.shape and found.indices.dtype == found.indptr.dtype == np.int32
            for name in ("indptr", "indices", "data"):
                assert np.array_equal(space.to_host(getattr(found, name)), getattr(expected, name))


def empty_rows_and_far_columns(wide):
    """A matrix with rows of many lengths; wide: also one entry too far from the others for 16 bits."""
    A = random_matrix(333, 0.02, "float64")
    if wide:
        A = sp.block_diag([A, sp.csr_array((70_000, 70_000)), sp.eye_array(30)], format="lil")
        A[0, A.shape[1] - 1] = 2
    return sp.csr_array(A)


@pytest.mark.parametrize("settings_", ["sell(height=32)", "sell(height=32, window=1)", "sell(height=8, window=8)",
                                       "sell(height=64, window=65536)", "staircase_sell", "staircase_sell(window=4096)"])
@pytest.mark.parametrize("wide", [False, True])
def test_every_device_lays_out_the_same(settings_, wide, space):
    A = empty_rows_and_far_columns(wide)
    here, there = build(A, settings_, CpuSpace()), build(A, settings_, space)
    assert bool(here.high.size) == wide and (here.to_csr().to_scipy() != A).nnz == 0
    for expected, found in zip(here._arrays(), there._arrays(), strict=True):
        found = space.to_host(found)
        assert found.dtype == expected.dtype and np.array_equal(found, expected)
    with space.active():
        found = space.to_host(there.positions(CSRMatrix.from_scipy(A, space)))
    assert np.array_equal(found, here.positions(CSRMatrix.from_scipy(A, CpuSpace())))


@pytest.mark.parametrize("n", [2000, 20_000])
def test_sorted_sell_moves_few_bytes(n, space):
    """On unstructured meshes: 8 bytes of value and 2 of offset an entry, the bases and the padding within one more."""
    A = gallery.p1_laplacian(n)
    M = build(A, "sell", space)
    assert M.sorted
    assert M.matrix_bytes <= 11 * A.nnz + 4 * n


@pytest.mark.parametrize("bad", [{"height": 33}, {"height": 4}, {"window": 0}, {"window": 100}, {"window": 16},
                                 {"window": 2**17}, {"window": -1}, {"window": 2.0}, {"task": -1}, {"task": 1.5}])
def test_settings_are_checked(bad):
    with pytest.raises(swell.InputError, match=next(iter(bad))):
        SELL(**bad)


@pytest.mark.parametrize("lanes", [3, 64, -1, "two"])
def test_lanes_are_checked(lanes):
    with pytest.raises(swell.InputError, match=r"CSR\(lanes=.*expected 1, 2, 4"):
        CSR(lanes)


def test_any_number_of_lanes_shares_a_row(dtype, space):
    for lanes in [1, 2, 4, 8, 16, 32]:
        with during(lanes=lanes):
            A = random_matrix(300, 0.1, dtype)
            M = build(A, f"csr(lanes={lanes})", space)
            assert_product(M, A, dtype)
            assert f"{lanes} lanes" in M.describe() and M.adjoint().lanes == lanes


def test_any_task_gives_the_same_sums_of_a_row(dtype, space):
    """How rows are shared out changes no row's sum; the inner products differ by their own order only."""
    for task in [64, 128, 256, 512]:
        with during(task=task):
            A = random_matrix(3000, 0.01, dtype)
            M, plain, x = build(A, f"sell(task={task})", space), build(A, "sell", space), vector(3000, dtype)
            assert (product(M, x) == product(plain, x)).all() and f"{task} rows a task" in M.describe()
            found = []
            for matrix in (M, plain):
                with space.active():
                    here, dots = space.from_host(x), space.empty(2, accumulator(dtype))
                    matrix.apply_dots(here, space.empty(3000, dtype), here, dots)
                    found.append(space.to_host(dots))
            assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.gpu
def test_a_task_that_is_no_block_is_refused():
    with pytest.raises(swell.InputError, match=r"SELL\(task=100\).*64, 128, 256 or 512"):
        build(random_matrix(50, 0.1, "float64"), "sell(task=100)", space_or_skip("cuda"))


@st.composite
def sparse(draw):
    """A square matrix of any pattern, with clusters, gaps and empty rows."""
    n = draw(st.integers(1, 150))
    entries = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(-9, 9)), max_size=300))
    dense_row = draw(st.booleans())
    A = sp.lil_array((n, n))
    for i, j, value in entries:
        A[i, j] = value
    if dense_row:
        A[draw(st.integers(0, n - 1)), :] = 1.0
    return sp.csr_array(A)


@given(sparse(), st.sampled_from(FORMATS))
@settings(max_examples=60, deadline=None)
def test_any_matrix_survives_and_multiplies(A, format):
    M = build(A, format, space_or_skip("cpu"))
    assert (M.to_csr().to_scipy() != A).nnz == 0
    x = np.arange(1.0, A.shape[1] + 1)
    assert (product(M, x) == A @ x).all()                        # small integers: no rounding
