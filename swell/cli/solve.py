"""Solve A x = b from files.

Without --method, an advisor analyses A and chooses; if its first choice fails, it takes the next one. Names may carry
settings: --method 'gmres(restart=50)'. Ctrl-C ends the iterations; the current iterate is still written.
"""
from __future__ import annotations

import sys
from pathlib import Path

from swell.cli import source
from swell.cli.arguments import add_output, add_solver, named_solver
from swell.cli.output import VECTORS, as_json, check_paths, for_shell, readable
from swell.core.errors import InputError
from swell.core.registry import names, resolve
from swell.core.settings import DTYPES

HELP = "solve a system from files"


def add_arguments(parser):
    """Add the arguments of ``swell solve``."""
    parser.add_argument("A", help=source.HELP)
    parser.add_argument("--rhs", metavar="FILE", help="right-hand side, or several as columns (.mtx, .npy, .txt, "
                        ".mat, HDF5, PETSc; FILE:NAME as for A); all ones by default")
    parser.add_argument("--x0", metavar="FILE", help="starting vector; zero by default")
    add_solver(parser)
    parser.add_argument("--nullspace", metavar="NAME", help="null space of A: constants, or a file with a basis as "
                        "columns")
    parser.add_argument("--project", action="store_true", help="with --nullspace: take out of the right-hand side what "
                        "no x can produce")
    parser.add_argument("--smoother", metavar="NAME", help="smoother for cg, before it and between its iterations: "
                        + ", ".join(names("smoother")))
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda, cuda:1, ..., or cuda:all")
    parser.add_argument("--dtype", choices=DTYPES, metavar="DTYPE", help="convert A first: " + ", ".join(DTYPES))
    parser.add_argument("--block", type=int, metavar="N", help="number of consecutive rows that belong together, as "
                        "the unknowns of a mesh point; default: from the file, or detected")
    parser.add_argument("--partition", choices=("rows", "graph"), default="rows", help="under mpiexec: distribution of "
                        "the rows, consecutive rows or parts of the matrix' graph; default rows")
    parser.add_argument("--rtol", type=float, metavar="R",
                        help="converged means ‖b − Ax‖₂ ≤ max(rtol ‖b‖₂, atol); default 1e-8, and 1e-5 in single "
                             "precision")
    parser.add_argument("--atol", type=float, default=0.0, metavar="R", help="see --rtol; default 0")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="judge the residual every N iterations; "
                        "default 1")
    parser.add_argument("--maxiter", type=int, metavar="N", help="iteration limit")
    parser.add_argument("--out", metavar="FILE", help="write x: .npy, .mtx or .txt")
    parser.add_argument("--report", metavar="FILE", help="write an HTML report")
    add_output(parser)


def run(arguments, ranks) -> int:
    """Check all arguments that need no A; then read, solve, write and print. Return the exit status. ``ranks`` is a
    Communicator or None."""
    chosen, stopping = _checked(arguments, ranks)
    from swell.solving.progress import Progress
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.A}"
        if ranks is None:
            A, notes = source.read_system(arguments.A)
            block = source.block_size(arguments.A) if arguments.block is None else arguments.block
            b, x0 = _vectors(arguments, A.shape[0], notes)
        else:
            from swell.cli.ranks import matrix, vectors
            (A, notes), block = matrix(ranks, arguments), None   # A has its block size
            b, x0 = vectors(arguments, A, notes)
        progress.phase = "preparing the solver"
        result, M = _solve(A, b, x0, chosen, stopping, block, arguments, notes, progress)
    if ranks is not None:
        result.x = A.gather(result.x)
    if ranks is None or ranks.rank == 0:
        _write(arguments, result, A, M)
        _print(arguments, result, A)
    return 0 if result.converged else 3 if result.final and result.exact_to_rounding else 1


