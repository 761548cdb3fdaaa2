"""FiPy's solver class."""
import subprocess
import sys

import numpy as np
import pytest

from swell import scipy_like
from swell.core.errors import InputError

fp = pytest.importorskip("fipy", reason="needs FiPy: pip install 'swell[guests]'")
from fipy.solvers import convergence  # noqa: E402
from fipy.solvers.convergence import DivergenceWarning  # noqa: E402
from fipy.solvers.scipy.linearCGSolver import LinearCGSolver  # noqa: E402
from fipy.solvers.scipy.linearGMRESSolver import LinearGMRESSolver  # noqa: E402
from fipy.solvers.scipy.linearLUSolver import LinearLUSolver  # noqa: E402
from fipy.solvers.scipy.preconditioners import ILUPreconditioner, JacobiPreconditioner  # noqa: E402

from swell.core.stopping import Reason  # noqa: E402
from swell.guests.fipy import CRITERIA, ENDS, SwellSolver  # noqa: E402


def problem(n=16):
    mesh = fp.Grid2D(nx=n, ny=n, dx=1 / n, dy=1 / n)
    phi = fp.CellVariable(mesh=mesh, value=0.0)
    phi.constrain(1.0, mesh.facesLeft)
    phi.constrain(0.0, mesh.facesRight)
    flow = fp.ExponentialConvectionTerm(coeff=(10.0, 5.0))
    return phi, fp.TransientTerm() == fp.DiffusionTerm(coeff=1.0 + 0.5 * phi) - flow


def steps(solver, count=3):
    phi, equation = problem()
    for _ in range(count):
        equation.solve(var=phi, dt=0.01, solver=solver)
    return phi.value.copy()


@pytest.mark.parametrize("method", [None, "gmres", "bicgstab"])
def test_the_values_of_fipys_lu(method):
    solver = SwellSolver(tolerance=1e-11, method=method)
    assert np.allclose(steps(solver), steps(LinearLUSolver(tolerance=1e-13)), atol=1e-9)
    assert solver.setups == 1                    # later steps update it
    assert solver.result.converged and solver.convergence.status_name == "SCIPY_SUCCESS"


def test_steady_diffusion_is_negative_definite():
    """FiPy's own cg solves it, so swell's must; a preconditioner of FiPy's sees the same sign."""
    for named in ({}, {"precond": "ic0"}, {"precon": JacobiPreconditioner()}):
        phi, _ = problem()
        solver = SwellSolver(method="cg", tolerance=1e-11, **named)
        fp.DiffusionTerm(coeff=1.0).solve(var=phi, solver=solver)
        assert solver.result.converged and np.allclose(phi.value, 1 - phi.mesh.x)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("precon", [ILUPreconditioner, JacobiPreconditioner])
def test_criteria_and_preconditioners_mean_the_same(criterion, precon):
    named = {"tolerance": 1e-6, "criterion": criterion, "precon": precon()}
    ours, theirs = SwellSolver(method="gmres", **named), LinearGMRESSolver(**named)
    assert np.allclose(steps(ours, 1), steps(theirs, 1), atol=1e-4)
    assert abs(ours.convergence.iterations - theirs.convergence.iterations) <= 3
    assert ours.convergence.residual <= 1e-6 * ours.convergence.tolerance_scale


def test_failures_are_fipys_warnings():
    with pytest.warns(DivergenceWarning, match="SWELL_MAXITER"):
        steps(SwellSolver(method="gmres", iterations=2), 1)


def test_a_failure_has_its_own_name():
    """The attainable accuracy is no iteration limit, and an x that is exact to rounding no failure."""
    solver = SwellSolver(method="direct", tolerance=1e-30)
    steps(solver, 1)
    assert solver.convergence.status_name == "SWELL_EXACT_TO_ROUNDING"
    for reason, how in ENDS.items():
        assert reason is Reason.CONVERGED or how.status_name == f"SWELL_{reason.name}"
        assert issubclass(how, convergence.Divergence) == (reason is not Reason.CONVERGED)
        assert convergence.ConvergenceBase.code_registry[how.suite, how.status_code] is how


def test_a_monitor_and_the_starting_values():
    seen = []
    solver = SwellSolver(method="bicgstab", tolerance=1e-8, monitor=lambda k, norm: seen.append(norm))
    phi, equation = problem()
    equation.solve(var=phi, dt=1e6, solver=solver)
    first = solver.result.iterations
    assert len(seen) == first + 1
    seen.clear()
    equation.solve(var=phi, dt=1e6, solver=solver)
    assert seen[0] < 0.5                         # it starts from the values of the last step


def test_fipys_own_class_with_a_function_of_swell():
    class Ours(LinearCGSolver):
        solveFnc = staticmethod(scipy_like.bicgstab)         # it counts iterations by a callback
    solver = Ours(tolerance=1e-10)
    assert np.allclose(steps(solver), steps(LinearLUSolver(tolerance=1e-13)), atol=1e-8)
    assert solver.convergence.iterations > 0


def test_bad_input():
    with pytest.raises(InputError, match="criterion='natural': expected one of default, RHS"):
        SwellSolver(criterion="natural")
    with pytest.raises(InputError, match="both precon.*and precond"):
        SwellSolver(precon=JacobiPreconditioner(), precond="ilu0")


def test_without_fipy_the_error_says_what_to_install():
    code = "import sys; sys.modules['fipy'] = None\nimport swell.guests.fipy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingDependency" in done.stderr and "pip install 'swell[guests]'" in done.stderr
