"""The description of a prepared system: the configuration lines of a printed result, and its notes."""
from __future__ import annotations

from typing import NamedTuple

from swell.core.settings import circumstances, describe, idle_notes


def described_parts(setup):
    """Return ({part: its description}, notes on the parts) of ``setup``. All ranks must call it together."""
    M, matrix, space = setup.M, setup.matrix, setup.space
    texts = {"device": space.describe(), "preconditioner": "" if M is None else M.describe(),
             "matrix": matrix.describe(), "format": matrix.name, "origin": matrix.origin}
    parts = (part for part in (setup.nullspace, matrix, M) if part is not None)
    notes = space.ranks.said_notes([note for part in parts for note in part.notes])
    return dict(zip(texts, space.ranks.said([*texts.values()]), strict=True)), notes


class Description(NamedTuple):
    """The parts of a result that describe its setup.

    Attributes
    ----------
    names : dict
        The method, precond, format, ordering, scaling, device and dtype of a `Result`.
    configuration : list of str
    memory : dict
        Bytes of "matrix" and "preconditioner".
    notes : tuple of str
        Notes on the setup, on its parts, and on settings without effect.
    failures : tuple of str
        The message of a failed factorisation, or empty; a result lists it last.
    """

    names: dict
    configuration: list[str]
    memory: dict
    notes: tuple[str, ...]
    failures: tuple[str, ...]


def description(prepared) -> Description:
    """Return the Description of ``prepared``, a Prepared; `Prepared.description` keeps it.

    It takes longer than a small solve."""
    s, c = prepared.setup, prepared.setup.configuration
    idle = (*idle_notes(c.method, circumstances(s.A)), *idle_notes(prepared.stopping, (f"for {c.name('method')}",)))
    names = {kind: c.name(kind) for kind in ("method", "precond", "ordering")}
    names |= {"scaling": c.name("scaling") if s.scaled else "none", "format": s.descriptions["format"],
              "device": s.space.device_name, "dtype": s.A.dtype.name}
    return Description(names, _lines(prepared), s.nbytes, (*s.notes, *s.part_notes, *idle),
                       (str(s.failure),) if s.failure else ())


def _lines(prepared) -> list[str]:
    """The nested configuration of a prepared system, one line for each part."""
    s, c, parts = prepared.setup, prepared.setup.configuration, prepared.setup.descriptions
    lines = [f"{describe(c.method)} on {s.A.shape[0]} unknowns, {s.A.dtype.name}, {parts['device']}"]
    lines += [f"  because {why}" for why in c.why]
    if s.scaled:
        lines.append(f"  scaling: {describe(c.scaling)}")
    lines += [f"    {effect}" for effect in s.effects]
    if s.permutation is not None:
        note = f": {s.permutation.note}" if s.permutation.note else ""
        lines.append(f"  ordering: {describe(c.ordering)}{note}")
    if s.nullspace is not None:
        lines.append(f"  null space: {s.nullspace.describe()}")
    if s.S is not None:
        lines.append(f"  smoother: {s.S.describe()}")
    if s.M is not None:
        lines.append(f"  preconditioner: {parts['preconditioner']}")
    entries = "" if s.matrix.nnz is None else f", {s.matrix.nnz} entries"
    lines.append(f"  matrix: {parts['matrix']}{entries}")
    if parts["origin"]:
        lines.append(f"    {parts['origin']}")
    stopping = prepared.stopping
    tolerance = f"rtol {stopping.rtol:g}" + (f", atol {stopping.atol:g}" if stopping.atol else "")
    lines.append(f"  stopping: {tolerance}, at most {prepared.loop.maxiter} iterations")
    return lines
