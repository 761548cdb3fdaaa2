"""Sweep a band of frequencies: the sound pressure at an ear in a cavity, by finite elements for the Helmholtz equation.

  swell helmholtz cabin.msh --source firewall --ear 0.9,0.35,0.9 --band 20:600:5 --damping 0.02 --plot ear.png

The source is a boundary that vibrates (1 mm/s, or --velocity), or a point x,y,z (a monopole of 1e-3 m3/s). Several
sources sound one by one, and the result is the transfer matrix from each source to each ear; with --at-once they sound
at the same time. Walls are rigid unless --wall says otherwise. p(x, t) = Re(p(x) exp(+i omega t)); amplitudes are
peaks; levels are |p|/sqrt(2) in dB re 20 uPa. Frequencies that fail are marked, and the sweep goes on; Ctrl-C ends it
and keeps the finished ones.
"""
from __future__ import annotations

import sys
import time
from pathlib import Path

from swell.cli.acoustics import EXAMPLE, conditions, layer, medium, point, real_quantity, source, velocity, wall
from swell.cli.arguments import PARTS, add_output, add_solver, named_solver
from swell.cli.output import as_json, check_paths, for_shell
from swell.cli.own_matrices import add_matrices, check_matrices, run_matrices
from swell.core.errors import InputError
from swell.pde.helmholtz.named import GENERATED, named_mesh

HELP = "frequency response of a cavity (acoustics)"
# Options that only a response uses, and their defaults.
OF_A_RESPONSE = {"csv": None, "plot": None, "wav": None, "picture": None, "vtu_at": None, "velocity": None,
                 "at_once": False, "maxiter": None, "no_reuse": False, "dtype": "complex128"}


