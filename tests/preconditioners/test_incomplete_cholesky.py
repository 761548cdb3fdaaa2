"""Incomplete Cholesky: the factor is what it claims on its pattern, on real systems too, and breakdowns are told."""
from __future__ import annotations

import warnings

from tests.support import cases
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.formats.csr import CSRMatrix
from swell.preconditioners.fill import cholesky_pattern

REAL = ("nos5", "nos7", "gr_30_30", "1138_bus", "bcsstk14", "bcsstk16", "ml_elasticity", "foam_hump_p", "hypre_ams_A",
        "hypre_beam_tet_dof2475", "mhd1280b")
ORDERINGS = ("natural", "multicolor", "twisted", "rcm")
MATRICES = {
    "poisson": lambda: gallery.poisson2d(20),
    "mesh": lambda: sp.csr_array(gallery.p1_laplacian(500, mass=1.0)),
    "hermitian": cases.hermitian,
    "elasticity": lambda: sp.csr_array(gallery.elasticity2d(9)),
    "diagonal": lambda: sp.csr_array(sp.diags_array(np.arange(1.0, 30))),
    "1 x 1": lambda: sp.csr_array([[4.0]]),
}


def built(settings, A, space):
    return resolve("precond", settings).build(CSRMatrix.from_scipy(sp.csr_array(A), space))


def factor(M):
    """(L, order) of an operator, on the host."""
    order = np.arange(M.shape[0]) if M.order is None else M.space.to_host(M.order)
    return sp.csr_array(M.factor.to_scipy()), order


def misfit(M, A):
    """The largest |(L Lᴴ − A)ᵢⱼ| / √(aᵢᵢ aⱼⱼ) on the pattern of L, A with the shift that was factored."""
    L, order = factor(M)
    d = A.diagonal().real
    B = sp.csr_array(A + M.shift * sp.diags_array(d))[order][:, order]
    d = 1 / np.sqrt(d[order])
    difference = sp.csr_array(sp.diags_array(d) @ (L @ L.conj().T - B) @ sp.diags_array(d))
    return abs(difference.multiply(L != 0)).max()


def applied(M, x):
    out = M.space.xp.full(x.size, np.nan, M.dtype)
    M.apply(M.space.from_host(x.astype(M.dtype)), out)
    return M.space.to_host(out)


def real_matrix(data, name):
    A = scipy.io.mmread(data / "matrices" / f"{name}.mtx.gz")
    return sp.csr_array(A.astype(complex if A.dtype.kind == "c" else float))       # one of them is of integers


# -- the factor --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ordering", ORDERINGS)
def test_ic0_is_exact_on_the_pattern_of_a(ordering, space):
    for name in MATRICES:
        with during(name=name):
            A = MATRICES[name]()
            with space.active():
                M = built(f"ic0(ordering={ordering!r})", A, space)
                L, order = factor(M)
                lower = sp.csr_array(sp.tril(sp.csr_array(A)[order][:, order]))
                lower.sort_indices()
                assert (L.indptr == lower.indptr).all() and (L.indices == lower.indices).all()
                assert misfit(M, A) <= 1e-14 * 20
                x = rng().standard_normal(A.shape[0])
                expected = np.empty_like(x, dtype=A.dtype)
                y = spla.spsolve_triangular(L, x[order].astype(A.dtype))
                expected[order] = spla.spsolve_triangular(sp.csr_array(L.conj().T), y, lower=False)
                assert abs(applied(M, x) - expected).max() <= 1e-12 * abs(expected).max()


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_ic0_on_real_systems(name, data, space):
    A = real_matrix(data, name)
    with space.active():
        M = built("ic0", A, space)
        assert misfit(M, A) <= 1e-12
        assert bool(M.shift) == bool(M.notes) and (not M.shift or f"{M.shift:g}" in M.describe())


