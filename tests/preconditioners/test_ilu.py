"""Incomplete LU: the factors are what they claim on their pattern, on real systems too; pivots and fill are told."""
from __future__ import annotations

import warnings

from tests.support import cases
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.blocks import blocked
from tests.support.cases import real_matrix, rng
from tests.support.during import during

import swell
from swell import gallery
from swell.core.library import _native
from swell.core.registry import resolve
from swell.core.cpu import CpuSpace
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.formats.bsr import BSR, BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.preconditioners.fill import lu_pattern
from swell.preconditioners.lu_factorisation import Threaded, levels_pay

REAL = ("sherman4", "sherman5", "orsirr_1", "pde2961", "cage10", "foam_hump_U", "Grond4e4", "young1c", "add32", "epb0",
        "jpwh_991", "muelu_condif2", "fs_183_6", "nos5")
MATRICES = {
    "convection": lambda: gallery.convection_diffusion((16, 16), 10.0),
    "atmosmodd~": lambda: gallery.get("atmosmodd~", 1000),
    "unsymmetric": cases.unsymmetric,
    "wave": cases.complex_symmetric,
    "hermitian": cases.hermitian,
    "tridiagonal": lambda: sp.csr_array(sp.diags_array([1.0, -4, 2], offsets=[-1, 0, 1], shape=(50, 50))),
    "1 x 1": lambda: sp.csr_array([[4.0]]),
}
ORDERINGS = ("natural", "multicolor", "rcm")
EXACT = ("exact", "levels")


def built(settings, A, space):
    return resolve("precond", settings).build(CSRMatrix.from_scipy(sp.csr_array(A), space))


def factors(M):
    """(L with its ones, U, order) on the host."""
    F = sp.csr_array(M.factor.to_scipy())
    order = np.arange(M.shape[0]) if M.order is None else M.space.to_host(M.order)
    return sp.csr_array(sp.tril(F, -1) + sp.eye_array(F.shape[0])), sp.csr_array(sp.triu(F)), order


def misfit(M, A):
    """The largest |(L U − A)ᵢⱼ| / (|L| |U|)ᵢⱼ on the pattern: rounding, whatever the scaling of A."""
    L, U, order = factors(M)
    B = sp.csr_array(A)[order][:, order].tocoo()
    F = M.factor.to_scipy().tocoo()
    difference = sp.csr_array(L @ U - B)[F.row, F.col]
    size = sp.csr_array(abs(L) @ abs(U))[F.row, F.col]
    difference, size = np.asarray(difference).ravel(), np.asarray(size).ravel()
    return (abs(difference) / np.where(size > 0, size, 1)).max()


def applied(M, x, adjoint=False):
    out = M.space.xp.full(x.size, np.nan, M.dtype)
    (M.apply_adjoint if adjoint else M.apply)(M.space.from_host(x.astype(M.dtype)), out)
    return M.space.to_host(out)


def vector(A):
    x = rng().standard_normal((A.shape[0], 2)) @ [1, 1j]
    return x if A.dtype.kind == "c" else x.real


# -- the factors -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("factor", EXACT)
@pytest.mark.parametrize("ordering", ORDERINGS)
def test_ilu0_is_exact_on_the_pattern_of_a(ordering, factor, space):
    for name in MATRICES:
        with during(name=name):
            A = sp.csr_array(MATRICES[name]())
            with space.active():
                M = built(f"ilu0(ordering={ordering!r}, factor={factor!r})", A, space)
                L, U, order = factors(M)
                pattern = A[order][:, order]
                pattern.sort_indices()
                found = M.factor.to_scipy()
                assert (found.indptr == pattern.indptr).all() and (found.indices == pattern.indices).all()
                assert misfit(M, A) <= 1e-15 * 20 and all("has no effect" in note for note in M.notes)
                x = vector(A)
                expected = np.empty_like(x)
                y = spla.spsolve_triangular(L, x[order], unit_diagonal=True)
                expected[order] = spla.spsolve_triangular(U, y, lower=False)
                assert abs(applied(M, x) - expected).max() <= 1e-12 * abs(expected).max()


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_ilu0_on_real_systems(name, data, space):
    A = sp.csr_array(real_matrix(data, name))
    A = A.astype(complex if A.dtype.kind == "c" else float)
    with space.active():
        M = built("ilu0", A, space)
        assert M.shift == 0 and M.notes == () and misfit(M, A) <= 1e-13
        M = built("ilu0(factor='levels')", A, space)
        assert misfit(M, A) <= 1e-13


