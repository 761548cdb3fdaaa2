"""Every method across ranks takes the path that it takes on one device, with as few all-reduces as it says."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import HERMITIAN, METHODS, solved, system
from tests.support.during import during

import swell
from swell import distributed, gallery
from swell.core.devices import make_space
from swell.core.stopping import Reason


@pytest.mark.parametrize("method, scaling, dtype", [
    *((method, None, dtype) for method in METHODS for dtype in ("float64", "complex128")),
    *((method, "jacobi", "float64") for method in METHODS),      # norms of scaled residuals are each method's to add up
    *((method, scaling, dtype) for method in ("cg", "gmres", "tfqmr") for scaling in ("ruiz", "ruiz(p=inf)")
      for dtype in ("float64", "complex128"))])
def test_the_iterations_of_one_device(ranks, method, dtype, scaling):
    """What does not depend on the partition takes the same path: CG and GMRES to 2 %, all to the same solution."""
    A, b = system(dtype)
    if method in HERMITIAN:
        A = sp.csr_array((A + A.conj().T) / 2)
    settings = {"method": method, "scaling": scaling, "rtol": 1e-10}
    one_rank = swell.solve(A, b, **settings)
    for x, result, _ in ranks.run(solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-10 * np.linalg.norm(b)
        assert abs(result.iterations - one_rank.iterations) <= max(1, 0.02 * one_rank.iterations)
        assert result.residual == pytest.approx(np.linalg.norm(b - A @ x) / np.linalg.norm(b), rel=1e-3)


@pytest.mark.parametrize("method, each", [("cg", 2), ("single_reduction_cg", 1), ("gmres", 1), ("fgmres", 1), ("cocg", 2),
                                          ("cocr", 2), ("minres", 2), ("bicgstab", 3), ("tfqmr", 2), ("qmr", 2),
                                          ("bicgstabl(l=1)", 3), ("bicgstabl(l=3)", 7), ("idrs(s=1)", 3), ("idrs(s=4)", 6)])
def test_reductions_an_iteration(ranks, method, each):
    """Of k and of 2 k iterations: the difference is what k of them take."""
    A, b = system()
    for precond in [None, "jacobi"]:
        with during(precond=precond):
            counts = []
            for limit in (4, 8):
                stopping = swell.Stopping(rtol=1e-14, maxiter=limit)
                settings = {"method": method, "precond": precond, "stopping": stopping}
                found = ranks.run(solved, A, b, "rows", settings)
                assert all(result.iterations == limit for _, result, _ in found)
                counts.append([count for _, _, count in found])
            for short, long in zip(*counts):
                assert long - short == 4 * each


@pytest.mark.parametrize("method", METHODS)
def test_products_are_counted(ranks, method):
    """Those with the adjoint too, and one that some methods take to be told that they have converged."""
    A, b = system()

    def counted(communicator, guess):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method=method, precond="jacobi")
        prepared, products, applied = solver._prepare(0).setup, [0], [0]

        def counting(operator, count, fused):
            for name in ("apply", "apply_adjoint", "residual_terms", fused):
                def call(*arguments, own=getattr(operator, name)):
                    count[0] += 1
                    own(*arguments)
                setattr(operator, name, call)

        counting(prepared.matrix, products, "apply_dot")
        if prepared.A is not prepared.matrix:
            counting(prepared.A, products, "apply_dot")
        counting(prepared.M, applied, "apply_dots")
        result = solver.solve(b[M.rows], x0=b[M.rows] if guess else None)
        return result, products[0], applied[0]

    for guess in (False, True):
        for result, products, applied in ranks.run(counted, guess):
            assert result.converged
            assert (result.products, result.preconditioner_applications) == (products, applied), f"{guess=}"


def test_a_restart_is_lengthened_by_all_ranks(ranks):
    A, b = sp.csr_array(np.roll(np.eye(100), 1, axis=1)), np.eye(100)[0]
    for x, result, _ in ranks.run(solved, A, b, "rows", {"method": "gmres"}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8
        assert any("restart lengthened from 30 to 60 to 100" in note for note in result.notes)


def test_all_ranks_stay_where_a_longer_basis_does_not_fit_on_one(ranks, monkeypatch):
    A, b = sp.csr_array(np.roll(np.eye(100), 1, axis=1)), np.eye(100)[0]

    def solving(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        solver = swell.prepare(M, method="gmres")
        if communicator.rank == communicator.size - 1:
            monkeypatch.setattr(M.space.local, "memory", lambda: (8, 8))
        return solver.solve(b[M.rows])

    for result in ranks.run(solving):
        assert result.reason is Reason.STAGNATED and result.residual == 1
        assert any("was left out" in note for note in result.notes)


@pytest.mark.parametrize("method", ["bicgstab", "bicgstabl", "tfqmr", "qmr"])
def test_a_breakdown_is_taken_up_by_all_ranks_with_another_shadow(ranks, method):
    """(r̂, r) is exactly 0 in whatever order it is summed, its only two terms being on the first and the last rank."""
    A, _ = system(symmetric=False)
    shadow, b = np.empty(441), np.zeros(441)
    make_space("cpu").random(1, shadow)
    b[0], b[440] = shadow[440], -shadow[0]
    one_rank = swell.solve(A, b, method=method)
    assert one_rank.converged and swell.solve(A, b, method=f"{method}(seed=2)").iterations == one_rank.iterations
    for x, result, _ in ranks.run(solved, A, b, "rows", {"method": method}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
        assert abs(result.iterations - one_rank.iterations) <= max(1, 0.02 * one_rank.iterations)


def test_a_form_that_vanishes_ends_all_ranks(ranks):
    """(1, i)ᵀ (1, i) = 0, a half on the first rank and a half on the last: as on one, and nobody waits."""
    A, b = sp.csr_array(2 * sp.eye_array(441, dtype=complex)), np.zeros(441, complex)
    b[0], b[440] = 1, 1j
    for method in ("cocg", "cocr"):
        for _, result, _ in ranks.run(solved, A, b, "rows", {"method": method, "precond": None}):
            assert result.reason is Reason.BREAKDOWN and result.residual == 1


@pytest.mark.parametrize("method", METHODS)
def test_what_apply_dot_leaves_beside_is_not_looked_at(ranks, monkeypatch, method):
    """Across ranks it is the diagonal blocks' norm, nothing that a breakdown may be judged by."""
    own = distributed.DistributedMatrix.apply_dot

    def leaving_anything(self, x, out, w, dots):
        own(self, x, out, w, dots)
        dots[1] = np.inf

    A, b = system("complex128" if method in ("cocg", "cocr") else "float64")
    monkeypatch.setattr(distributed.DistributedMatrix, "apply_dot", leaving_anything)
    for x, result, _ in ranks.run(solved, A, b, "rows", {"method": method}):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("smoother, every", [("jacobi_sweeps(omega=0.8)", 1), ("gauss_seidel", 5), ("chebyshev", 2)])
