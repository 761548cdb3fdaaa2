"""Converged only if x deserves it: rounding, rows of different size, types, and where nothing better can come."""
from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import swell
from swell import gallery
from swell.core.devices import make_space
from swell.core.library import native_kernels
from swell.core.stopping import RTOL, Reason
from swell.solving.measure import EPS, ROUNDING, Goal, Quality
from swell.solving.verdict import SINGULAR, verdict
from swell.formats.csr import CSRMatrix

TYPES = ["float32", "float64", "complex64", "complex128"]


def exact(A, x, b):
    """‖b − A x‖₂ in exact arithmetic, for a dense A."""
    total = 0
    for row, right in zip(A, b):
        re, im = Fraction(float(np.real(right))), Fraction(float(np.imag(right)))
        for a, v in zip(row, x):
            (ar, ai), (xr, xi) = ((Fraction(float(np.real(z))), Fraction(float(np.imag(z)))) for z in (a, v))
            re, im = re - (ar * xr - ai * xi), im - (ar * xi + ai * xr)
        total += re * re + im * im
    return math.sqrt(total)


def random(generator, dtype, *shape):
    values = generator.standard_normal(shape)
    return (values + 1j * generator.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_residual_in_doubled_precision_is_that_of_fractions(dtype, device):
    generator = np.random.default_rng(0)
    space = make_space(device)
    dense = random(generator, dtype, 30, 30) * (generator.random((30, 30)) < 0.3)
    x = random(generator, dtype, 30)
    b = (dense.astype(np.result_type(dtype, np.float64)) @ x) * (1 + 1e-15)      # b − A x is rounding error
    with space.active():
        A = CSRMatrix.from_scipy(sp.csr_array(dense), space)
        double = np.result_type(dtype, np.float64)
        vectors = [space.from_host(v) for v in (x, b)]
        out, low, terms = space.empty(30, double), space.empty(30, double), space.empty(30, np.dtype("float64"))
        A.residual_terms(*vectors, out, terms)
        assert np.allclose(space.to_host(terms), abs(dense).astype(float) @ abs(x).astype(float) + abs(b), rtol=1e-6)
        assert A.precise_residual(*vectors, out, low)
        norm = np.linalg.norm(space.to_host(out))
    assert norm == pytest.approx(exact(dense, x, b), rel=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("method", [None, "direct", "gmres"])
def test_no_singular_system_converges_by_rounding(method, dtype):
    """x is 1e16, and a computed b − A x is 0 by chance; the exact one is not."""
    generator, converged = np.random.default_rng(1), 0
    for k in range(40):
        A = np.outer(random(generator, dtype, 2), random(generator, dtype, 2)).astype(dtype)
        A[1, 1] *= 1 + np.finfo(dtype).eps
        b = np.array([2, 0] if k % 2 else [4, 8], dtype)
        r = swell.solve(A, b, method=method, rtol=1e-2)
        converged += r.converged
        assert not r.converged or exact(A, r.x, b) <= 1.001e-2 * np.linalg.norm(b)
    assert converged < 40


@pytest.mark.parametrize("method", ["lu", "gmres", "bicgstab"])
def test_no_singular_system_of_a_batch_converges_by_rounding(method, device):
    generator = np.random.default_rng(1)
    V = np.einsum("si,sj->sij", *generator.standard_normal((2, 400, 2)))
    V[:, 1, 1] *= 1 + 2.0**-52
    B = np.tile([2.0, 0.0], (400, 1))
    r = swell.solve_batch(np.ones((2, 2)), V.reshape(400, 4), B, method=method, device=device)
    assert all(exact(V[s], r.x[s], B[s]) <= 2.002e-8 for s in np.flatnonzero(r.converged))


def test_x_may_be_too_large_for_doubled_precision(device):
    """Two columns of A are equal: parts of x of 1e174 cancel to the last bit, and b is below their rounding errors."""
    A = np.array([[-2.47021767, -0.34672511], [-1.05761421, 0.66645462], [-1.94932978, -2.30863685]])[:, [0, 1, 0]]
    b = np.array([1.0, -5.0, 2.0])
    one, batch = (solve(A, b, method="bicgstab", rtol=1e-2, maxiter=1000, device=device) for solve in (
        swell.solve, lambda A, b, **named: swell.solve_batch([sp.csr_array(A)] * 2, B=np.stack([b, b]), **named)[0]))
    assert not one.converged and not batch.converged
    x0 = 1e60 * np.array([-2.0, 0.0, 2.0])       # its computed residual is 0, and ‖b‖ in truth
    assert not swell.lstsq(A, b, x0=x0, maxiter=0, rtol=1e-2, device=device).converged
    unsure = Quality(0.0, 1e40, True, 0.0, 0.0, 0.0)
    assert not unsure.confirms(1e-2) and unsure.confirms(1e10) and not unsure._replace(precise=False).confirms(1e10)


def test_an_incompatible_right_hand_side_of_a_neumann_problem_never_converges():
    generator = np.random.default_rng(0)
    for n in (2, 3, 9):
        for _ in range(5):
            d = 0.1 * (generator.random(n - 1) + 0.1)
            A = np.diag(np.r_[d, 0] + np.r_[0, d]) - np.diag(d, 1) - np.diag(d, -1)
            assert not swell.solve(A, np.eye(n)[0]).converged


@pytest.mark.parametrize("scale", [1e-160, 1e300])
@pytest.mark.parametrize("method", ["lsmr", "lsqr"])
def test_least_squares_of_extreme_size_are_refused(method, scale):
    A = np.random.default_rng(0).standard_normal((6, 3)) * scale
    with pytest.raises(swell.InputError, match="divide A"):
        swell.lstsq(A, np.ones(6), method=method)


def test_batches_have_the_verdict_of_a_solve():
    verdict_of_batch = native_kernels("swell.batch", "lu").verdict
    for reason in (Reason.CONVERGED, Reason.MAXITER, Reason.STAGNATED, Reason.BREAKDOWN, Reason.DIVERGED):
        for terms in (1.0, 1e3, 1e8, SINGULAR / EPS, 1e16, 1e30):
            floor = ROUNDING * EPS * terms
            for residual in (0.0, 1e-12, 1e-9, 1e-6, 1.0, 1e10, floor, 1.01 * floor, math.inf):
                quality = Quality(residual, terms, True, 0.0, 0.0, 0.0)
                expected = verdict(reason, quality, Goal(1e-8, 1.0, 1.0), np.dtype("float64"))
                assert Reason.of(verdict_of_batch(reason.code, residual, 1.0, terms, 1e-8, EPS)) is expected


# -- rows of different size ----------------------------------------------------------------------------------------


def prescribed(penalty, n=40):
    """−u″ = 0 with u(0) = 1 by a penalty and u(1) = 0: x falls from 1 to 0 on a line."""
    A, b = 1e3 * gallery.poisson1d(n).tolil(), np.zeros(n)
    A[0, 0] += penalty
    b[0] = penalty
    return sp.csr_array(A), b, spla.spsolve(sp.csc_matrix(A), b)


@pytest.mark.parametrize("penalty", [1e12, 1e15, 1e18, 1e30])
@pytest.mark.parametrize("named", [{}, {"method": "cg", "precond": "jacobi"}, {"method": "gmres", "precond": "ilu0"},
                                   {"method": "direct"}], ids=str)
def test_a_penalty_does_not_speak_for_the_other_rows(named, penalty, device):
    A, b, x = prescribed(penalty)
    r = swell.solve(A, b, device=device, **named)
    assert not r.converged or np.linalg.norm(r.x - x) <= 1e-2 * np.linalg.norm(x)
    assert r.converged or named and r.reason in (Reason.UNSOLVED_ROWS, Reason.ATTAINABLE_ACCURACY, Reason.BREAKDOWN)
    if r.small_rows_unsolved:
        assert any(note.startswith("39 of 40 rows") and "row 1 the first" in note for note in r.notes)


def test_the_watch_gets_the_norm_at_which_the_run_stops():
    """It is lowered where small rows are unsolved. By the tolerance, which is met, nothing would be left to do."""
    A, b, _ = prescribed(1e12)
    prepared, aims = swell.prepare(A, method="cg", precond="jacobi")._prepare(0), []
    with prepared.space.active():
        prepared.run(b, watch=lambda norm, aim: aims.append(aim))
    assert aims[0] == pytest.approx(1e-8 * np.linalg.norm(b)) and min(aims) < 0.5 * aims[0]


def test_columns_are_solved_as_one_is():
    A, b, x = prescribed(1e15)
    for r in swell.solve(A, np.c_[b, b * 2], method="cg", precond="jacobi", together=True):
        alone = swell.solve(A, b, method="cg", precond="jacobi")
        assert r.reason is alone.reason
        assert r.converged and np.linalg.norm(r.x / r.x[0] - x / x[0]) <= 1e-4 * np.linalg.norm(x)


@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_an_x_that_decays_converges_as_before(step):
    """One implicit step of heat from a point: rows far from it hold nothing but rounding, and x is right."""
    A = sp.csr_array(sp.eye_array(900) + step * gallery.poisson2d(30))
    b = np.eye(900)[465]
    r = swell.solve(A, b, method="cg")
    assert r.converged and not r.notes and not r.small_rows_unsolved
    assert step > 1 or r.componentwise_error == pytest.approx(1, abs=0.1)


# -- types ---------------------------------------------------------------------------------------------------------


def test_the_default_tolerance_is_one_that_the_type_can_reach():
    A, b = gallery.poisson2d(30), np.random.default_rng(0).standard_normal(900)
    for dtype in TYPES:
        for named in ({}, {"method": "cg"}, {"method": "direct"}):
            r = swell.solve(A.astype(dtype), b.astype(dtype), **named)
            assert r.converged and r.tolerance == pytest.approx(RTOL[dtype])
    assert swell.lstsq(A.astype("float32"), b.astype("float32"), maxiter=2000).rtol == 1e-5


def test_the_residual_is_that_of_the_caller_s_right_hand_side():
    A, b = sp.csr_array(2 * sp.eye_array(50)).astype("float32"), np.random.default_rng(0).standard_normal(50)
    r = swell.solve(A, b, method="cg", rtol=1e-8)
    assert not r.converged
    assert r.residual == pytest.approx(np.linalg.norm(b - A.astype(float) @ r.x.astype(float)) / np.linalg.norm(b))


@pytest.mark.parametrize("size", [1e-50, 1e40])
def test_a_right_hand_side_that_the_type_cannot_hold_is_refused(size):
    A, b = gallery.poisson1d(50).astype("float32"), np.full(50, size)
    for solve in (lambda: swell.solve(A, b), lambda: swell.prepare(A, method="cg").solve(b), lambda: swell.lstsq(A, b),
                  lambda: swell.solve(A, np.c_[b, b], method="cg", together=True)):
        with pytest.raises(swell.InputError, match="float32"):
            solve()


# -- where nothing better can come -----------------------------------------------------------------------------------


def test_rounding_level_is_the_end():
    """Condition 1e12: the direct solver's x is exact to rounding, and no other choice is tried after it."""
    A = gallery.poisson1d(2000)
    r = swell.solve(sp.csr_array(A @ A), np.ones(2000), rtol=1e-12)
    assert r.reason is Reason.ATTAINABLE_ACCURACY and r.exact_to_rounding and r.final
    assert r.method == "direct" and "exact to rounding" in r.message


def test_the_command_line_tells_it_from_a_failure(tmp_path, capsys):
    from swell.cli import main
    from scipy.io import mmwrite
    A = gallery.poisson1d(2000)
    mmwrite(tmp_path / "A.mtx", sp.coo_array(A @ A))
    assert main(["solve", str(tmp_path / "A.mtx"), "--method", "direct", "--rtol", "1e-12"]) == 3
    assert "exact to rounding" in capsys.readouterr().out


def test_without_entries_the_rounding_floor_is_unknown():
    A = gallery.poisson2d(10)
    r = swell.solve(spla.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=float), np.ones(100), method="cg")
    assert r.converged and math.isnan(r.rounding_floor) and "floor unknown" in str(r)
    assert swell.solve(A, np.ones(100), method="cg").rounding_floor == pytest.approx(0, abs=1e-12)


def test_few_certain_digits_are_told():
    """Almost Neumann: CG meets the tolerance, and its own spectrum says that the mean of x may be wrong."""
    A = sp.csr_array(gallery.neumann((20, 20)) + 1e-9 * sp.eye_array(400))
    b = np.full(400, 5e-9)
    b[150], b[250] = 1, -1
    r = swell.solve(A, b, method="cg")
    assert r.converged and r.error_bound > 1e-2 and any("of x certain" in note for note in r.notes)
    error = np.linalg.norm(r.x - spla.spsolve(sp.csc_matrix(A), b)) / np.linalg.norm(r.x)
    assert error <= r.error_bound
    assert math.isnan(swell.solve(gallery.poisson2d(20), np.ones(400), method="cg").error_bound)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("damp", [0.0, 0.1])
@pytest.mark.parametrize("scaling", [None, "columns"])
def test_least_squares_in_single_precision_are_judged_in_double(dtype, damp, scaling, device):
    generator, solved = np.random.default_rng(2), 0
    for _ in range(20):
        A, b = random(generator, dtype, 6, 3), random(generator, dtype, 6)
        r = swell.lstsq(A, b, rtol=1e-8, damp=damp, scaling=scaling, device=device, maxiter=50)
        L, x = A.astype(np.clongdouble), np.asarray(r.x).astype(np.clongdouble)
        if scaling:
            norms = np.linalg.norm(A, axis=0)
            L, x, weights = L / norms, x * norms, damp / norms
        else:
            weights = np.full(3, damp)
        whole = np.r_[b - L @ x, -weights * x]
        normal = np.linalg.norm((L.conj().T @ whole[:6] + weights * whole[6:]).astype(complex))
        bound = np.linalg.norm(L.astype(complex)) * np.linalg.norm(whole.astype(complex))
        rounding = 2e-7 if scaling else 1e-14                    # the factors of the columns are in single precision
        assert r.normal_residual == pytest.approx(float(normal / bound), rel=2e-2, abs=rounding)
        solved += r.converged
    assert solved < 20


@pytest.mark.parametrize("reason", [Reason.BREAKDOWN, Reason.CONVERGED])
def test_a_further_run_must_have_halved_the_residual(reason):
    """A solve is resumed as long as each run halves the true residual; else a stagnant one would run ten times."""
    from types import SimpleNamespace

    from swell.solving.measure import Goal, Quality
    from swell.solving.solve import Solve
    solve = object.__new__(Solve)
    solve.loop = SimpleNamespace(maxiter=1000)
    solve.setup = SimpleNamespace(A=SimpleNamespace(dtype=np.dtype(np.float64)))

    def helps(residual, before):
        made = (Quality(r, 1.0, False, 0.1, 0.1, 0.1) for r in (residual, before))
        state = SimpleNamespace(quality=next(made), iterations=5, met=False, reason=reason, threshold=1e-8, aim=1e-8,
                                goal=Goal(1e-8, 1.0, 1.0))
        return solve._helps(state, next(made))
    assert helps(0.5, 1.0) and helps(0.4, 1.0) and not helps(0.51, 1.0) and not helps(2.0, 1.0)