def with_holes(s, dtype):
    """Blocks of s, half of their entries missing."""
    A, random = blocked(s, dtype, count=14), np.random.default_rng(3)
    A.data[(random.random(A.nnz) < 0.5) & (A.tocoo().row != A.indices)] = 0
    A.eliminate_zeros()
    return A


@pytest.mark.parametrize("ordering", ["natural", "rcm"])
@pytest.mark.parametrize("s", [2, 3, 11])
def test_ilu0_of_blocks_is_block_ilu0(s, ordering, dtype, space):
    A = with_holes(s, dtype)
    x = vector(A)
    with space.active():
        M, whole = (built(f"{name}(block={s}, ordering={ordering!r})", A, space) for name in ("ilu0", "ilu"))
        assert M.block == s and (applied(M, x) == applied(whole, x)).all()
        if ordering == "natural":                # in exact arithmetic, ILU(0) of points on the pattern of the blocks
            blocks = CSRMatrix.from_scipy(sp.csr_array(A), space)
            filled = BSR(s).build(blocks)
            filled = BSRMatrix(space, filled.indptr, filled.indices, filled.data, A.shape).to_csr()
            z, point = applied(M, x), applied(resolve("precond", "ilu0").build(filled), x)
            assert abs(z - point).max() <= 1e-12 * abs(z).max()


def test_the_blocks_are_found_or_refused(space):
    A = with_holes(3, "float64")
    with space.active():
        assert built("ilu0(block=None)", blocked(3), space).block == 3
        assert (built("ilu0(block=None)", gallery.poisson2d(11), space).factor.nnz == gallery.poisson2d(11).nnz)
        with pytest.raises(swell.InputError, match=r"ILU\(block=4\).*42 rows.*1, 2, 3, 6"):
            built("ilu0(block=4)", A, space)
        assert built("ilu0(block=4, pad=True, factor='sweeps', factor_sweeps=60)", A, space).block == 4


