"""What BSR and block SELL promise beyond the contract of every format: block sizes, fill, padding, orders, detection."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import real_matrix, rng
from tests.conftest import space_or_skip
from tests.support.during import during
from tests.support.products import assert_product, build, product, random_matrix, vector

import swell
from swell import BSR, BlockSELL, BSRMatrix, gallery
from swell.core.registry import resolve
from swell.core.cpu import CpuSpace
from swell.formats.blocks import BlockPattern, detect, divisors, fill_ratios
from swell.formats.csr import CSRMatrix
from swell.formats.ell import ELL

FORMATS = ["bsr", "block_sell"]
CUT = [(1, 0), (0, 1), (1, 1), (2, 2)]           # rows and columns beyond the last whole block


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


def blocks_of(size, count=9, dtype="float64", seed=0):
    """A matrix of dense blocks on a random pattern; some block rows stay empty."""
    pattern = sp.random_array((count, count), density=0.3, rng=np.random.default_rng(seed), format="coo")
    dense = [vector(size * size, dtype, k).reshape(size, size) for k in range(pattern.nnz)]
    A = sp.csr_array((count * size, count * size), dtype=dtype)
    if dense:
        rows, columns = (np.repeat(i, size * size).reshape(-1, size, size) * size for i in pattern.coords)
        inside = np.arange(size)
        A = sp.csr_array((np.array(dense).reshape(-1), ((rows + inside[:, None]).reshape(-1),
                                                        (columns + inside).reshape(-1))), A.shape)
    return A


def assert_same(M, A):
    """The matrix that came back has the same entries, explicit zeros among them, of the same values."""
    back = M.to_csr().to_scipy()
    assert (back.indptr == A.indptr).all() and (back.indices == A.indices).all() and (back.data == A.data).all()


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


def test_every_size(format, space):
    for size in range(1, 33):
        with during(size=size):
            A = blocks_of(size)
            M = build(A, f"{format}(block={size})", space)
            assert M.block == size and M.fill == 1
            assert_product(M, A, "float64")
            assert_dots(M, A)
            assert_same(M, A)


def test_sparse_blocks(format, dtype, space):
    """Blocks with holes in them, which are stored as zeros and dropped again."""
    for size in [1, 2, 3, 4, 5, 6, 7, 8, 9, 17]:
        with during(size=size):
            A = random_matrix(size * 14, 2.5 / (size * 14), dtype)
            A.data[::5] = 0                      # explicit zeros stay
            M = build(A, f"{format}(block={size})", space)
            assert M.fill == pytest.approx(A.tobsr((size, size)).data.size / A.nnz) and M.nnz == A.nnz
            assert f"fill {M.fill:.2f}" in M.describe() and f"block {size}" in M.describe()
            assert_product(M, A, dtype)
            assert_same(M, A)
            x = vector(A.shape[0], dtype, 4)
            assert np.allclose(product(M.adjoint(), x), A.conj().T @ x, rtol=1e-13, atol=1e-13)
            assert_same(M.adjoint(), sp.csr_array(A.conj().T).sorted_indices())


def test_padding(format, dtype, space):
    """Sizes that divide nothing: vectors keep their length, and nothing outside them is touched."""
    for size in [2, 3, 5, 8, 12, 32]:
        for more in CUT:
            with during(size=size, more=more):
                shape = (size * 6 + more[0], size * 5 + more[1])
                A = sp.csr_array(sp.random_array(shape, density=0.2, rng=rng(), format="csr")).astype(dtype)
                M = build(A, f"{format}(block={size}, pad=True)", space)
                assert M.shape == shape
                assert_same(M, A)
                assert_product(M, A, dtype)
                assert_dots(M, A)
                guard = size + 3                 # numbers after the end of x, and what must stay after that of y
                x = np.concatenate([vector(shape[1], dtype), np.full(guard, np.nan, dtype)])
                with space.active():
                    x_, y_ = space.from_host(x), space.from_host(np.full(shape[0] + guard, 7, dtype))
                    M.apply(x_[:shape[1]], y_[:shape[0]], 0.5, 2)
                    y = space.to_host(y_)
                assert np.allclose(y[:shape[0]], 0.5 * (A @ x[:shape[1]]) + 14, rtol=1e-13, atol=1e-13)
                assert (y[shape[0]:] == 7).all()
                assert_product(M.adjoint(), A.conj().T.tocsr(), dtype)


@pytest.mark.parametrize("cls", [BSR, BlockSELL])
def test_a_size_that_does_not_divide(cls):
    space = space_or_skip("cpu")
    csr = CSRMatrix.from_scipy(gallery.poisson1d(60), space)
    with pytest.raises(swell.InputError, match=r"block=7\).*60 rows.*: 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30;.*pad=True"):
        cls(block=7).build(csr)
    assert cls(block=7, pad=True).build(csr).block == 7
    with pytest.raises(swell.InputError, match="75 rows and 40 columns.*: 1, 5;"):
        cls(block=3).build(CSRMatrix.from_scipy(sp.csr_array((75, 40)), space))


def test_a_size_that_does_not_divide_through_solve():
    A = gallery.poisson2d(7)
    with pytest.raises(swell.InputError, match="1, 7;"):
        swell.solve(A, np.ones(49), method="cg", format="bsr(block=2)", device="cpu")
    r = swell.solve(A, np.ones(49), method="cg", format="bsr(block=2, pad=True)", device="cpu")
    assert r.converged and r.format == "bsr" and r.x.size == 49


@pytest.mark.parametrize("cls", [BSR, BlockSELL])
@pytest.mark.parametrize("bad", [33, -1, 2.0, True, "3"])
def test_settings_are_checked(cls, bad):
    with pytest.raises(swell.InputError, match="block"):
        cls(block=bad)


def test_the_height_is_checked():
    with pytest.raises(swell.InputError, match="height"):
        BlockSELL(height=12)


@pytest.mark.parametrize("size", [2, 3, 9])
def test_heights(size, space):
    for height in [8, 16, 32, 64, 128]:
        with during(height=height):
            A = blocks_of(size, 70)
            M = build(A, f"block_sell(block={size}, height={height})", space)
            assert M.padding >= M.fill == 1
            assert_product(M, A, "float64")
            assert_same(M, A)


def test_padding_is_never_used(space):
    A = blocks_of(3, 40)
    M = build(A, "block_sell(block=3, height=8)", space)
    with space.active():
        xp = space.xp
        unused = xp.ones(M.values.size, bool)
        unused[M.positions(CSRMatrix.from_scipy(A, space))] = False
        assert bool(unused.any())
        M.values.reshape(-1)[unused] = np.nan
    assert_product(M, A, "float64")
    assert_dots(M, A)


# -- detection ---------------------------------------------------------------------------------------------------------

def test_the_size_is_found(format, space):
    """On a pattern of 13 × 13 block rows, so that no other size divides; prime to the blocks' own."""
    for size in [1, 2, 3, 4, 5, 7, 8, 11, 16, 31, 32]:
        with during(size=size):
            pattern = gallery.poisson1d(13)
            A = sp.csr_array(sp.kron(pattern, rng().random((size, size)) + 1))
            M = build(A, format, space)
            assert M.block == size and M.fill == 1


