"""Forces on walls: a channel's friction and pressure, forces recorded in each iteration and step, their table."""
from __future__ import annotations

import numpy as np
import pytest

from swell.core.errors import InputError
from swell.pde import fvm

WALL = fvm.Dirichlet((0.0, 0.0, 0.0))


def channel(n, viscosity=0.1):
    """A channel of length 2 and height 1 with a parabola of mean speed 1 at its inlet."""
    def parabola(x):
        return 6 * (x[:, 1] * (1 - x[:, 1]))[:, None] * [1.0, 0, 0]
    return fvm.Flow(fvm.box((n, n), upper=(2.0, 1.0, 1.0)), {"xmin": fvm.Dirichlet(parabola), "xmax": fvm.Neumann(),
                                                             "y*": WALL}, viscosity, {"xmax": fvm.Dirichlet(0.0)})


def test_friction_of_a_channel(device):
    """The wall's friction is 6 ν a unit of length; the inlet's pressure balances both walls."""
    errors = []
    for n in (6, 12):
        flow = channel(n)
        solution = flow.solve(fvm.SIMPLE(velocity=0.9, scheme="linear"), device=device, forces=("ymin", "x*"))
        assert solution.converged and set(solution.forces) == {"ymin", "xmin"}
        assert solution.forces["ymin"].shape == (solution.iterations, 2, 3)
        assert set(flow.forces(solution)) == {"ymin", "ymax"}    # an inlet is no wall
        at_end = flow.forces(solution, ("*", "x*"))
        for name, found in solution.forces.items():
            np.testing.assert_allclose(found[-1], at_end[name], atol=1e-10)
        (pressure, viscous), inlet = at_end["ymin"], at_end["xmin"][0]
        assert viscous[1] == 0 and pressure[0] == 0
        errors.append([viscous[0] - 1.2, -inlet[0] - 2.4])
    first, second = np.abs(errors)
    assert (second < 0.05).all() and (second < 0.4 * first).all()


def test_a_wall_that_moves_is_no_inlet():
    """It moves along its faces, but for a few percent where flat faces stand for a bent wall."""
    mesh = fvm.box((8, 8))
    turning = fvm.Dirichlet(lambda x: np.stack([0.5 - x[:, 1], 0 * x[:, 0], 0 * x[:, 0]], axis=1))
    flow = fvm.Flow(mesh, {"ymin": turning, "ymax": fvm.Dirichlet((1.0, 0.02, 0.0)), "xmin": fvm.Dirichlet((1.0, 0, 0)),
                           "xmax": fvm.Neumann()}, 0.1, {"xmax": fvm.Dirichlet(0.0)})
    assert set(flow.forces(flow.solve(fvm.SIMPLE(maxiter=1)))) == {"ymin", "ymax"}


def test_forces_in_time(device):
    """They are recorded for each step, with its time; the last one is the end's. The step to the end is shorter."""
    flow = channel(6)
    solution = flow.march(fvm.PISO(dt=0.1, end=0.25), device=device, forces=("*",))
    np.testing.assert_allclose(solution.times[:, 0], [0.1, 0.2, 0.25])
    assert solution.times[-1, 1] == solution.courant and (solution.times[:, 1] > 0).all()
    for name, (pressure, viscous) in flow.forces(solution).items():
        np.testing.assert_allclose(solution.forces[name][-1], [pressure, viscous], atol=1e-10)
    assert solution.forces["ymin"].shape == (3, 2, 3)


def test_the_table(tmp_path):
    solution = channel(6).march(fvm.PISO(dt=0.1, end=0.2), forces=("ymax",))
    solution.write_history(tmp_path / "h.csv")
    header, *rows = (tmp_path / "h.csv").read_text().splitlines()
    assert header == ("step,time,Courant number,momentum,continuity,ymax pressure x,ymax pressure y,ymax pressure z,"
                      "ymax viscous x,ymax viscous y,ymax viscous z")
    found = np.array([row.split(",") for row in rows], float)
    np.testing.assert_allclose(found[:, 5:], solution.forces["ymax"].reshape(2, 6), rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], [0.1, 0.2])
    steady = channel(6).solve(fvm.SIMPLE(maxiter=3))
    steady.write_history(tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "iteration,momentum,continuity" and not steady.forces


def test_walls_that_are_not_there():
    for name in ("xmax", "wing", "q*"):
        with pytest.raises(InputError, match=r"is no patch of given velocity.*There are: xmin, ymin, ymax"):
            channel(4).solve(forces=(name,))