def test_stationary_iteration(ranks, smoother, every):
    """Of one Jacobi sweep at a time it is what it is on one device; else block Jacobi between the ranks."""
    A, b = system()
    settings = {"method": f"stationary(smoother='{smoother}', every={every})", "rtol": 1e-6}
    one_rank = swell.solve(A, b, **settings)
    for x, result, _ in ranks.run(solved, A, b, "rows", settings):
        assert result.converged and np.linalg.norm(b - A @ x) <= 1e-6 * np.linalg.norm(b)
        if every == 1:
            assert abs(result.iterations - one_rank.iterations) <= 1


@pytest.mark.parametrize("dtype, symmetric, named, method", [
    ("float64", True, {}, "cg"), ("float64", False, {}, "bicgstab"), ("complex128", True, {}, "cocg"),
    ("complex128", False, {}, "bicgstab"), ("complex128", True, {"precond": "ilu(drop=0.001)"}, "bicgstab"),
    ("complex128", True, {"precond": "schwarz"}, "bicgstab"), ("complex128", True, {"precond": "jacobi"}, "cocg"),
    ("complex128", True, {"scaling": "ruiz"}, "bicgstab"), ("complex128", True, {"scaling": "jacobi"}, "cocg")])
def test_the_advisor_chooses_as_on_one_device(ranks, dtype, symmetric, named, method, nothing_outright):
    """Where one device contends, with nothing named, the same method is among its choices."""
    A, b = system(dtype, symmetric)
    assert method in [choice.name("method") for choice in swell.prepare(A, **named).choices]
    assert not named or swell.solve(A, b, **named).method == method
    for x, result, _ in ranks.run(solved, A, b, "rows", named):
        assert result.converged and (result.method == method or ranks.size == 1 and not named)


def test_norms_of_products_are_exact_where_the_diagonal_block_has_much_more(ranks):
    """A x of a nearly singular matrix: what ranks have of it before their messages arrive is 1e8 times as large."""
    A = sp.csr_array(gallery.p1_laplacian(2000, mass=1e-8))
    x = np.ones(A.shape[0])

    def product(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        mine, y, dots, dot = x[M.rows], np.empty(M.own.shape[0]), np.empty(2), np.empty(2)
        M.apply_dots(mine, y, mine, dots)
        M.apply_dot(mine, y, mine, dot)
        return M.gather(y), sum(communicator.allgather(dots)), sum(communicator.allgather(dot[0]))

    for y, (wy, yy), wy_alone in ranks.run(product):
        rounding = 1e-15 * abs(A).sum()
        assert yy == pytest.approx(y @ y, rel=1e-12)
        assert wy == pytest.approx(x @ y, abs=rounding) and wy_alone == pytest.approx(x @ y, abs=rounding)