def add_arguments(parser):
    """Add the arguments of ``swell helmholtz``."""
    parser.add_argument("MESH", nargs="?", help="mesh file that meshio reads (.msh, .vtk, .exo, .med, ..., also .gz), "
                        f"or a generated one: {GENERATED}")
    parser.add_argument("--source", metavar="NAME|X,Y,Z", action="append", default=[],
                        help="boundary that vibrates, a point source, or wave:DX,DY,DZ@NAME, a plane wave that a rigid "
                        "boundary scatters (the response is the scattered sound); repeated: each sounds on its own")
    parser.add_argument("--at-once", action="store_true", help="let all sources sound at the same time")
    parser.add_argument("--ear", metavar="X,Y,Z", action="append", default=[],
                        help="point of the response, m; may be repeated")
    parser.add_argument("--band", metavar="FROM:TO:STEP", help="frequencies in Hz; also a list F1,F2,...")
    parser.add_argument("--velocity", metavar="V", default=None,
                        help="normal velocity of boundaries that are sources, m/s; default 1e-3; or a .csv file with a "
                        "spectrum (Hz, real, imaginary) or a measured map (x, y, z, [Hz,] real, imaginary)")
    parser.add_argument("--wall", metavar="NAME=CONDITION", action="append", default=[],
                        help=f"condition of a boundary, {EXAMPLE}; a .csv file in place of the number is a table over "
                        "the frequency; may be repeated; rigid otherwise")
    parser.add_argument("--pml", metavar="LOWER:UPPER", help="an open domain: the mesh outside this box is a perfectly "
                        "matched layer, such as --pml=-0.5,-0.5,-0.5:0.5,0.5,0.5")
    parser.add_argument("--speed", default="343.0", metavar="C", help="speed of sound, m/s; default 343; "
                        "this and the next two also take a .csv file, a table over the frequency")
    parser.add_argument("--density", default="1.204", metavar="RHO",
                        help="density of the medium, kg/m3; default 1.204")
    parser.add_argument("--damping", default="0.0", metavar="ETA",
                        help="loss factor of the medium; default 0")
    parser.add_argument("--medium", metavar="NAME=C:RHO:ETA", action="append", default=[],
                        help="a region of another medium: speed, density and (if any) damping; may be repeated")
    parser.add_argument("--degree", type=int, default=1, choices=(1, 2), help="degree of the elements; default 1")
    add_solver(parser, dict.fromkeys(PARTS, "chosen by swell if none is named"))
    parser.add_argument("--device", metavar="DEVICE", default="cpu", help="cpu (default), cuda, cuda:1, ...; under "
                        "mpiexec, cuda is one GPU for each rank")
    parser.add_argument("--dtype", metavar="TYPE", default="complex128", help="complex128 (default) or complex64")
    parser.add_argument("--rtol", type=float, metavar="R",
                        help="relative tolerance of each solve; default 1e-6, and 1e-4 in complex64; of "
                        "--modes alone: of the modes, default 1e-8")
    parser.add_argument("--maxiter", type=int, metavar="N", help="iteration limit of each solve")
    parser.add_argument("--no-reuse", action="store_true", help="solve each frequency without reuse of earlier ones")
    parser.add_argument("--csv", metavar="FILE", help="write pressure and level at each frequency, of several sources "
                        "also for each source and ear: .csv")
    parser.add_argument("--plot", metavar="FILE", help="write a picture of the level over the frequency: .png")
    parser.add_argument("--wav", metavar="FILE", help="write the sound at the ears after an impulse of the source, a "
                        "channel for each ear: .wav; the band needs equal steps, such as 5:600:5")
    parser.add_argument("--vtu", metavar="FILE", help="write fields for ParaView: .vtu; with several frequencies or "
                        "sources each gets its own, as FILE_300Hz_source2.vtu")
    parser.add_argument("--picture", metavar="FILE", help="write a picture of the level on the surface and in a cut: "
                        ".png; several are named as with --vtu")
    parser.add_argument("--vtu-at", "--picture-at", metavar="F1,F2,...",
                        help="frequencies of the fields; default: the last of the band")
    add_matrices(parser)
    parser.add_argument("--modes", type=int, metavar="N", help="find N eigenfrequencies of the cavity, without "
                        "damping, and print them; --plot marks them; needs no --band, --ear and --source, and --vtu "
                        "then gets the mode shapes")
    parser.add_argument("--near", type=float, metavar="F", help="the modes nearest to F Hz; default: the lowest")
    parser.add_argument("--save-mesh", metavar="FILE",
                        help="write the mesh, such as a generated one: .msh; needs no --band, --ear and --source")
    add_output(parser)


