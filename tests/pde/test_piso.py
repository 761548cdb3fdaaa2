"""PISO: orders in time on decaying vortices, the limit of long times, planes of symmetry of any direction, what may go
wrong; forces; flow that comes back through an outlet."""
from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.core.stopping import Reason
from swell.pde import fvm
from swell.pde.fvm.piso import March

WALL = fvm.Dirichlet((0.0, 0.0, 0.0))
CAVITY = {**dict.fromkeys(("xmin", "xmax", "ymin"), WALL), "ymax": fvm.Dirichlet((1.0, 0.0, 0.0))}
NU = 0.05


def vortices(mesh, t):
    """Taylor and Green's: u = sin x cos y e^{−2νt}, v = −cos x sin y e^{−2νt}."""
    x, y = mesh.centres[:, :2].T
    u = np.stack([np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), 0 * x], axis=1)
    return u * math.exp(-2 * NU * t)


def started(mesh, flow, velocity):
    return fvm.FlowSolution(velocity, np.zeros(mesh.n_cells), flow.fluxes_of(velocity), False, np.zeros((0, 2)), (0, 0),
                            mesh)


def decayed(n, dt, device="cpu", **settings):
    mesh = fvm.box((n, n), upper=(2 * math.pi, 2 * math.pi, 1.0), periodic="xy")
    flow = fvm.Flow(mesh, {}, NU)
    settings = fvm.PISO(dt=dt, end=0.8, momentum_rtol=1e-10, pressure_rtol=1e-9, **settings)
    return mesh, flow.march(settings, device, started(mesh, flow, vortices(mesh, 0.0)))


@pytest.mark.parametrize("time, order", [("euler", 1), ("bdf2", 2)])
def test_order_in_time(time, order):
    """Against the same mesh with a small step. Rhie and Chow's term, of the order Δt h², remains."""
    found = [decayed(24, dt, time=time)[1].velocity for dt in (0.1, 0.05, 0.8 / 160)]
    errors = [np.linalg.norm(v - found[2]) for v in found[:2]]
    assert math.log2(errors[0] / errors[1]) > order - 0.2, errors


def test_vortices_decay(device):
    """Second order in space; the fluxes conserve."""
    errors = []
    for n in (8, 16) if device == "cuda" else (16, 32):
        mesh, solution = decayed(n, 0.02 if device == "cpu" else 0.1, device)
        errors.append(np.linalg.norm(solution.velocity - vortices(mesh, 0.8)) / np.linalg.norm(vortices(mesh, 0.8)))
    assert solution.time == pytest.approx(0.8) and solution.residuals[-1][1] < 1e-7 and not solution.notes
    assert errors[1] < (0.03 if device == "cpu" else 0.08), errors
    assert device == "cuda" or math.log2(errors[0] / errors[1]) > 1.7, errors


@pytest.mark.parametrize("dt", [0.02, 0.08])
def test_long_times_give_the_steady_state(dt):
    """The cavity at Re 100, whatever the step: the fluxes hardly depend on it."""
    mesh = fvm.box((16, 16))
    flow = fvm.Flow(mesh, CAVITY, 0.01)
    steady = flow.solve(fvm.SIMPLE(velocity=0.9, rtol=1e-8, scheme="linear"))
    marched = flow.march(fvm.PISO(dt=dt, end=24.0))
    assert abs(marched.velocity - steady.velocity).max() < 1e-3
    assert abs(marched.fluxes - steady.fluxes).max() < 5e-5


def test_a_channel_starts_from_rest():
    """A plane channel, whose inlet has the profile of its end: it ends in a parabola, and the force on the walls
    balances the pressure drop."""
    mesh = fvm.box((8, 24), upper=(2.0, 1.0, 1.0))
    parabola = lambda x: np.stack([6 * x[:, 1] * (1 - x[:, 1]), 0 * x[:, 0], 0 * x[:, 0]], 1)   # noqa: E731
    flow = fvm.Flow(mesh, {"xmin": fvm.Dirichlet(parabola), "xmax": fvm.InletOutlet((0.0, 0, 0)), "y*": WALL}, 0.1,
                    {"xmax": fvm.Dirichlet(0.0)})
    solution = flow.march(fvm.PISO(dt=0.05, end=4.0))
    assert abs(solution.velocity - parabola(mesh.centres)).max() < 0.02
    forces = flow.forces(solution)
    drag = sum(forces[name][1][0] for name in ("ymin", "ymax"))
    assert drag == pytest.approx(12 * 0.1 * 2.0, rel=0.02)
    assert forces["ymin"][0][1] < 0 < forces["ymax"][0][1]


