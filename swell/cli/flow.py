"""Solve laminar incompressible flow on an OpenFOAM case: steady by SIMPLE(C), or in time by PISO.

  swell flow cavity --out cavity.vtu --report cavity.html
  swell flow cylinder --transient --dt 0.01 --end 40 --every 1 --out wake.pvd

The case has constant/polyMesh, the fields 0/U and 0/p, and constant/transportProperties with nu. Patches of U are
fixedValue, noSlip, movingWallVelocity, zeroGradient, inletOutlet, pressureInletOutletVelocity, slip, symmetry or
symmetryPlane; of p fixedValue, or zeroGradient; cyclic and empty ones need nothing. system/controlDict chooses steady
(simpleFoam) or transient (icoFoam, pisoFoam, pimpleFoam), the step and the end, unless the options do. Ctrl-C ends the
run and keeps the fields.

Ranks that mpiexec starts read a decomposed case in parts, fields included, and write their parts; they divide a whole
case among themselves.
"""
from __future__ import annotations

import dataclasses
import math
import sys
from contextlib import nullcontext
from pathlib import Path

from swell.cli.arguments import add_output
from swell.cli.output import as_json, check_paths, for_shell
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
    parser.add_argument("--maxiter", type=int, metavar="N", help="steady: most outer iterations; default: to the "
                        "endTime of a case for simpleFoam, which counts them, else 2000")
    parser.add_argument("--relax", type=float, metavar="A", help="steady: relaxation of the velocity; default 0.8")
    parser.add_argument("--dt", type=float, metavar="T", help="in time: the step; default: deltaT")
    parser.add_argument("--end", type=float, metavar="T", help="in time: how long; default: to endTime")
    parser.add_argument("--every", type=float, metavar="T", help="in time: between two outputs; default: writeInterval")
    parser.add_argument("--time-scheme", metavar="NAME", help="in time: bdf2 (default) or euler")
    parser.add_argument("--pressure-precond", metavar="NAME", help="preconditioner of the pressure; default: amg")
    parser.add_argument("--device", metavar="DEVICE", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    parser.add_argument("--out", metavar="FILE", help="fields for ParaView: .vtu, of a decomposed case .pvtu; in time "
                        ".pvd, with such a file for each output")
    parser.add_argument("--write-case", action="store_true", help="write U, p and phi into the case, in folders of the "
                        "times (steady: start plus number of iterations), unless the flow has diverged")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report: fields, residuals, forces")
    parser.add_argument("--forces", metavar="NAMES", help="walls, such as cylinder or wing*,flap, whose forces are "
                        "recorded in each iteration or step: columns of --history, a curve in the report")
    parser.add_argument("--coefficients", metavar="U,A", help="give forces as coefficients: over U^2 A/2, with the "
                        "speed U in m/s and the area A in m2")
    parser.add_argument("--history", metavar="FILE", help="write residuals, times, Courant numbers and forces of each "
                        "iteration or step, .csv")
    parser.add_argument("--cut", metavar="PLANE", help="plane of the report's picture, such as z=0.5; default: through "
                        "the middle, along the empty patches or across the shortest side")
    add_output(parser)


def run(arguments, ranks) -> int:
    """Read the case, solve, write and print; return the exit status. ``ranks`` is a Communicator or None."""
    import numpy as np

    from swell.core.devices import make_space
    from swell.pde import fvm
    from swell.solving.progress import Progress
    if ranks is None:
        make_space(arguments.device)
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.CASE}"
        case = fvm.read_case(arguments.CASE, arguments.start, arguments.laminar, ranks)
    if case.application and case.transient is None and not (arguments.steady or arguments.transient):
        raise InputError(f"system/controlDict asks for the application {case.application}, and swell knows "
                         "simpleFoam, icoFoam, pisoFoam and pimpleFoam: give --steady or --transient")
    parts, alone = case.mesh.ranks is not None, ranks is None or ranks.rank == 0
    if parts:                                    # each rank writes its part
        arguments.out, arguments.report, arguments.cut = ranks.allgather((arguments.out, arguments.report,
                                                                          arguments.cut))[0]
    transient = arguments.transient or (case.transient is True and not arguments.steady)
    settings = _settings(arguments, case, transient)
    cut = _cut(arguments, case.mesh)
    label, unit = _unit(arguments.coefficients)
    record = tuple(filter(None, (arguments.forces or "").split(",")))
    if record and alone and not (arguments.history or arguments.report):
        raise InputError("--forces has no effect without a file that shows them: give --history FILE or --report FILE")
    check_paths({"--out": arguments.out, "--report": arguments.report, "--history": arguments.history}, (),
                {"--history": (".csv",), "--out": (".pvd",) if transient else (".pvtu",) if parts else (".vtu",),
                 "--report": (".html", ".htm")})
    outputs = _Outputs(arguments, case, transient, ranks)
    if not arguments.quiet and not arguments.json:
        print(f"{arguments.CASE}: {case.start.cells} cells{_of_ranks(ranks, parts)}, nu = {case.viscosity:g} m2/s, "
              f"from time {case.time}, {'in time' if transient else 'steady'}")
    with Progress(shown=not arguments.quiet) as progress:
        if transient:
            def show(time, courant, mass):
                progress.phase = (f"t = {time:.5g} of {settings.end:g}, Courant number {courant:.2g}, continuity "
                                  f"{mass:.1e}")
            solution = case.flow.march(settings, arguments.device, case.start, outputs.add, record, show, ranks)
        else:
            def watch(count, momentum, mass):
                progress.phase = f"iteration {count}: momentum {momentum:.2e}, continuity {mass:.2e}"
            solution = case.flow.solve(settings, arguments.device, case.start, watch, record, ranks)
            outputs.add(solution)
    finite = all(case.mesh.of_ranks(bool(np.isfinite(solution.velocity).all())))
    forces = case.flow.forces(solution) if finite else {}
    forces = {name: (pressure / unit, viscous / unit) for name, (pressure, viscous) in forces.items()}
    solution.forces = {name: force / unit for name, force in solution.forces.items()}
    if arguments.history:
        solution.write_history(arguments.history)
        outputs.written.append(arguments.history)
    if arguments.report:
        from swell.report import flow as report
        facts = [("cells", f"{case.start.cells}{_of_ranks(ranks, parts)}"),
                 ("viscosity", f"{case.viscosity:g} m²/s"), ("start", case.time), ("settings", str(settings)),
                 ("device", arguments.device),
                 ("forces", f"over U² A/2 = {unit:g} m⁴/s²" if arguments.coefficients else "for a fluid of density 1")]
        report.html(dataclasses.replace(solution, notes=[*case.notes, *solution.notes]), arguments.report,
                    f"swell flow {Path(arguments.CASE).resolve().name}", facts, forces, label, cut)
    if alone:
        _print(arguments, case, solution, forces, label, outputs.written)
    return 0 if solution.converged else 1