def run(arguments, ranks) -> int:
    """Check all arguments that need no mesh; then read, sweep, write and print. Return the exit status. ``ranks`` is a
    Communicator or None."""
    check_paths({"--csv": arguments.csv, "--plot": arguments.plot, "--vtu": arguments.vtu, "--wav": arguments.wav,
                 "--picture": arguments.picture, "--save-mesh": arguments.save_mesh},
                (arguments.MESH, *(arguments.matrices or ())),
                {"--csv": (".csv",), "--plot": (".png",), "--vtu": (".vtu",), "--wav": (".wav",),
                 "--picture": (".png",), "--save-mesh": (".msh",)})
    check_matrices(arguments, ranks)
    if arguments.matrices:
        return run_matrices(arguments)
    _check_modes(arguments, ranks)
    from swell.core.devices import make_space
    from swell.core.stopping import Stopping
    from swell.pde import helmholtz
    band = helmholtz.band(arguments.band) if arguments.band is not None else None
    fields = _fields(arguments, band)
    if arguments.wav and band is not None:
        from swell.pde.helmholtz.sound import spacing
        spacing(sorted(band))                    # raises an error before the sweep, not after it
    walls = [wall(text) for text in arguments.wall]
    ears = [point(text, "--ear") for text in arguments.ear]
    moved = helmholtz.Velocity() if arguments.velocity is None else velocity(arguments.velocity, "--velocity")
    fluid = helmholtz.Medium(*(real_quantity(getattr(arguments, name), f"--{name}")
                               for name in ("speed", "density", "damping")))
    others = dict(medium(text) for text in arguments.medium)
    pml = None if arguments.pml is None else layer(arguments.pml)
    Stopping(rtol=1e-6 if arguments.rtol is None else arguments.rtol, maxiter=arguments.maxiter)
    chosen = named_solver(arguments)
    if ranks is None:
        make_space(arguments.device)

    from swell.solving.progress import Progress
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.MESH}"
        mesh = named_mesh(arguments.MESH)
    if arguments.save_mesh and (ranks is None or ranks.rank == 0):
        mesh.write(arguments.save_mesh)
    if not arguments.json and not arguments.quiet:
        print(f"{arguments.MESH}: {mesh}")
    alone = _modes_alone(arguments)
    if arguments.save_mesh and alone and arguments.modes is None:
        return 0                                                 # the user asked for the mesh alone
    media = {**dict.fromkeys(mesh.regions, fluid), **others} if others else fluid
    problem = helmholtz.Helmholtz(mesh, media, conditions(walls), degree=arguments.degree, pml=pml)
    modes = None
    if arguments.modes is not None:
        with Progress(shown=not arguments.quiet) as progress:
            progress.phase = f"finding {arguments.modes} modes"
            tolerance = {} if arguments.rtol is None else {"rtol": arguments.rtol}
            modes = problem.modes(arguments.modes, arguments.near or 0.0, device=arguments.device,
                                  **({**chosen, **tolerance} if alone else {}))
        if alone:
            return _print_modes(arguments, mesh, modes)
    if band is None or not ears:
        raise InputError(f"{'--band' if band is None else '--ear'} is missing; the mesh has the boundaries "
                         f"{', '.join(mesh.boundaries)} and reaches from {_words(mesh.points.min(0))} to "
                         f"{_words(mesh.points.max(0))}: give --source {next(iter(mesh.boundaries))} --ear "
                         f"{','.join(f'{v:.3g}' for v in mesh.centres[0])} --band 20:200:5")
    sources = [source(text, mesh, moved) for text in arguments.source]
    several = len(sources) > 1 and not arguments.at_once
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"assembling {len(mesh.cells)} cells"
        response = problem.response(None if several else sources or None, ears, band, **chosen, rtol=arguments.rtol,
                                    maxiter=arguments.maxiter, device=arguments.device, dtype=arguments.dtype,
                                    reuse=not arguments.no_reuse, fields=fields, watch=_Watch(progress, len(band)),
                                    ranks=ranks, sources=sources if several else None)
    if ranks is not None and ranks.rank:
        return 0 if response.converged else 1
    written = _write(arguments, response, modes)
    _print(arguments, mesh, response, written, modes)
    return 0 if response.converged and (modes is None or modes.converged) else 1


def _check_modes(arguments, ranks):
    """Raise InputError for --near without --modes, modes alone with an option of a response, or modes on several ranks.
    """
    if arguments.near is not None and arguments.modes is None:
        raise InputError(f"--near {arguments.near:g} has no effect without --modes: give --modes 10, or leave it out")
    idle = [name for name, default in OF_A_RESPONSE.items() if getattr(arguments, name) != default]
    if arguments.modes is not None and _modes_alone(arguments) and idle:
        raise InputError(f"--{idle[0].replace('_', '-')} is for a response: give --source, --ear and --band too, or "
                         "leave it out")
    if arguments.modes is not None and ranks is not None and ranks.size > 1:
        raise InputError(f"--modes {arguments.modes} works on one rank, and mpiexec started {ranks.size}: start one")


def _modes_alone(arguments):
    """True without any argument that only a response needs."""
    return arguments.band is None and not arguments.ear and not arguments.source


def _print_modes(arguments, mesh, modes) -> int:
    """Write the mode shapes if --vtu asks for them, and print the modes; return the exit status."""
    written = [arguments.vtu] if arguments.vtu else []
    if written:
        modes.write(arguments.vtu)
    if arguments.json:
        print(as_json({"mesh": arguments.MESH, **mesh.facts(), "modes": modes.as_dict(), "written": written}))
    elif not arguments.quiet:
        print(modes)
        for path in written:
            print(f"  written: {path}")
    return 0 if modes.converged else 1