def test_planes_of_symmetry_may_have_any_direction():
    """Half a channel, turned by 30 degrees, steady and in time: its middle is a plane of symmetry, to which no axis is
    normal."""
    half = fvm.box((10, 10), upper=(1.0, 0.5, 1.0))
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    mesh = fvm.Mesh.from_faces(half.points @ turn.T, half.face_ptr, half.face_points, half.owner, half.neighbour,
                               half.patches)

    def parabola(x):
        y = (x @ turn)[:, 1]
        return np.stack([6 * y * (1 - y), 0 * y, 0 * y], 1) @ turn.T
    flow = fvm.Flow(mesh, {"xmin": fvm.Dirichlet(parabola), "xmax": fvm.Neumann(), "ymin": WALL,
                           "ymax": fvm.Symmetry()}, 0.1, {"xmax": fvm.Dirichlet(0.0)})
    for solution in (flow.solve(fvm.SIMPLE(velocity=0.8)), flow.march(fvm.PISO(dt=0.05, end=4.0))):
        assert abs(solution.velocity - parabola(mesh.centres)).max() < 0.02
        assert not solution.fluxes[mesh.patch("ymax").faces].any()


def test_flow_that_comes_back_brings_the_given_velocity():
    """A box that sucks through its bottom: the open top lets fluid in, at rest along x."""
    mesh = fvm.box((6, 6))
    sink = fvm.Dirichlet((0.0, -1.0, 0.0))
    flow = fvm.Flow(mesh, {"ymin": sink, "ymax": fvm.InletOutlet((0.3, 0.0, 0.0)), "x*": fvm.Symmetry()}, 0.1,
                    {"ymax": fvm.Dirichlet(0.0)})
    solution = flow.solve(fvm.SIMPLE(velocity=0.8))
    assert solution.converged and (solution.fluxes[mesh.patch("ymax").faces] < 0).all()
    through = -solution.fluxes[mesh.patch("ymax").faces].sum()
    assert through == pytest.approx(1.0, rel=1e-5)
    assert solution.velocity[-6:, 0].max() > 0.01                # what enters carries u = 0.3 with it


def test_outputs_come_when_asked():
    seen = []
    flow = fvm.Flow(fvm.box((4, 4)), CAVITY, 0.1)
    last = flow.march(fvm.PISO(dt=0.03, end=0.1, every=0.05), watch=lambda one: seen.append(one.time))
    assert seen == pytest.approx([0.06, 0.1]) and last.time == pytest.approx(0.1) and last.iterations == 4
    seen.clear()
    flow.march(fvm.PISO(dt=0.05, end=0.1), watch=lambda one: seen.append(one.courant))
    assert len(seen) == 1 and 0 < seen[0] < 1
    seen.clear()
    flow.march(fvm.PISO(dt=0.05, end=0.1, every=0.04), watch=lambda one: seen.append(one.time))
    assert seen == [0.05, 0.1]                                   # the end once


def marched(monkeypatch, dt, end, **settings):
    """The sizes of the steps and the times of the outputs, without the work of a step."""
    march, sizes, seen = March(fvm.Flow(fvm.box((2, 2)), CAVITY, 0.1), fvm.PISO(dt, end, **settings),
                               make_space("cpu")), [], []
    monkeypatch.setattr(march, "step", lambda dt: (sizes.append((dt, march.before is not None)), (0.0, 0.0, 1.0))[1])
    monkeypatch.setattr(march, "_at", lambda t, *rest: SimpleNamespace(time=t))
    march.run(None, lambda one: seen.append(one.time))
    return np.array(sizes), seen


