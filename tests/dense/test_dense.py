"""The contract of every dense decomposer and solver in the registry: against LAPACK, and against one another."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.linalg
from tests.support.during import during
from tests.conftest import DTYPES, space_or_skip

import swell
from swell import dense
from swell.core.errors import FactorisationError
from swell.core.registry import load, names, resolve
from swell.dense.factors import CroutFactors, DoolittleFactors

SIZES = [1, 2, 7, 8, 9, 31, 32, 33, 100, 257]
DECOMPOSERS = names("decomposer")
VARIANTS = ["pcm(x=8)", "pcm(form=plain)", "pcm(x=16, section=48)", "pcm(x=8, order=F)", "pcm(form=plain, order=F)",
            "cm(order=F)", "gem(order=F)", "icm(x=8)", "icm(x=16, order=F)", "icm(form=plain)",
            "icm(x=8, section=64, form=plain, order=F)", "icm(x=8, section=24)"]
SOLVERS = ["ss", "is", "is(x=8)", "is(x=128)", "is(x=8, form=plain)", "trsm", "getrs"]
BOUND = 10              # times n eps: normwise backward errors with full pivoting; what was seen is below 1


def random_matrix(n, dtype="float64", seed=0):
    """Standard normal entries."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((n, n)) + (1j * random.standard_normal((n, n)) if np.dtype(dtype).kind == "c" else 0)
    return A.astype(dtype)


def dominant(n, dtype="float64", seed=0):
    """Diagonally dominant: no pivot is needed."""
    A = random_matrix(n, dtype, seed)
    return A + (2 * abs(A).sum(axis=1).max() * np.eye(n)).astype(dtype)


def zero_diagonal(n, dtype="float64", seed=0):
    """Half of the diagonal is zero, the first entry too where there is a second: pivots are needed."""
    A = random_matrix(n, dtype, seed)
    zero = np.random.default_rng(seed).random(n) < 0.5
    zero[0], zero[-1] = n > 1, False
    A[zero, zero] = 0
    return A


MATRICES = [random_matrix, dominant, zero_diagonal]


def settings(text, device="cpu", **changes):
    """A decomposer, or a skip where it does not run on the device."""
    decomposer = dataclasses.replace(resolve("decomposer", text), **changes)
    if device not in decomposer.devices:
        pytest.skip(f"{text} does not run on {device}")
    return decomposer


def host(factors):
    """(L, U, order) on the host, in double precision."""
    return (factors.space.to_host(a) for a in (factors.lower(), factors.upper(), factors.order))


def backward_error(A, factors):
    return dense.decomposition_accuracy(A, factors).backward_error / (len(A) * np.finfo(A.dtype).eps)


# -- decomposers -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", DECOMPOSERS + VARIANTS)
def test_factors_are_the_matrix(text, space):
    for n in SIZES:
        if n > 200 and "plain" in text and space.name == "cpu":
            continue                             # 100 rows have several sections too, in a hundredth of the time
        for make in MATRICES:
            with during(n=n, make=make.__name__):
                A = make(n)
                factors = settings(text, space.name, pivoting="full").factor(A, space)
                L, U, order = host(factors)
                assert sorted(order) == list(range(n))
                assert abs(np.triu(L, 1)).max() == abs(np.tril(U, -1)).max() == 0
                assert np.all(np.diag(U if factors.unit == "U" else L) == 1)
                assert backward_error(A, factors) < BOUND
                reference, rows = scipy.linalg.lu_factor(A)
                ours = L * np.diag(1 / np.diag(L)).diagonal() if factors.unit == "U" else L  # L with its unit diagonal
                assert np.allclose(np.tril(ours, -1), np.tril(reference, -1), atol=1e-9 * n)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("text", DECOMPOSERS)
def test_every_type(text, kind, space):
    for n in (9, 33, 100):
        A = zero_diagonal(n, kind)
        factors = settings(text, space.name, pivoting="full").factor(A, space)
        assert factors.dtype == A.dtype and backward_error(A, factors) < BOUND


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [8, 64])
@pytest.mark.parametrize("text", ["pcm(x=8)", "pcm(x=32)", "pcm(x=16, order=F)",
                                  "pcm(x=8, pivoting=conditional, pivot_tolerance=1.0)",
                                  "icm(x=8, pivoting=full)", "icm(x=32, pivoting=full)", "icm(x=16, pivot_lower=1.0)",
                                  "icm(x=8, pivot_lower=1.0, order=F)"])
