"""Meshes by name, for the command line: cabin:SIZE[:KIND], cylinder:SIZE[:KIND], paper:NAME, or a file."""
from __future__ import annotations

from pathlib import Path

from swell.core.errors import InputError

GENERATED = "cabin:SIZE or cabin:SIZE:KIND (tetra, hexahedron, divided), cylinder:SIZE, paper:NAME"
PREFIXES = ("cabin:", "cylinder:", "paper:")


def cavity(name) -> str:
    """Return the kind of cavity of a named mesh, as `table1.posed` takes it: "cabin", "bare cabin", "hard" or
    "cylinder"."""
    from swell.pde.helmholtz.table1 import MESHES
    paper = name.removeprefix("paper:")
    if paper in MESHES:
        return MESHES[paper][0]
    return "cylinder" if name.startswith("cylinder:") else "hard" if name.endswith(":divided") else "cabin"


def named_mesh(name, scale=1.0):
    """Generate or read the mesh of the given name.

    Parameters
    ----------
    name : str
        A generated mesh, such as cabin:0.1 (edges of 0.1 m), or the path of a file.
    scale : float
        Approximate factor on a generated mesh's number of unknowns.

    Raises
    ------
    InputError
        For a size that is no number, or an error of the generators or the reader.
    """
    kind, _, rest = name.partition(":")
    if not name.startswith(PREFIXES) or Path(name).exists():
        from swell.pde.helmholtz.meshio_reader import read_mesh
        return read_mesh(name)
    if kind == "paper":
        from swell.pde.helmholtz.table1 import paper_mesh
        return paper_mesh(rest, scale)
    size, _, shape = rest.partition(":")
    try:
        size = float(size) * scale ** (-1 / 3)
    except ValueError:
        raise InputError(f"{name}: expected a size in m, as in {kind}:0.1; there are {GENERATED}") from None
    from swell.pde.helmholtz.cabin import car_cabin
    from swell.pde.helmholtz.tube import cylinder
    make = car_cabin if kind == "cabin" else cylinder
    return make(size, shape) if shape else make(size)