@pytest.mark.parametrize("ordering", ["natural", "multicolor"])
@pytest.mark.parametrize("name", ["poisson", "mesh", "hermitian"])
def test_fixed_point_sweeps_converge_to_it(name, ordering, space):
    A = MATRICES[name]()
    with space.active():
        exact = factor(built(f"ic0(ordering={ordering!r})", A, space))[0]
        errors = []
        for sweeps in (1, 3, 100):
            L = factor(built(f"ic0(factor='sweeps', factor_sweeps={sweeps}, ordering={ordering!r})", A, space))[0]
            errors.append(abs(L - exact).max() / abs(exact).max())
    assert errors[0] > 2 * errors[1] > 1e-9 and errors[2] <= 1e-14 * 10


def test_the_devices_give_one_factor(space):
    A = MATRICES["mesh"]()
    expected = factor(built("ic0", A, make_space("cpu")))[0]
    with space.active():
        assert abs(factor(built("ic0", A, space))[0] - expected).max() <= 1e-13


# -- fill --------------------------------------------------------------------------------------------------------------

def dense_fill(A, level):
    """The pattern by the definition, on dense arrays of levels."""
    n = A.shape[0]
    lev = np.where(A.toarray() != 0, 0, 10**6)
    for m in range(n):
        lev = np.where((np.arange(n)[:, None] > m) & (np.arange(n)[None, :] > m),
                       np.minimum(lev, lev[:, [m]] + lev[[m], :] + 1), lev)
        lev[lev > level] = 10**6
    return np.tril(lev <= level)


@pytest.mark.parametrize("level", [0, 1, 2, 4])
@pytest.mark.parametrize("name", ["poisson", "random"])
def test_levels_of_fill(name, level, space):
    A = gallery.poisson2d(7) if name == "poisson" else random_spd(60)
    with space.active():
        M = built(f"ic(level={level})", A, space)
        L = factor(M)[0]
        assert ((L.toarray() != 0) == dense_fill(A, level)).all() or L.nnz == dense_fill(A, level).sum()
        assert misfit(M, A) <= 1e-13


def random_spd(n):
    B = sp.random_array((n, n), density=0.03, rng=np.random.default_rng(4))
    B = B + B.T
    return sp.csr_array(B + sp.diags_array(abs(B).sum(axis=1) + 1))


def test_a_zero_that_is_stored_on_one_side(space):
    A = gallery.poisson2d(8).tolil()
    one_sided = A.tocoo()
    with_zero = sp.csr_array((np.append(one_sided.data, 0.0), (np.append(one_sided.row, 40), np.append(one_sided.col, 3))),
                             shape=A.shape)
    assert with_zero.nnz == A.nnz + 1
    with space.active():
        for settings in ("ic0", "ic(level=1)"):
            assert misfit(built(settings, with_zero, space), with_zero) <= 1e-14


def test_level_0_is_the_lower_triangle_and_all_levels_are_cholesky(space):
    A = MATRICES["mesh"]()
    with space.active():
        found, F = cholesky_pattern(CSRMatrix.from_scipy(A, space), 0), built("ic", A, space).factor
        assert all((a == b).all() for a, b in zip(found, (F.indptr, F.indices)))
        full = factor(built("ic(level=500)", A, space))[0]
    assert abs(full - np.linalg.cholesky(A.toarray())).max() <= 1e-12


def test_more_fill_takes_fewer_iterations(device):
    A = gallery.poisson2d(40)
    counts = [swell.solve(A, np.ones(1600), method="cg", precond=p, device=device).iterations
              for p in (None, "ic0", "ic(level=1)", "ic(level=3)")]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) == 4


# -- breakdowns and bad input ------------------------------------------------------------------------------------------

def breaks_down():
    """SPD, and IC(0) of it has a negative pivot: Kershaw's 4 × 4."""
    return sp.csr_array([[3.0, -2, 0, 2], [-2, 3, -2, 0], [0, -2, 3, -2], [2, 0, -2, 3]])


