"""Matrices and vectors in parts, on ranks that MPI starts.

    import swell
    ranks = swell.distributed.init()                          # started by: mpiexec -n 2 python script.py
    A = swell.distributed.read(ranks, "A.mtx")                # every rank reads its own rows
    r = swell.solve(A, b[A.rows], method="cg", precond="ic0")
    x = A.gather(r.x)

A rank gives its part of b and gets its part of x; Krylov methods and the judge are those of one device.

All of these are calls that every rank makes, in the same order: a rank that reads, solves or gathers alone, as after
``if ranks.rank == 0``, waits for the others. What they return may be printed or written by one. An error on one rank is
the same error on all, also where it comes from M or a monitor in the middle of a solve: a program that catches it
catches it everywhere. (An A of your own that sends messages is the exception: where it fails alone, all ranks end.)
"""
from __future__ import annotations

from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {
    "DistributedMatrix": "matrix", "from_parts": "parts", "from_rows": "parts", "from_subdomains": "subdomains",
    "init": "mpi", "read": "distribute", "run": "threads", "scatter": "distribute",
})
