"""An outer iteration of a flow: its kernels against the operators on whole arrays, what it costs the host, its solvers."""
from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from tests.conftest import space_or_skip
from tests.support.host_reads import host_reads

from swell.pde import fvm
from swell.pde.fvm.convection import SCHEMES, Convection
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.piso import March
from swell.pde.fvm.simple import Steady
from swell.solver import Solver

WALL = fvm.Dirichlet((0.0, 0.0, 0.0))


def channel(top=WALL, outlet=fvm.Neumann(), turn=0.0, cells=(10, 6, 4), **box):
    """A channel with an inlet, turned about the z axis, with one condition on its top, front and back."""
    mesh = fvm.box(cells, upper=(2.0, 1.0, 0.5), **box)
    rotation = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    mesh = fvm.Mesh.from_faces(mesh.points @ rotation.T, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour,
                               mesh.patches)
    velocity = {"xmin": fvm.Dirichlet(tuple(rotation @ (1.0, 0.0, 0.0))), "xmax": outlet, "ymin": WALL, "*": top}
    return fvm.Flow(mesh, velocity, 0.02, {"xmax": fvm.Dirichlet(0.0)}), rotation


def begun(flow, device, start=None, **settings):
    """A run of SIMPLE before its first iteration."""
    space = space_or_skip(device)
    run = Steady(flow, fvm.SIMPLE(velocity=0.8, **settings), space)
    run.begin(start)
    return run


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("top", [WALL, fvm.Symmetry()])
@pytest.mark.parametrize("outlet", [fvm.Neumann(), fvm.InletOutlet((-0.3, 0.1, 0.0))])
def test_momentum_is_diffusion_and_convection(scheme, top, outlet, device):
    """On a skewed mesh, with fluxes that do not conserve and turn at the outlet: the residual of each component."""
    flow, _ = channel(top, outlet, turn=0.5, cells=(5, 4, 3), perturb=0.2)
    run, rng = begun(flow, device, scheme=scheme), np.random.default_rng(1)
    space, metrics, pattern = run.space, run.metrics, run.metrics.pattern
    with space.active():
        u = space.from_host(rng.standard_normal((3, metrics.n)))
        phi, run.p = (space.from_host(rng.standard_normal(size)) for size in (metrics.owner.size, metrics.n))
        phi[run.outside][run.closed] = 0
        run.slope(run.p, run.grad_p)
        run.momentum(u, phi, u, 0.0, 0.8)
        x, b = run.unknowns(u), run.unknowns(run.rhs)
        r = space.xp.empty_like(b)
        for rows in zip(x, b, r):
            run.A.residual(*rows)
        found = space.to_host(run.components(r)).copy()
        for i, side in enumerate(run.sides):
            diffusion = Laplacian(metrics, side, 0.02)
            convection = Convection(metrics, side, phi, scheme, deferred=True)
            gradient, flux = run.gradients[i](u[i]), diffusion.flux() + convection.flux()
            total = flux.of(metrics, u[i]) + diffusion.explicit(gradient) + convection.explicit(u[i], gradient)
            wanted = pattern.collect(phi) * u[i] - pattern.collect(total) - metrics.volumes * run.grad_p[i]
            assert np.allclose(found[i], space.to_host(wanted), rtol=1e-11, atol=1e-11 * abs(found).max())
        lost = space.to_host(run.measures[0])
    assert np.allclose(lost, abs(found).sum(0), rtol=1e-10)


@pytest.mark.parametrize("unknowns", [1, 3])
def test_the_diagonal_that_the_pressure_takes(unknowns, device):
    """row_sums = D/α + Σ off-diagonal, of the matrix without what planes of symmetry add; it is positive."""
    flow, _ = channel(fvm.Symmetry() if unknowns > 1 else WALL, cells=(5, 4, 3))
    run = begun(flow, device)
    space, n = run.space, run.metrics.n
    with space.active():
        run.momentum(run.u, run.phi, run.u, 3.0, 0.8)
        A = run.A.to_scipy()
        D, row_sums, extra = (space.to_host(v) for v in (run.D, run.row_sums, run.extra))
        sums, added = np.asarray(A.sum(1)).ravel(), extra.T.ravel() / 0.8 if unknowns > 1 else 0
    assert A.shape == (unknowns * n, unknowns * n) and row_sums.min() > 0
    assert np.allclose(sums, np.repeat(row_sums, unknowns) + added)
    assert np.allclose(A.diagonal(), np.repeat(D, unknowns) / 0.8 + added)