def _checked(arguments, ranks):
    """Check the arguments that need no A; return (keyword arguments of ``swell.prepare``, Stopping). ``ranks`` is a
    Communicator or None."""
    if ranks is None and arguments.partition != "rows":
        raise InputError(f"--partition {arguments.partition} is for ranks: start mpiexec -n 2 swell solve ...")
    if ranks is not None and arguments.report:
        raise InputError("--report does not work across ranks: leave it out, or solve on one rank")
    check_paths({"--out": arguments.out, "--report": arguments.report},
                (arguments.A, arguments.rhs, arguments.x0), {"--out": VECTORS, "--report": (".html", ".htm")})
    from swell.core.devices import make_space
    from swell.core.stopping import Stopping
    stopping = Stopping(rtol=arguments.rtol, atol=arguments.atol, maxiter=arguments.maxiter, every=arguments.every)
    chosen = {**named_solver(arguments), "smoother": resolve("smoother", arguments.smoother)}
    if arguments.device and ranks is None and arguments.device != "cuda:all":
        make_space(arguments.device)
    chosen["nullspace"] = _nullspace(arguments)
    return chosen, stopping


def _vectors(arguments, n, notes):
    """Return (right-hand side, starting vector or None), read from the named files; n: rows of A. A remark is appended
    to the list ``notes`` if the right-hand side is not given."""
    import numpy as np
    if arguments.rhs is None:
        notes.append("no right-hand side was given: it is all ones")
    b = np.ones(n) if arguments.rhs is None else source.read_vector(arguments.rhs)
    return b, None if arguments.x0 is None else source.read_vector(arguments.x0)


def _nullspace(arguments):
    """Return --nullspace and --project as ``swell.prepare`` takes them."""
    basis = _basis(arguments.nullspace)
    if not arguments.project:
        return basis
    if basis is None or isinstance(basis, str) and basis == "none":
        raise InputError("--project takes out of the right-hand side a part that --nullspace tells: give both, such as "
                         "--nullspace constants --project")
    from swell.transforms.nullspace import NullSpace
    return NullSpace(basis, project=True)


def _basis(text):
    """Return --nullspace: ``text`` in small letters if it is "constants" or "none", else the basis vectors read from
    the file ``text``."""
    if text is None or text.lower() in ("constants", "none"):
        return text and text.lower()
    if not Path(source.file_and_name(text)[0]).exists():
        raise InputError(f"--nullspace {text}: expected constants, none, or a file with a basis, and there is no such "
                         f"file in {Path.cwd()}")
    return source.read_vector(text)


def _solve(A, b, x0, chosen, stopping, block, arguments, notes, progress):
    """Prepare and solve, with the progress display as monitor; return (Result, the first choice's preconditioner or
    None). ``chosen``, ``stopping``: as `_checked` returns them; ``notes``: sentences to add to the result's."""
    import numpy as np

    import swell
    solver = swell.prepare(A, **chosen, device=arguments.device, dtype=arguments.dtype, block=block, stopping=stopping,
                           b_like=b)
    solver.notes[:0] = notes
    norm_b = float(np.linalg.norm(b)) if np.isfinite(b).all() else 0.0      # the solver refuses b that is not finite
    stopping = solver.stopping
    progress.tolerance = stopping.threshold(norm_b) / norm_b if norm_b else stopping.rtol
    result, M = solver.solve(b, x0=x0, monitor=progress.monitor), solver.M
    return result, None if M is None else M.operator


def _write(arguments, result, A, M):
    """Write the files that the arguments name; A: the matrix, M: its preconditioner or None, for the report."""
    if arguments.out:
        from swell.io import write_vector
        write_vector(arguments.out, result.x)
    if arguments.report:
        from swell.preconditioners.amg.operator import AMGOperator
        from swell.report import html
        whole = arguments.device != "cuda:all"   # otherwise M is for rank 0's rows only
        html(result, arguments.report, title=f"swell solve {readable(Path(arguments.A).name)}", matrix=A,
             levels=M if whole and isinstance(M, AMGOperator) else None,
             say=lambda sentence: for_shell(sentence, vars(arguments)))


def _print(arguments, result, A):
    """Print the result on stdout, and a note of an interruption on stderr."""
    if result.reason.name == "INTERRUPTED":
        print("swell: interrupted; the output and the files have the current iterate", file=sys.stderr)
    if arguments.json:
        print(as_json({"matrix": arguments.A, "n": A.shape[0], "nnz": A.nnz, "rhs": arguments.rhs or "ones",
                       **result.as_dict(), "out": arguments.out, "report": arguments.report},
                      vars(arguments)))
    elif not arguments.quiet:
        print(f"{arguments.A}: {for_shell(result, vars(arguments))}")
        for what, path in (("x", arguments.out), ("report", arguments.report)):
            if path:
                print(f"  {what} written to {path}")