def test_a_front_over_several_blocks(text, rows, monkeypatch):
    """Pivots come from all blocks of a cluster: the same rows, and for ICM the same iterations, as on a CPU. Rows for
    which shared memory does not suffice stay in the matrix."""
    from swell.dense import blocked
    monkeypatch.setattr(blocked, "ROWS", rows)
    space, decomposer = space_or_skip("cuda"), resolve("decomposer", text)
    monkeypatch.setattr(space, "multiprocessors", 132)                   # clusters of 16 blocks
    for shared in (space.shared_memory, 16 << 10):
        monkeypatch.setattr(space, "shared_memory", shared)
        for count in (1, 2):
            A = np.stack([zero_diagonal(75, seed=seed) for seed in range(count)])
            found = (decomposer.factor_batch(A, where) for where in (space, "cpu"))
            for one, ours, theirs in zip(A, *found, strict=True):
                assert np.array_equal(space.to_host(ours.order), theirs.order)
                assert np.array_equal(ours.metrics.pivots, theirs.metrics.pivots)
                assert np.array_equal(ours.metrics.iterations, theirs.metrics.iterations)
                growth = max(dense.decomposition_accuracy(one, ours).growth, 1)
                assert backward_error(one, ours) < BOUND * growth


@pytest.mark.parametrize("text", DECOMPOSERS)
def test_conditional_pivoting_loses_what_it_reports(text, space):
    """Fewer pivots, larger growth, and an error no larger than the growth explains."""
    if text == "getrf":
        pytest.skip("getrf always pivots")
    A = zero_diagonal(100)
    full, conditional = (settings(text, space.name, pivoting=p).factor(A, space) for p in ("full", "conditional"))
    assert 0 < conditional.metrics.pivots.sum() < full.metrics.pivots.sum()
    before, after = (dense.decomposition_accuracy(A, f) for f in (full, conditional))
    assert after.growth > before.growth
    assert after.backward_error <= BOUND * 100 * np.finfo(float).eps * after.growth


@pytest.mark.parametrize("text", ["gem", "cm", "pcm", "pcm(form=plain)", "icm", "icm(form=plain)"])
def test_without_pivoting(text, space):
    A = dominant(40)
    factors = settings(text, space.name, pivoting="none").factor(A, space)
    assert backward_error(A, factors) < BOUND and not factors.metrics.pivots.any()
    assert list(factors.space.to_host(factors.order)) == list(range(40))
    with pytest.raises(FactorisationError, match="column 0 is zero, and pivoting is off"):
        settings(text, space.name, pivoting="none").factor(zero_diagonal(40), space)


@pytest.mark.parametrize("text", DECOMPOSERS + ["icm(form=plain)", "pcm(form=plain)"])
def test_singular_matrices_name_the_column(text, space):
    for n, column in ((5, 3), (40, 17), (1, 0)):
        A = random_matrix(n)
        A[:, column] = 0
        with pytest.raises(FactorisationError, match=f"column {column} ") as caught:
            settings(text, space.name, pivoting="full").factor(A, space)
        assert caught.value.singular


@pytest.mark.parametrize("text", DECOMPOSERS)
def test_nearly_singular_matrices_are_noted(text, space):
    A = random_matrix(30)
    A[:, 12] = A[:, :12].sum(axis=1)
    factors = settings(text, space.name, pivoting="full").factor(A, space)
    assert "column 12 is" in factors.notes[0] and "singular to working precision" in factors.notes[0]
    assert not settings(text, space.name).factor(random_matrix(30), space).notes


@pytest.mark.parametrize("text", DECOMPOSERS)
def test_bad_matrices(text, space):
    decomposer = settings(text, space.name)
    A = random_matrix(5)
    for value, words in ((np.nan, "nan at"), (np.inf, "inf at")):
        bad = A.copy()
        bad[3, 2] = value
        with pytest.raises(swell.InputError, match=rf"{words} \(3, 2\)"):
            decomposer.factor(bad, space)
    for wrong, words in ((A[:3], r"shape \(3, 5\)"), (A[0], r"shape \(5,\)"), (np.zeros((0, 0)), r"shape \(0, 0\)"),
                         (A.astype(np.float16), "float16"), (A.astype(object), "object"),
                         (scipy.sparse.csr_array(A), "sparse"), ([[1, 2], [3]], "rows of different lengths")):
        with pytest.raises(swell.InputError, match=words):
            decomposer.factor(wrong, space)