@pytest.mark.parametrize("settings", ["ilu0", "ilu(level=1)", "ilu(drop=0.0, fill=99.0)"])
def test_lu_without_fill_is_the_inverse(settings, space):
    """A tridiagonal matrix has none; nor has an arrow that points to its end."""
    A = sp.diags_array(np.arange(2.0, 40)).tolil()
    A[-1, :], A[:, -1] = 1, -1
    for B in (MATRICES["tridiagonal"](), A.tocsr()):
        x = vector(B)
        with space.active():
            assert np.allclose(B @ applied(built(settings, B, space), x), x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("ordering", ["natural", "multicolor"])
@pytest.mark.parametrize("name", ["convection", "unsymmetric", "wave", "hermitian"])
def test_fixed_point_sweeps_converge_to_it(name, ordering, space):
    A = MATRICES[name]()
    with space.active():
        exact = built(f"ilu0(ordering={ordering!r})", A, space).factor.to_scipy()
        errors = []
        for sweeps in (1, 3, 100):
            F = built(f"ilu0(factor='sweeps', factor_sweeps={sweeps}, ordering={ordering!r})", A, space).factor
            errors.append(abs(F.to_scipy() - exact).max() / abs(exact).max())
    assert errors[0] > 2 * errors[1] > 1e-9 and errors[2] <= 1e-14 * 10


@pytest.mark.data
@pytest.mark.parametrize("name", ["sherman4", "cage10", "young1c"])
def test_fixed_point_sweeps_on_real_systems(name, data, space):
    A = real_matrix(data, name)
    with space.active():
        exact = built("ilu0", A, space).factor.to_scipy()
        F = built("ilu0(factor='sweeps', factor_sweeps=200)", A, space).factor.to_scipy()
    assert abs(F - exact).max() <= 1e-13 * abs(exact).max()


def test_sweeps_give_the_same_bits_every_time(space):
    A = MATRICES["unsymmetric"]()
    with space.active():
        first, second = (built("ilu0(factor='sweeps', factor_sweeps=4)", A, space).factor.to_scipy() for _ in range(2))
    assert (first.data == second.data).all()


@pytest.mark.parametrize("settings", ["ilu0", "ilu0(factor='levels')", "ilu(level=2)", "ilu(drop=0.001)"])
def test_the_devices_give_one_factor(settings, space):
    A = MATRICES["unsymmetric"]()
    expected = built(settings, A, make_space("cpu")).factor.to_scipy()
    with space.active():
        M = built(settings, A, space)
        assert abs(M.factor.to_scipy() - expected).max() <= 1e-13
        assert (space.name == "cpu") or settings != "ilu(drop=0.001)" or "on the host" in M.notes[0]


def test_many_threads_give_the_factor_of_one(all_threads, monkeypatch):
    """To the bit: levels of thousands of rows, and two halves."""
    A, space = gallery.get("atmosmodd~", 60_000), make_space("cpu")
    monkeypatch.setattr("swell.preconditioners.lu_factorisation.levels_pay", lambda rows, size: False)
    threaded = built("ilu0(factor='levels', ordering='multicolor')", A, space)
    assert (np.diff(threaded._factor.bounds) > 10_000).any()
    one = built("ilu0(ordering='multicolor')", A, space)
    assert one._factor.cuts is None and (threaded.factor.data == one.factor.data).all()
    halves = built("ilu0(ordering='twisted')", A, space)
    assert halves._factor.cuts[0] == A.shape[0] // 2 < halves._factor.cuts[1] < A.shape[0]
    assert (halves.factor.data == built("ilu0(factor='levels', ordering='twisted')", A, space).factor.data).all()


def test_levels_where_there_are_threads_enough(monkeypatch):
    """The rule: not for few rows, not for two threads and points, but for them and blocks of 8."""
    for threads, taken in ((1, set()), (2, {8}), (4, {3, 8}), (8, {1, 3, 8})):
        monkeypatch.setattr(_native, "threads", lambda: threads)
        assert {size for size in (1, 3, 8) if levels_pay(10**6, size)} == taken and not levels_pay(100, 8)
    space = make_space("cpu")
    monkeypatch.setattr("swell.preconditioners.lu_factorisation.levels_pay", lambda rows, size: True)
    A = gallery.get("atmosmodd~", 1000)
    assert isinstance(built("ilu0", A, space)._factor, Threaded)


def test_halves_tell_of_every_tiny_pivot(all_threads):
    """In the first half, in the second and where they meet."""
    n, space = 30_000, make_space("cpu")
    A = sp.diags_array([-1.0, 4, -1], offsets=[-1, 0, 1], shape=(n, n)).tolil()
    for row, largest in ((7000, 7002), (29_990, 29_992), (15_000, 14_999)):
        A[row, row - 1:row + 2] = 0, 1e-30, 0
        A[row, largest] = 1
    A[14_999, 15_000] = 0
    M = built("ilu0(ordering='twisted', pivot='perturb')", A, space)
    assert M._factor.cuts is not None and M.replaced == 3 and "row 7000" in M.notes[0]
    assert (M.factor.data == built("ilu0(factor='levels', ordering='twisted', pivot='perturb')", A, space).factor.data
            ).all()


# -- fill --------------------------------------------------------------------------------------------------------------

def dense_fill(A, level):
    """The pattern by the definition, on dense arrays of levels."""
    n, none = A.shape[0], 10**6
    lev = np.full((n, n), none)
    lev[A.nonzero()] = 0
    for m in range(n):
        later = np.arange(n) > m
        lev = np.where(later[:, None] & later[None, :], np.minimum(lev, lev[:, [m]] + lev[[m], :] + 1), lev)
        lev[lev > level] = none
    return lev <= level


@pytest.mark.parametrize("name", ["convection", "unsymmetric", "wave"])
def test_levels_of_fill(name, space):
    for level in [0, 1, 2, 5]:
        with during(level=level):
            A = sp.csr_array(MATRICES[name]())[:90, :90]
            with space.active():
                M = built(f"ilu(level={level})", A, space)
                F = M.factor.to_scipy()
                stored = sp.csr_array((np.ones(F.nnz), F.indices, F.indptr), shape=F.shape).toarray() > 0
                assert (stored == dense_fill(A, level)).all() and misfit(M, A) <= 1e-14
                assert swell.ILU(level=level).estimate(CSRMatrix.from_scipy(A, space)) == F.nnz


def test_the_estimate_is_near(space):
    A = sp.csr_array(gallery.get("atmosmodd~", 20_000))
    with space.active():
        own = CSRMatrix.from_scipy(A, space)
        for level in (0, 1, 3):
            settings = swell.ILU(level=level)
            assert settings.estimate(own) == pytest.approx(settings.build(own).factor.nnz, rel=0.1)


@pytest.mark.parametrize("name", ["convection", "unsymmetric", "wave"])
def test_all_fill_is_the_lu_factorisation(name, space):
    A = MATRICES[name]()
    with space.active():
        for settings in ("ilu(level=1000)", "ilu(drop=0.0, fill=1e9)"):
            L, U, _ = factors(built(settings, A, space))
            assert abs(L @ U - A).max() <= 1e-13 * abs(A).max()


def test_level_0_is_the_pattern_of_A_and_stored_zeros_stay(space):
    A = gallery.poisson2d(8).tocoo()
    A = sp.csr_array((np.append(A.data, 0.0), (np.append(A.row, 40), np.append(A.col, 3))), shape=A.shape)
    with space.active():
        F, A = built("ilu", A, space).factor, CSRMatrix.from_scipy(A, space)
        for ptr, columns in (lu_pattern(A, 0, 8, "ILU(0)", "entries"), (F.indptr, F.indices)):
            assert (ptr == A.indptr).all() and (columns == A.indices).all()


@pytest.mark.parametrize("name", ["convection", "unsymmetric", "wave"])
def test_ilut_keeps_what_it_says(name, space):
    A = sp.csr_array(MATRICES[name]())
    norms = spla.norm(A, axis=1)
    with space.active():
        counts = []
        for drop in (0.3, 1e-2, 1e-4):
            L, U, _ = factors(built(f"ilu(drop={drop}, fill=1e9)", A, space))
            kept = sp.csr_array(U - sp.diags_array(U.diagonal()))
            kept.eliminate_zeros()
            assert (abs(kept.data) >= drop * np.repeat(norms, np.diff(kept.indptr)) * (1 - 1e-12)).all()
            counts.append(L.nnz + U.nnz)
        assert counts == sorted(counts) and counts[0] < counts[2]
        for fill in (0.0, 1.0, 2.5):
            L, U, _ = factors(built(f"ilu(drop=0.0, fill={fill})", A, space))
            most = np.ceil(fill * np.diff(A.indptr) / 2)
            assert (np.diff(L.indptr) - 1 <= most).all() and (np.diff(U.indptr) - 1 <= most).all()
            assert fill or (U.nnz == A.shape[0] and L.nnz == A.shape[0])


def test_ilut_keeps_the_largest(space):
    A = np.eye(6) * 10
    A[0, 1:] = [1, -5, 3, 3, 2]
    with space.active():
        U = factors(built("ilu(drop=0.0, fill=0.6)", A, space))[1]           # ⌈0.6 · 6 / 2⌉ = 2 entries
    assert (U.toarray()[0] == [10, 0, -5, 3, 0, 0]).all()


@pytest.mark.data
@pytest.mark.parametrize("name", ["sherman4", "orsirr_1", "pde2961", "add32"])
def test_ilut_is_as_good_as_scipys(name, data):
    """About the iterations of GMRES that SuperLU's ILUTP takes, with no more entries."""
    A = sp.csc_array(real_matrix(data, name)).astype(float)
    b = A @ rng().standard_normal(A.shape[0])
    theirs = spla.spilu(A, drop_tol=1e-3, fill_factor=10)
    peer = swell.solve(A, b, method="gmres", M=lambda r: theirs.solve(r), rtol=1e-8)
    solver = swell.prepare(A, method="gmres", precond="ilu(drop=1e-3)", rtol=1e-8)
    ours = solver.solve(b)
    assert ours.converged and peer.converged
    assert ours.iterations <= 2 * peer.iterations + 5


# -- new values --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", ["ilu0", "ilu0(factor='levels')", "ilu0(factor='sweeps')", "ilu(level=2)",
                                      "ilu0(ordering='multicolor')", "ilu(level=1, ordering='rcm')",
                                      "ilu(drop=0.001)",
                                      "ilu0(solve='sweeps(count=3, upper=5)')"])
