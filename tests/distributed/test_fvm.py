"""Finite volumes across ranks: the serial matrix, row by row, and the serial solution."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.across import on_gpus
from tests.support.cases import rng
from tests.support.polymeshes import skewed

import swell
from swell.distributed.amg import hierarchy
from swell.pde import fvm
from swell.pde.fvm.across_ranks import Division, RankSystem
from swell.preconditioners.amg.hierarchy import COARSEST

pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")


def problem(mesh, **settings):
    sides = {name: fvm.Neumann(0.5) for name in ("ymin", "ymax", "zmin", "zmax")}
    left = mesh.patch("xmin")
    conditions = {**sides, "xmin": fvm.Dirichlet(rng().random(left.size)), "xmax": fvm.Robin(1.0, 2.0, 3.0)}
    settings = {"diffusivity": 1 + rng().random(mesh.n_cells), "source": lambda x: np.sin(x[:, 0]), **settings}
    return fvm.Poisson(mesh, conditions, **settings)


@pytest.mark.parametrize("gradient", ["least_squares", "gauss"])
def test_rows_are_those_of_the_serial_system(ranks, gradient):
    mesh = skewed()
    given = problem(mesh, gradient=gradient)
    serial = given.assemble()
    A, x = serial.A.to_scipy(), rng().standard_normal(mesh.n_cells)
    explicit = serial.rhs(serial.flux_at(x))

    def parts(communicator):
        part = RankSystem(communicator, given, "cpu", "float64")
        y = np.empty(part.A.own.shape[0])
        part.A.apply(x[part.A.rows], y)
        flux = part.flux_at(x[part.A.rows])
        return part.A.gather(y), part.A.gather(part.rhs(flux))

    for product, b in ranks.run(parts):
        assert np.allclose(product, A @ x, rtol=1e-12, atol=1e-12)
        assert np.allclose(b, explicit, rtol=1e-12, atol=1e-12)


def test_poisson(ranks):
    mesh = skewed()
    given = problem(mesh)
    serial = given.solve(rtol=1e-9)
    for found in ranks.run(lambda c: given.solve(rtol=1e-9, ranks=c)):
        assert found.converged and found.corrections == serial.corrections
        assert np.linalg.norm(found.p - serial.p) <= 1e-7 * np.linalg.norm(serial.p)
        assert np.linalg.norm(found.fluxes - serial.fluxes) <= 1e-7 * np.linalg.norm(serial.fluxes)
        assert np.allclose(found.sources, serial.sources)


@pytest.mark.gpu
def test_on_gpus(count):
    given = problem(skewed())
    serial = given.solve(rtol=1e-9)
    for found in on_gpus(count, lambda c: given.solve(rtol=1e-9, ranks=c, device="cuda")):
        assert found.converged and np.linalg.norm(found.p - serial.p) <= 1e-7 * np.linalg.norm(serial.p)


def test_a_floating_pressure(ranks):
    mesh = skewed()
    walls = {name: fvm.Neumann(0.0) for name in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")}
    given = fvm.Poisson(mesh, walls, source=lambda x: x[:, 0])
    with pytest.raises(swell.InputError, match="no patch fixes a value"):
        ranks.run(lambda c: given.solve(ranks=c))
    serial = given.solve(balance=True, mean=2.0)
    for found in ranks.run(lambda c: given.solve(balance=True, mean=2.0, ranks=c)):
        assert found.converged and np.linalg.norm(found.p - serial.p) <= 1e-6 * np.linalg.norm(serial.p)
        assert found.notes == serial.notes


def test_transport(ranks):
    mesh = skewed()
    conditions = {name: fvm.Neumann(0.0) for name in ("xmax", "ymin", "ymax", "zmin", "zmax")}
    given = fvm.ScalarTransport(mesh, {**conditions, "xmin": fvm.Dirichlet(1.0)}, velocity=(1.0, 0.3, 0.1),
                                diffusivity=0.05)
    serial = given.solve()
    for found in ranks.run(lambda c: given.solve(ranks=c)):
        assert found.converged and np.linalg.norm(found.p - serial.p) <= 1e-6 * np.linalg.norm(serial.p)


def test_cyclic_patches(ranks):
    """The whole mesh on every rank: the serial rows, fluxes and values, whichever way the pairs are cut."""
    def waves(x):
        return np.sin(2 * np.pi * x[:, 0] + 0.3) * np.sin(np.pi * x[:, 1])

    mesh = fvm.box((9, 8, 7), perturb=0.2, periodic="xz")
    walls = {"ymin": fvm.Dirichlet(0.0), "ymax": fvm.Dirichlet(1.0)}
    problem = fvm.Poisson(mesh, walls, lambda x: 1.5 + waves(x), lambda x: waves(x))
    serial, system = problem.solve(rtol=1e-9), problem.assemble()
    x = rng().standard_normal(mesh.n_cells)
    product, explicit = system.A.to_scipy() @ x, system.rhs(system.flux_at(x))

    def parts(communicator):
        part = RankSystem(communicator, problem, "cpu", "float64")
        y = np.empty(part.A.own.shape[0])
        part.A.apply(x[part.A.rows], y)
        return (part.A.gather(y), part.A.gather(part.rhs(part.flux_at(x[part.A.rows]))),
                problem.solve(rtol=1e-9, ranks=communicator))

    for y, b, found in ranks.run(parts):
        assert np.allclose(y, product, rtol=1e-12, atol=1e-12) and np.allclose(b, explicit, rtol=1e-12, atol=1e-11)
        assert found.converged and found.corrections == serial.corrections
        assert np.linalg.norm(found.p - serial.p) <= 1e-7 * np.linalg.norm(serial.p)
        assert np.linalg.norm(found.fluxes - serial.fluxes) <= 1e-7 * np.linalg.norm(serial.fluxes)
        assert found.imbalance == pytest.approx(serial.imbalance, rel=0.5)


def test_a_part_of_a_mesh(ranks):
    """Each rank's own cells with their faces; data of the whole mesh reach them, and go back."""
    mesh = fvm.box((4, 3, 4), perturb=0.2, periodic="x")

    def parts(communicator):
        division = Division(communicator, mesh)
        part = division.part
        assert np.allclose(part.volumes, mesh.volumes[division.order]) and part.ranks is communicator
        assert [p.name for p in part.patches[:6]] == [p.name for p in mesh.patches]
        walls = division.conditions({"ymin": fvm.Dirichlet(np.arange(16.0)), "zmin": fvm.Neumann(2.0)})
        assert walls["zmin"].gradient == 2.0 and walls["ymin"].value.size == part.patch("ymin").size
        velocity = division.of_part(mesh.centres)
        assert np.array_equal(division.cells(velocity), mesh.centres)
        return division.faces(part.face_areas[:, 0])

    for areas in ranks.run(parts):
        assert np.allclose(areas, mesh.face_areas[:, 0])


