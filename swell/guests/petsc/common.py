"""Parts that swell's PC and KSP share: options, output, errors on several ranks, and the end of the program."""
from __future__ import annotations

import atexit
import difflib
from contextlib import contextmanager

from swell.core.errors import InputError, SwellError
from swell.guests.petsc import views

_alive = {}             # handle: (C function, type) of each PC and KSP that would outlive Python


def options(owner, start, known) -> dict:
    """The options of the database that begin with ``start``, after the owner's prefix."""
    from petsc4py import PETSc
    database = PETSc.Options(owner.getOptionsPrefix() or "")
    for name in database.getAll():
        if name.startswith(start) and name[len(start):] not in known:
            near = difflib.get_close_matches(name[len(start):], known, n=1)
            hint = f"did you mean -{start}{near[0]}? " if near else ""
            raise InputError(f"unknown option -{name}: {hint}There are: "
                             + ", ".join(f"-{start}{k}" for k in known))
    return {name: database.getString(start + name, "") for name in known if database.hasName(start + name)}


def flag(ksp, name) -> bool:
    """A switch of PETSc's own, such as -ksp_reuse_preconditioner."""
    from petsc4py import PETSc
    return PETSc.Options(ksp.getOptionsPrefix() or "").getBool(name, False)


def write(viewer, lines):
    """To a viewer for text; others are left alone."""
    if viewer.getType() == "ascii":
        for line in lines:
            viewer.printfASCII(f"  {line}\n")


def enter(guest, function, kind):
    """Remember a PC or KSP of Python's, and the C function and type that would turn it into one of PETSc's."""
    _alive[guest.handle] = function, kind


def leave(guest):
    """Forget it: PETSc is destroying it."""
    _alive.pop(guest.handle, None)


@atexit.register
def _release():
    """After an error PETSc destroys its objects when Python is gone, and would crash in a PC or KSP of Python's."""
    for handle, (function, kind) in list(_alive.items()):
        views.set_type(function, handle, kind)


@contextmanager
def agreed(comm, what):
    """Raise on all ranks if one of them raises, so that none waits for it."""
    failure = None
    try:
        yield
    except Exception as error:                   # raised again below, when the others know
        failure = error
    where = _first(comm, failure is not None) if comm.size > 1 else None
    if failure is not None:
        raise failure
    if where is not None:
        raise SwellError(f"{what} failed on rank {where}, whose message says why")


def _first(comm, failed):
    """A rank for which ``failed`` is true, or None; by PETSc's own reduction, so that mpi4py is not needed."""
    from petsc4py import PETSc
    flags = PETSc.Vec().createMPI((1, PETSc.DETERMINE), comm=comm)
    flags.getArray()[...] = failed
    where, largest = flags.max()
    flags.destroy()
    return where if largest else None
