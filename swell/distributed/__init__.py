"""Matrices and vectors in parts, on ranks that MPI starts.

    import swell
    ranks = swell.distributed.init()                          # started by: mpiexec -n 2 python script.py
    A = swell.distributed.read(ranks, "A.mtx")                # every rank reads its own rows
    r = swell.solve(A, b[A.rows], method="cg", precond="ic0")
    x = A.gather(r.x)

A rank gives its part of b and gets its part of x; Krylov methods and the judge are those of one device.
"""
from __future__ import annotations

from swell.distributed.distribute import read, scatter
from swell.distributed.matrix import DistributedMatrix, from_rows
from swell.distributed.mpi import init
from swell.distributed.threads import run

__all__ = ["DistributedMatrix", "from_rows", "init", "read", "run", "scatter"]
