"""Levels of the multigrid cycle on every device: the forms of a level agree, and devices agree to the bit on a setup."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip
from tests.support.cases import flat_bilinear
from tests.support.host_reads import host_reads

import swell
from swell import gallery
from swell.formats.csr import CSRMatrix
from swell.formats.transpose import transposed
from swell.preconditioners.amg import balanced_cycle as module
from swell.preconditioners.amg import interpolation
from swell.preconditioners.amg.balancing import balancing, restriction
from swell.preconditioners.amg.classical import Classical
from swell.preconditioners.amg.hierarchy import Hierarchy, Level
from swell.preconditioners.amg.pmis import pmis
from swell.preconditioners.amg.shared_rows import SharedRows
from swell.preconditioners.amg.symmetry import Symmetry
from swell.preconditioners.amg.two_products import TwoProducts

SYSTEMS = {
    "poisson2d": lambda: gallery.poisson2d(30),
    "poisson3d": lambda: gallery.poisson3d(9),
    "neumann": lambda: gallery.neumann((25, 20)),
    "jumps": lambda: gallery.jumping_diffusion((8, 8, 8)),
    "triangles": lambda: gallery.p1_laplacian(900),
    "flat": lambda: flat_bilinear(30, 30, 10),
    "parts": lambda: sp.block_diag([gallery.poisson2d(12), 1e-9 * gallery.neumann((9, 9)), 3 * sp.eye_array(40)]),
}
SETTINGS = swell.AMG(coarsest=20)


def moved(A, space):
    A = sp.csr_array(A).astype(float)
    A.sort_indices()
    return CSRMatrix.from_scipy(A, space)


def rescaled(A):
    """Other values on the pattern of A, symmetric and with the signs of A."""
    left = sp.diags_array(1 + 0.3 * np.random.default_rng(5).random(A.shape[0]))
    B = sp.csr_array(left @ A @ left)
    B.sort_indices()
    return B


def few_rows(monkeypatch, rows):
    """All levels whose A P has up to this many entries take two products."""
    monkeypatch.setattr(module, "MAX_ENTRIES_OF_TWO", {"cpu": rows, "cuda": rows})


def applied(M, space, b):
    out = space.empty(b.size, b.dtype)
    M.apply(space.from_host(b), out)
    return space.to_host(out)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_products_are_four(name, dtype, space, monkeypatch):
    A = SYSTEMS[name]()
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    with space.active():
        found = []
        for rows in (0, 10**6):
            few_rows(monkeypatch, rows)
            M = swell.AMG(coarsest=20, dtype=dtype).build(moved(A, space))
            assert all(isinstance(level, TwoProducts) == (rows > 0) for level in M.inner.levels[:-1])
            found.append(applied(M, space, b))
            M.update(moved(rescaled(A), space))
            found.append(applied(M, space, b))
    by = (1e-5 if dtype == "float32" else 1e-12) * abs(found[0]).max()
    assert abs(found[0] - found[2]).max() <= by and abs(found[1] - found[3]).max() <= by
    assert abs(found[0] - found[1]).max() > by


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("rows", [0, 10**6])
def test_an_update_is_a_fresh_build_to_the_bit(name, rows, space, monkeypatch):
    """With the first matrix's splitting and patterns."""
    few_rows(monkeypatch, rows)
    A = SYSTEMS[name]()
    b = np.random.default_rng(3).standard_normal(A.shape[0])
    with space.active():
        M = SETTINGS.build(moved(A, space))
        before = applied(M, space, b)
        M.update(moved(rescaled(A), space))
        M.update(moved(A, space))
        assert (applied(M, space, b) == before).all()


class Heavier:
    """An interpolation with a restriction of its own: Pᵀ, each row times a number."""

    radius = 1.0

    def __init__(self, interpolation):
        self._inner, self.P, self.nbytes = interpolation, interpolation.P, interpolation.nbytes
        R, self._order = transposed(self.P)
        self._factors = np.repeat(1 + np.arange(R.shape[0]) % 5, np.diff(R.space.to_host(R.indptr)))
        self.R = R
        self.update_restriction()

    def update_restriction(self):
        self.R.data[...] = self.P.data[self._order] * self.R.space.from_host(self._factors.astype(float))

    def update(self, A):
        self._inner.update(A)
        self.update_restriction()