def test_a_few_holes_are_filled_and_many_are_not(space):
    A = sp.csr_array(sp.kron(gallery.poisson2d(12), np.ones((3, 3))))
    holes = rng().random(A.nnz)

    def without(share):
        B = A.copy()
        B.data = np.where(holes < share, 0, B.data)
        B.eliminate_zeros()
        return B
    M = build(without(0.1), "bsr", space)
    assert M.block == 3 and M.fill == pytest.approx(1 / 0.9, rel=0.02)
    assert build(without(0.3), "bsr", space).block == 1


def test_blocks_in_a_few_rows_alone_are_no_block_structure():
    """The sample of block rows may fall on dense ones: all entries decide."""
    space = space_or_skip("cpu")
    A = sp.csr_array(sp.block_diag([sp.eye_array(4000), np.ones((2, 2))] * 3))
    assert detect(CSRMatrix.from_scipy(A, space)) == 1


def test_the_sample_agrees_with_all_entries(space):
    with space.active():
        csr = CSRMatrix.from_scipy(gallery.elasticity2d(40), space)
        ratios = fill_ratios(csr, tuple(range(2, 33)))
        assert set(ratios) == set(divisors(*csr.shape)) - {1}
        assert detect(csr) == 2 == max(size for size, ratio in ratios.items() if ratio <= 1.2)


def test_nothing_to_detect(space):
    for A in (sp.csr_array((0, 0)), sp.csr_array((12, 12))):
        assert build(A, "bsr", space).block == 1


# -- blocks that come as blocks ----------------------------------------------------------------------------------------

def test_from_blocks(dtype, space):
    for size in [1, 2, 3, 4, 7, 8, 13]:
        for order in ("row", "column"):
            with during(size=size, order=order):
                A = blocks_of(size, dtype=dtype)
                B = A.tobsr((size, size))
                blocks = B.data if order == "row" else np.ascontiguousarray(B.data.transpose(0, 2, 1))
                rows = zip(B.indptr, B.indptr[1:])
                shuffled = np.concatenate([rng().permutation(np.arange(a, b)) for a, b in rows]).astype(int)
                before = blocks.copy()
                with space.active():
                    M = BSRMatrix.from_blocks(space, B.indptr, B.indices[shuffled], blocks[shuffled], A.shape, order)
                assert M.nnz == B.data.size and M.fill == 1 and (blocks == before).all()
                assert_product(M, A, dtype)
                assert_same(M, sp.csr_array(B))
                with space.active():
                    M.update(CSRMatrix.from_scipy(2 * sp.csr_array(B), space))
                assert_product(M, 2 * A, dtype)


