"""What a notebook shows of equations' solutions, and a ``repr`` of one line."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.pages import Page

from swell.pde import fvm
from swell.pde.poisson_cube import PoissonCube


def require(made, words):
    """A line, and a page with these words."""
    line = repr(made)
    assert line.startswith(type(made).__name__ + "(") and "\n" not in line and len(line) < 200, line
    text = Page(made._repr_html_()).text
    assert all(word in text for word in words), text


def test_finite_volumes():
    mesh = fvm.box((6, 5))
    names = "xmin", "xmax", "ymin", "ymax"
    found = fvm.Poisson(mesh, {name: fvm.Dirichlet(1.0) for name in names}, source=2.0).solve()
    require(found, ["converged 30 cells", "residual of the equation", "The longest linear solve", "xmin"])
    failed = fvm.Poisson(mesh, {name: fvm.Dirichlet(1.0) for name in names}, source=2.0).solve(
        method="cg", maxiter=1)
    require(failed, ["not converged"])


def test_a_flow_is_a_line():
    walls = {name: fvm.Dirichlet((0.0, 0.0, 0.0)) for name in ("xmin", "xmax", "ymin")}
    flow = fvm.Flow(fvm.box((5, 5)), {**walls, "ymax": fvm.Dirichlet((1.0, 0.0, 0.0))}, viscosity=0.1)
    assert repr(flow.solve(fvm.SIMPLE(maxiter=2))) == "FlowSolution(NOT converged, 2 iterations, 25 cells)"


def test_a_cube():
    found = PoissonCube(3, 2).assemble().solve()
    require(found, ["converged", "The cube and BDDC", f"{found.system.cube.n} unknowns"])


def test_waves():
    pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    from swell.pde import helmholtz
    room = helmholtz.Helmholtz(helmholtz.box((6, 5, 4), upper=(1.0, 0.8, 0.6)), helmholtz.Medium(damping=0.02),
                               {"zmax": helmholtz.Impedance(1000)})
    response = room.response("xmin", (0.7, 0.5, 0.3), np.array([100.0, 120.0]), fields=[120.0])
    require(response, ["2 of 2 converged", "the last solve"])
    assert "<svg" in response._repr_html_()
    require(response.fields[120.0], ["120 Hz, converged: |p| up to", "true relative residual"])
    assert repr(response.points[0]).startswith("Point(100 Hz, converged")
