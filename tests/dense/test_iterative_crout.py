"""The iterative Crout method and the iterative solver: their laws, their tolerance and estimates, and the NaN that got
through."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import swell
from swell import dense
from swell.bench.dense_matrices import random_dense
from swell.core.errors import FactorisationError
from swell.core.registry import names, resolve

FORMS = ["fronts", "plain"]


def dominant(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A + 2 * n * np.eye(n)


def sparse_product(n=80, seed=0):
    """A = L U of sparse integer factors with unit diagonals: no pivot is needed, all is exact, and iterates
    overflow."""
    random = np.random.default_rng(seed)
    factors = (np.rint(100 * random.standard_normal((n, n))) * (random.random((n, n)) < 0.1) for _ in range(2))
    L, U = (part(factor, k) + np.eye(n) for part, k, factor in zip((np.tril, np.triu), (-1, 1), factors))
    return L @ U, L + U - np.eye(n)


def thesis_section(A, changed):
    """Listing 2.7 without an upper bound, for one section without bad elements: (L and U in one, iterations)."""
    n, LU, iterations = len(A), A.copy(), 0
    terms = np.minimum.outer(np.arange(n), np.arange(n))
    with np.errstate(all="ignore"):
        while True:
            new = A - np.array([[LU[i, :m] @ LU[:m, j] for j, m in enumerate(row)] for i, row in enumerate(terms)])
            diagonal = np.diag(LU)[:, None]
            new = np.where(np.triu(np.ones((n, n), bool), 1) & (diagonal != 0), new / diagonal, new)
            done = not changed(LU, new).any()
            LU, iterations = new, iterations + 1
            if done:
                return LU, iterations


def thesis_substitution(L, b, changed):
    """Listings E.1 and E.2."""
    y, N, iterations = np.zeros_like(b), np.tril(L, -1), 0
    with np.errstate(all="ignore"):
        while True:
            new = np.array([(b[i] - N[i, :i] @ y[:i]) / L[i, i] for i in range(len(b))])
            done = not changed(y, new).any()
            y, iterations = new, iterations + 1
            if done:
                return y, iterations


def as_printed(old, new):
    """What the thesis asks: |old - new| > 0, which is false for a NaN."""
    return abs(old - new) > 0


def as_here(old, new):
    """What a NaN cannot pass."""
    return ~(abs(old - new) <= 0)


# -- what the thesis leaves open ---------------------------------------------------------------------------------------

def test_a_nan_passed_the_printed_test_of_a_section(space):
    """Without the upper bound: the printed test ends with NaN, the other with the exact factors, and so does ICM."""
    A, expected = sparse_product()
    wrong, early = thesis_section(A, as_printed)
    right, late = thesis_section(A, as_here)
    assert np.isnan(wrong).any() and early < late
    assert np.array_equal(right, expected)
    for form in FORMS:
        factors = dense.ICM(x=8, form=form, pivot_upper=np.inf).factor(A, space)
        assert np.array_equal(space.to_host(factors.lu), expected) and not factors.metrics.pivots.any()
        assert factors.metrics.iterations.sum() <= late + 1


def test_a_nan_passed_the_printed_test_of_the_solver(space):
    """Sparse factors with large entries of both signs: iterates overflow in both; the solution is the first unit
    vector."""
    n = 60
    random = np.random.default_rng(0)
    L = np.eye(n) + 1e30 * np.tril(np.sign(random.standard_normal((n, n))) * (random.random((n, n)) < 0.2), -1)
    b = L[:, 0].copy()
    wrong, early = thesis_substitution(L, b, as_printed)
    right, late = thesis_substitution(L, b, as_here)
    assert np.isnan(wrong).any() and early < late and np.array_equal(right, np.eye(n)[0])
    factors = dense.PCM(pivoting="none").factor(L, space)
    for solver in (dense.IS(x=8), dense.IS(x=64), dense.IS(form="plain")):
        bound = solver.build(factors)
        assert np.array_equal(bound.solve(b), np.eye(n)[0])
        assert bound.iterations[0] <= n + 1


def test_a_section_that_overflows_for_good_is_an_error(space):
    A = np.array([[1e-200, 1e200, 0], [1e200, 1, 1], [0, 1, 1]])
    for form in FORMS:
        with pytest.raises(FactorisationError, match="overflow"):
            dense.ICM(x=8, form=form, pivoting="none").factor(A, space)


def test_growth_is_said(space):
    """Conditional pivoting that leaves nothing of a matrix is not passed over in silence."""
    random = np.random.default_rng(0)
    A = (random.standard_normal((80, 80)) * (random.random((80, 80)) < 0.1) * 1000
         + np.diag(random.choice([1e-4, 1e-3, 1], 80))).astype(np.float32)
    factors = dense.ICM(x=8, pivot_upper=np.inf).factor(A, space)
    assert dense.decomposition_accuracy(A, factors).backward_error > 1
    assert any("times as large as the matrix" in note for note in factors.notes)
    with pytest.raises(FactorisationError, match="ICM: L U misses P A by .* take pivoting='full'"):
        factors.solve(np.ones(80, np.float32))
    assert not dense.ICM(x=8, pivoting="full").factor(A, space).notes


# -- sections, iterations, pivots --------------------------------------------------------------------------------------

def test_size_of_a_section():
    from swell.dense.blocked import section_size
    assert [section_size(n, x) for n, x in ((3000, 16), (3000, 32), (12000, 8), (100, 32))] == [304, 320, 1024, 256]
    assert section_size(3000, 8) == 304                  # 300 is no multiple of 8, whatever the thesis' example says
    assert section_size(100, 8, 24) == 24


def test_laws_of_the_plain_form(space):
    """2 s + p (less one in the first) on the diagonal, s + p below, s + 1 to the right; one more or less, as in the
    thesis."""
    s, n = 32, 104
    metrics = dense.ICM(x=8, section=s, form="plain").factor(random_dense(n, 3), space).metrics
    p, sizes = metrics.pivots, [32, 32, 32, 8]
    assert p.sum() > 0 and metrics.iterations.shape == (4, 4)
    for d in range(4):
        assert abs(metrics.iterations[d, d] - (2 * sizes[d] + p[d] - (d == 0))) <= 1
        assert all(abs(i - (s + p[d])) <= 1 for i in metrics.iterations[d + 1:, d])
        assert all(abs(i - (s + 1)) <= 1 for i in metrics.iterations[d, d + 1:])


def test_a_front_ends_when_it_has_settled(space):
    """By fronts: two iterations a step at most on the diagonal, one a row or a column beside it."""
    s, n, x = 32, 104, 8
    metrics = dense.ICM(x=x, section=s).factor(dominant(n), space).metrics
    assert not metrics.pivots.any()
    assert all(k <= 2 * s - s // x for k in np.diag(metrics.iterations))
    assert (metrics.iterations - np.diag(np.diag(metrics.iterations)) <= s).all()
    diagonal = dense.ICM(x=x, section=s).factor(np.diag(np.arange(1.0, n + 1)), space).metrics.iterations
    assert np.array_equal(np.diag(diagonal), [s // x] * 3 + [1])          # A is the answer: one iteration a front


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_its_own_factors_are_a_fixed_point(form, order, space):
    A = dominant(100)
    icm = dense.ICM(x=8, section=32, form=form, order=order, pivot_upper=np.inf)
    first = icm.factor(A, space)
    again = icm.factor(A, space, estimate=first)
    assert np.array_equal(space.to_host(first.lu), space.to_host(again.lu))
    per = 32 // 8 if form == "fronts" else 1                              # one iteration a section, or a front of it
    assert again.metrics.iterations.max() == again.metrics.iterations[0, 0] == per
    assert (first.metrics.iterations >= again.metrics.iterations).all()


@pytest.mark.parametrize("form", FORMS)
def test_an_estimate_brings_its_rows(form, space):
    A = random_dense(100)
    icm = dense.ICM(x=8, section=32, form=form)
    first = icm.factor(A, space)
    again = icm.factor(A * (1 + 1e-9), space, estimate=first)
    assert np.array_equal(space.to_host(again.order), space.to_host(first.order))
    assert dense.decomposition_accuracy(A, again).backward_error < 1e-8
    with pytest.raises(swell.InputError, match="DoolittleFactors"):
        icm.factor(A, space, estimate=dense.Getrf().factor(A, space))
    with pytest.raises(swell.InputError, match=r"CroutFactors of shape \(100, 100\): expected .* \(99, 99\)"):
        icm.factor(A[:99, :99], space, estimate=first)
    from_list = icm.factor(A.tolist(), space, estimate=first)                     # as without an estimate
    assert np.array_equal(space.to_host(from_list.lu), space.to_host(icm.factor(A, space, estimate=first).lu))
    twisted = icm.factor(A * (1 + 1j), space)
    with pytest.raises(swell.InputError, match="estimate is complex128 and A is float64: its imaginary parts would"):
        icm.factor(A, space, estimate=twisted)
    assert icm.factor(A * 1j, space, estimate=first).dtype == np.complex128       # nothing is dropped there


@pytest.mark.parametrize("text", ["icm", "icm(x=8)", "icm(form=plain)", "icm(x=16, section=48, order=F)"])
def test_tolerance_0_is_crouts_method(text, space):
    for A, pivoting in ((dominant(100), "conditional"), (random_dense(100), "full")):
        icm = dataclasses.replace(resolve("decomposer", text), pivoting=pivoting)
        ours, theirs = icm.factor(A, space), dense.CM(pivoting=pivoting).factor(A)
        assert np.array_equal(space.to_host(ours.order), theirs.order)
        assert abs(space.to_host(ours.lu) - theirs.lu).max() < 1e-12 * abs(theirs.lu).max()


@pytest.mark.parametrize("form", FORMS)
def test_a_looser_tolerance_takes_fewer_iterations_and_is_less_accurate(form, space):
    A = np.eye(100) + 0.04 * np.random.default_rng(0).standard_normal((100, 100))
    found = []
    for tolerance in (0.0, 1e-10, 1e-5, 1e-2, 0.1):
        factors = dense.ICM(x=8, form=form, tolerance=tolerance).factor(A, space)
        found.append((factors.metrics.iterations.sum(), dense.decomposition_accuracy(A, factors).backward_error))
    counts, errors = zip(*found)
    assert list(counts) == sorted(counts, reverse=True) and counts[0] > counts[-1]
    assert errors[0] < 1e-14 and errors[1] < 1e-8 and errors[2] < 1e-3 and errors[-1] > 1e-4
    with pytest.raises(FactorisationError, match="nothing be left"):
        dense.ICM(tolerance=2.0).factor(A, space)


def test_lower_and_upper_bounds_decide_what_is_bad(space):
    A = dominant(40)                                                      # its diagonal is about 80
    for lower, upper, bad in ((1e-5, 1e5, 0), (1e3, 1e5, 40), (1e-5, 1.0, 40)):
        pivots = dense.ICM(x=8, pivot_lower=lower, pivot_upper=upper).factor(A, space).metrics.pivots
        assert abs(pivots.sum() - bad) <= 1                               # the last of the matrix has no row below it


def test_a_tolerance_that_leaves_nothing_is_an_error(space):
    """Below the largest entry, but so loose that zero would be as near to A as the product of the factors is."""
    A = random_dense(60) / 1000
    good = dense.ICM(x=8, section=16, tolerance=1e-3).factor(A, space)
    assert dense.decomposition_accuracy(A, good).backward_error < 0.1
    with pytest.raises(FactorisationError, match=r"ICM\(tolerance=0.9\): nothing of A is left .* take less") as caught:
        dense.ICM(x=8, section=16, tolerance=0.9).factor(A, space)
    assert not caught.value.singular


def test_a_tolerance_does_not_mind_large_numbers(space):
    """Whose squares overflow."""
    A = random_dense(40) * 1e200
    factors = dense.ICM(x=8, tolerance=1.0, pivoting="full").factor(A, space)
    assert dense.decomposition_accuracy(A, factors).backward_error < 1e-13


@pytest.mark.parametrize("form", ["blocked", "plain"])
def test_a_tolerance_that_leaves_nothing_of_the_right_hand_side_is_an_error(form, space):
    """Zero would be as near: the first that is so is named."""
    factors = dense.PCM().factor(np.random.default_rng(0).standard_normal((50, 50)), space)
    B = np.outer(np.ones(50), [0.0, 1e9, 1.0])
    solver = dense.IS(tolerance=1e3, form=form)
    assert not factors.solve(B[:, :1], solver).any()
    assert np.isfinite(factors.solve(B[:, 1], solver)).all()
    with pytest.raises(FactorisationError, match="nothing of right-hand side 1 is left .* take less") as caught:
        factors.solve(B[:, ::2], solver)
    assert not caught.value.singular


def test_iterative_solver_by_tolerance(space):
    A, B = dominant(100) / 200, np.random.default_rng(1).standard_normal((100, 10))
    factors = dense.PCM().factor(A, space)
    for form in ("blocked", "plain"):
        exact, loose = (dense.IS(tolerance=t, form=form).build(factors) for t in (0.0, 1e-3))
        X, Y = exact.solve(B), loose.solve(B)
        assert sum(loose.iterations) < sum(exact.iterations)
        assert 0 < abs(X - Y).max() < 1e-1


# -- real matrices -----------------------------------------------------------------------------------------------------

SMALL = ["dwg961b", "fasp_spe01_bsr3", "fs_183_6", "gr_30_30", "jpwh_991", "nos5", "nos7", "qc324", "west0156",
         "west0479", "young1c"]                  # all with up to 1000 rows, but for some grids; three are complex


def real_matrix(data, name):
    from swell.io import read_matrix
    return read_matrix(data / "matrices" / f"{name}.mtx.gz").toarray()


@pytest.mark.data
@pytest.mark.parametrize("name", SMALL)
def test_real_matrices(name, data):
    """Every decomposer with full pivoting is backward stable on all of them, as LAPACK is, and so are solutions;
    conditional pivoting says what it loses, or fails with words."""
    A = real_matrix(data, name)
    B, unit = np.ones((len(A), 2)), len(A) * np.finfo(float).eps
    for text in names("decomposer"):
        decomposer = dataclasses.replace(resolve("decomposer", text), pivoting="full")
        factors = decomposer.factor(A)
        assert dense.decomposition_accuracy(A, factors).backward_error < unit / 10
        for solver in ("trsm", "is(x=8)" if factors.unit == "U" else "getrs"):
            X = factors.solve(B, solver)
            assert dense.solution_accuracy(A, B, X, factors).backward_error < unit / 10
    for decomposer in (dense.PCM(pivoting="conditional"), dense.ICM(x=8)):
        try:
            factors = decomposer.factor(A)
        except FactorisationError as error:
            assert "column" in str(error)
            continue
        accuracy = dense.decomposition_accuracy(A, factors)
        assert accuracy.backward_error <= 100 * unit * max(accuracy.growth, 1)


@pytest.mark.data
def test_a_condition_of_1e31_is_said(data):
    """west0156: what is singular to working precision has a note with the column, from every decomposer; the solution
    is that of a system as near as rounding, and no NaN."""
    A = real_matrix(data, "west0156")
    for text in names("decomposer"):
        factors = resolve("decomposer", text).factor(A)
        assert "the pivot of column 137 is" in factors.notes[0] and "singular to working precision" in factors.notes[0]
        X = factors.solve(np.ones(156))
        assert np.isfinite(X).all() and abs(X).max() > 1e20
        assert dense.solution_accuracy(A, np.ones(156), X, factors).backward_error < 1e-15


@pytest.mark.data
@pytest.mark.parametrize("text", ["getrf", "gem", "cm", "pcm(x=8)", "icm(x=8, pivoting=full)"])
def test_real_matrices_of_one_size(text, data):
    """90 of combustion, together; the direct solution beside LAPACK's."""
    import scipy.sparse as sp
    with np.load(data / "matrices" / "batch_gri30.npz") as file:
        A = np.stack([sp.csr_array((values, file["indices"], file["indptr"])).toarray() for values in file["values"]])
        B = file["b"][:, :, None]
    factors = resolve("decomposer", text).factor_batch(A)
    X = dense.solve_batch(factors, B)
    for one, b, x, found in zip(A, B, X, factors, strict=True):
        assert dense.decomposition_accuracy(one, found).backward_error < 54 * np.finfo(float).eps
        assert dense.solution_accuracy(one, b, x, found).backward_error < 54 * np.finfo(float).eps
