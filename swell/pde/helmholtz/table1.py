"""Generated substitutes for the meshes of table 1 of Cheik Ahamed and Magoulès.

The paper's meshes are not published. Our cabin replaces the Audi (good cells) and the Twingo (bad cells), and our
cylinder replaces the paper's. Their sizes aim at the paper's numbers of unknowns.
"""
from __future__ import annotations

import math

from swell.core.errors import InputError, meant
from swell.pde.helmholtz.meshes import Mesh

# name: (cavity, cell size in m, number of unknowns in the paper)
MESHES = {
    "Audi3D-1": ("bare cabin", 0.165, 1727), "Audi3D-2": ("cabin", 0.085, 11637),
    "Audi3D-3": ("cabin", 0.0365, 85001), "Audi3D-4": ("cabin", 0.0178, 648849),
    "Twingo3D-0": ("hard", 0.14, 8439), "Twingo3D-1": ("hard", 0.0575, 62357),
    "Twingo3D-2": ("hard", 0.0265, 479169),
    "Cylinder3D-0": ("cylinder", 0.0365, 2717), "Cylinder3D-1": ("cylinder", 0.0175, 19041),
    "Cylinder3D-2": ("cylinder", 0.0088, 142049),
}
FREQUENCY = {"cabin": 100.0, "hard": 250.0, "cylinder": 500.0}     # Hz


def paper_mesh(name, scale=1.0) -> Mesh:
    """Generate the substitute for a mesh of table 1.

    Parameters
    ----------
    name : str
        Audi3D-1 to Audi3D-4, Twingo3D-0 to Twingo3D-2, Cylinder3D-0 to Cylinder3D-2.
    scale : float
        Approximate factor on its number of unknowns.
    """
    if name not in MESHES:
        raise InputError(f"table 1 has no mesh {name!r}: {meant(name, MESHES)}There are: {', '.join(MESHES)}")
    cavity, size, _ = MESHES[name]
    size *= scale ** (-1 / 3)
    from swell.pde.helmholtz.cabin import car_cabin
    from swell.pde.helmholtz.tube import cylinder
    if cavity == "cylinder":
        return cylinder(size)
    return car_cabin(size, "divided" if cavity == "hard" else "hexahedron", seats=cavity != "bare cabin")


def paper_problem(name, frequency=None, scale=1.0):
    """Return (Helmholtz problem, frequency in Hz, source) on a mesh of table 1; see ``paper_mesh`` for ``name`` and
    ``scale``, ``posed`` for ``frequency``."""
    return posed(paper_mesh(name, scale), MESHES[name][0], frequency)


def posed(mesh, cavity, frequency=None):
    """Return (Helmholtz problem, frequency in Hz, source) for a mesh and a kind of cavity.

    In a cabin the roof, the floor and the seats absorb. A hard cavity is rigid, with 0.1 % damping. A cylinder's wall
    absorbs, and its bottom is the source. Otherwise the source is the firewall, or else the first boundary.

    Parameters
    ----------
    mesh : Mesh
    cavity : {"cabin", "bare cabin", "hard", "cylinder"}
    frequency : float, optional
        Hz. By default it depends on the cavity, not on the mesh size; iterations then double with each refinement, as
        in the paper.
    """
    from swell.pde.helmholtz.conditions import Absorbing, Impedance
    from swell.pde.helmholtz.media import Medium
    from swell.pde.helmholtz.problem import Helmholtz
    if frequency is None:
        frequency = FREQUENCY[cavity.split()[-1]]
    if not math.isfinite(frequency) or frequency <= 0:
        raise InputError(f"frequency {frequency!r}: expected a positive number in Hz")
    if cavity == "cylinder":
        return Helmholtz(mesh, boundary={"wall": Absorbing()}), frequency, "bottom"
    source = "firewall" if "firewall" in mesh.boundaries else next(iter(mesh.boundaries))
    if cavity == "hard":
        return Helmholtz(mesh, Medium(damping=0.001)), frequency, source
    lined = {name: Impedance(800.0) for name in ("roof", "floor", "seats") if name in mesh.boundaries}
    return Helmholtz(mesh, Medium(damping=0.01), lined), frequency, source
