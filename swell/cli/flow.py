"""Solve laminar incompressible flow on an OpenFOAM case: steady by SIMPLE(C), or in time by PISO.

  swell flow cavity --out cavity.vtu --report cavity.html
  swell flow cylinder --transient --dt 0.01 --end 40 --every 1 --out wake.pvd

The case has constant/polyMesh, the fields 0/U and 0/p, and constant/transportProperties with nu. Patches of U are
fixedValue, noSlip, movingWallVelocity, zeroGradient, inletOutlet, pressureInletOutletVelocity, slip, symmetry or
symmetryPlane; of p fixedValue, or zeroGradient; cyclic and empty ones need nothing. system/controlDict chooses steady
(simpleFoam) or transient (icoFoam, pisoFoam, pimpleFoam), the step and the end, unless the options do. Ctrl-C ends the
run and keeps the fields.
"""
from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from swell.cli.output import as_json, check_paths
from swell.core.errors import InputError

HELP = "laminar flow on an OpenFOAM case"
STEADY = {"rtol": "rtol", "maxiter": "maxiter", "relax": "velocity"}             # options of one kind: field of SIMPLE
TRANSIENT = {"dt": "dt", "end": "end", "every": "every", "time_scheme": "time"}  # and of PISO


def add_arguments(parser):
    """Add the arguments of ``swell flow``."""
    parser.add_argument("CASE", help="folder of an OpenFOAM case")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--steady", action="store_true", help="find the steady state by SIMPLEC")
    kind.add_argument("--transient", action="store_true", help="march in time by PISO")
    parser.add_argument("--start", metavar="TIME", help="folder of the start, such as 0 or latest; default: as "
                        "system/controlDict says, else 0")
    parser.add_argument("--laminar", action="store_true", help="leave out the case's turbulence model, which is "
                        "refused otherwise")
    parser.add_argument("--scheme", metavar="NAME", help="convection: linear_upwind (default of steady flow), linear "
                        "(default in time), upwind")
    parser.add_argument("--rtol", type=float, metavar="R", help="steady: both residuals at the end; default 1e-6")
    parser.add_argument("--maxiter", type=int, metavar="N", help="steady: most outer iterations; default 2000")
    parser.add_argument("--relax", type=float, metavar="A", help="steady: relaxation of the velocity; default 0.8")
    parser.add_argument("--dt", type=float, metavar="T", help="in time: the step; default: deltaT")
    parser.add_argument("--end", type=float, metavar="T", help="in time: how long; default: to endTime")
    parser.add_argument("--every", type=float, metavar="T", help="in time: between two outputs; default: writeInterval")
    parser.add_argument("--time-scheme", metavar="NAME", help="in time: bdf2 (default) or euler")
    parser.add_argument("--pressure-precond", metavar="NAME", help="preconditioner of the pressure; default: amg")
    parser.add_argument("--device", metavar="DEVICE", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    parser.add_argument("--out", metavar="FILE", help="fields for ParaView: .vtu; in time .pvd, with a .vtu for each "
                        "output")
    parser.add_argument("--write-case", action="store_true", help="write U, p and phi into the case, in folders of the "
                        "times (steady: start plus number of iterations)")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report: fields, residuals, forces")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors (and the JSON object)")


def run(arguments) -> int:
    """Read the case, solve, write and print; return the exit status."""
    import numpy as np

    from swell.core.devices import make_space
    from swell.pde import fvm
    from swell.solving.progress import Progress
    make_space(arguments.device)
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.CASE}"
        case = fvm.read_case(arguments.CASE, arguments.start, arguments.laminar)
    transient = arguments.transient or (case.transient is True and not arguments.steady)
    settings = _settings(arguments, case, transient)
    check_paths({"--out": arguments.out, "--report": arguments.report}, (),
                {"--out": (".pvd",) if transient else (".vtu",), "--report": (".html", ".htm")})
    outputs = _Outputs(arguments, case, transient)
    if not arguments.quiet and not arguments.json:
        print(f"{arguments.CASE}: {case.mesh.n_cells} cells, nu = {case.viscosity:g} m2/s, from time {case.time}, "
              f"{'in time' if transient else 'steady'}")
    with Progress(shown=not arguments.quiet) as progress:
        if transient:
            def watch(solution):
                outputs.add(solution)
                progress.phase = (f"t = {solution.time:.5g} of {settings.end:g}, Courant number "
                                  f"{solution.courant:.2g}, continuity {solution.residuals[-1][1]:.1e}")
            solution = case.flow.march(settings, arguments.device, case.start, watch)
        else:
            def watch(count, momentum, mass):
                progress.phase = f"iteration {count}: momentum {momentum:.2e}, continuity {mass:.2e}"
            solution = case.flow.solve(settings, arguments.device, case.start, watch)
            outputs.add(solution)
    forces = case.flow.forces(solution) if np.isfinite(solution.velocity).all() else {}
    if arguments.report:
        from swell.report import flow as report
        facts = [("cells", case.mesh.n_cells), ("viscosity", f"{case.viscosity:g} m²/s"), ("start", case.time),
                 ("settings", str(settings)), ("device", arguments.device)]
        report.html(dataclasses.replace(solution, notes=[*case.notes, *solution.notes]), arguments.report,
                    f"swell flow {Path(arguments.CASE).name}", facts, forces)
    _print(arguments, case, solution, forces, outputs.written)
    return 0 if solution.converged else 1


