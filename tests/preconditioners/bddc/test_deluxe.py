"""Deluxe weights: a partition of unity by matrices, fewer iterations where subdomains are irregular, and their limits."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError
from swell.formats.csr import CSRMatrix
from swell.gallery import box_mesh, elastic_subdomains
from swell.pde.poisson_cube import PoissonCube

RNG = np.random.default_rng(5)
RANDOM = 10.0 ** RNG.uniform(-2, 2, (12,) * 3)


def body(shape=(10, 5, 5)):
    """(parts, nodes) of an elastic body whose seven subdomains are the cells next to random points."""
    points, cells = box_mesh(shape)
    seeds, middle = np.random.default_rng(5).random((7, 3)), points[cells].mean(axis=1)
    owner = ((middle[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1)
    return elastic_subdomains(points, cells, points[:, 0] == 0, np.unique(owner, return_inverse=True)[1])


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_of_all_copies_add_up_to_the_identity(device, dtype, levels):
    space_or_skip(device)
    system = PoissonCube(3, 4, levels, coefficient=RANDOM).assemble(device)
    space = system.A.space
    with space.active(system.cube.n):
        A = system.A.astype(dtype)
        level = swell.BDDC(levels, subdomains=system.subdomains, weights="deluxe").build(A).level
        scatter, gather = (M.to_scipy().toarray() for M in (level._scatter, level._gather))
    interface, groups = level.interface, [p.members for p in level.locals]
    copies = np.concatenate([np.stack([interface.copies[m] for m in members], axis=1).ravel()
                             for some in groups for members in some])
    v = RNG.standard_normal(interface.dofs.size)
    assert abs(scatter @ v[copies] - v).max() < 1e3 * np.finfo(dtype).eps * abs(v).max()
    assert np.array_equal(scatter, gather.T)
    assert (gather != 0).sum() > 1.5 * copies.size                                  # matrices, not numbers


def test_irregular_elastic_bodies_take_fewer_iterations():
    parts, nodes = body()
    S = swell.Subdomains(parts)
    A, b = S.assemble(), RNG.standard_normal(3 * len(nodes))
    results = {weights: swell.solve(A, b, method="cg", precond=swell.BDDC(
        subdomains=S, near_nullspace=swell.rigid_body_modes(nodes), weights=weights)) for weights in ("stiffness", "deluxe")}
    assert all(r.converged for r in results.values())
    assert results["deluxe"].iterations <= 0.85 * results["stiffness"].iterations


def test_the_least_eigenvalue_is_one():
    system = PoissonCube(4, 3, coefficient=RANDOM).assemble()
    b = RNG.standard_normal(system.cube.n)
    stiffness, deluxe = (system.solve(b=b, weights=weights) for weights in ("stiffness", "deluxe"))
    assert deluxe.result.converged and abs(deluxe.extremes[0] - 1) < 1e-3
    assert deluxe.extremes[1] < stiffness.extremes[1]


def test_a_hermitian_matrix():
    """Complex weights: M is self-adjoint, and CG converges as for the real matrix of which this one is a rotation."""
    system = PoissonCube(3, 3, coefficient=RANDOM[:9, :9, :9]).assemble()
    n = system.cube.n
    phases = np.exp(2j * np.pi * RNG.random(n))
    parts = [(sp.diags_array(phases[dofs]) @ matrix @ sp.diags_array(phases[dofs].conj()), dofs)
             for matrix, dofs in zip(system.subdomains.matrices, system.subdomains.dofs, strict=True)]
    S, b = swell.Subdomains(parts), RNG.standard_normal(n)
    M = swell.BDDC(subdomains=S, weights="deluxe").build(CSRMatrix.from_scipy(S.assemble(), make_space("cpu")))
    x, y, Mx, My = (f(n) + 1j * f(n) for f in (RNG.standard_normal,) * 2 + (np.empty,) * 2)
    M.apply(x, Mx)
    M.apply(y, My)
    assert abs(np.vdot(y, Mx) - np.vdot(My, x)) < 1e-9 * abs(np.vdot(y, Mx))
    real = swell.solve(system.A.to_scipy(), b, method="cg", precond=swell.BDDC(subdomains=system.subdomains, weights="deluxe"))
    turned = swell.solve(S.assemble(), phases * b, method="cg", precond=swell.BDDC(subdomains=S, weights="deluxe"))
    assert turned.converged and turned.iterations <= real.iterations + 2
    assert np.linalg.norm(turned.x - phases * real.x) < 1e-6 * np.linalg.norm(real.x)


def test_one_subdomain_has_no_weights():
    A = PoissonCube(3, 2).assemble().A.to_scipy()
    alone = swell.Subdomains([(A, np.arange(A.shape[0]))])
    r = swell.solve(A, np.ones(A.shape[0]), method="cg", precond=swell.BDDC(subdomains=alone, weights="deluxe"))
    assert r.converged and r.iterations <= 2


def test_matrices_without_energy_are_refused():
    convection = swell.gallery.convection_diffusion((12, 12), 20.0, "upwind")
    with pytest.raises(InputError, match="weights='deluxe'.*these are general: take weights='stiffness'"):
        swell.solve(convection, np.ones(144), method="gmres", precond=swell.BDDC(domains=4, weights="deluxe", partition="rows"))
    system = PoissonCube(3, 2).assemble()
    parts = [(-matrix, dofs) for matrix, dofs in zip(system.subdomains.matrices, system.subdomains.dofs, strict=True)]
    S = swell.Subdomains(parts)
    with pytest.raises(FactorisationError, match="do not add up to a positive definite matrix"):
        swell.BDDC(subdomains=S, weights="deluxe").build(CSRMatrix.from_scipy(S.assemble(), make_space("cpu")))


@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab"])
@pytest.mark.parametrize("interior", ["direct", "blocks"])
def test_an_iteration_needs_one_interior_solve(method, interior, monkeypatch):
    """The interior parts of the vectors are parallel, so one of two solves is left out; not the last digits."""
    system = PoissonCube(4, 3, coefficient=RANDOM).assemble()
    A, b = system.A.to_scipy(), RNG.standard_normal(system.cube.n)
    solver = swell.prepare(A, method=method, precond=swell.BDDC(subdomains=system.subdomains, interior=interior), rtol=1e-8)
    inner, solves = solver.M.operator.level.interiors, []
    solve = inner._solve
    monkeypatch.setattr(inner, "_solve", lambda *arguments: (solves.append(1), solve(*arguments))[1])
    r = solver.solve(b)
    applications = r.iterations * (2 if method == "bicgstab" else 1) + 1
    assert r.converged and len(solves) <= 1.3 * applications + 3
    again = solver.solve(b)
    assert np.array_equal(again.x, r.x) and again.iterations == r.iterations
    other = solver.solve(RNG.standard_normal(b.size))
    assert other.converged
    precise = swell.solve(A, b, method=method, precond=swell.BDDC(subdomains=system.subdomains, interior=interior), rtol=1e-13)
    assert precise.converged or precise.reason.name == "ATTAINABLE"
    assert np.linalg.norm(b - A @ precise.x) <= 1e-11 * np.linalg.norm(b)