@pytest.mark.parametrize("name", ["unsymmetric", "wave"])
def test_new_values_give_what_a_fresh_build_gives(name, settings, space):
    A = sp.csr_array(MATRICES[name]())
    B = A.copy()
    B.data = B.data * (1 + 0.2 * rng().random(B.nnz))
    x = vector(A)
    with space.active():
        M, fresh = built(settings, A, space), built(settings, B, space)
        before = applied(M, x)
        M.update(CSRMatrix.from_scipy(B, space))
        assert (M.factor.to_scipy() != fresh.factor.to_scipy()).nnz == 0
        assert (applied(M, x) == applied(fresh, x)).all() and (applied(M, x) != before).any()


@pytest.mark.parametrize("settings", ["ilu0", "ilu0(solve='sweeps(count=3, upper=5)')", "ilu(fill=10)", "ilu(level=1)",
                                      "ilu0(ordering='multicolor')"])
@pytest.mark.parametrize("name", ["unsymmetric", "wave"])
def test_adjoint(name, settings, space):
    A = MATRICES[name]()
    x, y = vector(A), vector(A)[::-1].copy()
    with space.active():
        M = built(settings, A, space)
        assert np.vdot(y, applied(M, x)) == pytest.approx(np.vdot(applied(M, y, True), x), rel=1e-12)