class _Watch:
    """Updates the live line after each frequency."""

    def __init__(self, progress, count):
        self.progress, self.count, self.done, self.failed = progress, count, 0, 0
        self.start = time.perf_counter()

    def __call__(self, point):
        self.done += 1
        self.failed += not point.converged
        remaining = (time.perf_counter() - self.start) / self.done * (self.count - self.done)
        failed = f", {self.failed} failed" if self.failed else ""
        most = max(r.iterations for r in point.results)
        self.progress.phase = (f"{point.frequency:g} Hz done ({self.done} of {self.count}{failed}): "
                               f"{most} iterations, about {remaining:.0f} s to go")
        return False


def _fields(arguments, band):
    """Return the frequencies whose fields are written; raise InputError for one that is not in ``band``, the
    frequencies of the sweep (or None)."""
    from swell.pde import helmholtz
    if arguments.vtu_at and not (arguments.vtu or arguments.picture):
        raise InputError("--vtu FILE.vtu or --picture FILE.png is missing: --vtu-at needs one, for the fields")
    if not (arguments.vtu or arguments.picture) or band is None:
        return ()
    fields = helmholtz.band(arguments.vtu_at) if arguments.vtu_at else band[-1:]
    nearest = [float(min(band, key=lambda g, f=f: abs(g - f))) for f in fields]
    for asked, near in zip(fields, nearest):
        if abs(asked - near) > 1e-9 * max(asked, 1):
            raise InputError(f"--vtu-at {asked:g}: the band has no such frequency; the nearest is {near:g} Hz")
    return nearest


def _words(point):
    return "(" + ", ".join(f"{v:.4g}" for v in point) + ")"


def _write(arguments, response, modes) -> list:
    """Write the files that the arguments name; return the list of their names. ``modes``: Modes to mark in the plot,
    or None."""
    written = []
    if arguments.csv:
        response.write_csv(arguments.csv)
        written.append(arguments.csv)
    if arguments.plot and response.points:
        response.plot(arguments.plot, modes)
        written.append(arguments.plot)
    if arguments.wav:
        from swell.pde.helmholtz import write_wav
        paths = [Path(arguments.wav)]
        if response.sources is not None:
            paths = [paths[0].with_stem(f"{paths[0].stem}_source{j}") for j in range(1, len(response.sources) + 1)]
        for j, path in enumerate(paths):
            scale = write_wav(response, path, j)
            written.append(f"{path}, full scale is {scale:.4g} Pa/s")
    for frequency, values in response.fields.items():
        at = f"_{frequency:g}Hz" if len(response.fields) > 1 else ""
        fields = [("", values)] if response.sources is None else [(f"_source{j}", f) for j, f in enumerate(values, 1)]
        for of, field in fields:
            for name, write in ((arguments.vtu, field.write), (arguments.picture, field.plot)):
                if name:
                    path = Path(name)
                    path = path.with_name(f"{path.stem}{at}{of}{path.suffix}")
                    write(path)
                    written.append(str(path))
    return written


def _print(arguments, mesh, response, written, modes):
    """Print the result on stdout, and a note of an early end on stderr. ``written``: names of the written files;
    ``modes``: Modes or None."""
    if arguments.json:
        facts = mesh.facts()
        facts["nodes"] = facts.pop("points")                     # "points" are the response's
        extra = {} if modes is None else {"modes": modes.as_dict()}
        print(as_json({"mesh": arguments.MESH, **facts, **response.as_dict(), **extra, "written": written},
                      vars(arguments)))
    elif not arguments.quiet:
        print(for_shell(response, vars(arguments)))
        if modes is not None:
            print(modes)
        for path in written:
            print(f"  written: {path}")
    if len(response.points) < response.asked:
        print(f"swell: {response.notes[-1]}; the output and the files have these alone", file=sys.stderr)
