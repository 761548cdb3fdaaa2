"""Dense LU as a tool: transposed and adjoint solves, LAPACK's form, determinant, condition, inverse, and refinement."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.linalg
from tests.conftest import DOUBLES, space_or_skip
from tests.dense.test_dense import SOLVERS, random_matrix, settings, takes, zero_diagonal
from tests.support.during import during

import swell
from swell import dense
from swell.core.errors import FactorisationError
from swell.core.registry import names, resolve
from swell.dense.batch import BatchSolver, solve_batch

OP = {"N": lambda A: A, "T": lambda A: A.T, "C": lambda A: A.conj().T}


def with_condition(n, condition, seed=0, dtype="float64"):
    """Random singular vectors, and singular values from 1 to 1 / condition."""
    left, right = (np.linalg.qr(random_matrix(n, dtype, seed + k))[0] for k in (0, 1))
    return (left * np.logspace(0, -np.log10(condition), n)) @ right


# -- transposed and adjoint --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", DOUBLES)
@pytest.mark.parametrize("text", SOLVERS)
def test_transposed_and_adjoint_solutions(text, kind, space):
    solver = resolve("dense_solver", text)
    for n in (1, 9, 33, 100):
        A, B = zero_diagonal(n, kind), random_matrix(n, kind, 3)[:, :min(n, 10)]
        for decomposer in ("pcm", "icm(order=F)", "getrf"):
            factors = resolve("decomposer", decomposer).factor(A, space)
            if not takes(solver, factors):
                continue
            for trans, op in OP.items():
                with during(n=n, decomposer=decomposer, trans=trans):
                    kept = B.copy()
                    X = factors.solve(B, solver, trans)
                    assert np.array_equal(B, kept) and X.shape == B.shape and X.dtype == A.dtype
                    assert np.allclose(op(A) @ X, B, atol=1e-6)
                    assert np.allclose(factors.solve(B[:, 0], solver, trans), X[:, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", ["trsm", "is", "getrs"])
@pytest.mark.parametrize("kind", DOUBLES)
def test_batches_solve_transposed_systems(kind, text, space):
    A = np.stack([zero_diagonal(20, kind, seed) for seed in range(3)])
    B = np.stack([random_matrix(20, kind, 7 + seed)[:, :4] for seed in range(3)])
    factors = resolve("decomposer", "getrf" if text == "getrs" else "pcm(x=8)").factor_batch(A, space)
    for trans in OP:
        X = space.to_host(solve_batch(factors, space.from_host(B), text, trans))
        for k in range(3):
            assert np.allclose(OP[trans](A[k]) @ X[k], B[k], atol=1e-8)
    assert BatchSolver(factors).apply(space.empty((3, 20, 0), np.dtype(kind))).shape == (3, 20, 0)


def test_other_letters_are_refused(space):
    factors = dense.PCM().factor(random_matrix(5), space)
    for trans in ("X", "n", 1, None):
        with pytest.raises(swell.InputError, match=r"trans=.*: expected 'N' for A X = B, 'T' .* or 'C'"):
            factors.solve(np.ones(5), trans=trans)


def test_an_approximate_transposed_solution_that_is_no_better_than_zero_is_an_error(space):
    factors = dense.PCM().factor(random_matrix(40), space)
    with pytest.raises(FactorisationError, match="nothing of right-hand side 0 is left"):
        factors.solve(np.full(40, 1e-3), "is(tolerance=1e6)", "T")


# -- LAPACK's form -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", DOUBLES)
@pytest.mark.parametrize("text", names("decomposer"))
def test_swaps_in_lapacks_form(text, kind, space):
    for n in (1, 2, 33):
        A = zero_diagonal(n, kind)
        factors = settings(text, space.name, pivoting="full").factor(A, space)
        lu, piv = factors.to_lapack()
        if kind == "float64":                                    # LAPACK compares |re| + |im|, and not the modulus
            reference, swaps = scipy.linalg.lu_factor(A)
            assert np.array_equal(piv, swaps) and piv.dtype == np.int32 and np.allclose(lu, reference, atol=1e-9)
        assert np.allclose(A @ scipy.linalg.lu_solve((lu, piv), np.ones(n)), 1)


@pytest.mark.parametrize("kind", DOUBLES)
def test_factors_from_lapack(kind, space):
    A = zero_diagonal(40, kind)
    lu, piv = scipy.linalg.lu_factor(A)
    for given in (lu, np.ascontiguousarray(lu)):
        factors = dense.LUFactors.from_lapack(given, piv, space)
        assert dense.decomposition_accuracy(A, factors).backward_error < 1e-14
        for solver in ("trsm", "getrs", "is"):
            for trans, op in OP.items():
                assert np.allclose(op(A) @ factors.solve(np.ones(40), solver, trans), 1)
        assert np.array_equal(factors.piv, piv)


def test_bad_factors_from_lapack(space):
    lu, piv = scipy.linalg.lu_factor(random_matrix(5))
    zero, bad = lu.copy(), lu.copy()
    zero[2, 2], bad[1, 3] = 0, np.nan
    for L, p, error, words in (
            (lu, piv + 1, swell.InputError, r"piv\[\d\] is 5: .* subtract 1"),
            (lu, piv[:4], swell.InputError, "5 integers"),
            (lu, piv * 1.0, swell.InputError, "5 integers"), (lu[:3], piv, swell.InputError, r"shape \(3, 5\)"),
            (lu.astype(int), piv, swell.InputError, "int64"), (bad, piv, swell.InputError, "not finite"),
            (lu, np.zeros(5, int), swell.InputError, r"piv\[1\] is 0: expected a row from 1 to 4"),
            (zero, piv, FactorisationError, "column 2 of U has a zero")):
        with pytest.raises(error, match=words):
            dense.LUFactors.from_lapack(L, p, space)


# -- numbers -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", DOUBLES)
@pytest.mark.parametrize("text", ["pcm", "icm", "getrf"])
def test_determinant(text, kind, space):
    for n in (1, 2, 9, 60):
        A = zero_diagonal(n, kind, n)
        factors = resolve("decomposer", text).factor(A, space)
        sign, size = factors.slogdet()
        expected = np.linalg.slogdet(A)
        assert np.isclose(sign, expected[0]) and np.isclose(size, expected[1])
        assert np.isclose(factors.determinant(), np.linalg.det(A))
    A = np.eye(300) * 1e3
    factors = dense.PCM().factor(A, space)
    assert np.isinf(factors.determinant()) and np.isclose(factors.slogdet()[1], 300 * np.log(1e3))


@pytest.mark.parametrize("kind", DOUBLES)
def test_condition(kind, space):
    for n, condition in ((1, 1), (2, 1e3), (50, 1e2), (50, 1e8), (120, 1e13)):
        A = with_condition(n, condition, n, kind)
        true = np.linalg.cond(A, 1)
        factors = dense.Getrf().factor(A, space)
        for found in (factors.condition(), factors.condition(abs(A).sum(axis=0).max())):
            assert true / 3 < found < true * 1.1
    # Where x = (1/n, …) is a stationary point, only the vector of alternating signs sees the norm (Higham 1988).
    assert dense.Getrf().factor(np.linalg.inv(np.eye(4) + 1e6 * np.outer([1, -1, 1, -1], [1, -1, 1, -1]) / 4),
                                space).condition(1.0) > 1e5


@pytest.mark.parametrize("norm", ["a", np.nan, -3, 0, True])
def test_bad_norms(norm, space):
    with pytest.raises(swell.InputError, match=r"condition\(norm=.*: expected ‖A‖₁, a positive number"):
        dense.Getrf().factor(np.eye(3), space).condition(norm)


def test_inverse(space):
    A = zero_diagonal(30)
    for text, solver in (("pcm", "is"), ("getrf", "getrs")):
        factors = resolve("decomposer", text).factor(A, space)
        X = factors.inverse(solver)
        assert isinstance(X, space.xp.ndarray) and np.allclose(A @ space.to_host(X), np.eye(30), atol=1e-10)


# -- refinement --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", DOUBLES)
def test_single_factors_give_a_double_answer(kind, space):
    n = 80
    A, B = with_condition(n, 1e4, 0, kind), random_matrix(n, kind, 5)[:, :3]
    B[:, 2] = 0
    for decomposer, solver in (("getrf", "trsm"), ("pcm", "is"), ("icm(pivoting=full)", "trsm")):
        for trans, op in OP.items():
            found = dense.solve(A, B, decomposer, solver, trans=trans, space=space)
            assert found.factors.dtype == np.finfo(kind).dtype.name.replace("64", "32") or kind == "complex128"
            assert found.factors.lu.itemsize == A.itemsize // 2 and not found.notes and 0 < found.steps < 10
            R = abs(op(A) @ found.x - B).max(axis=0)
            size = abs(op(A)).sum(axis=1).max() * abs(found.x).max(axis=0) + abs(B).max(axis=0)
            assert np.all(R <= n ** 0.5 * np.finfo(float).eps * size * 1.01) and not found.x[:, 2].any()
            assert found.backward_error <= n ** 0.5 * np.finfo(float).eps
            single = abs(op(A) @ found.factors.solve(B, solver, trans) - B).max()
            assert single > 1e3 * R.max()


def test_small_and_large_right_hand_sides_do_not_leave_single_precision(space):
    A = random_matrix(20)
    for size in (1e-60, 1e60):
        found = dense.solve(A, size * np.ones(20), space=space)
        assert not found.notes and np.allclose(A @ found.x, size, rtol=1e-10, atol=0)


def test_ill_conditioned_matrices_are_factored_again_and_it_is_said(space):
    for A, why in ((with_condition(60, 1e11), "backward error of"), (random_matrix(9) * 1e60, "overflow float32"),
                   (np.diag([1.0, 1e-60]), "is zero")):
        found = dense.solve(A, np.ones(len(A)), space=space)
        assert found.factors.dtype == np.float64 and found.backward_error < 1e-14
        assert len(found.notes) >= 1 and why in found.notes[0] and "factored again in float64" in found.notes[0]


def test_factors_refine(space):
    """Loose and badly pivoted factors become good solutions, or an error with the backward error."""
    A, b = random_matrix(60), np.ones(60)
    np.fill_diagonal(A, 1e-8)
    factors = dense.PCM(pivoting="none").factor(A, space)
    assert abs(A @ factors.solve(b) - b).max() > 1e-11
    found = dense.refine(factors, A, b)
    assert abs(A @ found.x - b).max() < 1e-12 and found.steps
    with pytest.raises(FactorisationError, match="PCM's factors in float64 ends at a backward error of"):
        dense.refine(factors, random_matrix(60, seed=4), b)
    assert dense.refine(factors, A, np.ones((60, 0))).x.shape == (60, 0)


def test_bad_input_of_refinement(space):
    A, b = random_matrix(6), np.ones(6)
    nan = A.copy()
    nan[1, 2] = np.nan
    factors = dense.PCM().factor(A, space)
    for call, words in (
            (lambda: dense.solve(A.astype("float32"), b, space=space), "give mixed=False"),
            (lambda: dense.solve(A, b, mixed="yes", space=space), "expected True or False"),
            (lambda: dense.solve(nan, b, space=space), r"nan at \(1, 2\)"),
            (lambda: dense.solve(A, b * np.nan, space=space), "not finite"),
            (lambda: dense.solve(A, b[:3], space=space), r"shape \(3,\)"),
            (lambda: dense.solve(A, 1j * b, space=space), "factor A in a type that holds both"),
            (lambda: dense.solve(A, b, "lapack", space=space), "unknown decomposer 'lapack'"),
            (lambda: dense.solve(A, b, trans="X", space=space), "trans='X'"),
            (lambda: dense.refine(factors, A[:5, :5], b), "expected the matrix that was factored"),
            (lambda: dense.refine(factors, 1j * A, b), "expected the matrix that was factored")):
        with pytest.raises(swell.InputError, match=words):
            call()
    with pytest.raises(FactorisationError, match="singular"):
        dense.solve(np.ones((4, 4)), np.ones(4), space=space)


@pytest.mark.gpu
@pytest.mark.parametrize("scale", [1e300, 1e307, 1e-300])
def test_an_overflow_is_never_an_accurate_answer(scale, space):
    """‖A‖ ‖x‖ would be infinite, and an error divided by it 0."""
    A, b = scipy.linalg.hilbert(12) * scale, np.full(12, max(scale, 1.0))
    for trans in OP:
        try:
            found = dense.solve(A, b, trans=trans, space=space)
        except FactorisationError as error:
            assert scale != 1e300 and any(words in str(error) for words in ("overflows float64: scale A and B",
                                                                            "overflowed float64; scale the matrix"))
            continue
        with np.errstate(over="ignore"):
            assert np.isinf(abs(A).sum() * abs(found.x).max()) and 0 < found.backward_error < 1e-15
        assert abs(b / scale - OP[trans](A / scale) @ found.x).max() <= 1e-15 * 3.2 * abs(found.x).max()


def test_other_things_than_factors_and_numbers_are_refused(space):
    A, b = random_matrix(4, "float64"), np.ones(4)
    factors = dense.Getrf().factor(A, space)
    with pytest.raises(swell.InputError, match="factors is of type NoneType: expected LUFactors"):
        dense.refine(None, A, b)
    with pytest.raises(swell.InputError, match="factors is of type ndarray: expected the result of factor_batch"):
        solve_batch(np.ones((2, 4, 4)), np.ones((2, 4, 1)))
    with pytest.raises(swell.InputError, match="parts of different lengths"):
        factors.solve([1, 2, 3, [4]])
    for norm in (-1, 0, float("nan"), "one"):
        with pytest.raises(swell.InputError, match="expected ‖A‖₁, a positive number"):
            factors.condition(norm)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda F: pickle.loads(pickle.dumps(F))], ids=["copy", "pickle"])
@pytest.mark.parametrize("text", names("decomposer"))
def test_factors_can_be_copied_and_pickled(text, again, space):
    decomposer = settings(text, space.name)
    factors = decomposer.factor(random_matrix(9, "float64"), space)
    other = again(factors)
    assert other.space.name == space.name
    for solver in SOLVERS:
        if takes(resolve("dense_solver", solver), factors):
            assert np.allclose(other.solve(np.ones(9), solver), factors.solve(np.ones(9), solver), rtol=1e-12)


def test_answers_stay_on_the_device():
    space = space_or_skip("cuda")
    A, b = space.from_host(random_matrix(30)), space.from_host(np.ones(30))
    x = dense.solve(A, b).x
    assert isinstance(x, space.xp.ndarray) and float(abs(A @ x - b).max()) < 1e-12


@pytest.mark.parametrize("text", ["pcm(x=8, order=F)", "icm(x=8, order=F)", "getrf"])
def test_a_matrix_by_columns_is_not_transposed(text, space, monkeypatch):
    """It goes to the device, and into the array that is decomposed, in its own order; the factors have this order."""
    A, sent, send = np.asfortranarray(zero_diagonal(40)), [], type(space).from_host
    monkeypatch.setattr(type(space), "from_host", lambda self, M, *rest: sent.append(M) or send(self, M, *rest))
    factors = resolve("decomposer", text).factor(A, space)
    assert factors.lu.strides[0] == factors.lu.itemsize and any(np.shares_memory(A, one) and one.flags.c_contiguous
                                                                for one in sent if isinstance(one, np.ndarray))
    assert np.allclose(A @ factors.solve(np.ones(40)), 1)