# -- breakdowns and bad input ------------------------------------------------------------------------------------------

def zero_pivot():
    """Nonsingular, and the pivot of row 2 is zero, exactly."""
    return sp.csr_array([[1.0, 2, 0, 0], [0, 1, 1, 0], [0, 3, 3, 1], [1, 0, 1, 5]])


SETTINGS = ["ilu0({})", "ilu0(factor='levels', {})", "ilu(level=1, {})", "ilu(drop=0.0, {})",
            "ilu0(factor='sweeps', factor_sweeps=9, {})"]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_tiny_pivot_is_shifted_and_said(settings, space, device):
    A = zero_pivot()
    text = settings.format("pivot='shift'")
    with space.active():
        M = built(text, A, space)
        assert M.shift >= 1e-3 and any(f"A + {M.shift:g} S" in note and "row 2" in note for note in M.notes)
        assert f"shifted by {M.shift:g}" in M.describe()
        S = sp.diags_array(np.sign(A.diagonal()) * abs(A).max(axis=1).toarray().ravel())
        assert misfit(M, A + M.shift * S) <= 1e-14
        M.update(CSRMatrix.from_scipy(sp.csr_array(A + sp.diags_array(A.diagonal())), space))
        assert M.shift == 0 and not any("tiny" in note for note in M.notes)
    result = swell.solve(A, np.ones(4), method="gmres", precond=text, device=device)
    assert result.converged and any("was factored in place of A" in note for note in result.notes)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("phase", [1, 1j])
