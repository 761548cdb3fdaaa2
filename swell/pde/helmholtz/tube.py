"""A cylinder along z, by gmsh: hexahedra, extruded from a disc of quadrilaterals, or tetrahedra."""
from __future__ import annotations

import math

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.helmholtz.gmsh_session import MAX_CELLS, finished, session
from swell.pde.helmholtz.meshes import Mesh

KINDS = ("hexahedron", "tetra")


def cylinder(size=0.034, kind="hexahedron", *, radius=0.15, length=1.15) -> Mesh:
    """Mesh a cylinder.

    Parameters
    ----------
    size : float
        Target length of the edges, m.
    kind : {"hexahedron", "tetra"}
    radius, length : float
        m.

    Returns
    -------
    Mesh
        It has the boundaries bottom (z = 0), top and wall, and the region cylinder.
    """
    for name, value in (("size", size), ("radius", radius), ("length", length)):
        if not real(value) or not math.isfinite(value) or value <= 0:
            raise InputError(f"{name}={value!r}: expected a positive number, in m")
    if kind not in KINDS:
        raise InputError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
    if size > radius:
        raise InputError(f"size={size} is more than the radius, {radius} m: expected smaller cells")
    if 8 * math.pi * radius ** 2 * length / size ** 3 > MAX_CELLS:
        raise InputError(f"size={size} would make more than {MAX_CELLS:.0e} cells: take larger ones")
    with session() as gmsh:
        occ = gmsh.model.occ
        disc = occ.addDisk(0, 0, 0, radius, radius)
        layers = [max(1, round(length / size))] if kind == "hexahedron" else []
        occ.extrude([(2, disc)], 0, 0, length, layers, recombine=bool(layers))
        occ.synchronize()
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5 * size)
        gmsh.option.setNumber("Mesh.MeshSizeMax", size)
        if layers:
            for name, value in (("Algorithm", 8), ("RecombineAll", 1), ("RecombinationAlgorithm", 3)):
                gmsh.option.setNumber(f"Mesh.{name}", value)
        groups = {}
        for _, tag in gmsh.model.getEntities(2):
            z = occ.getCenterOfMass(2, tag)[2]
            name = "bottom" if z < 1e-6 * length else "top" if z > (1 - 1e-6) * length else "wall"
            groups.setdefault(name, []).append(tag)
        for name, tags in groups.items():
            gmsh.model.setPhysicalName(2, gmsh.model.addPhysicalGroup(2, tags), name)
        volumes = [tag for _, tag in gmsh.model.getEntities(3)]
        gmsh.model.setPhysicalName(3, gmsh.model.addPhysicalGroup(3, volumes), "cylinder")
        meshio_mesh = finished(gmsh, 3)
    from swell.pde.helmholtz.meshio_reader import from_meshio
    return from_meshio(meshio_mesh, "the cylinder")