def _of_ranks(ranks, parts) -> str:
    """Return how ``ranks`` share the cells, in words; ``parts``: True if the case is decomposed."""
    return "" if ranks is None else f" on {ranks.size} ranks, {'in parts' if parts else 'which divide them'}"


def _unit(text):
    """Return (label, unit) of the forces; ``text``: the option "U,A", or None."""
    if text is None:
        return "force", 1.0
    try:
        speed, area = (float(word) for word in text.split(","))
    except ValueError:
        speed = area = 0.0
    if not (0 < speed < math.inf and 0 < area < math.inf):
        raise InputError(f"--coefficients {text}: expected a speed and an area above 0, such as 1.5,0.1")
    return "force coefficient", 0.5 * speed ** 2 * area


def _cut(arguments, mesh):
    """Return the cut through the mesh that the report shows; None without a report."""
    if not arguments.report:
        if arguments.cut is not None:
            raise InputError("--cut is the plane of the report's picture: give --report FILE, too")
        return None
    from swell.report.section import section
    if arguments.cut is None:
        return section(mesh)
    axis, _, place = arguments.cut.partition("=")
    try:
        plane = "xyz".index(axis or "?"), float(place)
    except ValueError:
        raise InputError(f"--cut {arguments.cut}: expected an axis and its coordinate, such as z=0.5") from None
    return section(mesh, *plane)


