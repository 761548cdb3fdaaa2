"""All GPUs of this machine from one process, without MPI: ``swell.solve(A, b, device="cuda:all")``. A thread a GPU."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell import inputs
from swell.core.errors import InputError
from swell.core.result import Results
from swell.distributed import threads
from swell.distributed.distribute import scatter
from swell.distributed.matrix import DistributedMatrix

DEVICE = "cuda:all"


def solve(A, b, x0, monitor, dtype, named: dict):
    """Solve A x = b with rows of A on each GPU. The parameters are those of ``swell.solve``; ``named`` has what goes on
    to ``prepare``.

    Returns
    -------
    Result or Results
        Rank 0's, with the whole x as a NumPy array.

    Raises
    ------
    InputError
        For what cannot be shared out: a matrix-free A, one in parts, a function M, vectors of a null space.
    MissingDependency
        Without CuPy or a GPU.
    """
    from swell.core.cuda import require_cupy
    _, count = require_cupy()
    if named["M"] is not None:
        raise InputError(f"device={DEVICE!r} takes no M: name a precond, or use mpiexec, where M acts on a rank's part")
    if not (named["nullspace"] is None or isinstance(named["nullspace"], str)):
        raise InputError(f"device={DEVICE!r} takes nullspace='constants' alone: use one GPU for other vectors")
    if isinstance(A, DistributedMatrix):
        raise InputError(f"device={DEVICE!r} gives rows to GPUs, and A is in parts already: leave device out; across "
                         "ranks scatter or read A with device='cuda'")
    given = inputs.read_matrix(A, "cpu", dtype, inputs.dtype_of(b))
    if not given.A.has_entries:
        raise InputError(f"device={DEVICE!r} needs a matrix with entries, and A is matrix-free: use one GPU")
    n, whole = given.A.shape[0], sp.csr_array(given.A.to_scipy())
    rhs = _host(inputs.read_vector(b, n, "b"))
    guess = None if x0 is None else _host(inputs.read_vector(x0, n, "x0"))
    result = threads.run(min(count, n), on_a_rank, whole, rhs, guess, monitor, named, "cuda")[0]
    for one in _columns(result):
        one.notes = [*given.notes, *one.notes]
    return result


def _columns(result):
    return result.columns if isinstance(result, Results) else [result]


def _host(v):
    return v.get() if hasattr(v, "get") else np.asarray(v)


def on_a_rank(communicator, A, b, x0, monitor, named, device):
    """What each thread does; every x of its result is the whole one."""
    from swell.api import prepare
    M = scatter(communicator, A if communicator.rank == 0 else None, device=device)
    try:
        b, x0 = b[M.rows], None if x0 is None else x0[M.rows]
        result = prepare(M, b_like=b, **named).solve(b, x0=x0, monitor=None if communicator.rank else monitor)
        for column in _columns(result):
            for one in (column, *column.attempts):
                one.x = M.gather(one.x)
        if isinstance(result, Results):
            result.x = M.gather(result.x)
        return result
    finally:
        M.space.communicator.close()
