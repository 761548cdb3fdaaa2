"""Commands on the ranks that mpiexec started: all ranks work, rank 0 prints and writes."""
from __future__ import annotations

import os

import numpy as np

from swell.cli import BAD_INPUT, INTERRUPTED, UNSOLVED
from swell.core.errors import InputError, SwellError

WRITTEN = {"out", "report", "csv", "plot", "vtu", "json", "history", "cut"}     # rank 0 alone writes these


def run_on_all(arguments, run) -> int:
    """Call ``run(arguments, ranks)`` on every rank, or ``run(arguments, None)`` without a launcher; return the exit
    status that it returns. ``ranks``: a Communicator.

    An error of one rank is raised on all ranks, and rank 0 reports it. An unexpected error ends all ranks. So does
    Ctrl-C before there is a solution, since it may have reached one rank alone.
    """
    from swell.distributed.launcher import launched
    if launched() == 1:
        if arguments.share_gpus:
            raise InputError(f"--share-gpus is for ranks: start mpiexec -n 2 swell {arguments.command} ...")
        return run(arguments, None)
    from swell import distributed
    from swell.distributed.devices import on_device
    ranks = distributed.init(share_gpus=arguments.share_gpus)
    if ranks.rank:
        arguments.quiet = True
        vars(arguments).update(dict.fromkeys(WRITTEN & set(vars(arguments))))
    try:
        on_device(ranks, arguments.device or "cpu")         # raises for a wrong device before anything is read
        with ranks.agreed():
            return run(arguments, ranks)
    except SwellError:
        if ranks.rank:
            return BAD_INPUT
        raise
    except KeyboardInterrupt:
        ranks.end(f"swell: {UNSOLVED}\n", INTERRUPTED)
    except Exception as error:
        ranks.die(type(error), error, error.__traceback__)


def matrix(ranks, arguments):
    """Return (DistributedMatrix, notes: list of str) for the command's argument A. Each rank reads its rows of a file;
    rank 0 generates a whole matrix."""
    from swell import distributed
    from swell.cli import source
    device = arguments.device or "cpu"
    if ":" not in arguments.A or os.path.exists(arguments.A):
        return distributed.read(ranks, arguments.A, device=device, partition=arguments.partition,
                                block=arguments.block), []
    A, notes = source.read_system(arguments.A) if ranks.rank == 0 else (None, [])
    return distributed.scatter(ranks, A, device=device, partition=arguments.partition,
                               block=arguments.block), notes


def vectors(arguments, A, notes):
    """Return (this rank's rows of the right-hand side, this rank's rows of the starting vector or None). A: the
    DistributedMatrix. A remark is appended to the list ``notes`` if the right-hand side is not given."""
    from swell.cli import source
    whole = [None if path is None else source.read_vector(path) for path in (arguments.rhs, arguments.x0)]
    for name, vector in zip(("--rhs", "--x0"), whole):
        if vector is not None and vector.shape[0] != A.shape[0]:
            raise InputError(f"{name} has {vector.shape[0]} rows: expected {A.shape[0]}, as A has")
    if arguments.rhs is None:
        notes.append("no right-hand side was given: it is all ones")
    b = np.ones(A.space.ranks.local_rows(A.shape[0])) if whole[0] is None else whole[0][A.rows]
    return b, None if whole[1] is None else whole[1][A.rows]
