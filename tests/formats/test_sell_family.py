"""What ELL, staircase SELL and modified SELL promise beyond the contract of every format."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import space_or_skip
from tests.support.during import during
from tests.support.products import assert_product, build, product, random_matrix, vector

import swell
from swell import ELL, ModifiedSELL, StaircaseSELL, gallery
from swell.formats.csr import CSRMatrix

FAMILY = ["ell", "staircase_sell", "modified_sell"]


def host(M, *names):
    """Arrays of a matrix as NumPy arrays."""
    return [M.space.to_host(getattr(M, name)) for name in names]


def assert_dots(M, A):
    """(w, A x) and (A x, A x), fused."""
    space, w, x = M.space, vector(A.shape[0], M.dtype, 1), vector(A.shape[1], M.dtype, 2)
    with space.active():
        out, dots = space.empty(A.shape[0], M.dtype), space.empty(2, np.result_type(M.dtype, np.float64))
        M.apply_dots(space.from_host(x), out, space.from_host(w), dots)
        dots = space.to_host(dots)
    y = A @ x
    assert dots[0] == pytest.approx(np.vdot(w, y), rel=1e-11, abs=1e-13)
    assert dots[1] == pytest.approx(np.vdot(y, y), rel=1e-12)


@pytest.mark.data
def test_scipys_product_on_all_real_matrices(data, space):
    files = [f for f in sorted((data / "matrices").iterdir()) if not f.name.startswith("batch")]
    assert len(files) > 35
    for file in files:
        A = sp.csr_array(scipy.io.mmread(file) if ".mtx" in file.name else sp.load_npz(file))
        A.sum_duplicates()
        A = A if A.dtype.kind in "fc" else A.astype(np.float64)
        for format in ("csr", "sell", "ell(max_fill=1000)", "staircase_sell", "modified_sell", "bsr(block=1)",
                       "bsr(block=3, pad=True)", "block_sell(block=3, pad=True)"):
            M = build(A, format, space)
            assert_product(M, A, A.dtype)
            assert (M.to_csr().to_scipy() != A).nnz == 0


# -- modified SELL -----------------------------------------------------------------------------------------------------

PAPER = np.array([[2.5, 3.2, 0, 0, 0, 0, 0, 0, 0],
                  [3.2, 0.2, 0.4, 3.9, 0, 0, 0, 0, 0],
                  [0, 0.4, 2.7, 2.1, 1.1, 0, 0, 0, 0],
                  [0, 3.9, 2.1, -4.5, 0, 0, 1.7, 0, 0],
                  [0, 0, 1.1, 0, 1.2, 3.3, 0, 0, 0],
                  [0, 0, 0, 0, 3.3, 2.8, 0, 0.8, 1.4],
                  [0, 0, 0, 1.7, 0, 0, 1.1, -2.6, 0],
                  [0, 0, 0, 0, 0, 0.8, -2.6, 0.2, 3.1],
                  [0, 0, 0, 0, 0, 1.4, 0, 3.1, 2.0]])


def test_the_papers_example():
    """Chapter 3.2 of the paper prints these arrays up to an ellipsis (12 of 27 places); the rest is by hand."""
    M = build(PAPER, "modified_sell(height=3)", space_or_skip("cpu"))
    assert M.slice_ptr.tolist() == [0, 9, 18, 27]
    assert M.diag.tolist() == [2.5, 0.2, 2.7, -4.5, 1.2, 2.8, 1.1, 0.2, 2.0]
    assert M.entries.tolist() == [3.2, 3.2, 0.4, 0, 0.4, 2.1, 0, 3.9, 1.1,
                                  3.9, 1.1, 3.3, 2.1, 3.3, 0.8, 1.7, 0, 1.4,
                                  1.7, 0.8, 1.4, -2.6, -2.6, 3.1, 0, 3.1, 0]
    assert M.col_idx.tolist() == [-2, -1, -2, 0, -3, 4, 0, 4, 5,
                                  2, 3, -2, 3, -3, 8, 7, 0, 9,
                                  4, 6, 6, -2, -1, -2, 0, -3, 0]
    assert M.local_share == pytest.approx(10 / 22)
    assert_product(M, PAPER, "float64")


@pytest.mark.parametrize("n", [1, 1000, 1024, 1025])
def test_heights(n, dtype, space):
    for height in [1, 2, 3, 31, 32, 33, 63, 64, 65, 96, 512, 999, 1024]:
        with during(height=height):
            A = random_matrix(n, min(1, 6 / n), dtype)
            if space.name == "cuda" and height % 32:
                with pytest.raises(swell.InputError, match=r"ModifiedSELL\(height=.*multiple of 32"):
                    build(A, f"modified_sell(height={height})", space)
                continue
            M = build(A, f"modified_sell(height={height})", space)
            assert_product(M, A, dtype)
            if n > 1:
                assert_dots(M, A)
            assert (M.to_csr().to_scipy() != A).nnz == 0
            rows, columns = A.nonzero()
            off = rows != columns
            local = (rows // height == columns // height)[off]
            assert M.local_share == pytest.approx(local.mean() if local.size else 0)
            assert f"λ {M.local_share:.2f}" in M.describe()


def test_many_slices_leave_their_sums(space):
    """More blocks than a product of one thread a row in blocks of 128 has."""
    A = gallery.poisson2d(150)
    assert_dots(build(A, "modified_sell(height=32)", space), A)


def test_a_diagonal_with_holes(dtype, space):
    """A stored zero on the diagonal is an entry, a hole is not, and update takes values for what is there."""
    A = random_matrix(200, 0.05, dtype).tolil()
    A[5, 5], A[7, 7] = 3, 0
    A = A.tocsr()
    A = (A + sp.csr_array(([1.0], ([9], [9])), A.shape).astype(dtype)).tocsr()
    A.data[A.data == 1] = 0                                      # may store a zero at (9, 9)
    M = build(A, "modified_sell", space)
    missing, = host(M, "missing")
    rows = np.repeat(np.arange(200), np.diff(A.indptr))
    assert (missing == np.setdiff1d(np.arange(200), rows[rows == A.indices])).all() and missing.size
    back = M.to_csr().to_scipy()
    assert (back.indptr == A.indptr).all() and (back.indices == A.indices).all() and (back.data == A.data).all()
    assert_product(M, A, dtype)


def test_the_results_configuration_tells_lambda():
    r = swell.solve(gallery.poisson2d(20), np.ones(400), method="cg", format="modified_sell(height=64)")
    assert r.converged and "λ 0." in str(r) and "modified_sell, height 64" in str(r)


# -- ELL ---------------------------------------------------------------------------------------------------------------

def long_row(n):
    """A diagonal and one full row."""
    A = sp.eye_array(n, format="lil")
    A[n // 2] = 1.0
    return A.tocsr()


def test_absurd_padding_is_refused(space):
    n = 2000
    with pytest.raises(swell.InputError, match=rf"would store 4032000 entries \(0\.0[0-9] GiB\).*row {n // 2} has {n}"
                                               r".*format='sell'"):
        build(long_row(n), "ell", space)
    M = build(long_row(n), "ell(max_fill=2000)", space)
    assert M.padding == pytest.approx(n * 2016 / (2 * n - 1))
    assert_product(M, long_row(n), "float64")
    assert M.matrix_bytes < M.nbytes / 10                        # rows that have ended read no further
    build(long_row(500), "ell", space)                           # small enough for any padding


def test_ell_that_does_not_fit(monkeypatch):
    space = space_or_skip("cpu")
    monkeypatch.setattr(space, "memory", lambda: (1000, 2000))
    with pytest.raises(swell.OutOfMemory, match="the matrix in ELL.*format='sell'"):
        build(gallery.poisson2d(30), "ell", space)


# -- staircase SELL ----------------------------------------------------------------------------------------------------

def test_rows_descend_and_nothing_is_padded(space):
    for window in [32, 64, 256, 512, 65536]:
        with during(window=window):
            A = random_matrix(1500, 0.01, "float64")
            M = build(A, f"staircase_sell(window={window})", space)
            lengths, values, rows = host(M, "lengths", "values", "rows")
            assert values.size == A.nnz
            for start in range(0, lengths.size, window):
                assert (np.diff(lengths[start:start + window].astype(int)) <= 0).all()
            assert rows.dtype == (np.uint8 if window <= 256 else np.uint16)
            assert_product(M, A, "float64")
            assert (M.to_csr().to_scipy() != A).nnz == 0


def test_rows_already_in_order_are_not_stored(space):
    assert build(sp.eye_array(100), "staircase_sell", space).rows.size == 0


@pytest.mark.parametrize("longest, width", [(255, 8), (256, 16), (65535, 16), (65536, 32)])
def test_long_rows(longest, width, space):
    A = sp.vstack([sp.eye_array(40, 70_000), np.ones((1, longest)) @ sp.eye_array(longest, 70_000),
                   sp.eye_array(30, 70_000)], format="csr")
    M = build(A, "staircase_sell", space)
    assert M.lengths.dtype.itemsize * 8 == width
    assert_product(M, A, "float64")
    assert_dots(M, A)
    assert (M.to_csr().to_scipy() != A).nnz == 0


def test_offsets_around_16_bits(space):
    """Two rows of one slice whose first entries lie so far apart; other slices stay narrow."""
    for spread in [65534, 65535, 65536, 70_000, 200_000]:
        with during(spread=spread):
            n = spread + 40
            first = sp.coo_array(([1.0, 2, 3, 4], ([0, 1, 1, 2], [3, 3 + spread, 5 + spread, 8])), shape=(n, n))
            A = (first + sp.eye_array(n)).tocsr()
            A.data = A.data + np.arange(A.nnz) % 7
            M = build(A, "staircase_sell(window=32)", space)
            assert (M.high.size > 0) == (spread > 65535)         # the base of that slice column is 3
            assert M.high.size <= 36                             # the one slice
            assert_product(M, A, "float64")
            assert_dots(M, A)
            assert (M.to_csr().to_scipy() != A).nnz == 0
            M.update(CSRMatrix.from_scipy(2 * A, space))
            assert_product(M, 2 * A, "float64")


@pytest.mark.parametrize("n", [2000, 20_000])
def test_staircase_moves_few_bytes(n, space):
    """8 bytes of value, 2 of offset, 4 a slice column of nearly 32; 2 a row for its length and place; no padding."""
    A = gallery.p1_laplacian(n)
    M = build(A, "staircase_sell", space)
    assert M.matrix_bytes <= 10.2 * A.nnz + 2.5 * n
    assert M.matrix_bytes < build(A, "sell(height=32)", space).matrix_bytes


def test_positions_of_the_entries(space):
    """What assembles into the format writes there."""
    A = random_matrix(300, 0.03, "float64")
    M = build(A, "staircase_sell", space)
    with space.active():
        at = space.to_host(M.positions(CSRMatrix.from_scipy(A, space)))
    values, = host(M, "values")
    assert (values[at] == A.data).all()


# -- all ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("format", ["ell", "modified_sell", "modified_sell(height=64)"])
def test_padding_is_never_used(format, space):
    A = random_matrix(150, 0.05, "float64")
    M = build(A, format, space)
    with space.active():
        if format == "ell":
            M.values[M.columns < 0] = np.nan
        else:
            M.entries[M.col_idx == 0] = np.nan
        assert bool(space.xp.isnan(M.values if format == "ell" else M.entries).any())
    assert_product(M, A, "float64")
    assert_dots(M, A)
    assert not np.isnan(product(M, np.ones(150))).any()


@pytest.mark.parametrize("cls, bad", [(ModifiedSELL, {"height": 0}), (ModifiedSELL, {"height": 1025}),
                                      (ModifiedSELL, {"height": 32.0}), (ELL, {"max_fill": 0.5}),
                                      (ELL, {"max_fill": float("nan")}), (StaircaseSELL, {"window": 16}),
                                      (StaircaseSELL, {"window": 100}), (StaircaseSELL, {"window": 2**17})])
def test_settings_are_checked(cls, bad):
    with pytest.raises(swell.InputError, match=next(iter(bad))):
        cls(**bad)


@pytest.mark.parametrize("format", [*FAMILY, "modified_sell(height=1024)"])
def test_cg_on_a_mesh(format, device):
    """Inside a captured loop too."""
    A = gallery.p1_laplacian(3000) + 0.1 * sp.eye_array(3000)
    b = rng().standard_normal(A.shape[0])
    r = swell.solve(A, b, method="cg", format=format, device=device)
    assert r.converged and np.linalg.norm(b - A @ r.x) <= 1e-8 * np.linalg.norm(b) * 1.01