def test_a_restriction_of_its_own(space):
    """The next matrix is R A P, also after an update, and the cycle takes D_c R D⁻¹."""
    A, found = SYSTEMS["jumps"](), []
    with space.active():
        for own in (False, True):
            coarsening = Classical(moved(A, space), SETTINGS, Symmetry(True, True, False))
            H = Hierarchy(moved(A, space), swell.AMG(levels=2, coarsest=20), coarsening)
            level, = H.levels
            if own:
                level = H.levels[0] = Level.of(level.A, Heavier(level.interpolation))
                H.last = level.RAP.C
            found.append(H)
        plain, own = found
        for values in (A, rescaled(A)):
            for H in found:
                H.update(moved(values, space))
            R, P = (M.to_scipy() for M in (own.levels[0].R, own.levels[0].P))
            assert abs(R - P.T).max() > 1
            assert abs(own.last.to_scipy() - R @ values @ P).max() <= 1e-12 * abs(values).max()
            assert abs(plain.last.to_scipy() - P.T @ values @ P).max() <= 1e-12 * abs(values).max()
            scales = balancing(own, 1.5)
            balanced = restriction(own.levels[0].R, *scales, "float64")
            D, D_c = (sp.diags_array(space.to_host(d)) for d in scales)
            assert abs(balanced.to_scipy() - D_c @ R @ sp.linalg.inv(sp.csc_array(D))).max() <= 1e-12


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_products_by_rows(width, dtype, index, space):
    """With rows of 0, 1, 32, 33 and 200 entries."""
    gen = np.random.default_rng(1)
    n, m = 37, 230
    lengths = np.r_[0, 1, 32, 33, 200, gen.integers(0, 70, n - 5)]
    Q = sp.csr_array(np.concatenate([np.isin(np.arange(m), gen.permutation(m)[:size])[None] for size in lengths]) * 1.0)
    S = sp.csr_array(sp.random_array((n, n), density=0.3, rng=gen))
    Q.data, S.data = gen.standard_normal(Q.nnz), gen.standard_normal(S.nnz)
    b, c = gen.standard_normal((n, width)), gen.standard_normal((m, width))

    def arrays(M):
        return (space.from_host(a) for a in (M.indptr.astype(index), M.indices.astype(index), M.data.astype(dtype)))

    with space.active():
        kernels = space.kernels("swell.preconditioners.amg", "cycle", np.dtype(dtype))
        hosts = [a.astype(dtype) for a in (b, c)]
        b_there, c_there = (space.from_host(a.reshape(-1)) for a in hosts)
        y, x = (space.empty(n * width, dtype) for _ in range(2))
        kernels.rows_product(*arrays(Q), width, c_there, y)
        kernels.correct(*arrays(S), *arrays(Q), width, b_there, c_there, x)
        y, x = space.to_host(y).reshape(n, width), space.to_host(x).reshape(n, width)
    by = 1e-4 if dtype == "float32" else 1e-12
    assert np.allclose(y, Q @ c, atol=by) and np.allclose(x, b + S @ b + Q @ c, atol=by)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, mean", [(1, 1), (50, 0.3), (700, 9), (300, 37), (200, 150)])
def test_shared_rows(n, mean, dtype, space):
    gen = np.random.default_rng(n)
    A = sp.csr_array(sp.random_array((n, 900), density=mean / 900, rng=gen))
    x, z = gen.standard_normal(900), gen.standard_normal(n)
    with space.active():
        M = SharedRows(moved(A, space).astype(dtype))
        x_there, y, w = (space.from_host(a.astype(dtype)) for a in (x, z, z))
        M.apply_plus(x_there, w, y)
        plus = space.to_host(y).copy()
        M.apply(x_there, w, -2, 0.5)
        y.fill(np.nan)
        M.apply(x_there, y)
        plain, scaled = (space.to_host(a) for a in (y, w))
    by = 1e-4 if dtype == "float32" else 1e-12
    assert np.allclose(plus, z + A @ x, atol=by) and np.allclose(scaled, z / 2 - 2 * (A @ x), atol=by)
    assert np.allclose(plain, A @ x, atol=by)


