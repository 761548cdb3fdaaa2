"""Many dense matrices of one size: the same factors and solutions as one after the other, and which of them failed."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.during import during
from tests.conftest import DTYPES

import swell
from swell import dense
from swell.core.errors import FactorisationError
from swell.core.registry import names, resolve
from swell.dense.factors import largest

VARIANTS = [*names("decomposer"), "pcm(x=8, section=24)", "pcm(form=plain)", "pcm(pivoting=conditional)", "icm(x=8)",
            "icm(x=16, order=F, pivoting=full)", "icm(x=8, section=24)", "icm(x=8, form=plain, section=16)"]


def matrices(count, n, dtype="float64", seed=0):
    """Some need pivots, some do not; each its own."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((count, n, n)) + (1j * random.standard_normal((count, n, n))
                                                 if np.dtype(dtype).kind == "c" else 0)
    zero = random.random((count, n)) < 0.5
    zero[::2], zero[:, -1] = False, False
    A[np.where(zero)[0], np.where(zero)[1], np.where(zero)[1]] = 0
    A[::3] += 4 * n * np.eye(n)
    return A.astype(dtype)


def decomposer(text, space):
    found = resolve("decomposer", text)
    if space.name not in found.devices:
        pytest.skip(f"{text} does not run on {space.name}")
    return found


def same(many, one, space, A):
    """Factors of a batch, and those of the matrix alone: two orders of summation, whose difference grows as the entries
    do where not every column is pivoted."""
    assert type(many) is type(one) and many.notes == one.notes
    assert np.array_equal(space.to_host(many.order), space.to_host(one.order))
    assert np.array_equal(many.metrics.pivots, one.metrics.pivots) and many.metrics.section == one.metrics.section
    assert np.array_equal(many.metrics.iterations, one.metrics.iterations)
    lu = space.to_host(one.lu)
    growth = abs(lu).max() / abs(A).max()
    assert near(space.to_host(many.lu), lu, 1e-13 * max(10, growth))


def near(found, expected, tolerance):
    """Is the largest difference within a share of the largest entry?"""
    return abs(found - expected).max() <= tolerance * abs(expected).max()


@pytest.mark.parametrize("text", VARIANTS)
def test_it_is_one_after_the_other(text, space):
    for n in [1, 8, 33, 70]:
        with during(n=n):
            settings, A = decomposer(text, space), matrices(5, n)
            kept = A.copy()
            together = settings.factor_batch(A, space)
            assert len(together) == 5 and np.array_equal(A, kept)
            for k in range(5):
                same(together[k], settings.factor(A[k], space), space, A[k])
                if settings.pivoting == "full":
                    assert dense.decomposition_accuracy(A[k], together[k]).backward_error < 10 * n * np.finfo(float).eps


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("text", ["pcm(x=8)", "icm(x=8, pivoting=full)", "getrf"])
def test_every_type(text, kind, space):
    settings, A = decomposer(text, space), matrices(3, 20, kind)
    for factors, one in zip(settings.factor_batch(A, space), A, strict=True):
        assert factors.dtype == one.dtype
        assert dense.decomposition_accuracy(one, factors).backward_error < 200 * np.finfo(kind).eps


@pytest.mark.parametrize("text", VARIANTS)
def test_what_fails_is_named(text, space):
    """The first that is singular, by its number; the others are not to blame."""
    settings, A = decomposer(text, space), matrices(4, 20)
    A[2, :, 7] = A[3, :, 3] = 0
    with pytest.raises(FactorisationError, match="^matrix 2 of 4: .* column 7 is") as caught:
        settings.factor_batch(A, space)
    assert caught.value.singular and caught.value.index == 2
    A = matrices(4, 20)
    A[1, 3, 2] = np.nan
    with pytest.raises(swell.InputError, match=r"matrix 1 of A has nan at \(3, 2\)"):
        settings.factor_batch(A, space)


def test_a_tolerance_too_loose_for_one_of_them(space):
    A = matrices(3, 20)
    A[1] *= 1e-3
    with pytest.raises(FactorisationError, match="matrix 1 of 3: ICM.tolerance=0.1.: no entry of A is above") as caught:
        dense.ICM(x=8, tolerance=0.1).factor_batch(A, space)
    assert caught.value.index == 1


def test_shapes(space):
    for A, words in ((np.eye(3), r"\(3, 3\): expected \(m, n, n\)"), (np.zeros((2, 3, 4)), r"\(2, 3, 4\)"),
                     (np.zeros((2, 0, 0)), r"\(2, 0, 0\)")):
        with pytest.raises(swell.InputError, match=words):
            dense.PCM().factor_batch(A, space)
    assert dense.PCM().factor_batch(np.zeros((0, 3, 3)), space) == []
    with pytest.raises(swell.core.errors.OutOfMemory, match="64 times 1048576 rows"):
        dense.PCM().factor_batch(np.broadcast_to(np.float64(1), (64, 1 << 20, 1 << 20)), space)