def test_from_blocks_that_reach_past_the_matrix(space):
    """What they hold there is dropped, be it no number at all."""
    blocks = np.arange(1.0, 28).reshape(3, 3, 3)
    blocks[2, 2], blocks[1:, :, 2] = np.nan, np.nan
    with space.active():
        M = BSRMatrix.from_blocks(space, np.array([0, 2, 3]), np.array([0, 1, 1]), blocks, (5, 5))
    dense = np.zeros((6, 6))
    dense[:3, :3], dense[:3, 3:], dense[3:, 3:] = blocks
    A = sp.csr_array(dense[:5, :5])
    assert M.nnz == A.nnz == 9 + 6 + 4
    assert_product(M, A, "float64")
    assert_same(M, A)


@pytest.mark.parametrize("change, words", [
    ({"order": "C"}, "order='C'"), ({"indices": [0, 0, 1]}, r"block \(0, 0\) came twice"),
    ({"indices": [0, 2, 1]}, "0 to 1"), ({"indices": [0, 1]}, "one a block"), ({"indptr": [0, 3]}, "expected 3 ascending"),
    ({"indptr": [0, 4, 3]}, "ascending"), ({"blocks": np.ones((3, 2, 3))}, r"\(count, s, s\)"),
    ({"blocks": np.ones((3, 33, 33))}, "1 to 32"), ({"blocks": np.ones((3, 2, 2), int)}, "int64")])
def test_blocks_that_contradict_each_other(change, words):
    given = {"indptr": [0, 2, 3], "indices": [0, 1, 1], "blocks": np.ones((3, 2, 2)), "shape": (4, 4), "order": "row",
             **change}
    given["indptr"], given["indices"] = np.array(given["indptr"]), np.array(given["indices"])
    with pytest.raises(swell.InputError, match=words):
        BSRMatrix.from_blocks(space_or_skip("cpu"), given["indptr"], given["indices"], given["blocks"], given["shape"],
                              given["order"])


# -- real matrices, and bytes ------------------------------------------------------------------------------------------

@pytest.mark.data
@pytest.mark.parametrize("name, size, fill", [("fasp_spe01_bsr3", 3, 1.0), ("hypre_beam_tet_dof2475", 3, 1.2),
                                              ("ml_elasticity", 3, 1.65)])
def test_real_block_matrices(name, size, fill, format, data, space):
    A = sp.csr_array(real_matrix(data, name))
    A.sum_duplicates()
    M = build(A, f"{format}(block={size})", space)
    assert M.fill == pytest.approx(fill, abs=0.01)
    assert_product(M, A, "float64")
    assert_dots(M, A)
    assert_same(M, A)
    assert build(A, format, space).block == (size if fill <= 1.2 else 1)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_full_blocks_move_few_bytes(format, size, space):
    A = sp.csr_array(sp.kron(gallery.poisson2d(30), np.ones((size, size))))
    M = build(A, f"{format}(block={size})", space)
    assert M.matrix_bytes <= (8 + 4.5 / size**2) * A.nnz + 4 * (900 + 1)
    assert M.product_bytes == M.matrix_bytes + 16 * A.shape[0]


def test_scipys_blocks_solve():
    """A SciPy BSR matrix comes through CSR, and goes on in blocks where they are asked for."""
    A = sp.bsr_array(sp.kron(gallery.poisson2d(12), np.array([[2.0, 1], [1, 2]])), blocksize=(2, 2))
    r = swell.solve(A, np.ones(288), method="cg", format="bsr", device="cpu")
    assert r.converged and any("bsr, block 2, fill 1.00" in line for line in r.configuration)


@pytest.mark.parametrize("kind, text", [("format", "bsr(pad='yes')"), ("format", "block_sell(pad=1)"),
                                        ("precond", "ilu(block=None, pad='yes')"), ("precond", "ilu0(pad=0)")])
def test_padding_is_asked_for_by_true(kind, text):
    with pytest.raises(swell.InputError, match="pad=.*True or False"):
        resolve(kind, text)


@pytest.mark.parametrize("fill", ["x", True, 0.5, float("nan")])
def test_a_fill_that_is_none(fill):
    with pytest.raises(swell.InputError, match="ELL.max_fill=.*at least 1"):
        ELL(max_fill=fill)


def test_blocks_are_found_where_entries_are(space):
    for shape in [(0, 0), (1, 1), (60, 60), (61, 47)]:
        for size in [1, 3, 7, 32, 40]:
            with during(shape=shape, size=size):
                A = sp.csr_array(sp.random_array(shape, density=0.1, rng=rng()))
                A.sort_indices()
                with space.active():
                    found = BlockPattern(CSRMatrix.from_scipy(A, space), size)
                    indptr, indices, positions = map(space.to_host, (found.indptr, found.indices, found.positions))
                row, column = A.nonzero()
                blocks = sorted({*zip((row // size).tolist(), (column // size).tolist())})
                assert indices.tolist() == [j for _, j in blocks]
                counts = np.bincount([i for i, _ in blocks], minlength=-(-shape[0] // size))
                assert np.array_equal(np.diff(indptr), counts)
                number = {block: k for k, block in enumerate(blocks)}
                assert positions.tolist() == [(number[i // size, j // size] * size + i % size) * size + j % size
                                              for i, j in zip(row.tolist(), column.tolist())]
