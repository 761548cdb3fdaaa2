"""What CG does beside iterating: judging at intervals, refusing what is not Hermitian, reporting the spectrum."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import badly_scaled, rng

import swell
from swell import gallery


def test_judged_at_intervals(device):
    """The same iterates; what is looked at between two judgements is nothing."""
    A = badly_scaled()
    b = A @ rng().standard_normal(A.shape[0])
    each = swell.solve(A, b, method="cg", scaling="jacobi", device=device)
    tenth = swell.solve(A, b, method="cg", scaling="jacobi", device=device, stopping=swell.Stopping(every=10))
    assert tenth.converged and tenth.iterations == -(-each.iterations // 10) * 10
    assert tenth.history[:each.iterations:10] == pytest.approx(each.history[:each.iterations:10], rel=1e-6)
    assert (tenth.history[1:10] == tenth.history[0]).all()


def test_the_last_iteration_is_judged_whatever_the_interval(device):
    A = gallery.poisson2d(20)
    r = swell.solve(A, np.ones(400), method="cg", device=device, stopping=swell.Stopping(every=7, maxiter=10))
    assert r.iterations == 10 and r.history[-1] == pytest.approx(r.residual, rel=1e-6)
    assert r.reason is swell.Reason.MAXITER


def test_a_solution_between_two_judgements(device):
    """The residual vanishes in the first step, and nothing breaks before the tenth."""
    r = swell.solve(sp.csr_array(sp.eye_array(50)), np.ones(50), method="cg", device=device, stopping=swell.Stopping(every=10))
    assert r.converged and (r.x == 1).all()


@pytest.mark.parametrize("value", [0, -1, 1.5])
def test_intervals_that_mean_nothing(value):
    with pytest.raises(swell.InputError, match="every"):
        swell.Stopping(every=value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_matrix_that_is_not_hermitian_is_refused_with_the_place(dtype, device):
    A = gallery.poisson2d(10).astype(dtype).tolil()
    A[7, 8] = -1.5
    with pytest.raises(swell.InputError, match=r"\((7, 8|8, 7)\).*-1.*method='bicgstab'"):
        swell.solve(A.tocsr(), np.ones(100), method="cg", device=device)


def test_rounding_in_the_assembly_is_not_asymmetry():
    A = sp.csr_array(gallery.poisson2d(30))
    A.data = A.data * (1 + 1e-14 * rng().standard_normal(A.nnz))
    assert swell.solve(A, np.ones(900), method="cg").converged


def test_the_spectrum_from_the_coefficients(device):
    A = gallery.poisson1d(60)
    values = np.linalg.eigvalsh(A.toarray())
    r = swell.solve(A, rng().standard_normal(60), method="cg", rtol=1e-10, device=device)
    assert r.spectrum.extremes == pytest.approx((values[0], values[-1]), rel=1e-6)
    assert r.spectrum.condition == pytest.approx(values[-1] / values[0], rel=1e-6)
    assert f"condition at least {r.spectrum.condition:.2e}" in str(r) and r.as_dict()["condition"] == r.spectrum.condition


def test_a_resumed_solve_keeps_the_spectrum_of_its_first_run():
    """Seen on flat cells: at the attainable accuracy a few steps were resumed, and the condition read 1."""
    A = gallery.poisson1d(400)
    r = swell.solve(A, rng().standard_normal(400), method="cg", rtol=1e-14)
    assert r.reason is swell.Reason.ATTAINABLE_ACCURACY and r.iterations > 400 and r.spectrum.condition > 6e4


def test_no_spectrum_without_iterations():
    r = swell.solve(gallery.poisson1d(9), np.zeros(9), method="cg")
    assert r.spectrum is None and "spectrum" not in str(r)


@pytest.mark.parametrize("smoother", swell.names("smoother"))
def test_a_smoother_before_and_between(smoother, device):
    if smoother == "block_gauss_seidel" and device == "cuda":
        pytest.skip("sequential: on a CPU only")
    A, b = badly_scaled(), rng().standard_normal(144)
    plain = swell.solve(A, b, method="cg", scaling="jacobi", device=device)
    for settings in (swell.CG(before=5), swell.CG(before=3, between=2, every=40)):
        r = swell.solve(A, b, method=settings, scaling="jacobi", smoother=smoother, device=device)
        assert r.converged and r.preconditioner_applications >= settings.before and "smoother:" in str(r)
        assert r.residual == pytest.approx(np.linalg.norm(b - A @ r.x) / np.linalg.norm(b), rel=1e-6)
    assert r.iterations <= 3 * plain.iterations


def test_a_smoother_where_there_is_no_use_for_one():
    A = gallery.poisson2d(5)
    with pytest.raises(swell.InputError, match="no use for a smoother"):
        swell.solve(A, np.ones(25), method="gmres", smoother="jacobi_sweeps")
    with pytest.raises(swell.InputError, match="name it within"):
        swell.solve(A, np.ones(25), method="stationary", smoother="jacobi_sweeps")
    with pytest.raises(swell.InputError, match="unknown smoother 'jacob'"):
        swell.solve(A, np.ones(25), method="cg", smoother="jacob")
    with pytest.raises(swell.InputError, match="every=0"):
        swell.CG(every=0)


@pytest.mark.parametrize("precond", ["gauss_seidel(direction='forward')", "ic0(solve='sweeps(count=3, upper=2)')"])
def test_a_preconditioner_that_is_not_its_own_adjoint_is_refused(precond, device):
    A, b = gallery.poisson2d(12), np.ones(144)
    with pytest.raises(swell.InputError, match=r"its own adjoint, and [^;]*\) is not: .*gmres"):
        swell.solve(A, b, method="cg", precond=precond, device=device)
    assert swell.solve(A, b, method="gmres", precond=precond, device=device).converged


def test_one_reduction_gives_the_iterates_of_cg():
    A = gallery.poisson2d(40)
    b = A @ np.random.default_rng(7).standard_normal(1600)
    for settings in ({}, {"precond": "ic0"}, {"scaling": "jacobi"}):
        two, one = (swell.solve(A, b, method=method, **settings) for method in ("cg", "single_reduction_cg"))
        assert abs(one.iterations - two.iterations) <= 1
        assert one.history[:20] == pytest.approx(two.history[:20], rel=1e-8)
        assert one.spectrum.condition == pytest.approx(two.spectrum.condition, rel=1e-3)
        assert one.reductions < two.reductions / 1.9


def test_replacing_the_residual_of_one_reduction_keeps_it_true():
    """Near the attainable accuracy the recursive residual drifts away from b − A x, unless it is replaced."""
    A = gallery.poisson2d(60)
    b = A @ np.random.default_rng(7).standard_normal(3600)
    drifts = []
    for replace in (0, 20):
        solver = swell.prepare(A, method=swell.SingleReductionCG(replace=replace), rtol=1e-13, maxiter=300)
        result = solver.solve(b)
        iteration = solver._prepared[0].iteration
        drifts.append(np.linalg.norm(iteration.r - (b - A @ result.x)))
    assert 0 < iteration.drift < 1e-9 * np.linalg.norm(b)
    assert drifts[1] < 0.5 * drifts[0]


def test_one_reduction_begins_anew_where_rounding_has_turned_a_curvature_negative():
    """The difference that stands for (p, A p) may lose its sign; what is indefinite is still called so."""
    from swell.core.cpu import native_kernels
    from swell.core.slots import Flag, Limit
    from swell.krylov.slots import SingleReductionCG as S
    s = np.zeros(len(S))
    s[[S.GAMMA, S.DELTA, S.NORM2, S.LAST_GAMMA, S.ALPHA]] = 2.0, 3.0, 2.0, 1.0, 0.5        # β = 2, and δ − β γ/α = 3 − 8
    flags, limits = np.zeros(len(Flag), np.int64), np.zeros(len(Limit))
    flags[Flag.MAXITER], limits[Limit.GROWTH2] = 100, np.inf
    step = native_kernels("swell.krylov", "single_reduction_cg")
    step.settle((flags, limits, np.zeros(10)), s, np.zeros(4))
    assert not flags[Flag.STOP] and s[S.BETA] == 0 and s[S.ALPHA] == 2 / 3
    A = gallery.poisson2d(20) - 1.0 * np.eye(400)
    result = swell.solve(A, np.ones(400), method="single_reduction_cg", maxiter=2000)
    assert result.reason.name == "INDEFINITE"