@pytest.mark.parametrize("text", DECOMPOSERS)
def test_layout_of_the_input_does_not_matter(text, space):
    decomposer, A = settings(text, space.name), zero_diagonal(33)
    expected = space.to_host(decomposer.factor(A, space).lu)
    kept = A.copy()
    A.setflags(write=False)
    wide = np.zeros((66, 66))
    wide[::2, ::2] = A
    for same in (A, np.asfortranarray(A), wide[::2, ::2], A.tolist()):
        assert np.array_equal(space.to_host(decomposer.factor(same, space).lu), expected)
    assert np.array_equal(A, kept)
    assert decomposer.factor(np.arange(4).reshape(2, 2) + np.eye(2, dtype=int), space).dtype == np.float64


def test_the_device_is_checked():
    with pytest.raises(swell.InputError, match="CM runs on cpu, and cuda"):
        dense.CM().factor(np.eye(3), space_or_skip("cuda"))
    with pytest.raises(swell.InputError, match="LAPACK always pivots"):
        dense.Getrf(pivoting="none").factor(np.eye(3))


def test_a_device_by_its_name():
    assert dense.PCM().factor(np.eye(3), "cpu").space.name == "cpu"
    with pytest.raises(swell.InputError, match="tpu"):
        dense.PCM().factor(np.eye(3), "tpu")


def test_too_large_is_said_before_it_is_tried(space):
    huge = np.broadcast_to(np.float64(1), (1 << 22, 1 << 22))
    with pytest.raises(swell.core.errors.OutOfMemory, match="4194304 rows in float64 needs about .* GiB"):
        dense.PCM().factor(huge, space)


@pytest.mark.parametrize("bad, words", [
    ("pcm(x=7)", "x=7"), ("icm(x=64)", "x=64"), ("icm(tolerance=-1)", "tolerance=-1"),
    ("cm(pivoting=some)", "pivoting='some'"),
    ("icm(form=fast)", "form='fast'"), ("icm(order=K)", "order='K'"), ("icm(x=8, section=12)", "such as 16"),
    ("icm(pivot_lower=3, pivot_upper=2)", "lower < upper"), ("getrf(pivoting=conditional)", "'full' or 'none'"),
    ("pcm(pivot_tolerance=-1.0)", "pivot_tolerance=-1.0"), ("pcm(form=other)", "form='other'"),
    ("pcm(order=K)", "order='K'"), ("cm(order=1)", "order=1")])
