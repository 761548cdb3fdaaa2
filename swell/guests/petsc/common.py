"""Functions shared by swell's PC and KSP: options, output, errors across ranks, and clean-up at exit."""
from __future__ import annotations

import atexit
import difflib
from contextlib import contextmanager

from swell.core.errors import InputError, SwellError
from swell.guests.petsc import views

_alive = {}             # handle: (C function, type), for each PC and KSP of swell that PETSc has not destroyed


def options(owner, start, known) -> dict:
    """Read the options that begin with ``start``, after the prefix of ``owner`` (a PC or KSP), from PETSc's database;
    return {name: text}.

    An option that is not in ``known`` is an InputError.
    """
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
    """Return the value of ``name``, a boolean option of PETSc itself such as "ksp_reuse_preconditioner"; False if it is
    not set."""
    from petsc4py import PETSc
    return PETSc.Options(ksp.getOptionsPrefix() or "").getBool(name, False)


def write(viewer, lines):
    """Write ``lines`` to a PETSc viewer for text; other viewers get nothing."""
    if viewer.getType() == "ascii":
        for line in lines:
            viewer.printfASCII(f"  {line}\n")


def enter(owner, function, kind):
    """Register ``owner``, a PC or KSP of type "python": `_release` will change its type to ``kind`` by the C function
    ``function``."""
    _alive[owner.handle] = function, kind


def leave(owner):
    """Remove ``owner``, a PC or KSP, from the register of `enter`, since PETSc is destroying it."""
    _alive.pop(owner.handle, None)


@atexit.register
def _release():
    """Change all registered objects to PETSc's own types at exit. After an error, PETSc destroys its objects after
    Python has ended, and would crash in a PC or KSP of type "python"."""
    for handle, (function, kind) in list(_alive.items()):
        views.set_type(function, handle, kind)


@contextmanager
def agreed(comm, what):
    """Context manager: if the block raises an error on any rank of ``comm``, every rank raises one, so that no rank
    waits for another. ``what``: the block's work, for the message."""
    failure = None
    try:
        yield
    except Exception as error:                   # raised again below, after the other ranks know of it
        failure = error
    where = _first(comm, failure is not None) if comm.size > 1 else None
    if failure is not None:
        raise failure
    if where is not None:
        raise SwellError(f"{what} failed on rank {where}, whose message says why")


def _first(comm, failed):
    """Return the number of a rank for which ``failed`` is true, or None. All ranks call it together. It uses PETSc's
    own reduction, so that mpi4py is not needed."""
    from petsc4py import PETSc
    flags = PETSc.Vec().createMPI((1, PETSc.DETERMINE), comm=comm)
    flags.getArray()[...] = failed
    where, largest = flags.max()
    flags.destroy()
    return where if largest else None