def _settings(arguments, case, transient):
    """Return the SIMPLE or PISO settings; raise InputError for options of the other kind, or without a step."""
    from swell.pde import fvm
    from swell.pde.fvm.time import count_steps
    options, others = (TRANSIENT, STEADY) if transient else (STEADY, TRANSIENT)
    idle = [name for name in others if getattr(arguments, name) is not None]
    if idle:
        raise InputError(f"--{idle[0].replace('_', '-')} has no effect on "
                         f"{'a march in time' if transient else 'steady flow'}: leave it out, or give "
                         f"{'--steady' if transient else '--transient'}")
    values = {field: getattr(arguments, name) for name, field in options.items()}
    chosen = {field: value for field, value in values.items() if value is not None}
    if arguments.scheme:
        chosen["scheme"] = arguments.scheme
    if arguments.pressure_precond:
        chosen["pressure_precond"] = arguments.pressure_precond
    last = "end" if transient else "maxiter"
    if last not in chosen and case.end is not None and (transient or case.transient is False):
        chosen[last] = case.end - float(case.time)
        if chosen[last] <= 0:
            raise InputError(f"the start is time {case.time}, and system/controlDict ends at {case.end:g}: give "
                             f"--{last}, how long to go on, or another --start")
        if not transient:                        # simpleFoam counts iterations by deltaT
            chosen[last] = count_steps(chosen[last], case.dt or 1.0)
    if not transient:
        return fvm.SIMPLE(**chosen)
    chosen.setdefault("dt", case.dt)
    for name, entry in (("dt", "deltaT"), ("end", "endTime")):
        if chosen.get(name) is None:
            raise InputError(f"--{name} is missing, and the case has no system/controlDict with {entry}: give one")
    if "every" not in chosen and case.write_every:
        chosen["every"] = case.write_every
    return fvm.PISO(**chosen)


class _Outputs:
    """Writes each output as it comes: a .vtu beside the .pvd, and folders in the case. Of a decomposed case each rank
    writes its part; of a whole one, rank 0 writes alone."""

    def __init__(self, arguments, case, transient, ranks):
        self.arguments, self.case, self.transient, self.ranks = arguments, case, transient, ranks
        self._parts, self._alone = case.mesh.ranks is not None, ranks is None or ranks.rank == 0
        self.written, self._pieces, self._begin = [], [], float(case.time)

    def add(self, solution):
        """Write one solution; all ranks call it together."""
        with nullcontext() if self.ranks is None else self.ranks.agreed():
            if self._parts or self._alone:
                self._write(solution)

    def _write(self, solution):
        count = solution.time if self.transient else solution.iterations
        out, time = self.arguments.out, self._begin + count
        if out and not self.transient:
            solution.write(out)
            self.written.append(out)
        elif out:
            piece = Path(out).with_name(f"{Path(out).stem}_{len(self._pieces):04d}.{'pvtu' if self._parts else 'vtu'}")
            solution.write(piece)
            self._pieces.append((time, piece.name))
            if self._alone:
                _write_collection(out, self._pieces)
            self.written = [f"{out}, {len(self._pieces)} times"]
        if self.arguments.write_case and solution.diverged:
            solution.notes.append("the diverged fields were not written into the case, where --start latest would "
                                  "begin with them: --out FILE keeps them")
        elif self.arguments.write_case:
            name = f"{time:.14g}"
            self.case.write(name, solution)
            self.written.append(str(self.case.path / ("processor*" if self._parts else "") / name))


def _write_collection(path, pieces):
    """Write a PVD file, which lists the .vtu or .pvtu file of each time. ``pieces``: list of (time, file)."""
    from swell.io.files import write_atomically
    lines = ['<?xml version="1.0"?>', '<VTKFile type="Collection" version="0.1"><Collection>',
             *(f'<DataSet timestep="{time:.14g}" file="{name}"/>' for time, name in pieces), "</Collection></VTKFile>"]
    write_atomically(Path(path), lambda stream: stream.write("\n".join(lines).encode()))


def _print(arguments, case, solution, forces, label, written):
    """Print the result on stdout, and a note of an interruption on stderr."""
    if any("interrupted" in note for note in solution.notes):
        print("swell: interrupted; the output and the files have the current fields", file=sys.stderr)
    notes = [*case.notes, *solution.notes]
    if arguments.json:
        print(as_json({"case": arguments.CASE, "cells": solution.cells, "viscosity": case.viscosity,
                       "converged": solution.converged, "iterations": solution.iterations, "time": solution.time,
                       "courant": solution.courant, "residuals": solution.residuals[-1].tolist(),
                       "linear_iterations": list(solution.linear_iterations),
                       "forces": {name: {"pressure": p.tolist(), "viscous": w.tolist()}
                                  for name, (p, w) in forces.items()},
                       "notes": notes, "written": written, "report": arguments.report}, vars(arguments)))
    elif not arguments.quiet:
        print(for_shell(solution, vars(arguments)))
        for note in case.notes:
            print(f"  note: {note}")
        for name, (p, w) in forces.items():
            print(f"  {label} on {name}: pressure ({', '.join(f'{v:.5g}' for v in p)}), viscous "
                  f"({', '.join(f'{v:.5g}' for v in w)})")
        for path in [*written, *([arguments.report] if arguments.report else [])]:
            print(f"  written: {path}")
