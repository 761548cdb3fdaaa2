"""Functions for swell's PC and KSP on several ranks: communication, and the matrix made from PETSc's local parts."""
from __future__ import annotations

import functools
from contextlib import nullcontext

import numpy as np

from swell.core.errors import InputError, MissingDependency
from swell.guests.petsc import views


@functools.cache
def _key():
    """Return the MPI attribute key under which an MPI communicator stores its swell communicator."""
    from mpi4py import MPI
    return MPI.Comm.Create_keyval()


def communicator(comm):
    """Return swell's communicator for the ranks of PETSc's ``comm``. It is made once, and then reused.

    Raises
    ------
    MissingDependency
        If mpi4py is missing.
    InputError
        If PETSc and mpi4py belong to different MPI libraries.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MissingDependency(f"swell among {comm.size} ranks of PETSc needs mpi4py ({error}): pip install "
                                "'swell[mpi]', for the MPI library that PETSc has") from None
    if MPI.COMM_WORLD.size < comm.size:
        raise InputError(f"PETSc has {comm.size} ranks, mpi4py {MPI.COMM_WORLD.size}: it belongs to another "
                         f"MPI library, {MPI.Get_library_version().splitlines()[0]}; install mpi4py for PETSc's, and "
                         "leave other MPI libraries out of this environment")
    theirs = comm.tompi4py()
    ours = theirs.Get_attr(_key())
    if ours is None:
        from swell.distributed.mpi import MPICommunicator, share_cores
        ours = MPICommunicator(theirs)
        share_cores(ours.local_size)
        theirs.Set_attr(_key(), ours)
    return ours


def agreed(comm):
    """Return a context manager: if its block raises an error on any rank, all ranks raise the error of the first such
    rank."""
    return nullcontext() if comm.size == 1 else communicator(comm).agreed()


def of_all(comm, value) -> list:
    """Return the list of all ranks' values, in the order of ranks. All ranks call it together."""
    return [value] if comm.size == 1 else communicator(comm).allgather(value)


def matrix(A, device):
    """Return a matrix for ``swell.prepare``: the Mat A itself if it is on one rank, else a DistributedMatrix on
    ``device``.

    On a CPU the parts are copied once, since later changes of the Mat must not affect the prepared system. To a GPU
    an AIJ's parts are copied from PETSc's memory directly. The copies of a BAIJ's blocks are in CSR.
    """
    if A.comm.size == 1:
        return A
    from swell.distributed.parts import from_parts
    ranks = communicator(A.comm)
    with ranks.agreed():
        block, rest, columns = views.parts(A)
        block, rest = (part.tocsr(copy=device == "cpu") for part in (block, rest))
    return from_parts(ranks, block, rest, columns, device=device, block=views.block_size(A))


def new_values(A, prepared):
    """Return a matrix for ``Solver.update``: the present values of the Mat A, in the pattern of ``prepared``, the
    matrix of the solver."""
    if A.comm.size == 1:
        return views.matrix(A)
    from swell.distributed.entries import whole_blocks
    with communicator(A.comm).agreed():
        block, rest, columns = views.parts(A)
        if not np.array_equal(whole_blocks(columns, prepared.block_size), prepared.halo.ghosts):
            raise InputError("the pattern of the Mat differs from the prepared one: prepare again, ksp.reset()")
    return prepared.with_values(block.tocsr().data, rest.tocsr().data)
