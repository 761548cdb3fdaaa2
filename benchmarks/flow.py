"""How long an outer iteration of SIMPLE takes, and which part of it the pressure takes.

    python benchmarks/flow.py hump ac_room cavity:256 cavity3:64 --device cuda --pressure amg,jacobi,ic0 --iterations 20
    python benchmarks/flow.py path/to/case --momentum auto,bicgstab+jacobi --check

A CASE is a folder with 0/U and 0/p, one of the two meshes in $SWELL_DATA/openfoam (fields made here: hump at
Re_h = 500, ac_room with ν = 0.004, Re = 130 by an inlet's side), cavity:N or cavity3:N (a lid-driven box of N² or N³ cells,
Re = 100). The first iterations, which compile and set up, do not count: the median is over the second half.

Each part ends with a synchronisation, so that an iteration takes a little longer than without this script; "alone" is
the median of a second run without. ``--check`` compares the residuals of the first five iterations with the CPU's.
"""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from swell.core.devices import make_space
from swell.pde import fvm
from swell.pde.fvm.simple import Steady
from swell.solver import Solver

WALL = fvm.Dirichlet((0.0, 0.0, 0.0))
PARTS = "momentum update", "momentum solve", "pressure update", "pressure solve"


def uniform(flow, velocity):
    """Return a start with the same velocity in all cells."""
    mesh, u = flow.mesh, np.tile(np.asarray(velocity, float), (flow.mesh.n_cells, 1))
    return fvm.FlowSolution(u, np.zeros(mesh.n_cells), flow.fluxes_of(u), False, np.zeros((0, 2)), (0, 0), mesh)


def problem(name):
    """Return (Flow, its start or None, relaxation of the velocity)."""
    data = Path(os.environ.get("SWELL_DATA", "../shared/data")) / "openfoam"
    kind, _, size = name.partition(":")
    if kind in ("cavity", "cavity3"):
        mesh = fvm.box((int(size),) * (3 if kind == "cavity3" else 2))
        return fvm.Flow(mesh, {"ymax": fvm.Dirichlet((1.0, 0.0, 0.0)), "*": WALL}, 0.01), None, 0.9
    if name == "hump":
        flow = fvm.Flow(fvm.read_mesh(data / "hump"), {
            "b[23]*": fvm.Symmetry(), "b4-inlet": fvm.Dirichlet((1.0, 0.0, 0.0)), "b5-outlet": fvm.Neumann(),
            "b6-humpWall": WALL, "b7-topWall": fvm.Symmetry()}, 0.128 / 500, {"b5-outlet": fvm.Dirichlet(0.0)})
        return flow, uniform(flow, (1.0, 0.0, 0.0)), 0.95
    if name == "ac_room":
        flow = fvm.Flow(fvm.read_mesh(data / "ac_room"), {
            "inlet1": fvm.Dirichlet((-1.0, 0.0, 0.0)), "inlet2": fvm.Dirichlet((1.0, 0.0, 0.0)),
            "outlet*": fvm.InletOutlet((0.0, 0.0, 0.0)), "*": WALL}, 0.4 / 100,
            {"outlet1": fvm.Dirichlet(0.0), "outlet2": fvm.Dirichlet(0.0)})
        return flow, None, 0.9
    case = fvm.read_case(name)
    return case.flow, case.start, 0.9


@contextlib.contextmanager
def parts_timed(synchronize, took):
    """Within the block, add the seconds of each part to the last entry of took[part]."""
    originals = {(owner, name): getattr(owner, name)
                 for owner, name in ((Solver, "update"), (Solver, "solve"), (Steady, "iterate"))}
    runs = []

    def timed(name, original):
        def call(self, *arguments, **options):
            synchronize()
            start = time.perf_counter()
            result = original(self, *arguments, **options)
            synchronize()
            which = "pressure" if self is runs[-1].pressure_solver else "momentum"
            took[f"{which} {name}"][-1] += time.perf_counter() - start
            return result
        return call

    def iterate(self):
        runs.append(self)
        for part in PARTS:
            took[part].append(0.0)
        synchronize()
        start = time.perf_counter()
        result = originals[Steady, "iterate"](self)
        synchronize()
        took["all"].append(time.perf_counter() - start)
        return result

    Solver.update, Solver.solve = timed("update", Solver.update), timed("solve", Solver.solve)
    Steady.iterate = iterate
    try:
        yield
    finally:
        for (owner, name), original in originals.items():
            setattr(owner, name, original)


def choices(pressure, momentum):
    """Return the options of SIMPLE for names such as "amg" and "bicgstab+jacobi"; "default" leaves them out."""
    found = {}
    if pressure != "default":
        found["pressure_precond"] = None if pressure == "jacobi" else pressure
    if momentum != "default":
        method, _, precond = momentum.partition("+")
        found |= {"momentum": method, "momentum_precond": precond or None}
    return found


def run(flow, start, settings, device, detailed):
    """Return (seconds of each part by iteration, seconds between iterations, the solution)."""
    space, took, clock = make_space(device), defaultdict(list), []
    if hasattr(space.xp, "cuda"):
        synchronize = space.xp.cuda.Device().synchronize
    else:
        synchronize = space.synchronize
    with parts_timed(synchronize, took) if detailed else contextlib.nullcontext():
        solution = flow.solve(settings, device, start, lambda *_: clock.append(time.perf_counter()))
    return took, np.diff(clock), solution


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("CASE", nargs="+")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pressure", default="default", help="preconditioners, such as amg,jacobi,ic0")
    parser.add_argument("--momentum", default="default", help="such as auto,bicgstab+jacobi")
    parser.add_argument("--scheme", default="linear_upwind")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.CASE:
        flow, start, alpha = problem(name)
        table = Table("pressure", "momentum", "ms an iteration", "alone", *PARTS, "rest", "pressure's share",
                      "iterations: momentum", "pressure", "residuals at the end", title=f"{name}: "
                      f"{flow.mesh.n_cells} cells, {arguments.device}, ms")
        for pressure in arguments.pressure.split(","):
            for momentum in arguments.momentum.split(","):
                settings = fvm.SIMPLE(velocity=alpha, scheme=arguments.scheme, maxiter=arguments.iterations,
                                      **choices(pressure, momentum))
                took, _, solution = run(flow, start, settings, arguments.device, True)
                _, alone, _ = run(flow, start, settings, arguments.device, False)
                middle = {part: 1e3 * np.median(values[len(values) // 2:]) for part, values in took.items()}
                outer, each = middle["all"], [middle[part] for part in PARTS]
                count = solution.iterations
                table.add_row(pressure, momentum, f"{outer:.2f}", f"{1e3 * np.median(alone[len(alone) // 2:]):.2f}",
                              *(f"{value:.2f}" for value in (*each, outer - sum(each))),
                              f"{(each[2] + each[3]) / outer:.0%}",
                              *(f"{n / count:.1f}" for n in solution.linear_iterations),
                              " / ".join(f"{r:.2g}" for r in solution.residuals[-1]))
                if arguments.check:
                    short = dataclasses.replace(settings, maxiter=5)
                    here, there = (flow.solve(short, device, start).residuals for device in (arguments.device, "cpu"))
                    differ = (abs(here - there) / abs(there)).max(1)
                    print(f"{name}, {pressure}, {momentum}: the residuals of the first 5 iterations differ from the "
                          f"CPU's by {', '.join(f'{d:.1e}' for d in differ)}")
        Console(width=240).print(table)


if __name__ == "__main__":
    main()
