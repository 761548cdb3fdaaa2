"""Several scalars on one matrix: each is the solution of its own solve; one matrix, one preconditioner, few solves."""
import numpy as np
import pytest

from swell.core.errors import InputError
from swell.pde import fvm

WIND = (1.0, 0.4, 0.0)


def transport(mesh, value=0.0, source=0.0, velocity=WIND, **settings):
    conditions = {"xmin": fvm.Dirichlet(value), "ymin": fvm.Dirichlet(0.5 * value), "*": fvm.Neumann()}
    return fvm.ScalarTransport(mesh, conditions, velocity, 0.02, source, **settings)


@pytest.mark.parametrize("perturb", [0.0, 0.2])
def test_fields_equal_their_own_solves(device, perturb):
    """Other sources and boundary values, on an orthogonal mesh and on one that needs corrections; a zero field."""
    mesh = fvm.box((14, 12), perturb=perturb)
    problems = [transport(mesh, 1.0), transport(mesh, 0.0, lambda x: np.sin(3 * x[:, 0])), transport(mesh),
                transport(mesh, -2.0, 1.0)]
    found = fvm.solve_together(problems, rtol=1e-9, device=device)
    for field, problem in zip(found, problems, strict=True):
        alone = problem.solve(rtol=1e-9, device=device)
        assert field.converged and field.residual <= 1e-9 and field.imbalance <= 1e-9
        assert abs(field.p - alone.p).max() <= 1e-7 * max(abs(alone.p).max(), 1)
        assert abs(field.fluxes - alone.fluxes).max() <= 1e-7
    assert not found[2].p.any() and len(found[2].results) <= len(found[0].results)
    assert found[1].mesh is mesh and "converged" in str(found[1])


def test_one_matrix_and_one_solver(monkeypatch):
    """However many fields there are: one preparation, and as many solves as the slowest field needs."""
    from swell import api
    made, solves, solve = [], [], api.Solver.solve
    monkeypatch.setattr(api.Solver, "solve", lambda self, b, **more: solves.append(b.shape) or solve(self, b, **more))
    prepare = api.prepare
    monkeypatch.setattr(api, "prepare", lambda *a, **more: made.append(1) or prepare(*a, **more))
    mesh = fvm.box((10, 10), perturb=0.2)
    found = fvm.solve_together([transport(mesh, value) for value in (1.0, 2.0, 3.0)])
    assert len(made) == 1 and solves[0] == (100, 3) and len(solves) == max(len(field.results) for field in found)
    assert found[0].results[0].iterations == found[1].results[0].iterations              # the same system, scaled


def test_poisson_and_a_floating_one(device):
    mesh = fvm.box((12, 12))
    walls = {"xmin": fvm.Dirichlet(0.0), "*": fvm.Neumann()}
    found = fvm.solve_together([fvm.Poisson(mesh, walls, source=q) for q in (1.0, -3.0)], device=device)
    assert np.allclose(found[1].p, -3 * found[0].p, rtol=1e-7)
    floating = [fvm.Poisson(mesh, {"*": fvm.Neumann()}, source=lambda x, k=k: np.cos(k * np.pi * x[:, 0]))
                for k in (1, 2)]
    for field, problem in zip(fvm.solve_together(floating, device=device), floating):
        assert field.converged and abs(field.p - problem.solve(device=device).p).max() < 1e-7


def test_settings_are_the_problems_own():
    mesh = fvm.box((8, 8))
    field, = fvm.solve_together([transport(mesh, 1.0)])
    assert (field.result.method, field.result.precond) == ("bicgstab", "jacobi")
    poisson = [fvm.Poisson(mesh, {"*": fvm.Dirichlet(v)}) for v in (1.0, 2.0)]
    first, _ = fvm.solve_together(poisson)
    assert (first.result.method, first.result.scaling) == (poisson[0].solve().result.method, poisson[0].solve().result.scaling)
    other, _ = fvm.solve_together(poisson, method="cg", precond="ic0")
    assert other.result.precond == "ic" and other.result.scaling == "none"


def test_a_field_that_fails_is_one_record():
    """Two corrections are enough for the first field, not for the second."""
    mesh = fvm.box((12, 12), perturb=0.25)
    problems = [transport(mesh, 0.0, corrections=1), transport(mesh, 1.0, corrections=1)]
    easy, hard = fvm.solve_together(problems, rtol=1e-10)
    assert easy.converged and not hard.converged and hard.reason.name == "MAXITER"


@pytest.mark.parametrize("problems, message", [
    (lambda mesh: [], "got no problem"), (lambda mesh: transport(mesh), "takes a list of problems"),
    (lambda mesh: [transport(mesh), 3], "problem 1 is a int and problem 0 a ScalarTransport"),
    (lambda mesh: [transport(mesh), fvm.Poisson(mesh, {"*": fvm.Dirichlet()})], "problem 1 is a Poisson"),
    (lambda mesh: [transport(mesh), transport(fvm.box((6, 6)))], "problem 1 has another mesh"),
    (lambda mesh: [transport(mesh), transport(mesh), transport(mesh, velocity=(2.0, 0.4, 0.0))],
     "problem 2 has another matrix than problem 0: give both the same velocity"),
    (lambda mesh: [transport(mesh), fvm.ScalarTransport(mesh, {"*": fvm.Dirichlet(1.0)}, WIND, 0.02)],
     "problem 1 has another matrix")])
def test_problems_that_do_not_fit(problems, message):
    with pytest.raises(InputError, match=message):
        fvm.solve_together(problems(fvm.box((6, 6))))
