"""Solve Poisson's equation, -div(k grad p) = q, on an OpenFOAM case or a mesh file, by finite volumes.

Every patch of the boundary needs a condition: --patch-bc inlet=1 (or inlet=dirichlet:1) fixes p, 'walls=neumann:0'
fixes its outward normal derivative, 'top=robin:A:B:C' sets A p + B dp/dn = C. A name may be a pattern, as in
'wall*=neumann:0' or '*=neumann:0'; it applies to patches that no other condition names. Without conditions the command
describes the mesh, lists its patches, and solves nothing (exit code 2).
"""
from __future__ import annotations

import dataclasses
import math
import sys
import time
from pathlib import Path

from swell.cli.arguments import add_output, add_solver, named_solver
from swell.cli.output import as_json, check_paths, for_shell
from swell.core.errors import InputError, meant

HELP = "solve Poisson's equation on a mesh"
DEFAULTS = {"method": "cg by default", "scaling": "jacobi by default if there is no preconditioner"}
COUNTS = {"dirichlet": 1, "neumann": 1, "robin": 3}         # how many numbers a condition takes
EXAMPLE = "such as inlet=1, walls=neumann:0 or top=robin:1:0.5:0"
BOX = "box:"


def add_arguments(parser):
    """Add the arguments of ``swell fvm``."""
    parser.add_argument("CASE", help="OpenFOAM case or polyMesh folder, a mesh file that meshio reads (.msh, .vtk, "
                        ".exo, .med, .inp, ..., also .gz), or box:NX,NY,NZ for the unit cube (box:NX,NY: a "
                        "square); under mpiexec also a decomposed case, with a part for each rank")
    parser.add_argument("--patch-bc", metavar="NAME=CONDITION", action="append", default=[],
                        help=f"condition of a patch, {EXAMPLE}; may be repeated")
    parser.add_argument("--source", type=float, default=0.0, metavar="Q", help="q; default 0")
    parser.add_argument("--diffusivity", type=float, default=1.0, metavar="K", help="k; default 1")
    parser.add_argument("--balance", action="store_true", help="if no patch fixes p, shift the source until it equals "
                        "the fluxes at the boundary; otherwise an imbalance is an error")
    parser.add_argument("--corrections", type=int, default=50, metavar="N", help="limit of non-orthogonal corrections; "
                        "default 50, 0 for none")
    add_solver(parser, DEFAULTS)
    parser.add_argument("--device", metavar="DEVICE", default="cpu", help="cpu (default), cuda, cuda:1, ...")
    parser.add_argument("--rtol", type=float, default=1e-8, metavar="R", help="tolerance for the residual of the "
                        "equation with its corrections, relative to the right-hand side, and for the cells' "
                        "imbalances, relative to the fluxes; default 1e-8")
    parser.add_argument("--maxiter", type=int, metavar="N", help="iteration limit of each linear solve")
    parser.add_argument("--out", metavar="FILE", help="write p for ParaView: .vtu; for a decomposed CASE .pvtu, with a "
                        ".vtu from each rank")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report")
    add_output(parser)


