"""Matrices and vectors distributed over ranks that MPI starts.

    import swell
    ranks = swell.distributed.init()                          # started by: mpiexec -n 2 python script.py
    A = swell.distributed.read(ranks, "A.mtx")                # every rank reads its own rows
    r = swell.solve(A, b[A.rows], method="cg", precond="ic0")
    x = A.gather(r.x)

A rank passes its local rows of b and receives its local rows of x. Krylov methods and the tests of convergence are
the same as on one device.

Every rank makes all of these calls, in the same order. A rank that reads, solves or gathers alone, as after
``if ranks.rank == 0``, waits for the others. One rank may print or write the results. An error on one rank is
raised on all ranks, even if M or a monitor raises it in the middle of a solve: a program that catches it catches it on
every rank. (The exception is a user's own A that sends messages: if it fails on one rank, all ranks end.)
"""
from __future__ import annotations

from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {
    "DistributedMatrix": "matrix", "from_parts": "parts", "from_rows": "parts", "from_subdomains": "subdomains",
    "init": "mpi", "read": "distribute", "run": "threads", "scatter": "distribute",
})
