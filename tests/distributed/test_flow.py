"""Flow across ranks: the flow on one rank, of parts that ranks read and of parts that they take."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.support.across import on_gpus
from tests.support.cases import rng

import swell
from swell.pde import fvm
from swell.pde.fvm.across_ranks import Division
from swell.pde.fvm.piso import March
from swell.pde.fvm.simple import Steady

pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")

AT_REST = fvm.Dirichlet((0.0, 0.0, 0.0))
TIGHT = {"momentum_rtol": 1e-11, "pressure_rtol": 1e-11}         # the preconditioners of ranks make no difference


def swirl(x):
    k = 2 * np.pi
    return np.stack([np.sin(k * x[:, 0]) * np.cos(k * x[:, 1]), -np.cos(k * x[:, 0]) * np.sin(k * x[:, 1]),
                     0.1 * np.sin(k * x[:, 2])], axis=1)


def cavity():
    """Walls all round, so that the pressure floats; faces that are not orthogonal; a viscosity of each cell."""
    mesh = fvm.box((6, 5, 4), perturb=0.2)
    lid = np.zeros((mesh.patch("ymax").size, 3))
    lid[:, 0] = 1 + 0.3 * rng().random(len(lid))
    return fvm.Flow(mesh, {"ymax": fvm.Dirichlet(lid), "*": AT_REST}, 0.02 * (1 + rng().random(mesh.n_cells)))


def channel():
    """Inlet, planes of symmetry, an outlet where the flow may come back; two-dimensional."""
    mesh = fvm.box((14, 6))
    return fvm.Flow(mesh, {"xmin": fvm.Dirichlet(lambda x: np.stack([1 - x[:, 1] ** 2, 0 * x[:, 1], 0 * x[:, 1]], 1)),
                           "xmax": fvm.InletOutlet((0.0, 0.0, 0.0)), "ymin": fvm.Symmetry(), "ymax": AT_REST}, 0.05,
                    pressure={"xmax": fvm.Dirichlet(0.0)})


def slanted():
    """A channel whose planes of symmetry couple the components."""
    mesh = fvm.box((6, 5, 4))
    turned = mesh.points @ np.array([[0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    mesh = fvm.Mesh(turned, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour, mesh.patches)
    return fvm.Flow(mesh, {"xmin": fvm.Dirichlet((0.8, 0.6, 0.0)), "xmax": fvm.Neumann(), "ymin": fvm.Symmetry(),
                           "ymax": AT_REST, "z*": fvm.Symmetry()}, 0.05, pressure={"xmax": fvm.Dirichlet(1.0)})


def periodic():
    """Cyclic patches along x and z, a moving wall."""
    return fvm.Flow(fvm.box((6, 5, 4), perturb=0.15, periodic="xz"), {"ymin": AT_REST, "ymax": fvm.Dirichlet(
        (1.0, 0.0, 0.3))}, 0.1)


def start_of(flow):
    velocity = 0.3 * swirl(flow.mesh.centres)
    if flow.mesh.patch("zmin").kind == "empty":
        velocity[:, 2] = 0
    return fvm.FlowSolution(velocity, np.zeros(flow.mesh.n_cells), flow.fluxes_of(velocity), False, np.zeros((0, 2)),
                            (0, 0), flow.mesh, [])


def close(found, one, tolerance=1e-8):
    assert found.residuals.shape == one.residuals.shape
    assert np.allclose(found.residuals, one.residuals, rtol=1e-6, atol=1e-9)
    for name in ("velocity", "p", "fluxes"):
        here, there = getattr(found, name), getattr(one, name)
        assert np.linalg.norm(here - there) <= tolerance * max(np.linalg.norm(there), 1.0), name


@pytest.mark.parametrize("flow", [cavity, channel, slanted, periodic])
def test_simple(ranks, flow):
    """The residuals of each iteration and the fields agree with one rank."""
    flow = flow()
    start, settings = start_of(flow), fvm.SIMPLE(maxiter=6, **TIGHT)
    one, force = flow.solve(settings, start=start), flow.forces(start)
    seen = []
    for found in ranks.run(lambda c: flow.solve(settings, start=start, ranks=c,
                                                watch=lambda *numbers: seen.append((c.rank, *numbers)))):
        assert found.mesh is flow.mesh and not found.converged
        close(found, one)
    assert len({numbers[0] for numbers in seen}) * one.iterations == len(seen)
    assert set(force) == set(flow.forces(found))


def test_a_fluid_that_rests_on_some_ranks(ranks):
    """The momentum matrix is symmetric there; the ranks still choose one solver."""
    flow = channel()
    start, x = start_of(flow), flow.mesh.centres[:, 0]
    velocity = start.velocity * (x > 0.7)[:, None]
    start = replace(start, velocity=velocity, fluxes=flow.fluxes_of(velocity))
    settings = fvm.SIMPLE(maxiter=3, **TIGHT)
    one = flow.solve(settings, start=start)
    for found in ranks.run(lambda c: flow.solve(settings, start=start, ranks=c)):
        close(found, one)


@pytest.mark.parametrize("flow", [cavity, channel, slanted, periodic])
def test_piso(ranks, flow):
    flow = flow()
    start, settings, outputs = start_of(flow), fvm.PISO(0.02, 0.1, every=0.04, **TIGHT), []
    one = flow.march(settings, start=start)
    watch = lambda at: outputs.append(at.time)
    for found in ranks.run(lambda c: flow.march(settings, start=start, watch=watch, ranks=c)):
        close(found, one)
        assert found.courant == pytest.approx(one.courant) and found.time == one.time
    assert set(np.round(outputs, 9)) == {0.04, 0.08, 0.1}


def test_the_converged_flow(ranks):
    """With the usual loose solves the paths differ, and the ends do not."""
    flow = channel()
    settings = fvm.SIMPLE(rtol=1e-7, maxiter=300)
    one = flow.solve(settings)
    assert one.converged
    for found in ranks.run(lambda c: flow.solve(settings, ranks=c)):
        assert found.converged and abs(found.iterations - one.iterations) <= 0.2 * one.iterations
        assert abs(found.velocity - one.velocity).max() < 1e-5


def test_taylor_green_vortices(ranks):
    """They decay across ranks as they do on one, between cyclic patches all round."""
    mesh, nu, k = fvm.box((16, 16), periodic="xy"), 0.02, 2 * np.pi
    flow = fvm.Flow(mesh, {}, nu)
    x, y, _ = mesh.centres.T
    velocity = np.stack([np.sin(k * x) * np.cos(k * y), -np.cos(k * x) * np.sin(k * y), 0 * x], axis=1)
    start = fvm.FlowSolution(velocity, 0 * x, flow.fluxes_of(velocity), False, np.zeros((0, 2)), (0, 0), mesh, [])
    for found in ranks.run(lambda c: flow.march(fvm.PISO(0.01, 0.2), start=start, ranks=c)):
        assert found.converged and np.linalg.norm(found.velocity) / np.linalg.norm(velocity) == pytest.approx(
            np.exp(-2 * nu * k**2 * 0.2), rel=0.02)


@pytest.mark.parametrize("flow", [cavity, channel, periodic])
def test_a_decomposed_mesh(ranks, tmp_path, flow):
    """Each rank has its part alone: the fields of the whole, and forces that are summed up."""
    whole = flow()
    cells = fvm.decompose(whole.mesh, rng().permutation(np.arange(whole.mesh.n_cells) % ranks.size), tmp_path)
    settings = fvm.SIMPLE(maxiter=4, **TIGHT)
    one = whole.solve(settings, forces=("y*",))
    forces = whole.forces(one)

    def solved(communicator):
        part = fvm.read_part(tmp_path, communicator)
        own = cells[communicator.rank]
        given = dict(whole.velocity)
        if flow is cavity:
            lid = whole.mesh.patch("ymax")
            given["ymax"] = fvm.Dirichlet(given["ymax"].value[np.isin(whole.mesh.owner[lid.faces], own)])
        viscosity = whole.viscosity[own] if np.ndim(whole.viscosity) else whole.viscosity
        here = fvm.Flow(part, given, viscosity, whole.pressure)
        found = here.solve(settings, forces=("y*",))
        found.write(tmp_path / "flow.pvtu")
        if communicator.rank == 0:
            assert (tmp_path / "flow.pvtu").read_text().count("<Piece Source=") == communicator.size
        again = here.solve(settings, start=found)
        return own, found, here.forces(found), again.residuals[0]

    for own, found, ours, again in ranks.run(solved):
        assert np.allclose(found.residuals, one.residuals, rtol=1e-6, atol=1e-9) and found.cells == whole.mesh.n_cells
        assert np.allclose(found.velocity, one.velocity[own], atol=1e-8) and np.allclose(found.p, one.p[own], atol=1e-7)
        assert again.max() < 2 * one.residuals[-1].max()
        assert set(ours) == set(forces) and all(np.allclose(ours[name], forces[name], atol=1e-8) for name in forces)
        assert set(found.forces) == set(one.forces)
        assert all(np.allclose(found.forces[name], one.forces[name], atol=1e-8) for name in one.forces)


def test_ranks_without_a_face_of_the_empty_patches(ranks, tmp_path):
    """All ranks solve for the same components, also where the layers in the middle belong to other ranks."""
    mesh = fvm.box((3, 3, 4))
    patches = tuple(replace(patch, kind="empty") if patch.name[0] == "z" else patch for patch in mesh.patches)
    mesh = replace(mesh, patches=patches)
    sides, settings = {"ymax": fvm.Dirichlet((1.0, 0.0, 0.0)), "*": AT_REST}, fvm.SIMPLE(maxiter=3, **TIGHT)
    one = fvm.Flow(mesh, sides, 0.1).solve(settings)
    cells = fvm.decompose(mesh, (mesh.centres[:, 2] * ranks.size).astype(int), tmp_path)

    def solved(communicator):
        return cells[communicator.rank], fvm.Flow(fvm.read_part(tmp_path, communicator), sides, 0.1).solve(settings)

    for own, found in ranks.run(solved):
        assert np.allclose(found.velocity, one.velocity[own], atol=1e-8) and not found.velocity[:, 2].any()


def test_wrong_on_one_rank(ranks, tmp_path):
    """An error of one rank is raised on all of them."""
    whole = fvm.box((4, 4, 4))
    fvm.decompose(whole, (whole.centres[:, 0] * ranks.size).astype(int), tmp_path)

    def solved(communicator, last=AT_REST, start=False, lid=1.0):
        part = fvm.read_part(tmp_path, communicator)
        wrong = communicator.rank == communicator.size - 1
        flow = fvm.Flow(part, {"ymax": fvm.Dirichlet((lid, 0.0, 0.0)), "*": last if wrong else AT_REST}, 0.1)
        flow.solve(fvm.SIMPLE(maxiter=1), start=7 if start and wrong else None)

    with pytest.raises(swell.InputError, match="values have shape"):
        ranks.run(lambda c: solved(c, fvm.Dirichlet((0.0, 0.0))))
    with pytest.raises(swell.InputError, match="start is of type int"):
        ranks.run(lambda c: solved(c, start=True))
    if ranks.size > 1:
        with pytest.raises(swell.InputError, match="the ranks disagree on the conditions of the patches"):
            ranks.run(lambda c: solved(c, fvm.Symmetry()))
    with pytest.raises(swell.InputError, match="let .* out of the domain"):
        ranks.run(lambda c: solved(c, fvm.Dirichlet(lambda x: x * [1.0, 0.0, 0.0])))


@pytest.mark.parametrize("march", [False, True])
@pytest.mark.parametrize("where, ends", [("momentum", 3), ("update_pressure", 3), ("measure", 3), ("record_forces", 4)])
def test_ctrl_c_of_one_rank_between_linear_solves(ranks, monkeypatch, where, ends, march):
    """Only the last rank hears of it, in its third iteration: all ranks end with the same iterate, after the present
    iteration, or after the next where the ranks have spoken already."""
    run = March if march else Steady
    usual, counts = getattr(run, where), {}

    def pressed(self, *arguments):
        rank = self.flow.mesh.ranks.rank if self.flow.mesh.ranks else 0
        counts[rank] = counts.get(rank, 0) + 1
        if counts[rank] == 3 and rank == ranks.size - 1:
            self.interrupt()
        return usual(self, *arguments)

    flow = cavity()
    solve = lambda count, **more: (                                             # noqa: E731
        flow.march(fvm.PISO(0.02, count * 0.02, **TIGHT), **more) if march else
        flow.solve(fvm.SIMPLE(maxiter=count, **TIGHT), **more))
    one = solve(ends)
    monkeypatch.setattr(run, where, pressed)
    for found in ranks.run(lambda c: solve(8, ranks=c)):
        assert not found.converged and len(found.notes) == 1 and found.notes[0].startswith("interrupted")
        close(found, one)


def test_what_a_division_gives_to_a_part(ranks):
    """Conditions with one vector a face, and a vector for a patch of three faces, which looks like one value a face."""
    mesh = fvm.box((3, 4, 1))

    def parts(communicator):
        division = Division(communicator, mesh)
        each = np.arange(9.0).reshape(3, 3)
        found = division.conditions({"ymin": fvm.Dirichlet((1.0, 2.0, 3.0)), "ymax": fvm.Dirichlet(each)}, components=3)
        return np.array(found["ymin"].value), np.array(found["ymax"].value), division.part.patch("ymax").size

    sizes = [size for vector, each, size in ranks.run(parts)
             if vector.tolist() == [1, 2, 3] and each.shape == (size, 3)]
    assert len(sizes) in (1, ranks.size) and (len(sizes) == 1 or sum(sizes) == 3)


@pytest.mark.gpu
@pytest.mark.parametrize("flow", [cavity, slanted, periodic])
def test_on_gpus(count, flow):
    """A GPU for each rank: the flow of one CPU, steady and in time."""
    flow = flow()
    start, settings, steps = start_of(flow), fvm.SIMPLE(maxiter=3, **TIGHT), fvm.PISO(0.02, 0.06, **TIGHT)
    one, later = flow.solve(settings, start=start, forces=("y*",)), flow.march(steps, start=start)
    for found, then in on_gpus(count, lambda c: (flow.solve(settings, "cuda", start, forces=("y*",), ranks=c),
                                                 flow.march(steps, "cuda", start, ranks=c))):
        close(found, one)
        close(then, later)
        assert all(np.allclose(found.forces[name], one.forces[name], atol=1e-8) for name in one.forces)
