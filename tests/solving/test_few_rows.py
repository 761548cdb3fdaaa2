"""Small systems by factors: x with one kernel's check in place of a solve's records."""
import math

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import scipy_like
from swell.core.errors import InputError
from swell.core.library import native_kernels
from swell.core.space import accumulator
from swell.core.stopping import Stopping
from swell.core.workspace import Workspace
from swell.preconditioners.direct import Direct
from swell.solving import few_rows
from swell.solving.measure import ROWS_FACTOR, Goal, Measure
from tests.support.during import during

TYPES = np.float64, np.complex128


def system(dtype, n=12):
    """A convection-diffusion matrix of this type, and a vector b."""
    random = np.random.default_rng(5)
    A = swell.gallery.convection_diffusion((n, n), 3.0).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A = A + 1j * sp.diags_array(random.random(A.shape[0]))
    return sp.csr_array(A), random.random(A.shape[0]).astype(dtype)


def refused(monkeypatch):
    """Let a whole solve be an error."""
    def prepare(*args, **options):
        raise AssertionError("a Solver was prepared")
    monkeypatch.setattr("swell.scipy_like.direct.prepare", prepare)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_kernel_measures_as_measure_does(dtype):
    A, b = system(dtype)
    A = sp.csr_array(sp.diags_array(np.where(np.arange(b.size) % 3, 1.0, 1e-5)) @ A)           # rows of two sizes
    A.sort_indices()
    rng = np.random.default_rng(1)
    for trans, matrix in (("N", A), ("T", A.T.tocsr()), ("H", A.conj().T.tocsr())):
        matrix.sort_indices()
        x = (np.linalg.solve(matrix.toarray(), b) * (1 + 1e-9 * rng.random(b.size))).astype(dtype)
        for rtol in (1e-3, 1e-8, 1e-13):
            with during(trans=trans, rtol=rtol):
                csr, stopping = few_rows.read(A), Stopping(rtol=rtol)
                whole, norm = few_rows.read(matrix), float(np.linalg.norm(b))
                space = whole.space
                buffer = space.empty(b.size, accumulator(dtype))
                measure = Measure(whole, whole.norm_inf(), space, Workspace(space), buffer)
                goal = Goal(rtol * norm, norm, float(abs(b).max()))
                quality, r = measure.of(x, b, [goal])[0], np.empty_like(b)
                kernel = native_kernels("swell.formats", "few_rows").measure
                arguments = csr.indptr, csr.indices, csr.data, trans != "N", trans == "H", b, x, r
                bb, rr, tt, most_x, rows = kernel(*arguments, quality.precise, ROWS_FACTOR * rtol)
                assert math.sqrt(bb) == pytest.approx(norm) and most_x == pytest.approx(abs(x).max())
                assert math.sqrt(rr) == pytest.approx(quality.residual, rel=1e-6)
                assert math.sqrt(tt) == pytest.approx(quality.terms) and np.allclose(r, measure.r, rtol=1e-6)
                if quality.confirms(goal.threshold):
                    assert rows == pytest.approx(quality.rows, rel=1e-6)
                right = quality.confirms(goal.threshold) and not quality.small_rows_unsolved(goal)
                assert few_rows._judged(csr, b, x, r, stopping, trans)[0] == right


def test_x_that_is_wrong_in_small_rows_alone_is_not_taken():
    """A penalty of 1e12 in one row: the others may be wrong, and ‖b − A x‖ still meets the tolerance."""
    A, b = system(np.float64)
    A = A.tolil()
    A[0, 0] = 1e12
    A, b[0] = few_rows.read(A.tocsr()), 1e12
    factors, r = Direct().build(A), np.empty_like(b)
    x = few_rows.solved(A, factors, b, Stopping(rtol=1e-8))
    assert few_rows._judged(A, b, x, r, Stopping(rtol=1e-8), "N")[0]
    x[3] += 0.5
    assert few_rows._judged(A, b, x, r, Stopping(rtol=1e-8), "N") == (False, pytest.approx(np.linalg.norm(r)))
    assert np.linalg.norm(r) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("dtype", TYPES)
