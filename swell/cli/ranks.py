"""``swell solve`` on the ranks that mpiexec started: each reads its rows, rank 0 prints and writes."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from swell.core.errors import InputError, SwellError

BAD_INPUT = 2


def run(arguments, prepared) -> int:
    """Solve across the ranks.

    Parameters
    ----------
    arguments : argparse.Namespace
        Of ``swell solve``.
    prepared : callable
        Checks what can be checked without A; returns (settings for ``prepare``, ``Stopping``).
    """
    from swell import distributed
    ranks = distributed.init()
    try:
        return _solve(ranks, arguments, prepared)
    except SwellError:
        if ranks.rank:
            return BAD_INPUT                     # all ranks have this error, and rank 0 says it
        raise
    except Exception as error:                   # the others know nothing of it, and would wait
        ranks.die(type(error), error, error.__traceback__)


def _solve(ranks, arguments, prepared):
    import swell
    from swell import distributed
    from swell.cli.progress import Progress
    with ranks.agreed():
        chosen, stopping = prepared(arguments)
        if arguments.dtype:
            raise InputError("--dtype does not work across ranks: write the file in that type")
        if arguments.report:
            raise InputError("--report does not work across ranks: leave it out, or solve on one rank")
    first = ranks.rank == 0
    with Progress(shown=first and not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.A} on {ranks.size} ranks"
        A, notes = _matrix(ranks, arguments)
        b, x0 = _vectors(ranks, arguments, A, notes)
        progress.phase = "preparing the solver"
        solver = swell.prepare(A, **chosen, device=arguments.device, stopping=stopping, b_like=b)
        solver.notes[:0] = notes
        progress.tolerance = stopping.rtol
        result = solver.solve(b, x0=x0, monitor=progress.monitor if first else None)
    result.x = A.gather(result.x)
    with ranks.agreed():
        if first:
            from swell.cli.solve import print_result, write
            write(arguments, result, A)
            print_result(arguments, result, A)
            sys.stdout.flush()
    return 0 if result.converged else 1


def _matrix(ranks, arguments):
    """Rows of a file, read by each rank; a generated matrix is made whole on rank 0."""
    from swell import distributed
    from swell.cli import source
    if ":" not in arguments.A or Path(arguments.A).exists():
        return distributed.read(ranks, arguments.A, partition=arguments.partition), []
    with ranks.agreed():
        A, notes = source.read_system(arguments.A) if ranks.rank == 0 else (None, [])
    return distributed.scatter(ranks, A, partition=arguments.partition), notes


def _vectors(ranks, arguments, A, notes):
    """This rank's part of the right-hand side and of the starting vector."""
    from swell.io import read_vector
    with ranks.agreed():
        whole = [None if path is None else read_vector(path) for path in (arguments.rhs, arguments.x0)]
        for name, vector in zip(("--rhs", "--x0"), whole):
            if vector is not None and vector.shape[0] != A.shape[0]:
                raise InputError(f"{name} has {vector.shape[0]} rows: expected {A.shape[0]}, as A has")
    if arguments.rhs is None:
        notes.append("no right-hand side was given: it is all ones")
    b = np.ones(A.space.share(A.shape[0])) if whole[0] is None else whole[0][A.rows]
    return b, None if whole[1] is None else whole[1][A.rows]