def test_a_plane_of_symmetry_may_be_oblique():
    """Its components are coupled; the flow turns with the channel."""
    straight, turned = (channel(fvm.Symmetry(), turn=turn) for turn in (0.0, 0.6))
    first, second = (flow.solve(fvm.SIMPLE(velocity=0.9, rtol=1e-8)) for flow, _ in (straight, turned))
    assert first.converged and second.converged
    assert abs(second.velocity - first.velocity @ turned[1].T).max() < 1e-6


@pytest.mark.parametrize("top", [WALL, fvm.Symmetry()])
def test_two_linear_solves_an_iteration(top, monkeypatch):
    """All components are one solve, beside planes of symmetry too."""
    solved, solve = [], Solver.solve
    monkeypatch.setattr(Solver, "solve", lambda self, *args, **named: (solved.append(1), solve(self, *args, **named))[1])
    solution = channel(top)[0].solve(fvm.SIMPLE(maxiter=5))
    assert len(solved) == 2 * solution.iterations


@pytest.mark.parametrize("moving", [False, True])
def test_the_advisor_is_asked_once(moving, monkeypatch):
    """For the first matrix of a fluid that moves; a direct method is not taken."""
    from swell.advisor import choose
    asked, answers = choose.choose, []
    monkeypatch.setattr(choose, "choose", lambda *given: (answers.append(given), asked(*given))[1])
    flow, _ = channel()
    start = flow.solve(fvm.SIMPLE(maxiter=2, momentum="bicgstab")) if moving else None
    run = begun(flow, "cpu", start)
    for count in range(4):
        run.iterate()
        assert len(answers) == (1 if count or moving else 0)
    assert run.momentum_solver.choices[0].name("method") != "direct" and len(run.momentum_solver.choices) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("top", [WALL, fvm.Symmetry()])
def test_what_an_iteration_costs_the_host(top):
    """The fields stay on the device: an iteration reads a record of six numbers, and the linear solves read scalars and
    the facts on their matrices. Beside them, it launches 15 kernels for three components: the 13 below, the balance of
    the fluxes, and the pressure's matrix. They allocate nothing."""
    flow, _ = channel(top)
    run = begun(flow, "cuda", momentum="bicgstab", momentum_precond="jacobi", pressure_precond=None)
    space, pool = run.space, space_or_skip("cuda").xp.get_default_memory_pool()
    with space.active():
        for _ in range(3):
            run.iterate()
        with host_reads(space) as sizes:
            run.iterate()
        launches, used = space.launches, pool.used_bytes()
        run.slope(run.p, run.grad_p)
        run.momentum(run.u, run.phi, run.u, 0.0, 0.8)
        run.interpolate_fluxes(run.u)
        run.correct(run.p)
        with host_reads(space) as own:
            run.measure()
        assert space.launches - launches == 13 and own == [48] and pool.used_bytes() == used
    assert max(sizes) <= 256 and sum(sizes) <= 1024, sizes


def test_an_iteration_keeps_no_memory():
    run = begun(channel(fvm.Symmetry(), cells=(16, 12, 8))[0], "cpu", pressure_precond=None)
    for _ in range(10):                          # kernels that only some iterations need are loaded, too
        run.iterate()
    tracemalloc.start()
    try:
        run.iterate()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(5):
            run.iterate()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 8 * run.metrics.n, (before, after)


@pytest.mark.gpu
def test_a_step_in_time_reads_scalars():
    flow, _ = channel(fvm.Symmetry(), fvm.InletOutlet((0.0, 0.0, 0.0)), cells=(6, 5, 4))
    run = March(flow, fvm.PISO(dt=0.05, end=1.0), space_or_skip("cuda"))
    run.before = None
    with run.space.active():
        run.begin(None)
        for _ in range(3):
            run.step(0.05)
        with host_reads(run.space) as sizes:
            run.step(0.05)
            run.courant(0.05)
    assert max(sizes) <= 256 and sum(sizes) <= 2048, sizes