@pytest.mark.parametrize("text", ["getrf", "pcm(x=8)", "icm(x=8, order=F)", "gem"])
@pytest.mark.parametrize("kind", DTYPES)
def test_solutions(text, kind, space):
    A = matrices(4, 30, kind)
    factors = decomposer(text, space).factor_batch(A, space)
    B = np.random.default_rng(1).standard_normal((4, 30, 7)).astype(kind)
    X = space.to_host(dense.solve_batch(factors, space.from_host(B)))
    for k in range(4):
        assert X.dtype == A.dtype and near(X[k], factors[k].solve(B[k]), 1e3 * np.finfo(kind).eps)


def test_solutions_that_fail(space):
    A = np.stack([np.eye(3), np.diag([1.0, 1e-300, 1.0])])
    factors, xp = dense.Getrf().factor_batch(A, space), space.xp
    with pytest.raises(FactorisationError, match="matrix 1 of 2: .*not finite") as caught:
        dense.solve_batch(factors, xp.full((2, 3, 1), 1e200))
    assert caught.value.index == 1
    for B in (xp.ones((2, 3)), xp.ones((1, 3, 1)), xp.ones((2, 3, 1), "float32")):
        with pytest.raises(swell.InputError, match="B has shape"):
            dense.solve_batch(factors, B)
    with pytest.raises(swell.InputError, match="empty list"):
        dense.solve_batch([], xp.ones((0, 3, 1)))


@pytest.mark.parametrize("trans", "NTC")
def test_inexact_solutions_that_are_no_better_than_zero_are_an_error(trans, space):
    """Of a batch as of a single matrix."""
    factors, B = dense.PCM(x=8).factor_batch(matrices(2, 40, "complex128"), space), space.xp.ones((2, 40, 3), complex)
    B[1] *= 1e-3
    with pytest.raises(FactorisationError, match="matrix 1 of 2: IS.*nothing of right-hand side 0 is left") as caught:
        dense.solve_batch(factors, B, "is(tolerance=0.05)", trans)
    assert caught.value.index == 1
    with pytest.raises(FactorisationError, match="nothing of right-hand side 0 is left"):
        factors[1].solve(B[1], "is(tolerance=0.05)", trans)


def test_an_iteration_that_does_not_settle_is_named(space):
    A = np.stack([np.diag([1.0, 1e-300, 1.0]) + np.triu(np.ones((3, 3)), 1), np.eye(3)])
    factors = dense.PCM(x=8, pivoting="none").factor_batch(A, space)
    with pytest.raises(FactorisationError, match="^matrix 0 of 2: IS: .*has not settled") as caught:
        dense.solve_batch(factors, space.xp.full((2, 3, 1), 1e200), "is(form=plain)")
    assert caught.value.index == 0


def test_useless_factors_are_named(space):
    """Of a batch, the first; others are solved with as before."""
    A = np.random.default_rng(0).standard_normal((2, 40, 40))
    np.fill_diagonal(A[0], 100)
    np.fill_diagonal(A[1], 1e-14)
    factors = dense.PCM(pivoting="none").factor_batch(A, space)
    B = space.xp.ones((2, 40, 3))
    with pytest.raises(FactorisationError, match="^matrix 1 of 2: PCM: L U misses P A by") as caught:
        dense.solve_batch(factors, B)
    assert caught.value.index == 1 and factors[0].lost == 0
    assert np.isfinite(space.to_host(dense.solve_batch(factors[:1], B[:1]))).all()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("unit", ["", "U", "L"])
def test_the_largest_entries(unit, order, space):
    """Of factors, as before the division by the diagonal; NaN is the largest of all."""
    A = matrices(3, 37, "complex128")
    D = np.broadcast_to(np.eye(37), A.shape) * A
    whole = {"": A, "U": np.tril(A) + D @ np.triu(A, 1), "L": np.triu(A) + np.tril(A, -1) @ D}[unit]
    with space.active():
        stored = space.from_host(A if order == "C" else np.ascontiguousarray(A.transpose(0, 2, 1)))
        given = stored if order == "C" else stored.transpose(0, 2, 1)
        assert largest(space, given, unit) == pytest.approx(abs(whole).max(axis=(1, 2)), rel=1e-14)
        given[1, 20, 3] = np.nan
        assert np.isnan(largest(space, given, unit)).tolist() == [False, True, False]