def test_bad_settings(bad, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("decomposer", bad)


# -- solvers -----------------------------------------------------------------------------------------------------------

def hollow(n):
    """Random entries and a diagonal of 1e-14: without pivots factors grow far beyond the matrix."""
    A = random_matrix(n)
    np.fill_diagonal(A, 1e-14)
    return A


@pytest.mark.parametrize("solver", names("dense_solver"))
@pytest.mark.parametrize("text", ["gem", "cm", "pcm", "pcm(form=plain)", "icm", "icm(form=plain)", "getrf"])
def test_useless_factors_solve_nothing(text, solver, space):
    """They are given, with a note, for whoever measures them; a solution with them is an error, whatever the solver."""
    if text == "getrf" and space.name == "cpu":
        pytest.skip("LAPACK always pivots")
    A, solver = hollow(60), resolve("dense_solver", solver)
    factors = settings(text, space.name, pivoting="none").factor(A, space)
    if not takes(solver, factors):
        pytest.skip("takes other factors")
    true = dense.decomposition_accuracy(A, factors).backward_error
    assert factors.lost > 1e-4 and 0.05 < factors.lost / true < 50
    with pytest.raises(FactorisationError, match=r"L U misses P A by .* at most 1e-04.* times as large as the matrix.*"
                                                 "take pivoting='full'") as caught:
        factors.solve(np.ones(60), solver)
    assert not caught.value.singular
    assert settings(text, space.name, pivoting="full").factor(A, space).lost == 0


def test_factors_that_lost_some_digits_only_have_a_note(space):
    A = random_matrix(60)
    np.fill_diagonal(A, 1e-10)
    factors = dense.PCM(pivoting="none").factor(A, space)
    assert 0 < factors.lost < 1e-4 and any("times as large" in note for note in factors.notes)
    assert np.isfinite(factors.solve(np.ones(60))).all()


def takes(solver, factors):
    return isinstance(factors, solver.accepts) and factors.space.name in solver.devices


@pytest.mark.parametrize("text", SOLVERS)
def test_solutions(text, space):
    for n in SIZES:
        with during(n=n):
            solver, A = resolve("dense_solver", text), zero_diagonal(n)
            B = np.random.default_rng(1).standard_normal((n, 10))
            for decomposer in ("pcm", "getrf"):
                factors = resolve("decomposer", decomposer).factor(A, space)
                if not takes(solver, factors):
                    continue
                for rhs in (B, np.asfortranarray(B), B[:, 0], B[:, :9]):
                    kept = rhs.copy()
                    X = factors.solve(rhs, solver)
                    assert X.shape == rhs.shape and isinstance(X, np.ndarray) and np.array_equal(rhs, kept)
                    assert dense.solution_accuracy(A, rhs, X, factors).backward_error < BOUND * n * np.finfo(float).eps


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("text", names("dense_solver"))
def test_every_type_of_right_hand_side(text, kind, space):
    solver, A, B = resolve("dense_solver", text), zero_diagonal(40, kind), random_matrix(40, kind, 3)[:, :5]
    factors = resolve("decomposer", "pcm" if CroutFactors in solver.accepts else "getrf").factor(A, space)
    if not takes(solver, factors):
        pytest.skip(f"{text} does not run on {space.name}")
    X = factors.solve(B, solver)
    assert X.dtype == A.dtype
    assert dense.solution_accuracy(A, B, X, factors).backward_error < BOUND * 40 * np.finfo(kind).eps
    assert np.array_equal(factors.solve(B.real, solver), factors.solve(B.real.astype(kind), solver))
    if np.dtype(kind).kind != "c":
        with pytest.raises(swell.InputError, match="factor A in a type that holds both"):
            factors.solve(B * 1j, solver)


@pytest.mark.parametrize("decomposer", DECOMPOSERS)
@pytest.mark.parametrize("text", names("dense_solver"))
def test_table_2_3(text, decomposer):
    """What does not fit is refused, and the message names what does. SS and IS take Doolittle's factors, too."""
    both = CroutFactors, DoolittleFactors
    fits = {"ss": both, "is": both, "trsm": both, "getrs": DoolittleFactors}
    factors = resolve("decomposer", decomposer).factor(random_matrix(6))
    assert factors.unit == ("L" if decomposer in ("gem", "getrf") else "U")
    if isinstance(factors, fits[text]):
        assert np.isfinite(factors.solve(np.ones(6), text)).all()
    else:
        with pytest.raises(swell.InputError, match=f"{text} takes factors .* take one of .*trsm") as caught:
            factors.solve(np.ones(6), text)
        assert all(name in str(caught.value).split("take one of")[1]
                   for name in names("dense_solver") if isinstance(factors, load("dense_solver", name).accepts))


def test_bad_right_hand_sides(space):
    factors = dense.PCM().factor(random_matrix(5), space)
    for B, words in ((np.ones(4), r"shape \(4,\)"), (np.ones((5, 2, 2)), "shape"), (np.full(5, np.nan), "not finite"),
                     (np.array(["a"] * 5), "dtype")):
        with pytest.raises(swell.InputError, match=words):
            factors.solve(B)
    assert factors.solve(np.ones((5, 0))).shape == (5, 0)


@pytest.mark.parametrize("text", SOLVERS)
def test_a_solution_that_overflows_is_no_success(text, space):
    A = np.diag([1.0, 1e-300, 1.0])
    A[0, 2] = 1e-3
    for decomposer in ("pcm", "getrf"):
        factors = resolve("decomposer", decomposer).factor(A, space)
        if takes(resolve("dense_solver", text), factors):
            with pytest.raises(FactorisationError, match="not finite|has not settled"):
                factors.solve(np.array([[1.0, 1], [1, 1e200], [1, 1]]), text)


@pytest.mark.gpu
def test_arrays_on_the_device_stay_there():
    space = space_or_skip("cuda")
    A, B = space.from_host(random_matrix(40)), space.from_host(np.ones((40, 3)))
    for text in ("pcm", "icm", "getrf"):
        X = resolve("decomposer", text).factor(A).solve(B)
        assert isinstance(X, space.xp.ndarray) and float(abs(A @ X - B).max()) < 1e-9