def run(arguments, ranks) -> int:
    """Check all arguments that need no mesh; then read, solve, write and print. Return the exit status. ``ranks`` is a
    Communicator or None."""
    check_paths({"--out": arguments.out, "--report": arguments.report}, (arguments.CASE,),
                {"--out": (".vtu", ".pvtu"), "--report": (".html", ".htm")})
    wanted = [_condition(text) for text in arguments.patch_bc]
    for option in ("source", "diffusivity"):
        if not math.isfinite(getattr(arguments, option)):
            raise InputError(f"--{option} {getattr(arguments, option)}: expected a finite number")
    if arguments.diffusivity <= 0:
        raise InputError(f"--diffusivity {arguments.diffusivity:g}: expected a positive number")
    if arguments.corrections < 0:
        raise InputError(f"--corrections {arguments.corrections}: expected a number of corrections, 0 for none")
    from swell.core.devices import make_space
    from swell.core.stopping import Stopping
    Stopping(rtol=arguments.rtol, maxiter=arguments.maxiter)
    chosen = named_solver(arguments)
    chosen["method"] = chosen["method"] or "cg"
    if chosen["scaling"] is None and chosen["precond"] in (None, "none") and chosen["method"] != "auto":
        chosen["scaling"] = "jacobi"
    if ranks is None:
        make_space(arguments.device)

    from swell.solving.progress import Progress
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.CASE}"
        began = time.perf_counter()
        mesh = read_case(arguments.CASE, ranks)
        facts = {"case": arguments.CASE, "read_seconds": time.perf_counter() - began, **mesh.facts()}
    if not arguments.json and not arguments.quiet:
        _describe(facts)
    conditions = _assign(mesh, wanted, facts)
    _check_files(arguments, mesh, ranks)

    from swell.pde.fvm import Poisson
    problem = Poisson(mesh, conditions, arguments.diffusivity, arguments.source, corrections=arguments.corrections)
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase, progress.tolerance = f"solving for {facts['cells']} cells", arguments.rtol
        solution = problem.solve(**chosen, rtol=arguments.rtol, maxiter=arguments.maxiter, device=arguments.device,
                                 balance=arguments.balance, monitor=progress.monitor, ranks=ranks)
    if ranks is None or ranks.rank == 0 or arguments.out:        # each rank writes its part of a decomposed mesh
        _write(arguments, problem, solution, facts)
    if ranks is None or ranks.rank == 0:
        _print(arguments, solution, facts)
    return 0 if solution.converged else 1


def _condition(text):
    """Parse NAME=CONDITION; return (name or pattern, condition), or raise InputError."""
    from swell.pde.fvm import Dirichlet, Neumann, Robin
    makers = {"dirichlet": Dirichlet, "neumann": Neumann, "robin": Robin}
    name, _, words = text.rpartition("=")
    kind, *numbers = words.lower().split(":")
    if kind not in makers and not numbers:      # a number alone fixes p
        kind, numbers = "dirichlet", [kind]
    if not name or len(numbers) != COUNTS.get(kind) or not all(map(_is_number, numbers)):
        hint = "" if kind in makers else meant(kind, makers)
        if name and kind in makers and words.lower().startswith(kind):
            hint = f"{kind} takes {COUNTS[kind]} {'number' if COUNTS[kind] == 1 else 'numbers'}. "
        raise InputError(f"--patch-bc {text}: {hint}Expected NAME=CONDITION, {EXAMPLE}")
    return name, makers[kind](*map(float, numbers))


def _is_number(text) -> bool:
    """Return True if the text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _check_files(arguments, mesh, ranks):
    """Raise InputError unless the named files suit the mesh. If each rank has a part of it, set ``arguments.out`` to
    rank 0's on every rank. ``ranks``: a Communicator or None."""
    from swell.pde.fvm import PartMesh
    parts = isinstance(mesh, PartMesh)
    if parts:
        arguments.out, report = ranks.allgather((arguments.out, arguments.report))[0]
        if report:
            raise InputError("--report needs the whole matrix, and each rank has a part of the mesh: leave it out")
    check_paths({"--out": arguments.out}, endings={"--out": (".pvtu" if parts else ".vtu",)})


def read_case(case, ranks):
    """Return the mesh that ``case``, a command-line argument, names: read from a file or folder, or generated.
    ``ranks`` is a Communicator or None."""
    from swell.pde.fvm import box, read_mesh
    if not case.startswith(BOX):
        return read_mesh(case, ranks)
    sizes = case[len(BOX):].split(",")
    if not 1 <= len(sizes) <= 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise InputError(f"{case}: expected box:NX,NY,NZ with positive numbers of cells, such as box:32,32,32")
    return box(tuple(map(int, sizes)))