def test_no_solver_is_prepared_for_scipys_calls(dtype, monkeypatch):
    refused(monkeypatch)
    A, b = system(dtype)
    dense = A.toarray()
    for matrix in (sp.csr_matrix(A), A.tocsc(), sp.csc_matrix(A)):
        with during(matrix=type(matrix)):
            x = scipy_like.spsolve(matrix, b)
            assert np.allclose(dense @ x, b, rtol=1e-12) and x.dtype == dtype
            factors = scipy_like.splu(matrix)
            matrix.data[:] = 0                   # the factors have values of their own
            for trans, image in (("N", dense), ("T", dense.T), ("H", dense.conj().T)):
                for rhs in (b, b[:, None], np.stack([b, 2 * b], axis=1), b.real.astype(np.float32)):
                    x = factors.solve(rhs, trans)
                    assert x.shape == rhs.shape and np.allclose(image @ x, rhs, rtol=1e-10)


def test_an_operator_solves_small_systems_at_once(monkeypatch):
    """A Solver's ``s @ b`` does so, also after an update and by the adjoint; `Solver.solve` has its records."""
    A, b = system(np.float64)
    solver = swell.prepare(A, method="direct")
    monkeypatch.setattr(type(solver), "solve", lambda *args, **named: pytest.fail("a whole solve"))
    for values in (A, 2 * A):
        solver.update(values)
        assert np.allclose(values @ (solver @ b), b) and np.allclose(values.T @ solver.rmatvec(b), b)
    assert np.allclose(2 * A @ solver.copy().matvec(b), b)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_what_a_whole_solve_must_tell(wrong):
    A, b = system(np.float64)
    factors, strange = scipy_like.splu(A), np.append(b[1:], wrong)
    with pytest.raises(InputError, match="b contains NaN|range of double"):
        factors.solve(strange)
    assert not scipy_like.splu(A).solve(np.zeros_like(b)).any()
    A.data[3] = np.nan
    with pytest.raises(InputError, match="A contains NaN"):
        scipy_like.splu(A)


def test_matrices_that_are_not_in_order_are_left_to_inputs():
    A, b = system(np.float64)
    assert few_rows.read(A) is not None and few_rows.read(A.tocsc()) is not None
    unsorted = sp.csr_array((A.data.copy(), A.indices.copy(), A.indptr), shape=A.shape)
    for array in (unsorted.data, unsorted.indices):
        array[:2] = array[1::-1].copy()
    beyond = A.copy()
    beyond.indices = beyond.indices.copy()
    beyond.indices[4] = 1000
    large = swell.gallery.poisson2d(150)
    for matrix in (unsorted, beyond, A.tocoo(), A.astype(np.float32), A.toarray(), A[:-1], A.tobsr(), large):
        assert few_rows.read(matrix) is None
    assert np.allclose(scipy_like.spsolve(unsorted, b), scipy_like.spsolve(A, b))


def test_refinement_goes_on_while_it_helps():
    """Factors of a matrix that is 1e-6 beside A."""
    A, b = system(np.float64)
    values = A.data * (1 + 1e-6 * np.random.default_rng(0).random(A.nnz))
    near, opposite = (few_rows.read(sp.csr_array((v, A.indices, A.indptr))) for v in (values, -A.data))
    A, calls = few_rows.read(A), []
    factors = Direct().build(near)
    apply = factors.apply
    factors.apply = lambda *args: calls.append(1) or apply(*args)
    assert few_rows.solved(A, factors, b, Stopping(rtol=1e-12)) is not None and 2 <= len(calls) <= 4
    assert few_rows.solved(A, Direct().build(opposite), b, Stopping(rtol=1e-12)) is None