def test_a_tiny_pivot_is_perturbed_and_said(settings, phase, space):
    A = zero_pivot() * phase
    with space.active():
        M = built(settings.format("pivot='perturb'"), A, space)
        assert M.shift == 0 and M.replaced == 1 and any("row 2" in note and "1 of 4" in note for note in M.notes)
        assert "1 pivots replaced" in M.describe() and np.isfinite(applied(M, np.ones(4))).all()
        L, U, _ = factors(M)
        difference = abs((L @ U - A).toarray())
        assert difference[2, 2] == pytest.approx(3 * np.sqrt(np.finfo(float).eps))
        difference[2, 2] = 0
        assert difference[A.toarray() != 0].max() <= 1e-7


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_tiny_pivot_may_be_an_error(settings, device):
    result = swell.solve(zero_pivot(), np.ones(4), method="gmres", precond=settings.format("pivot='error'"),
                         device=device)
    assert result.reason is Reason.NOT_FACTORED and "row 2" in str(result) and np.isfinite(result.x).all()


def test_a_shift_that_was_asked_for_is_no_news(space):
    A = MATRICES["convection"]()
    with space.active():
        M = built("ilu0(shift=0.5)", A, space)
        assert M.shift == 0.5 and M.notes == () and "shifted by 0.5" in M.describe()
        S = sp.diags_array(abs(A).max(axis=1).toarray().ravel())
        assert misfit(M, A + 0.5 * S) <= 1e-14


def test_numbers_beyond_the_range_are_no_factors(device):
    """L and U, or solves with them, overflow without a tiny pivot."""
    n = 60
    A = sp.csr_array(np.eye(n) + np.diag(np.full(n - 1, 1e12), 1) + np.diag(np.full(n - 1, 1e-13), -1)
                     + np.eye(n, k=-(n - 1)))
    result = swell.solve(A, np.ones(n), method="gmres", precond="ilu(level=99, pivot='error')", device=device)
    assert result.reason is Reason.NOT_FACTORED and "not finite" in str(result)
    assert np.isfinite(swell.solve(A, np.ones(n), method="gmres", precond="ilu(level=99)", device=device).x).all()


@pytest.mark.parametrize("settings", ["ilu0", "ilu(drop=0.001)", "ilu0(factor='sweeps')", "ilu0(ordering='rcm')"])
def test_a_row_without_diagonal_is_named_with_a_remedy(settings, space):
    A = gallery.poisson2d(10).tolil()
    A[37, 37] = 0
    A = A.tocsr()
    A.eliminate_zeros()
    with space.active(), pytest.raises(swell.InputError, match=r"1 of 100 rows .*row 37\).*matching"):
        built(settings, A, space)


def test_fill_makes_the_diagonal_of_a_saddle_point(space):
    """Rows without diagonal entry that fill gives one need no remedy."""
    A = sp.csr_array([[2.0, 0, 1], [0, 3, 1], [1, 1, 0]])
    A.eliminate_zeros()
    x = np.ones(3)
    with space.active():
        assert np.allclose(A @ applied(built("ilu(level=1)", A, space), x), x)
        with pytest.raises(swell.InputError, match="row 2"):
            built("ilu0", A, space)


def test_fill_that_does_not_fit_is_refused_with_the_estimate(monkeypatch):
    A, space = gallery.poisson2d(40), make_space("cpu")
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (200_000, 2**30))
    with pytest.raises(swell.OutOfMemory, match=r"ILU\(30\), its factors of about .* entries, .* a lower level"):
        built("ilu(level=30)", A, space)
    with pytest.raises(swell.OutOfMemory, match="rows, about .* a larger drop"):
        built("ilu(drop=0.0, fill=1e9)", A, space)