@pytest.mark.parametrize("dt, end, count, last", [
    (0.1, 0.3, 3, 1), (0.1, 0.7, 7, 1), (0.1, 0.8 - 0.1, 7, 1), (0.1, 0.3 - 0.2, 1, 1), (1e-3, 10.0, 10000, 1),
    (0.0333333, 1.0, 30, 1), (0.0333334, 1.0, 30, 1), (0.1, 0.35, 4, 0.5), (0.1, 0.301, 4, 0.01), (0.3, 0.1, 1, 1 / 3),
    (1.0, 1e-6, 1, 1e-6)])
def test_steps_end_at_the_end(monkeypatch, dt, end, count, last):
    """Rounding makes no step of its own, and none of BDF2's into one of Euler; outputs come at their times."""
    sizes, seen = marched(monkeypatch, dt, end, every=dt)
    assert len(sizes) == count == len(seen) and seen[-1] == end
    np.testing.assert_allclose(sizes[:-1, 0], dt, rtol=1e-9)
    assert sizes[-1, 0] == pytest.approx(last * dt, rel=2e-4)
    np.testing.assert_allclose(seen[:-1], dt * np.arange(1, count), rtol=1e-12)


def test_bdf2_takes_equal_steps(monkeypatch):
    """The step before a shorter one is of no use to it."""
    march = March(fvm.Flow(fvm.box((2, 2)), CAVITY, 0.1), fvm.PISO(0.1, 0.35), make_space("cpu"))
    known, step = [], march.step
    monkeypatch.setattr(march, "step", lambda dt: (known.append(march.before is not None), step(dt))[1])
    march.run(None, None)
    assert known == [False, True, True, False]
    known.clear()
    march.settings = fvm.PISO(0.0333333, 0.1)
    march.run(None, None)
    assert known == [False, True, True]


@pytest.mark.parametrize("end", [0.3, 0.300003, 0.30003])
def test_the_pressure_at_an_odd_end(end):
    """A last step of a millionth of the others would divide what the pressure solves leave by it."""
    flow, tolerance = fvm.Flow(fvm.box((8, 8)), CAVITY, 0.01), {"pressure_rtol": 1e-4}
    usual = flow.march(fvm.PISO(dt=0.1, end=0.3, **tolerance))
    found = flow.march(fvm.PISO(dt=0.1, end=end, **tolerance))
    assert found.time == end and abs(found.p - usual.p).max() < 0.05 * abs(usual.p).max()


def test_the_remedy_takes_the_first_step(monkeypatch):
    """Not the last one, which may be shorter: its Courant number is another."""
    march = March(fvm.Flow(fvm.box((2, 2)), CAVITY, 0.1), fvm.PISO(0.1, 0.35), make_space("cpu"))
    march.times = [(0.1, 2.0), (0.2, 3.0)]
    assert march._remedy(7.0) == ", at a Courant number of 7: take dt=0.05"


@pytest.mark.gpu
def test_nothing_is_fetched_between_outputs(monkeypatch):
    """Fields stay on the GPU: a step copies only the numbers of its report."""
    flow, large, kind = fvm.Flow(fvm.box((12, 12)), CAVITY, 0.1), [], type(make_space("cuda"))
    usual = kind.to_host

    def to_host(self, array, *rest):
        if getattr(array, "size", 0) >= 144:
            large.append(array.size)
        return usual(self, array, *rest)
    monkeypatch.setattr(kind, "to_host", to_host)
    counts = []
    for end in (0.2, 0.4):
        large.clear()
        flow.march(fvm.PISO(dt=0.05, end=end, pressure_precond="jacobi"), "cuda")
        counts.append(len(large))
    assert counts[0] == counts[1]


def test_divergence_names_the_courant_number_and_a_step():
    flow = fvm.Flow(fvm.box((16, 16)), CAVITY, 1e-4)
    solution = flow.march(fvm.PISO(dt=5.0, end=500.0, scheme="linear"))
    assert not np.isfinite(solution.velocity).all() or solution.notes
    assert " at t = " in solution.notes[0] and "Courant number" in solution.notes[0]
    assert "take dt=" in solution.notes[0]


