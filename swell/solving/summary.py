"""The description of a prepared system: the configuration lines of a printed result, and its notes."""
from __future__ import annotations

from typing import NamedTuple

from swell.core.settings import circumstances, describe, idle_notes


def words(setup):
    """Return ({part: description}, notes) of the parts that ``setup`` built, combined over all ranks.

    All ranks must call it together."""
    M, matrix, space = setup.M, setup.matrix, setup.space
    own = {"device": space.describe(), "preconditioner": "" if M is None else M.describe(),
           "matrix": matrix.describe(), "format": matrix.name, "origin": matrix.origin}
    parts = (part for part in (setup.nullspace, matrix, M) if part is not None)
    notes = space.ranks.said_notes([note for part in parts for note in part.notes])
    return dict(zip(own, space.ranks.said([*own.values()]), strict=True)), notes


class Description(NamedTuple):
    """The parts of a result that describe its setup.

    Attributes
    ----------
    method, precond, format, ordering, scaling, device, dtype, configuration
        As in a `Result`.
    memory : dict
        Bytes of "matrix" and "preconditioner".
    notes : tuple of str
        Notes on the setup, on the parts that ranks have built, and on settings without effect.
    failures : tuple of str
        The message of a failed factorisation, or empty; a result lists it last.
    """

    method: str
    precond: str
    format: str
    ordering: str
    scaling: str
    device: str
    dtype: str
    configuration: list[str]
    memory: dict
    notes: tuple[str, ...]
    failures: tuple[str, ...]


def description(prepared) -> Description:
    """Return the Description of ``prepared``, a Prepared; `Prepared.description` keeps it.

    This takes longer than a small solve."""
    s, c = prepared.setup, prepared.setup.configuration
    idle = (*idle_notes(c.method, circumstances(s.A)), *idle_notes(prepared.stopping, (f"for {c.name('method')}",)))
    return Description(c.name("method"), c.name("precond"), s.words["format"], c.name("ordering"),
                       c.name("scaling") if s.scaled else "none", s.space.device_name, s.A.dtype.name,
                       _lines(prepared), s.nbytes, (*s.notes, *s.part_notes, *idle),
                       (str(s.failure),) if s.failure else ())


def _lines(prepared) -> list[str]:
    """The nested configuration of a prepared system, one line for each part."""
    s, c, words = prepared.setup, prepared.setup.configuration, prepared.setup.words
    found = [f"{describe(c.method)} on {s.A.shape[0]} unknowns, {s.A.dtype.name}, {words['device']}"]
    found += [f"  because {why}" for why in c.why]
    if s.scaled:
        found.append(f"  scaling: {describe(c.scaling)}")
    found += [f"    {fact}" for fact in s.facts]
    if s.permutation is not None:
        note = f": {s.permutation.note}" if s.permutation.note else ""
        found.append(f"  ordering: {describe(c.ordering)}{note}")
    if s.nullspace is not None:
        found.append(f"  null space: {s.nullspace.describe()}")
    if s.S is not None:
        found.append(f"  smoother: {s.S.describe()}")
    if s.M is not None:
        found.append(f"  preconditioner: {words['preconditioner']}")
    entries = "" if s.matrix.nnz is None else f", {s.matrix.nnz} entries"
    found.append(f"  matrix: {words['matrix']}{entries}")
    if words["origin"]:
        found.append(f"    {words['origin']}")
    stopping = prepared.stopping
    tolerance = f"rtol {stopping.rtol:g}" + (f", atol {stopping.atol:g}" if stopping.atol else "")
    found.append(f"  stopping: {tolerance}, at most {prepared.loop.maxiter} iterations")
    return found
