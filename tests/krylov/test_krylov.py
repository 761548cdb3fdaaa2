"""The contract of every Krylov method in the registry."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.support.cases import rng
from tests.support.during import during
from tests.support.solves import allocations_of_a_second_run, true_residual

import swell
from swell import gallery
from swell.core.operator import CallableOperator
from swell.core.registry import load, names
from swell.core.devices import make_space
from swell.core.stopping import Reason

KRYLOV = [name for name in names("method") if load("method", name).inner is None]         # refinement has an inner solver
# With and without a preconditioner, and in both types, each once: one half of the combinations, or the other.
STRAIGHT = [(m, p, t) for m in KRYLOV for p, t in ((None, "float64"), ("jacobi", "complex128"))]
CROSSED = [(m, p, t) for m in KRYLOV for p, t in ((None, "complex128"), ("jacobi", "float64"))]
# For what does not depend on the type: each method in the one that it is for.
ONE_TYPE = [(m, "complex128" if load("method", m).symmetric_only else "float64") for m in KRYLOV]
one_type = pytest.mark.parametrize("method, dtype", ONE_TYPE)
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.fixture(autouse=True)
def what_it_is_for(request):
    """A method that runs on a GPU only, or that applies no preconditioner, is skipped where it is asked for either."""
    given = getattr(request.node, "callspec", None)
    given = given.params if given else {}
    method = load("method", given["method"]) if "method" in given else None
    if method is not None and method.gpu_only and given.get("device") != "cuda":
        pytest.skip(f"{given['method']} runs on a GPU only")
    if method is not None and not method.preconditionable and (given.get("precond") or "precond" in request.node.name):
        pytest.skip(f"{given['method']} applies no preconditioner")


@pytest.fixture(params=KRYLOV)
def method(request):
    return request.param


@pytest.fixture
def system(dtype, request):
    """An SPD (Hermitian) system that every method solves in 5 to 60 iterations, of uneven diagonal; a complex symmetric
    one for a method that is for these alone."""
    n = 14
    A = gallery.poisson2d(n) + sp.diags_array(rng().random(n * n))
    given = request.node.callspec.params["method"]
    if dtype == "complex128" and load("method", given).symmetric_only:
        A = A + 0.5j * sp.diags_array(rng().random(n * n))
    elif dtype == "complex128":
        phase = sp.diags_array(np.exp(1j * rng().uniform(0, 6, n * n)))
        A = phase @ A @ phase.conj()
    A = sp.csr_array(A).astype(dtype)
    return A, A @ rng().standard_normal(n * n)


@pytest.mark.parametrize("dtype, precond, scaling", [("float64", None, None), ("complex128", None, "jacobi"),
                                                     ("complex128", "jacobi", None), ("float64", "jacobi", "jacobi")])
def test_true_residual(method, precond, scaling, system, device):
    A, b = system
    r = swell.solve(A, b, method=method, precond=precond, scaling=scaling, device=device, rtol=1e-9)
    assert r.converged and true_residual(A, b, r.x) <= 1e-9
    assert r.residual == pytest.approx(true_residual(A, b, r.x), rel=1e-3)
    assert r.history.size == r.iterations + 1 and r.history[0] == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("complex64", 1e-5)])
def test_single_precision(method, dtype, rtol, system, device):
    A, b = system
    r = swell.solve(A, b.astype(dtype), method=method, device=device, rtol=rtol)
    assert r.converged and true_residual(A, b, r.x) <= 1.5 * rtol
    assert r.x.dtype == dtype


@pytest.mark.gpu
@pytest.mark.parametrize("method, precond, dtype", STRAIGHT)
def test_devices_agree(method, precond, system):
    pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    A, b = system
    here, there = (swell.solve(A, b, method=method, precond=precond, device=d, rtol=1e-10) for d in ("cpu", "cuda"))
    assert abs(here.iterations - there.iterations) <= max(1, 0.02 * here.iterations)
    assert np.linalg.norm(here.x - there.x) <= 1e-7 * np.linalg.norm(here.x)
    same = min(5, max(2, 10 * here.iterations // here.products))     # in ten products rounding does not grow far
    assert here.history[:same] == pytest.approx(there.history[:same], rel=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("method, precond, dtype", CROSSED)
def test_a_second_run_allocates_nothing(method, precond, system):
    pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    A, b = system
    solver = swell.prepare(A, method=method, precond=precond, device="cuda", b_like=b)
    assert allocations_of_a_second_run(solver, b.astype(A.dtype)) == 0


@pytest.mark.parametrize("method, precond, dtype", STRAIGHT)
def test_workspace_does_not_grow(method, precond, system, device):
    A, b = system
    solver = swell.prepare(A, method=method, precond=precond, device=device, b_like=b)
    solver.solve(b)
    held = {name: id(buffer) for name, buffer in solver._prepared[0].workspace._buffers.items()}
    solver.solve(2 * b, x0=b)
    assert {name: id(buffer) for name, buffer in solver._prepared[0].workspace._buffers.items()} == held


@pytest.mark.parametrize("method, precond, dtype", STRAIGHT + CROSSED)
def test_poisoned_workspace(method, precond, system, device):
    A, b = system
    solver = swell.prepare(A, method=method, precond=precond, device=device, b_like=b)
    first = solver.solve(b)
    with solver.space.active():
        solver._prepared[0].workspace.poison()
    second = solver.solve(b)
    assert (first.x == second.x).all() and (first.history == second.history).all()


def test_x0(method, system, device):
    A, b = system
    x0 = rng().standard_normal(b.size).astype(A.dtype)
    before = x0.copy()
    r = swell.solve(A, b, method=method, x0=x0, device=device)
    assert r.converged and (x0 == before).all() and not np.shares_memory(r.x, x0)
    again = swell.solve(A, b, method=method, x0=r.x, device=device)
    assert again.converged and again.iterations == 0 and again.residual <= 1e-8


@one_type
def test_x0_far_away_is_no_divergence(method, system):
    A, b = system
    r = swell.solve(A, b, method=method, x0=np.full(b.size, 1e13), maxiter=2000)
    assert r.reason is not Reason.DIVERGED and r.residual < 1e-2


@one_type
def test_relative_to_the_first_residual(method, system):
    A, b = system
    x0 = np.full(b.size, 1e4)
    first = true_residual(A, b, x0)
    r = swell.solve(A, b, method=method, x0=x0, stopping=swell.Stopping(rtol=1e-3, relative_to="r0"))
    assert r.converged and r.residual <= 1e-3 * first
    assert r.tolerance == pytest.approx(1e-3 * first)


@one_type
def test_zero_right_hand_side(method, system, device):
    A, b = system
    r = swell.solve(A, 0 * b, method=method, device=device, x0=b)
    assert r.converged and r.iterations == 0 and not r.x.any() and r.residual == 0


@pytest.mark.parametrize("precond", [None, "jacobi"])
def test_tiny(method, precond, device):
    for n in [0, 1, 2]:
        with during(n=n):
            A = sp.csr_array(sp.diags_array(np.arange(2.0, n + 2), shape=(n, n)))
            r = swell.solve(A, np.ones(n), method=method, precond=precond, device=device)
            assert r.converged and r.x.shape == (n,)
            assert np.allclose(r.x, 1 / np.arange(2.0, n + 2), rtol=1e-8)


@pytest.mark.parametrize("scaling", [None, "jacobi"])
def test_scaling_a_system_changes_nothing(method, scaling, system):
    A, b = system
    plain = swell.solve(A, b, method=method, scaling=scaling)
    for exponent in [-200, -20, 20, 200]:
        with during(exponent=exponent):
            c = 2.0**exponent
            scaled = swell.solve(c * A, c * b, method=method, scaling=scaling)
            assert (plain.x == scaled.x).all() and plain.iterations == scaled.iterations


@one_type
def test_exact_iteration_limit(method, system, device):
    A, b = system
    count = swell.solve(A, b, method=method, device=device).iterations
    enough = swell.solve(A, b, method=method, device=device, maxiter=count)
    assert enough.converged and enough.iterations == count
    short = swell.solve(A, b, method=method, device=device, maxiter=count - 1)
    assert short.reason is Reason.MAXITER and short.iterations == count - 1


@one_type
def test_no_iterations(method, system):
    A, b = system
    r = swell.solve(A, b, method=method, maxiter=0)
    assert r.reason is Reason.MAXITER and not r.x.any() and r.residual == pytest.approx(1, rel=1e-15) and r.history.size == 1


def contradicted():
    """Singular: a cycle of GMRES is said to have converged by its recursion, and its true residual denies it."""
    a, c = 0.1112795288, -0.1362795288 + 2j * np.pi
    return np.array([[-a, 0, 0, a + .05], [0, c, 0, 0], [0, 0, np.conj(c), 0], [a, 0, 0, -a - .05]])


SINGULAR = {"contradicted": contradicted, "zero": lambda: np.zeros((3, 3)), "nilpotent": lambda: np.eye(6, k=1),
            "neumann": lambda: gallery.neumann((4, 4)).toarray(), "one row": lambda: np.diag([1.0, 2.0, 0.0, 3.0, 4.0]),
            "rank 2": lambda: np.outer([1.0, 2, 3, 4], [1, 2, 3, 4.0]) + np.ones((4, 4))}


@pytest.mark.parametrize("named", [*KRYLOV, "gmres(restart=4)", "fgmres(restart=3)", "gmres(restart=4, basis=single)",
                                   "idrs(s=2)", "bicgstabl(l=4)"])
def test_no_limit_is_exceeded_in_a_singular_system(named, device):
    """A count beyond the limit would write past the end of the history."""
    if load("method", named.split("(")[0]).gpu_only and device != "cuda":
        pytest.skip(f"{named} runs on a GPU only")
    solved = 0
    for matrix, make in SINGULAR.items():
        A = sp.csr_array(make())
        b, limits = np.ones(A.shape[0]), range(1, 41) if device == "cpu" else (1, 2, 3, 4, 8, 17, 40)
        try:
            solver = swell.prepare(A, method=named, device=device)
        except swell.InputError:
            continue                             # a method for Hermitian or complex symmetric matrices
        for limit in limits:
            with during(matrix=matrix, limit=limit):
                r = solver.stop_by(swell.Stopping(maxiter=limit)).solve(b)
                assert r.iterations <= limit and r.history.size == r.iterations + 1
                assert not r.converged or true_residual(A, b, r.x) <= 1e-8
        solved += 1
    assert solved >= 4


@one_type
def test_two_matrices_share_no_setup(method, system, device):
    A, b = system
    precond = "jacobi" if load("method", method).preconditionable else None
    alone = swell.solve(3 * A, b, method=method, precond=precond, device=device)
    first, second = (swell.prepare(c * A, method=method, precond=precond, device=device, b_like=b) for c in (1, 3))
    first.solve(b)
    assert (second.solve(b).x == alone.x).all()
    assert true_residual(A, b, first.solve(b).x) <= 1e-8


@one_type
def test_same_answer_every_time(method, system, device):
    A, b = system
    solver = swell.prepare(A, method=method, device=device, b_like=b)
    assert (solver.solve(b).x == solver.solve(b).x).all()


def counted(A, space):
    """An operator that counts, adjoint products too, and its count."""
    count = [0]

    def product(A):
        def of(x):
            count[0] += 1
            return A @ x
        return of
    return CallableOperator(A.shape, A.dtype, space, product(A), product(sp.csr_array(A.conj().T))), count


@one_type
def test_products_are_counted(method, system):
    A, b = system
    for named in [f"{method}(restart={k})" for k in (5, 30)] if "gmres" in method else [method]:
        for x0 in (None, b):
            operator, products = counted(A, make_space("cpu"))
            M, applied = counted(sp.diags_array(1 / A.diagonal()).tocsr(), operator.space)
            solver = swell.prepare(operator, method=named, M=M)
            applied[0] = 0                       # the setup may have applied M, to see whether it is self-adjoint
            r = solver.solve(b, x0=x0)
            assert r.converged, (named, x0)
            assert (r.products, r.preconditioner_applications) == (products[0], applied[0]), (named, x0)


@one_type
def test_host_reads(method, system, device):
    """None in an iteration, on the CPU by nature and on a GPU since the graph decides."""
    A, b = system
    r = swell.solve(A, b, method=method, device=device)
    assert r.host_reads == 0


@one_type
def test_monitor_sees_every_iteration(method, system, device):
    A, b = system
    seen = []
    r = swell.solve(A, b, method=method, device=device, monitor=lambda k, residual: seen.append((k, residual)))
    assert [k for k, _ in seen] == list(range(r.iterations + 1))
    assert np.allclose([v for _, v in seen], r.history, rtol=0.5)        # a cycle's last value is judged again


@one_type
def test_monitor_stops(method, system, device):
    A, b = system
    r = swell.solve(A, b, method=method, device=device, monitor=lambda k, residual: k >= 3, rtol=1e-12)
    # A GPU runs some iterations ahead of its host, and may be done before the monitor is heard.
    assert r.reason is Reason.STOPPED or (device == "cuda" and r.converged)
    assert 3 <= r.iterations
    assert r.residual == pytest.approx(true_residual(A, b, r.x), rel=1e-3)


def test_user_preconditioners(method, system):
    A, b = system
    inverse = sp.csr_array(sp.diags_array(1 / A.diagonal()))
    operator = spla.LinearOperator(A.shape, matvec=lambda x: inverse @ x, rmatvec=lambda x: inverse.conj() @ x,
                                   dtype=A.dtype)
    given = (inverse, operator, lambda x: inverse @ x, inverse.todense())
    results = [swell.solve(A, b, method=method, M=M) for M in (given[1:2] if load("method", method).adjoint else given)]
    builtin = swell.solve(A, b, method=method, precond="jacobi")
    for r in results:
        assert r.converged and r.precond == "user"
        assert abs(r.iterations - builtin.iterations) <= 1


def test_matrix_free(method, system):
    A, b = system
    operator = spla.LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda x: A.conj().T @ x, dtype=A.dtype)
    r = swell.solve(operator, b, method=method)
    assert r.converged and r.format == "matrix-free" and true_residual(A, b, r.x) <= 1e-8
    assert np.isnan(r.backward_error)
