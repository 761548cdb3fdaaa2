"""scikit-fem's ``solver=``."""
import numpy as np
import pytest

import swell
from swell.core.errors import InputError, NotConverged

skfem = pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[guests]'")
from skfem.models.elasticity import lame_parameters, linear_elasticity  # noqa: E402
from skfem.models.poisson import laplace, unit_load  # noqa: E402

from swell import scipy_like  # noqa: E402
from swell.guests.skfem import solver  # noqa: E402

MESH = skfem.MeshTri().refined(4)
BASIS = skfem.Basis(MESH, skfem.ElementTriP1())
A, B, D = laplace.assemble(BASIS), unit_load.assemble(BASIS), MESH.boundary_nodes()
EXACT = skfem.solve(*skfem.condense(A, B, D=D))


@pytest.mark.parametrize("named", [{}, {"method": "bicgstab", "precond": "ilu0", "rtol": 1e-12}])
def test_the_values_of_scikit_fems_own_solver(named):
    solve = solver(**named)
    for system in (skfem.condense, skfem.enforce):
        x = skfem.solve(*system(A, B, D=D), solver=solve)
        assert np.allclose(x, EXACT, atol=1e-10) and solve.result.converged


def test_a_pattern_that_recurs_is_updated():
    solve = solver(method="cg", precond="ic0", rtol=1e-11)
    for factor in (1.0, 1.0, 2.0):
        x = skfem.solve(*skfem.condense(factor * A, B, D=D), solver=solve)
        assert np.allclose(factor * x, EXACT, atol=1e-10)
    assert solve.setups == 1
    skfem.solve(*skfem.condense(A, B, D=D[::2]), solver=solve)
    assert solve.setups == 2


def test_the_first_step_has_no_load(nothing_outright):
    mesh = skfem.MeshTri().refined(6)
    basis = skfem.Basis(mesh, skfem.ElementTriP1())
    K, f = skfem.condense(laplace.assemble(basis), unit_load.assemble(basis), D=mesh.boundary_nodes(), expand=False)
    solve = solver()
    assert not solve(K, 0 * f).any()
    assert np.allclose(solve(2 * K, f), solve(K, f) / 2) and solve.setups == 1


def test_a_caller_who_changes_the_matrix_in_place_is_noticed():
    K, f = skfem.condense(A, B, D=D, expand=False)
    solve = solver(method="direct")
    first = solve(K, f)
    K.data *= 2
    assert np.allclose(solve(K, f), first / 2) and solve.setups == 1


def test_a_complex_right_hand_side_after_a_real_one():
    K, f = skfem.condense(A, B, D=D, expand=False)
    solve = solver(method="direct")
    assert np.allclose(solve(K, 1j * f), 1j * solve(K, f)) and solve.setups == 1
    solve = solver(method="direct")
    assert np.allclose(solve(K, f) * 1j, solve(K, 1j * f)) and solve.setups == 2


def test_failures_are_never_silent():
    system = skfem.condense(A, B, D=D)
    with pytest.raises(NotConverged, match="iteration limit.*wanted 1.00e-08") as caught:
        skfem.solve(*system, solver=solver(method="cg", maxiter=2))
    assert caught.value.result.iterations == 2
    with pytest.warns(UserWarning, match="did not converge"):
        skfem.solve(*system, solver=solver(method="cg", maxiter=2, failure="warn"))


@pytest.mark.parametrize("element", [skfem.ElementTriP1, skfem.ElementTriP2])
def test_rigid_motions_of_elasticity(element):
    mesh = skfem.MeshTri.init_tensor(np.linspace(0, 8, 65), np.linspace(0, 1, 9))
    basis = skfem.Basis(mesh, skfem.ElementVector(element()))
    K = linear_elasticity(*lame_parameters(1e3, 0.3)).assemble(basis)
    f = skfem.LinearForm(lambda v, w: v[1]).assemble(basis)
    system = skfem.condense(K, f, D=basis.get_dofs(lambda x: x[0] == 0))
    solve = solver(basis=(basis, system[3]), method="cg")
    x = skfem.solve(*system, solver=solve)
    assert np.allclose(x, skfem.solve(*system), rtol=1e-5, atol=1e-6 * abs(x).max())
    plain = solver(precond=swell.SmoothedAggregation(block=1), method="cg")
    skfem.solve(*system, solver=plain)
    assert solve.result.iterations < plain.result.iterations / 2
    free = solver(basis=basis)                   # all degrees of freedom
    assert free._recurring._options.precond.near_nullspace.shape == (basis.N, 3)


def test_keyword_arguments_of_a_solve():
    system = skfem.condense(A, B, D=D)
    solve = solver(method="cg", precond="ic0", rtol=1e-4)
    tolerances = [solve.result.tolerance for rtol in ({"rtol": 1e-11}, {}, {"stopping": swell.Stopping(rtol=1e-6)})
                  if skfem.solve(*system, solver=solve, **rtol) is not None]
    assert tolerances == [1e-11, 1e-4, 1e-6] and solve.setups == 1
    skfem.solve(*system, solver=solve, x0=np.asarray(EXACT[system[3]]))
    assert solve.result.iterations == 0
    with pytest.raises(TypeError, match="precond"):
        skfem.solve(*system, solver=solve, precond="amg")


def test_bad_input():
    with pytest.raises(InputError, match="ElementTriP1.*ElementVector"):
        solver(basis=BASIS)
    with pytest.raises(InputError, match="another preconditioner was named"):
        solver(basis=BASIS, precond="ic0")
    with pytest.raises(InputError, match="failure='ignore': expected 'raise' or 'warn'"):
        solver(failure="ignore")


def test_scikit_fems_krylov_solvers_take_scipy_like():
    for krylov in (scipy_like.cg, scipy_like.bicgstab):      # they always get a callback, and M = diag(A)⁻¹
        x = skfem.solve(*skfem.condense(A, B, D=D), solver=skfem.solver_iter_krylov(krylov, rtol=1e-11))
        assert np.allclose(x, EXACT, atol=1e-9)