@pytest.mark.gpu
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("options", [{}, {"interpolation": "direct"}, {"pmax": 2, "strength": 0.5}], ids=str)
@pytest.mark.parametrize("many", [0, 1 << 15])
def test_devices_agree_to_the_bit(name, options, many, monkeypatch):
    """On states, interpolation, matrices of all levels and what the cycle stores; not on the cycle's sums."""
    monkeypatch.setattr(interpolation, "MIN_ROWS_BY_THREADS", many)
    monkeypatch.setattr(interpolation, "MAX_AVERAGE_BY_THREADS", 1000)
    there, here, A = space_or_skip("cuda"), space_or_skip("cpu"), SYSTEMS[name]()
    settings = swell.AMG(coarsest=20, **options)
    with there.active():
        ours, theirs = (Hierarchy(M, settings, settings.coarsening(M)) for M in (moved(A, here), moved(A, there)))
        assert ours.ended == theirs.ended and len(ours.levels) == len(theirs.levels) >= 2
        for mine, other in zip(ours.levels, theirs.levels):
            assert (mine.order == there.to_host(other.order)).all()
            for array in ("strong", "state", "numbers"):
                one, two = (getattr(level.interpolation.right, array) for level in (mine, other))
                assert (one == there.to_host(two)).all(), array
            for M, N in ((mine.P, other.P), (mine.R, other.R), (mine.RAP.C, other.RAP.C)):
                N = N.to_scipy()
                assert (M.indptr == N.indptr).all() and (M.indices == N.indices).all() and (M.data == N.data).all()
        for dtype in ("float32", "float64"):
            a, b = (module.BalancedCycle(h, dtype, Symmetry(True, True, False)) for h in (ours, theirs))
            assert (a.scales[0] == there.to_host(b.scales[0])).all()
            x = np.random.default_rng(0).standard_normal(A.shape[0]).astype(dtype)
            mine, other = applied(a, here, x), applied(b, there, x)
            assert abs(mine - other).max() <= (1e-5 if dtype == "float32" else 1e-12) * abs(mine).max()


@pytest.mark.gpu
@pytest.mark.parametrize("rows, links", [(1, 0), (100, 5), (700, 90), (5000, 6)])
@pytest.mark.parametrize("share", [0, 0.05])
def test_rows_that_wait_are_decided_as_in_rounds(rows, links, share):
    """PMIS without rounds, on links that depend one way alone, with and without rows that must be coarse."""
    random, spaces = np.random.default_rng(rows), (space_or_skip("cpu"), space_or_skip("cuda"))
    i, j = random.integers(0, rows, (2, rows * links // 2))
    A = sp.csr_array(sp.coo_array((np.ones(i.size), (i, j)), (rows, rows)))
    A = sp.csr_array(A + A.T + sp.eye_array(rows))
    strong = (random.random(A.nnz) < 0.6).astype(np.uint8)
    strong[A.indices == np.repeat(np.arange(rows), np.diff(A.indptr))] = 0
    forced = (random.random(rows if share else 0) < share).astype(np.uint8)
    found = []
    for space in spaces:
        with space.active():
            found.append(space.to_host(pmis(moved(A, space), *map(space.xp.asarray, (strong, forced)))))
    assert (found[0] == found[1]).all()


@pytest.mark.gpu
@pytest.mark.parametrize("rows, launches", [(0, 57), (10**6, 40)])
def test_what_a_level_costs_the_host(rows, launches, monkeypatch):
    """Kernels of swell and reads of the host in the setup of a level, beyond those of a setup with one level less; an
    update reads nothing but the verdict on the coarsest level."""
    few_rows(monkeypatch, rows)
    space, A, spent = space_or_skip("cuda"), gallery.poisson2d(40), []
    with space.active():
        A = moved(A, space)
        A.facts(), A.norm_inf()
        for levels in (2, 3):
            before = space.launches
            with host_reads(space) as sizes:
                M = swell.AMG(coarsest=10, levels=levels).build(A)
            assert len(M.hierarchy.levels) == levels - 1
            spent.append((space.launches - before, len(sizes), sum(sizes)))
        M.update(A)                              # makes the places of entries in SELL
        with host_reads(space) as sizes:
            M.update(A)
    kernels, reads, size = (b - a for a, b in zip(*spent))
    assert kernels <= launches and reads <= (5 if rows else 11) and size <= 1024, (kernels, reads, size)
    assert len(sizes) <= 2 and sum(sizes) <= 64, sizes