def _assign(mesh, wanted, facts) -> dict:
    """Return {patch: condition}: a condition with the patch's exact name, else the first pattern that fits. ``wanted``:
    list of (name or pattern, condition); ``facts``: the dict of `Mesh.facts`.

    Raise InputError for a patch without a condition, and for a name that fits no patch.
    """
    from swell.pde.fvm.boundary import UNCONDITIONED, by_patch
    patches = [patch["name"] for patch in facts["patches"] if patch["kind"] not in UNCONDITIONED and patch["faces"]]
    if not wanted and patches:
        raise InputError(f"no conditions were given: the mesh has the patches {', '.join(patches)}; give each one with "
                         f"--patch-bc NAME=CONDITION, {EXAMPLE}; '*=neumann:0' is for all the others")
    names = [name for name, _ in wanted]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--patch-bc: patch {name!r} has two conditions; give one")
    conditions = by_patch(mesh, dict(wanted))
    missing = [patch for patch in patches if patch not in conditions]
    if missing:
        raise InputError(f"no condition for {'patch' if len(missing) == 1 else 'patches'} {', '.join(missing)}: give "
                         f"--patch-bc {missing[0]}=VALUE to fix p there, --patch-bc {missing[0]}=neumann:0 for a wall "
                         "without flux, or --patch-bc '*=neumann:0' for all the others")
    return conditions


def _describe(facts):
    """Print a description of the mesh; ``facts``: the dict of `Mesh.facts` and the command's own entries."""
    angles, aspects = facts["non_orthogonality"], facts["aspect_ratio"]
    print(f"{facts['case']}: {facts['cells']} cells, {facts['faces']} faces ({facts['internal_faces']} internal), "
          f"{facts['points']} points; read and checked in {facts['read_seconds']:.2g} s")
    if "ranks" in facts:
        print(f"  divided among {facts['ranks']} ranks; each has read its own part")
    if facts["parts"] > 1:
        print(f"  {facts['parts']} parts that share no face; patches must fix p in each")
    print(f"  volume {facts['volume']:.6g}, cells from {facts['cell_volume']['min']:.3g} to "
          f"{facts['cell_volume']['max']:.3g}")
    print(f"  non-orthogonality: at most {angles['max']:.1f}°, mean {angles['mean']:.1f}°; aspect ratio: at most "
          f"{aspects['max']:.3g}, mean {aspects['mean']:.3g}")
    for patch in facts["patches"]:
        kind = patch["kind"] + (f" with {patch['neighbour']}" if "neighbour" in patch else "")
        print(f"  patch {patch['name']}: {patch['faces']} faces, area {patch['area']:.6g}, kind {kind}")


def _write(arguments, problem, solution, facts):
    """Write the solution and the report to the files that the arguments name; ``facts`` as in ``_describe``."""
    if arguments.out:
        solution.write(arguments.out)
    if arguments.report:
        from swell.report import html, section
        angles = facts["non_orthogonality"]
        notes = [(f"mesh: {facts['cells']} cells, {facts['faces']} faces; non-orthogonality at most "
                  f"{angles['max']:.1f}°, mean {angles['mean']:.1f}°"),
                 f"patches: {', '.join(patch['name'] for patch in facts['patches'])}"]
        result = dataclasses.replace(solution.longest, notes=[*notes, *solution.notes, *solution.longest.notes])
        matrix = problem.assemble().A.to_scipy()
        html(result, arguments.report, title=f"swell fvm {Path(arguments.CASE).name}", matrix=matrix,
             equation=solution, fields=section.figure(solution.mesh, {"p": solution.p}),
             say=lambda sentence: for_shell(sentence, vars(arguments)))


def _print(arguments, solution, facts):
    """Print the result on stdout, and a note of an interruption on stderr. ``facts`` as in ``_describe``."""
    if solution.interrupted:
        print("swell: interrupted; the output and the files have the current iterate", file=sys.stderr)
    span = solution.span()
    if arguments.json:
        print(as_json({**facts, "p": span, "corrections": solution.corrections,
                       "total_iterations": sum(r.iterations for r in solution.results),
                       "conservation": solution.conservation(), **solution.result.as_dict(),
                       "converged": solution.converged, "reason": solution.reason.name, "message": solution.message,
                       "residual": solution.residual, "equation_residual": solution.residual,
                       "imbalance": solution.imbalance, "tolerance": solution.rtol,
                       "notes": solution.notes + solution.result.notes,
                       "out": arguments.out, "report": arguments.report}, vars(arguments)))
    elif not arguments.quiet:
        print(for_shell(solution, vars(arguments)))
        print(f"  p from {span['min']:.6g} to {span['max']:.6g}, mean {span['mean']:.6g}")
        for what, path in (("p", arguments.out), ("report", arguments.report)):
            if path:
                print(f"  {what} written to {path}")
