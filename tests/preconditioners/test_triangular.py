"""The contract of triangular solves, and of incomplete Cholesky on top of them."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.core.registry import resolve
from swell.core.cpu import CpuSpace
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix
from swell.preconditioners.level_schedule import advice
from swell.preconditioners.exact import best_width

SOLVES = ("exact(schedule='levels')", "exact(schedule='sync_free')", "sweeps(count=200)")


def triangular(dtype, lower, n=300, seed=1):
    """Rows of very different lengths, an unsorted depth of levels, a diagonal that is not constant."""
    random = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=0.03, rng=random).tolil()
    A[n - 1, :n // 2] = 0.1                      # a long row
    A[:, 0] = 0.1
    A = sp.csr_array(A)
    T = sp.tril(A, -1) if lower else sp.triu(A, 1)
    T = sp.csr_array(T * 0.3 + sp.diags_array(1 + random.random(n))).astype(dtype)
    if np.dtype(dtype).kind == "c":
        T.data *= np.exp(0.3j * random.random(T.nnz))
    T.sort_indices()
    return T


def vector(n, dtype, seed=0):
    v = np.random.default_rng(seed).standard_normal((n, 2)) @ [1, 1j]
    return v.astype(dtype) if np.dtype(dtype).kind == "c" else v.real.astype(dtype)


def solved(operator, x, adjoint=False):
    space = operator.space
    out = space.xp.full(x.size, np.nan, operator.dtype)
    (operator.apply_adjoint if adjoint else operator.apply)(space.from_host(x), out)
    return space.to_host(out)


def near(a, b, rel=1e-12):
    return abs(a - b).max() <= rel * abs(b).max()


# -- triangular solves -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lower", [True, False])
def test_wide_levels(lower, device):
    """Two colours: each level has more rows than one block solves, and gets a launch of its own on a GPU."""
    space = space_or_skip(device)
    half = 5000
    coupling = sp.random_array((half, half), density=3 / half, rng=rng())
    diagonal = sp.diags_array(1 + rng().random(half))
    T = sp.csr_array(sp.block_array([[diagonal, None if lower else coupling], [coupling if lower else None, diagonal]]))
    b = vector(2 * half, "float64")
    with space.active():
        x = solved(resolve("triangular", SOLVES[0]).build(CSRMatrix.from_scipy(T, space), lower), b)
    assert near(T @ x, b)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("solve", SOLVES)
def test_solves_as_scipy_does(solve, lower, dtype, space):
    T = triangular(dtype, lower)
    b = vector(T.shape[0], dtype)
    with space.active():
        M = resolve("triangular", solve).build(CSRMatrix.from_scipy(T, space), lower)
        assert near(solved(M, b), spla.spsolve_triangular(T, b, lower=lower))
        assert near(solved(M, b, adjoint=True), spla.spsolve_triangular(sp.csr_array(T.conj().T), b, lower=not lower))


@pytest.mark.parametrize("solve", SOLVES)
def test_one_triangle_of_a_whole_matrix_with_unit_diagonal_in_an_order(solve, space):
    A = sp.csr_array(gallery.convection_diffusion((15, 15), 5.0)) / 8
    n, order = A.shape[0], rng().permutation(A.shape[0])
    b = vector(n, "float64")
    L = sp.csr_array(sp.tril(A, -1) + sp.eye_array(n))
    expected = np.empty(n)
    expected[order] = spla.spsolve_triangular(L, b[order])
    with space.active():
        M = resolve("triangular", solve).build(CSRMatrix.from_scipy(A, space), True, unit=True,
                                               order=space.from_host(order))
        assert near(solved(M, b), expected)
        expected[order] = spla.spsolve_triangular(sp.csr_array(L.T), b[order], lower=False)
        assert near(solved(M, b, adjoint=True), expected)


@pytest.mark.parametrize("solve", [*SOLVES, "sweeps(count=1)", "sweeps(count=2)", "sweeps(count=3)"])
def test_in_place_fused_and_updated(solve, dtype, space):
    T, T2 = triangular(dtype, True), triangular(dtype, True)
    T2.data = T2.data * (1 + 0.1 * np.random.default_rng(3).random(T2.nnz))
    n = T.shape[0]
    with space.active():
        M = resolve("triangular", solve).build(CSRMatrix.from_scipy(T, space), True)
        before = solved(M, vector(n, dtype))
        solved(M, vector(n, dtype), adjoint=True)                              # builds what is to be updated
        M.update(CSRMatrix.from_scipy(T2, space))
        fresh = resolve("triangular", solve).build(CSRMatrix.from_scipy(T2, space), True)
        for adjoint in (False, True):
            found = solved(M, vector(n, dtype), adjoint)
            assert (found == solved(fresh, vector(n, dtype), adjoint)).all() and not (found == before).all()
            x = space.from_host(vector(n, dtype))
            (M.apply_adjoint if adjoint else M.apply)(x, x)
            assert (space.to_host(x) == found).all()
        x, w, out = (space.from_host(vector(n, dtype, seed)) for seed in (0, 1, 2))
        dots = space.empty(2, accumulator(dtype))
        M.adjoint_dots(x, out, w, dots)
        out, sums = space.to_host(out), space.to_host(dots)
        assert (out == found).all()
        assert sums[0] == pytest.approx(np.vdot(vector(n, dtype, 1), out), rel=1e-12)
        assert sums[1].real == pytest.approx(np.vdot(out, out).real, rel=1e-12)


def test_few_sweeps_are_the_truncated_series(dtype, space):
    T = triangular(dtype, True)
    n, b = T.shape[0], vector(T.shape[0], dtype)
    D = sp.diags_array(1 / T.diagonal())
    N = sp.csr_array(D @ sp.tril(T, -1))
    term = expected = D @ b
    for count in (1, 2, 3, 4):
        with space.active():
            M = resolve("triangular", f"sweeps(count={count})").build(CSRMatrix.from_scipy(T, space), True)
            x, y = b, vector(n, dtype, 5)
            assert near(solved(M, b), expected)
            left, right = np.vdot(y, solved(M, x)), np.vdot(solved(M, y, adjoint=True), x)
            assert complex(left) == pytest.approx(complex(right), rel=1e-12)
        term = -(N @ term)
        expected = expected + term


def test_as_many_sweeps_as_levels_are_exact(space):
    T = sp.csr_array(sp.tril(gallery.poisson2d(12)))                           # 23 levels
    b = vector(144, "float64")
    expected = spla.spsolve_triangular(T, b)
    with space.active():
        csr = CSRMatrix.from_scipy(T, space)
        error = [abs(solved(swell.Sweeps(count).build(csr, True), b) - expected).max() for count in (22, 23)]
    assert error[0] > 1e-9 and error[1] <= 1e-13 * abs(expected).max()


@pytest.mark.parametrize("lower", [True, False])
def test_sweeps_of_a_unit_bidiagonal_matrix_reach_an_entry_each(lower, dtype, space):
    """k sweeps on the unit vector where the solve begins have exactly k entries that are not zero."""
    n = 12
    T = sp.csr_array(sp.eye_array(n) + 0.7 * sp.eye_array(n, k=-1 if lower else 1)).astype(dtype)
    e = np.zeros(n, dtype)
    e[0 if lower else -1] = 1
    with space.active():
        csr = CSRMatrix.from_scipy(T, space)
        for count in range(1, n + 1):
            for unit in (False, True):
                found = solved(swell.Sweeps(count, guard="off").build(csr, lower, unit=unit), e)
                assert (found != 0).sum() == count
    assert near(found, np.linalg.solve(T.toarray(), e))


@pytest.mark.parametrize("solve", ["exact(single=True)", "sweeps(count=200,single=True)"])
def test_single_storage_rounds_the_factor_alone(solve, dtype, space):
    T = triangular(dtype, True)
    b = vector(T.shape[0], dtype)
    with space.active():
        M = resolve("triangular", solve).build(CSRMatrix.from_scipy(T, space), True)
        found, expected = solved(M, b), spla.spsolve_triangular(T, b)
    assert near(found, expected, 1e-5) and not near(found, expected, 1e-9)


@pytest.mark.parametrize("precond", ["ic0(ordering='twisted')", "ilu0(ordering='twisted')"])
@pytest.mark.parametrize("shape", [(160, 160), (151, 153)])                    # an odd number of rows, too
def test_two_threads_give_the_same_bits(precond, shape, dtype, all_threads):
    """Halves that meet at the end, or at the beginning: as the sequential kernels would, sums of the parts aside."""
    from swell.core.devices import make_space
    A = gallery.poisson(shape) if "ic0" in precond else gallery.convection_diffusion(shape, 5.0)
    A = sp.csr_array(A).astype(dtype)
    b = vector(A.shape[0], dtype)
    M = resolve("precond", precond).build(CSRMatrix.from_scipy(A, make_space("cpu")))
    solves = [M.L] if "ic0" in precond else [M.L, M.U]
    n = A.shape[0]
    assert M.L.cuts[0] == n // 2 and 3 * n // 4 <= M.L.cuts[1] < n
    assert "ic0" in precond or 0 < M.U.cuts[0] <= n // 4 and M.U.cuts[1] == n - n // 2
    for solve in solves:
        assert not solve.rows.size and solve.offsets.dtype == np.int16
    found = solved(M, b), solved(M, b, adjoint=True)
    for solve in solves:
        solve.cuts = None
    assert (solved(M, b) == found[0]).all() and (solved(M, b, adjoint=True) == found[1]).all()


def test_offsets_of_32_bits_and_rows_in_no_run():
    """What few matrices need gives what the others do: far columns, an order without runs, rows of many lengths."""
    n = 70_000
    T = sp.diags_array([1.5, -0.5, 0.3], offsets=[0, -1, -40_000], shape=(n, n)).tolil()
    T[n - 1, :9] = 0.1
    T = sp.csr_array(T)
    order, b = rng().permutation(n), vector(n, "float64")
    direct = resolve("triangular", "exact").build(CSRMatrix.from_scipy(T, CpuSpace()), True)
    assert direct.offsets.dtype == np.int32 and direct.ptr[-1] > direct.ptr[0] and not direct.rows.size
    assert near(solved(direct, b), spla.spsolve_triangular(T, b))
    permuted = resolve("triangular", "exact").build(CSRMatrix.from_scipy(T, CpuSpace()), True, order=order)
    assert permuted.rows.size
    expected = np.empty((2, n))
    expected[0][order], expected[1][order] = solved(direct, b[order]), solved(direct, b[order], adjoint=True)
    assert (solved(permuted, b) == expected[0]).all()
    assert near(solved(permuted, b, adjoint=True), expected[1])


def test_a_zero_on_the_diagonal_is_named(space):
    T = triangular("float64", True).tolil()
    T[7, 7] = 0
    with space.active():
        for solve in SOLVES:
            with pytest.raises(swell.SwellError, match="row 7"):
                resolve("triangular", solve).build(CSRMatrix.from_scipy(T.tocsr(), space), True)


def test_a_factor_says_how_it_is_solved_with():
    A = gallery.poisson2d(12)
    for precond, words in (("ilu0", "Exact(), sequential"), ("ilu0(solve=exact(single=True))", "Exact(single=True), sequential")):
        said = swell.prepare(A, method="gmres", precond=precond).M.describe()
        assert said.endswith(f"solved by {words}"), said


def test_width_of_the_rectangle():
    assert best_width(np.full(100, 2)) in (0, 2) and best_width(np.zeros(5, int)) == 0
    assert best_width(np.tile([1, 2, 3, 4], 100)) in (3, 4)
    assert best_width(np.append(np.full(1000, 3), 900)) in (0, 3)


def test_halves_need_nothing_of_one_another():
    """A chain has none; two chains are halves, if what couples them is the last quarter at most, or the first."""
    n = 40_000

    def cuts(lower, cut, row=0, needs=n // 2 - 1):
        T = sp.diags_array([1.0, -0.5], offsets=[0, -1], shape=(n, n)).tolil()
        T[cut, cut - 1] = 0
        T[row, needs if row else 0] = 1
        T = sp.csr_array(T)
        T.eliminate_zeros()
        if not lower:                            # the same rows, visited from the end
            T = sp.csr_array(T[::-1][:, ::-1])
        T.sort_indices()
        return resolve("triangular", "exact").build(CSRMatrix.from_scipy(T, CpuSpace()), lower).cuts
    for lower in (True, False):
        assert cuts(lower, n // 2 - 1) is None                                 # a chain across the middle
        assert cuts(lower, n // 2).tolist() == [n // 2, n]
        assert cuts(lower, n // 2, 39_990).tolist() == [n // 2, 39_990]
        assert cuts(lower, n // 2, 25_000) is None
        assert cuts(lower, n // 2, 25_000, 9_000).tolist() == [9_001, n // 2]
        assert cuts(lower, n // 2, 25_000, 11_000) is None


@pytest.mark.parametrize("text, words", [("exact(schedule='fast')", "levels"), ("sweeps(count=0)", "at least 1"),
                                         ("exact(single='x')", "single='x'.*True or False"),
                                         ("sweeps(single=2)", "single=2.*True or False"),
                                         ("sweeps(in_place='no')", "in_place='no'.*True or False"),
                                         ("sweps", "did you mean 'sweeps'")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("triangular", text)


def test_a_solve_of_many_levels_says_so():
    assert advice(999, 1_000_000) == ()
    assert "4012 levels of 22 rows on average" in advice(4012, 90_142)[0] and "multicolor" in advice(4012, 90_142)[0]


@pytest.mark.gpu
def test_a_chain_on_a_gpu_says_so():
    space_or_skip("cuda")
    A = sp.csr_array(sp.diags_array([[-1.0] * 2999, [2.5] * 3000, [-1.0] * 2999], offsets=[-1, 0, 1]))
    notes = swell.solve(A, np.ones(3000), method="cg", precond="ic0", device="cuda").notes
    assert sum("3000 levels of 1 rows" in note for note in notes) == 1