@pytest.mark.parametrize("text, words", [("ilu0(factor='x')", "'sweeps'"), ("ilu(level=-1)", "at least 0"),
                                         ("ilu0(factor_sweeps=0)", "at least 1"), ("ilu0(block=33)", "at most 32"), ("ilu0(ordering='x')", "ordering"),
                                         ("ilu0(fill=1)", "ilu0 without fill"), ("ilu0(shift=-1)", "from 0"),
                                         ("ilu0(pivot='x')", "'perturb'"), ("ilu(drop=-1.0)", "at least 0"),
                                         ("ilu(fill='much')", "at least 0"),
                                         ("ilu(drop=0.001, factor='sweeps')", "no effect")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("precond", text)


# -- in a solve --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precond", ["ilu0", "ilu(level=1)", "ilu(fill=10)", "ilu0(solve='sweeps(count=4)')", "ilu0(factor='levels')",
                                     "ilu0(solve=\"exact(schedule='sync_free')\")", "ilu0(ordering='multicolor')",
                                     "ilu0(factor='sweeps')", "ilu0(solve='exact(single=True)')"])
@pytest.mark.parametrize("method", ["gmres", "bicgstab"])
@pytest.mark.parametrize("name", ["atmosmodd~", "wave"])
def test_krylov_methods_are_quicker_with_it(name, method, precond, device):
    A = MATRICES[name]()
    b = A @ vector(A)
    plain = swell.solve(A, b, method=method, precond="jacobi", rtol=1e-10, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = swell.prepare(A, method=method, precond=precond, rtol=1e-10, device=device)
        first, second = solver.solve(b), solver.solve(b)
    assert first.converged and first.iterations < 0.8 * plain.iterations
    assert (first.x == second.x).all() and first.iterations == second.iterations
    assert np.linalg.norm(b - A @ first.x) <= 1e-10 * np.linalg.norm(b)


def test_more_sweeps_come_nearer_to_the_exact_solve(device):
    """The paper's tables; and with as many as there are levels it is the exact solve."""
    A = MATRICES["atmosmodd~"]()
    b = A @ vector(A)
    exact = swell.solve(A, b, method="gmres", precond="ilu0", rtol=1e-8, device=device).iterations
    counts = [swell.solve(A, b, method="gmres", precond=f"ilu0(solve='sweeps(count={k})')", rtol=1e-8,
                          device=device).iterations for k in (1, 2, 4, 28)]
    assert counts == sorted(counts, reverse=True) and counts[0] > 1.5 * exact and counts[-1] == exact


def test_a_solver_takes_new_values(device):
    A = gallery.convection_diffusion((16, 16), 10.0)
    B = sp.csr_array(A + 3 * sp.diags_array(A.diagonal()))
    for precond in ("ilu0", "ilu(drop=0.001)"):
        solver = swell.prepare(A, method="bicgstab", precond=precond, device=device)
        solver.solve(np.ones(256))
        solver.update(B)
        again, fresh = (s.solve(np.ones(256)) for s in (solver, swell.prepare(B, method="bicgstab", precond=precond,
                                                                             device=device)))
        assert again.converged and again.iterations == fresh.iterations and (again.x == fresh.x).all()


@pytest.mark.parametrize("precond", ["ilu(shift=0.1)", "ilu(shift=0.1, block=1)"])
def test_a_shift_moves_a_diagonal_away_from_zero(precond):
    """A + α S has the signs of A's diagonal: a negative entry becomes more negative."""
    d = np.array([2.0, -3.0, 0.5, -0.25])
    M = swell.prepare(sp.diags_array(d).tocsr(), method="gmres", precond=precond).M
    assert np.allclose(M @ np.ones(4), 1 / (1.1 * d))
