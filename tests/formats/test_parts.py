"""Parts: the storage of the resident CG, made on a GPU and read here as its kernel reads it; and the bisection."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.errors import DoesNotFit
from swell.formats.csr import CSRMatrix
from swell.formats.parts import WARPS, ResidentParts, usual_counts
from swell.orderings.bisection import Bisection, boundaries

ROOM = 232448           # bytes of shared memory of a Hopper multiprocessor
MATRICES = {
    "grid": lambda: gallery.poisson2d(70),
    "mesh": lambda: gallery.p1_laplacian(5000),
    "shuffled mesh": lambda: shuffled(gallery.p1_laplacian(5000)),
    "three dimensions": lambda: gallery.poisson3d(14),
    "uneven diagonal": lambda: gallery.poisson2d(40) + sp.diags_array(rng().random(1600)),
    "unsymmetric pattern": lambda: gallery.poisson2d(40) + sp.random_array((1600, 1600), density=1e-3, rng=rng()),
    "one part": lambda: gallery.poisson2d(9),
    "a long row": lambda: star(3000),
    "diagonal only": lambda: sp.eye_array(2000) * 3,
    "empty rows": lambda: sp.csr_array(([2.0, 1.0], ([7, 900], [7, 3])), shape=(1000, 1000)),
    "1 x 1": lambda: sp.csr_array([[2.0]]),
    "0 x 0": lambda: sp.csr_array((0, 0)),
}


@pytest.mark.parametrize("rows, blocks, counts", [(1000, 16, [1, 16, 132]), (50_000, 16, [16, 132]), (50_000, 8, [132]),
                                                  (30_000, 8, [8, 132]), (70_000, 16, [132])])
def test_a_cluster_has_as_many_blocks_as_the_device_allows(rows, blocks, counts):
    assert usual_counts(rows, SimpleNamespace(cluster_blocks=blocks, multiprocessors=132)) == counts


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu)])
def gpu(request):
    """The space of a GPU, for which alone parts are made."""
    return space_or_skip(request.param)


def shuffled(A):
    order = rng().permutation(A.shape[0])
    return sp.csr_array(A)[order][:, order]


def star(n):
    """One row that is coupled to all others."""
    A = (2 * sp.eye_array(n)).tolil()
    A[7, :] = A[:, 7] = 1
    return A.tocsr()


def build(A, space, dtype="float64", **settings):
    A = sp.csr_array(A).astype(dtype)
    A.sort_indices()
    with space.active():
        parts = ResidentParts(**{"count": 5, "ordering": Bisection(), "shared": ROOM, **settings})
        return A, parts.build(CSRMatrix.from_scipy(A, space))


def resident_product(M, x):
    """A x as the kernel reads the arrays: every warp walks its stream, every part takes its halo from what others gave.
    """
    host = M.space.to_host
    rows, first, table, streams = (host(a) for a in (M.rows, M.first, M.table, M.streams))
    ends, halos, data = (host(a) for a in (M.ends, M.halos, M.data))
    size, C = M.dtype.itemsize, M.chunk
    data = data.reshape(-1, C * (32 * size + 64))
    values = np.ascontiguousarray(data[:, :C * 32 * size]).view(M.dtype).reshape(-1, C, 32)
    columns = np.ascontiguousarray(data[:, C * 32 * size:]).view(np.uint16).reshape(-1, C, 32)
    own = np.where(rows >= 0, x[rows] if rows.size and x.size else 0, 0).reshape(-1, 32)
    published = [own[f + interior:f + slices] for f, (slices, interior, *_) in zip(first, table)]
    assert [32 * sum(len(p) for p in published[:b]) for b in range(len(table))] == list(table[:, 2])
    published = np.concatenate(published).reshape(-1)
    assert published.size == M.published
    y = np.full(own.shape, np.nan, M.dtype)
    for b, (slices, interior, _, halo_from, halo) in enumerate(table):
        begin = first[b]
        assert first[b + 1] == begin + slices <= begin + WARPS * M.slots
        p = np.append(own[begin:begin + slices], published[halos[halo_from:halo_from + halo]])
        for w, (chunk, chunks, boundary, _) in enumerate(streams[b * WARPS:(b + 1) * WARPS]):
            j, total = w, 0
            for k in range(chunk, chunk + chunks):
                for c in range(C):
                    if j >= slices:
                        assert not values[k, c].any()            # filled up
                        continue
                    if j < interior:                             # nobody waits for the halo here
                        assert (columns[k, c] < 32 * slices).all()
                    else:
                        assert k >= chunk + boundary
                    total = total + values[k, c] * p[columns[k, c]]
                    if ends[k] >> c & 1:
                        y[begin + j], total, j = total, 0, j + WARPS
            assert j >= slices and j - WARPS < slices or j == w >= slices
    out = np.full(x.size, np.nan, M.dtype)
    out[rows[rows >= 0]] = y.reshape(-1)[rows >= 0]
    return out + float(host(M.diagonal)[0]) * x


@pytest.mark.parametrize("name", MATRICES)
def test_the_kernels_product(name, gpu):
    A, M = build(MATRICES[name](), gpu)
    x = rng().standard_normal(A.shape[0])
    assert np.allclose(resident_product(M, x), A @ x, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_every_type(dtype, gpu):
    A, M = build(gallery.poisson2d(60), gpu, dtype)
    x = rng().standard_normal(3600).astype(dtype)
    assert np.allclose(resident_product(M, x), A @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MATRICES)
def test_every_row_has_one_place(name, gpu):
    A, M = build(MATRICES[name](), gpu)
    rows = gpu.to_host(M.rows)
    assert (np.sort(rows[rows >= 0]) == np.arange(A.shape[0])).all()


def test_smaller_chunks_where_there_is_less_room(gpu):
    A = gallery.poisson2d(120)
    x, found = rng().standard_normal(14400), []
    for shared in (ROOM, 150_000, 125_000, 105_000):
        A, M = build(A, gpu, shared=shared)
        assert np.allclose(resident_product(M, x), A @ x, rtol=1e-13) and M.shared_bytes + 4096 <= shared
        found.append((M.chunk, M.ring, M.kept))
    assert [f[:2] for f in found] == [(8, 2), (8, 2), (4, 3), (4, 2)] and found[0][2] > found[1][2]


def test_what_does_not_fit_is_refused_with_the_limit(gpu):
    with pytest.raises(DoesNotFit, match=r"14400 rows of float64.*shared memory.*method='cg'"):
        build(gallery.poisson2d(120), gpu, shared=80_000)
    with pytest.raises(DoesNotFit, match="9600 rows"):
        build(gallery.poisson2d(120), gpu, count=1, shared=1 << 20)


def test_a_constant_diagonal_is_not_stored(gpu):
    grid = gallery.poisson2d(30)
    for A, apart in ((grid, True), (grid + sp.diags_array(np.r_[1e-12, np.zeros(899)]), False), (-grid, False)):
        A, M = build(A, gpu)
        assert M.apart == apart and ("without the constant diagonal" in M.describe()) == apart
    rounded = A * (1 + 1e-16)
    assert build(abs(rounded), gpu)[1].apart


def test_new_values(gpu):
    """In place, unless the diagonal stops being constant."""
    A, M = build(gallery.poisson2d(50), gpu)
    x = rng().standard_normal(2500)
    data = M.data
    for B, same in ((3 * A, True), (A + sp.diags_array(rng().random(2500)), False), (A, False), (2 * A, True)):
        B = sp.csr_array(B)
        B.sort_indices()
        before = M.revision
        with gpu.active():
            M.update(CSRMatrix.from_scipy(B, gpu))
        assert np.allclose(resident_product(M, x), B @ x, rtol=1e-13) and (M.revision == before) == same
        assert (M.data is data) == same or not same
        data = M.data


def test_consecutive_rows_where_they_are_parts_already(gpu):
    assert "consecutive rows" in build(gallery.poisson2d(70), gpu)[1].describe()
    mixed = shuffled(gallery.poisson2d(70))
    assert "bisection" in build(mixed, gpu)[1].describe()
    A, M = build(mixed, gpu, ordering=None)
    x = rng().standard_normal(4900)
    assert "consecutive rows" in M.describe() and np.allclose(resident_product(M, x), A @ x, rtol=1e-13)


def test_warps_have_equal_shares(gpu):
    _, M = build(gallery.p1_laplacian(30_000), gpu)
    chunks = gpu.to_host(M.streams)[:, 1]
    assert chunks.max() <= chunks.mean() + 2 and M.padding < 1.2


# -- the bisection ---------------------------------------------------------------------------------------------------

def test_parts_are_compact(space):
    """Of a square of 96² rows, cut in 16: few pairs across, whatever the numbering, and consecutive rows have more."""
    m, parts = 96, 16
    for A in (gallery.poisson2d(m), shuffled(gallery.poisson2d(m))):
        A, across = sp.csr_array(A).tocoo(), []
        with space.active():
            order = space.to_host(Bisection(parts).order(CSRMatrix.from_scipy(A.tocsr(), space)))
        for rows in (order, np.arange(m * m)):
            place = np.empty_like(rows)
            place[rows] = np.arange(m * m)
            part = place * parts // (m * m)
            assert (np.bincount(part) == np.diff(boundaries(m * m, parts))).all()
            across.append(int((part[A.row] != part[A.col]).sum()))
        assert across[0] < 24 * m < across[1]    # 4 x 4 squares: 12 m; strips: 30 m


def test_a_chain_is_cut_into_pieces(space):
    with space.active():
        A = CSRMatrix.from_scipy(sp.csr_array(shuffled(gallery.poisson1d(1000))).sorted_indices(), space)
        order = space.to_host(Bisection(7).order(A))
    host = A.to_scipy()[order][:, order].tocoo()
    part = np.arange(1000) * 7 // 1000
    assert (part[host.row] != part[host.col]).sum() == 12


@pytest.mark.parametrize("parts", [0, 2.5, True])
def test_settings(parts):
    with pytest.raises(swell.InputError, match="parts"):
        Bisection(parts=parts)