def _settings(arguments, case, transient):
    """Return the SIMPLE or PISO settings; raise InputError for options of the other kind, or without a step."""
    from swell.pde import fvm
    own, others = (TRANSIENT, STEADY) if transient else (STEADY, TRANSIENT)
    idle = [name for name in others if getattr(arguments, name) is not None]
    if idle:
        raise InputError(f"--{idle[0].replace('_', '-')} has no effect on "
                         f"{'a march in time' if transient else 'steady flow'}: leave it out, or give "
                         f"{'--steady' if transient else '--transient'}")
    chosen = {field: getattr(arguments, name) for name, field in own.items() if getattr(arguments, name) is not None}
    if arguments.scheme:
        chosen["scheme"] = arguments.scheme
    if arguments.pressure_precond:
        chosen["pressure_precond"] = arguments.pressure_precond
    if not transient:
        return fvm.SIMPLE(**chosen)
    begin = float(case.time)
    chosen.setdefault("dt", case.dt)
    if "end" not in chosen and case.end is not None:
        chosen["end"] = case.end - begin
        if chosen["end"] <= 0:
            raise InputError(f"the start is time {case.time}, and system/controlDict ends at {case.end:g}: give --end, "
                             "how long to go on, or another --start")
    for name, entry in (("dt", "deltaT"), ("end", "endTime")):
        if chosen.get(name) is None:
            raise InputError(f"--{name} is missing, and the case has no system/controlDict with {entry}: give one")
    if "every" not in chosen and case.write_every:
        chosen["every"] = case.write_every
    return fvm.PISO(**chosen)


class _Outputs:
    """Writes each output as it comes: a .vtu beside the .pvd, and folders in the case."""

    def __init__(self, arguments, case, transient):
        self.arguments, self.case, self.transient = arguments, case, transient
        self.written, self._pieces, self._begin = [], [], float(case.time)

    def add(self, solution):
        """Write one solution."""
        count = solution.time if self.transient else solution.iterations
        out, time = self.arguments.out, self._begin + count
        if out and not self.transient:
            solution.write(out)
            self.written.append(out)
        elif out:
            piece = Path(out).with_name(f"{Path(out).stem}_{len(self._pieces):04d}.vtu")
            solution.write(piece)
            self._pieces.append((time, piece.name))
            _write_collection(out, self._pieces)
            self.written = [f"{out}, {len(self._pieces)} times"]
        if self.arguments.write_case:
            name = f"{time:.10g}"
            self.case.write(name, solution)
            self.written.append(str(self.case.path / name))


def _write_collection(path, pieces):
    """Write a PVD file, which lists the .vtu file of each time for ParaView. ``pieces``: list of (time, file)."""
    from swell.io.files import write_atomically
    lines = ['<?xml version="1.0"?>', '<VTKFile type="Collection" version="0.1"><Collection>',
             *(f'<DataSet timestep="{time:.10g}" file="{name}"/>' for time, name in pieces), "</Collection></VTKFile>"]
    write_atomically(Path(path), lambda stream: stream.write("\n".join(lines).encode()))


def _print(arguments, case, solution, forces, written):
    """Print the result on stdout, and a note of an interruption on stderr."""
    if any("interrupted" in note for note in solution.notes):
        print("swell: interrupted; the output and the files have the current fields", file=sys.stderr)
    notes = [*case.notes, *solution.notes]
    if arguments.json:
        print(as_json({"case": arguments.CASE, "cells": case.mesh.n_cells, "viscosity": case.viscosity,
                       "converged": solution.converged, "iterations": solution.iterations, "time": solution.time,
                       "courant": solution.courant, "residuals": solution.residuals[-1].tolist(),
                       "linear_iterations": list(solution.linear_iterations),
                       "forces": {name: {"pressure": p.tolist(), "viscous": w.tolist()}
                                  for name, (p, w) in forces.items()},
                       "notes": notes, "written": written, "report": arguments.report}))
    elif not arguments.quiet:
        print(solution)
        for note in case.notes:
            print(f"  note: {note}")
        for name, (p, w) in forces.items():
            print(f"  force on {name}: pressure ({', '.join(f'{v:.5g}' for v in p)}), viscous "
                  f"({', '.join(f'{v:.5g}' for v in w)})")
        for path in [*written, *([arguments.report] if arguments.report else [])]:
            print(f"  written: {path}")