@pytest.mark.parametrize("arguments, words", [
    ({"dt": True, "end": 1}, "dt=True: expected a positive time step"), ({"dt": 1, "end": True}, "end=True"),
    ({"dt": 0, "end": 1}, "dt=0: expected a positive time step"), ({"dt": 1, "end": 0}, "end=0"),
    ({"dt": 1, "end": 1, "every": -1}, "every=-1"), ({"dt": 1, "end": 1, "time": "rk4"}, "time scheme 'rk4'"),
    ({"dt": 1, "end": 1, "correctors": 0}, "correctors=0"), ({"dt": 1, "end": 1, "scheme": "quick"}, "scheme='quick'"),
    ({"dt": 1e-300, "end": 1e10}, "1e\\+10 is inf steps of 1e-300"),
    ({"dt": 1, "end": 1, "pressure_rtol": 2}, "pressure_rtol=2")])
def test_bad_settings(arguments, words):
    with pytest.raises(InputError, match=words):
        fvm.PISO(**arguments)


def test_bad_input():
    flow = fvm.Flow(fvm.box((4, 4)), CAVITY, 0.1)
    with pytest.raises(InputError, match=r"expected PISO\(dt=..., end=...\)"):
        flow.march(fvm.SIMPLE())
    with pytest.raises(InputError, match="start is of type int"):
        flow.march(fvm.PISO(dt=1, end=1), start=3)


def test_vortices_keep_their_strength():
    """Convection in the matrix has no upwind diagonal, and the fluxes stay with the velocities all the same."""
    mesh = fvm.box((16, 16), upper=(2 * math.pi, 2 * math.pi, 1.0), periodic="xy")
    flow, start = fvm.Flow(mesh, {}, 1e-3), vortices(mesh, 0.0)
    solution = flow.march(fvm.PISO(dt=0.02, end=2.0), start=started(mesh, flow, start))
    assert 0.93 < np.linalg.norm(solution.velocity) / np.linalg.norm(start) < 1          # 0.90 if φ drifts from u_f·s


def test_linear_convection_above_courant_one(device):
    """Vortices in a stream at a Courant number of 1.7: with convection in the matrix the velocities decay to 0.84 of
    the start; deferred, two correctors do not follow it, and the velocities grow to 1.29, and later without bound."""
    mesh = fvm.box((8, 8), upper=(2 * math.pi, 2 * math.pi, 1.0), periodic="xy")
    flow, start = fvm.Flow(mesh, {}, 1e-4), vortices(mesh, 0.0) + [1.0, 0.0, 0.0]
    solution = flow.march(fvm.PISO(dt=0.76, end=40 * 0.76), device, started(mesh, flow, start))
    assert solution.times[0, 1] == pytest.approx(1.7, abs=0.01) and not solution.notes
    assert np.linalg.norm(solution.velocity) < np.linalg.norm(start)


@pytest.mark.parametrize("counts, renewed", [([10, 8, 11, 9, 12, 9, 10, 9], [False, False, False, True]),
                                             ([10, 11, 10, 11], [False, False])])
def test_a_worn_preconditioner_is_renewed(counts, renewed):
    """PISO has several solves a step: one that is slow renews the preconditioner, though the next one is not."""
    flow = fvm.Flow(fvm.box((4, 4)), CAVITY, 0.1)
    march = March(flow, fvm.PISO(0.1, 0.1), make_space("cpu"))
    left, kept = list(counts), []

    class Solver:
        def solve(self, b, x0=None):
            return SimpleNamespace(iterations=left.pop(0), x=0 * b, converged=True, reason=Reason.CONVERGED)

        def update(self, P, keep_preconditioner):
            kept.append(keep_preconditioner)

    march.pressure_solver, march.across = Solver(), lambda A: A
    while left:
        march.update_pressure()
        for _ in range(2):
            march.solve_pressure(np.zeros(16))
    assert [not keep for keep in kept] == renewed