def test_more_ranks_than_cells():
    if swell.distributed.launcher.launched() > 1:
        pytest.skip("of three threads")
    with pytest.raises(swell.InputError, match="cannot be shared by 3 ranks"):
        swell.distributed.run(3, lambda c: problem(fvm.box((2, 1, 1))).solve(ranks=c))


@pytest.mark.parametrize("convection", [False, True])
def test_multigrid(ranks, convection, monkeypatch):
    """Pressure and a transported scalar: as many iterations as on one rank, since all ranks coarsen together."""
    monkeypatch.setitem(hierarchy.GATHERED, "cpu", 60)
    monkeypatch.setitem(COARSEST, "cpu", 80)
    mesh = fvm.box((14, 12, 10))
    walls = {name: fvm.Dirichlet(1.0) if name == "xmin" else fvm.Neumann(0.0) for name in
             ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")}
    given = (fvm.ScalarTransport(mesh, walls, diffusivity=0.02, velocity=(1.0, 0.5, 0.2), source=1.0) if convection else
             fvm.Poisson(mesh, walls, source=1.0))
    settings = {"precond": "amg", "rtol": 1e-9, "method": "gmres" if convection else "cg"}
    serial = given.solve(**settings)
    for found in ranks.run(lambda c: given.solve(ranks=c, **settings)):
        assert found.converged and abs(found.result.iterations - serial.result.iterations) <= 1
        assert np.linalg.norm(found.p - serial.p) <= 1e-7 * np.linalg.norm(serial.p)