@pytest.mark.parametrize("how", ["", "factor='sweeps', factor_sweeps=20"])
def test_a_pivot_that_is_not_positive_is_shifted_and_said(how, space, device):
    A = breaks_down()
    assert np.linalg.eigvalsh(A.toarray()).min() > 0
    with space.active():
        M = built(f"ic0({how})", A, space)
        assert M.shift >= 1e-3 and f"A + {M.shift:g} diag(A)" in M.notes[0] and "row 3" in M.notes[0]
        assert f"shifted by {M.shift:g}" in M.describe()
        if not how:
            assert misfit(M, A) <= 1e-14 * 10
        M.update(CSRMatrix.from_scipy(sp.csr_array(sp.diags_array(A.diagonal()) * 100 + A), space))
        assert M.shift == 0 and M.notes == ()
    result = swell.solve(A, np.ones(4), method="cg", precond=f"ic0({how})", device=device)
    assert result.converged and any("was factored in place of A" in note for note in result.notes)


def test_a_shift_that_was_asked_for_is_no_news(space):
    A = gallery.poisson2d(10)
    with space.active():
        M = built("ic0(shift=0.5)", A, space)
        assert M.shift == 0.5 and M.notes == () and misfit(M, A) <= 1e-14 and "shifted by 0.5" in M.describe()


def test_a_matrix_that_is_not_hermitian_is_refused_with_the_place(space):
    A = gallery.poisson2d(10).tolil()
    A[12, 13] = -5
    with space.active(), pytest.raises(swell.InputError, match=r"\((12, 13|13, 12)\)"):
        built("ic0", A.tocsr(), space)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_diagonal_that_is_not_positive_ends_the_solve_with_a_reason(value, device):
    A = gallery.poisson2d(10).tolil()
    A[37, 37] = value
    result = swell.solve(A.tocsr(), np.ones(100), method="gmres", precond="ic0", device=device)
    assert result.reason is Reason.NOT_FACTORED and "row 37" in str(result)


@pytest.mark.parametrize("text, words", [("ic0(factor='x')", "'sweeps'"), ("ic(level=-1)", "at least 0"),
                                         ("ic0(factor_sweeps=0)", "at least 1"), ("ic0(ordering='x')", "ordering"),
                                         ("ic0(fill=1)", "no setting"), ("ic0(shift=-1)", "from 0")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("precond", text)


# -- in a solve --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precond", ["ic0", "ic(level=1)", "ic0(solve='sweeps')",
                                     "ic0(solve=\"exact(schedule='sync_free')\")",
                                     "ic0(ordering='multicolor')", "ic0(ordering='twisted')", "ic0(factor='sweeps')",
                                     "ic0(solve='exact(single=True)')"])
@pytest.mark.parametrize("name", ["poisson", "mesh", "hermitian"])
def test_cg_is_quicker_with_it(name, precond, device):
    A = MATRICES[name]()
    b = A @ rng().standard_normal(A.shape[0])
    plain = swell.solve(A, b, method="cg", scaling="jacobi", rtol=1e-10, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = swell.prepare(A, method="cg", precond=precond, rtol=1e-10, device=device)
        first, second = solver.solve(b), solver.solve(b)
    assert first.converged and first.iterations < 0.9 * plain.iterations
    assert (first.x == second.x).all() and first.iterations == second.iterations
    assert np.linalg.norm(b - A @ first.x) <= 1e-10 * np.linalg.norm(b)


def test_sweeps_with_different_counts_are_not_hermitian(space):
    with space.active():
        M = built("ic0(solve='sweeps(count=3, upper=4)')", gallery.poisson2d(6), space)
        assert not M.spd and built("ic0(solve='sweeps(count=3)')", gallery.poisson2d(6), space).spd
        with pytest.raises(swell.InputError, match="same count"):
            x = space.xp.ones(36)
            M.apply_adjoint(x, space.xp.empty_like(x))
