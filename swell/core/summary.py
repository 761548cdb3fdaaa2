"""What a prepared system is made of, in words: the lines below a printed result."""
from __future__ import annotations

from swell.core.settings import circumstances, describe, idle_notes


def words(prepared):
    """({part: its description}, notes) of what each rank has made for itself, true of all; asked by all together."""
    M, matrix, space = prepared.M, prepared.matrix, prepared.space
    own = {"device": space.describe(), "preconditioner": "" if M is None else M.describe(),
           "matrix": matrix.describe(), "format": prepared._format_name(),
           "origin": matrix.origin or "" if hasattr(matrix, "nnz") else ""}
    notes = space.said_notes([*matrix.notes, *(() if M is None else M.notes)])
    return dict(zip(own, space.said([*own.values()]), strict=True)), notes


def idle(prepared) -> tuple[str, ...]:
    """Notes of the settings of the method, and of when it stops, that have no effect here."""
    c = prepared.configuration
    return (*idle_notes(c.method, circumstances(prepared.A)),
            *idle_notes(prepared.stopping, (f"for {c.name('method')}",)))


def lines(prepared) -> list[str]:
    """The nested configuration of a prepared system, one line a part."""
    c = prepared.configuration
    n, words = prepared.A.shape[0], prepared.words
    found = [f"{describe(c.method)} on {n} unknowns, {prepared.A.dtype.name}, {words['device']}"]
    found += [f"  because {why}" for why in c.why]
    if c.scaling is not None and not prepared._left_out:
        found.append(f"  scaling: {describe(c.scaling)}")
        found += [f"    {fact}" for fact in prepared.facts]
    if c.ordering is not None:
        note = f": {prepared.permutation.note}" if prepared.permutation.note else ""
        found.append(f"  ordering: {describe(c.ordering)}{note}")
    if prepared.nullspace is not None:
        found.append(f"  null space: {prepared.nullspace.describe()}")
    if prepared.S is not None:
        found.append(f"  smoother: {prepared.S.describe()}")
    if prepared.M is not None:
        found.append(f"  preconditioner: {words['preconditioner']}")
    entries = f", {prepared.matrix.nnz} entries" if hasattr(prepared.matrix, "nnz") else ""
    found.append(f"  matrix: {words['matrix']}{entries}")
    if words["origin"]:
        found.append(f"    {words['origin']}")
    stopping = prepared.stopping
    tolerance = f"rtol {stopping.rtol:g}" + (f", atol {stopping.atol:g}" if stopping.atol else "")
    found.append(f"  stopping: {tolerance}, at most {prepared.loop.maxiter} iterations")
    return found
