"""The open domain around a body, by gmsh: a box of fluid with the body cut out, and a layer around it."""
from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.helmholtz.gmsh_session import MAX_CELLS, finished, session
from swell.pde.helmholtz.meshes import Mesh
from swell.pde.helmholtz.pml import PML

SHAPES = ".step", ".stp", ".iges", ".igs", ".brep"
NEAR = 1e-6             # a face belongs to the outer box if it is closer than this fraction of its size


def around(body, size, *, margin, layer, near=None) -> tuple[Mesh, PML]:
    """Mesh the fluid around a body in a box, and a perfectly matched layer around the box.

    Parameters
    ----------
    body : number or path
        The radius of a sphere at the origin, m; or a CAD file (.step, .iges, .brep) in metres.
    size : float
        Target length of the edges, m; a wavelength needs ten nodes, and the layer three cells.
    margin : float
        Distance from the body to the box, m.
    layer : float
        Thickness of the layer, m.
    near : float, optional
        Target length of the edges on the body; ``size`` by default.

    Returns
    -------
    mesh : Mesh
        Tetrahedra, with the boundaries body and outside, and the regions fluid and layer.
    pml : PML
        For ``Helmholtz(mesh, pml=pml)``.

    Raises
    ------
    InputError
        For lengths that are not positive, a file that gmsh cannot read, or too many cells.
    MissingDependency
        Without gmsh.
    """
    near = size if near is None else near
    for name, value in (("size", size), ("margin", margin), ("layer", layer), ("near", near)):
        if not real(value) or not math.isfinite(value) or value <= 0:
            raise InputError(f"{name}={value!r}: expected a positive number, in m")
    if real(body):
        if not 0 < body < math.inf:
            raise InputError(f"body={body!r}: expected the radius of a sphere, a positive number in m")
    elif Path(body).suffix.lower() not in SHAPES or not Path(body).exists():
        raise InputError(f"body={str(body)!r}: expected the radius of a sphere, or a file that exists and ends in "
                         f"{', '.join(SHAPES)}")
    with session() as gmsh:
        occ = gmsh.model.occ
        solids = _body(gmsh, body)
        bounds = np.array([occ.getBoundingBox(*solid) for solid in solids])
        lower, upper = bounds[:, :3].min(axis=0) - margin, bounds[:, 3:].max(axis=0) + margin
        cells = 8 * np.prod((upper - lower + 2 * layer) / size)
        if cells > MAX_CELLS:
            raise InputError(f"size={size} would make more than {MAX_CELLS:.0e} cells: take larger ones, or a smaller "
                             "margin and layer")
        inner, whole = ((3, occ.addBox(*(lower - d), *(upper - lower + 2 * d))) for d in (0.0, layer))
        _, made = occ.fragment([whole], [inner, *solids])
        occ.remove([solid for of in made[2:] for solid in of])
        occ.synchronize()
        gmsh.model.occ.removeAllDuplicates()
        occ.synchronize()
        _name(gmsh, lower, upper, layer)
        _sizes(gmsh, size, near)
        meshio_mesh = finished(gmsh, 3)
    from swell.pde.helmholtz.meshio_reader import from_meshio
    return from_meshio(meshio_mesh, "the fluid"), PML(tuple(lower), tuple(upper))


def _body(gmsh, body):
    """Add a body, as in `around`, to gmsh's model; return its volumes."""
    occ = gmsh.model.occ
    if real(body):
        return [(3, occ.addSphere(0, 0, 0, body))]
    try:
        gmsh.option.setString("Geometry.OCCTargetUnit", "M")
        solids = [entity for entity in occ.importShapes(str(body)) if entity[0] == 3]
    except Exception as error:
        raise InputError(f"gmsh cannot read {body}: {error}") from error
    if not solids:
        raise InputError(f"{body} has no solid: expected a closed body")
    return solids


def _name(gmsh, lower, upper, layer):
    """Name the surfaces body and outside, and the volumes fluid and layer."""
    outer = np.array([lower - layer, upper + layer])
    slack = NEAR * (outer[1] - outer[0]).max()
    fluid, around_it = [], []
    for _, tag in gmsh.model.getEntities(3):
        box = np.array(gmsh.model.getBoundingBox(3, tag)).reshape(2, 3)
        (around_it if (abs(box - outer) < 1e-3 * layer).any() else fluid).append(tag)
    groups = {"body": [], "outside": []}
    for _, tag in gmsh.model.getBoundary([(3, tag) for tag in fluid + around_it], combined=True, oriented=False):
        box = np.array(gmsh.model.getBoundingBox(2, tag)).reshape(2, 3)
        flat = (abs(box[0] - box[1]) < 1e-3 * layer) & (abs(box - outer) < slack + 1e-3 * layer).any(axis=0)
        groups["outside" if flat.any() else "body"].append(tag)
    for name, tags in groups.items():
        gmsh.model.setPhysicalName(2, gmsh.model.addPhysicalGroup(2, tags), name)
    for name, tags in (("fluid", fluid), ("layer", around_it)):
        gmsh.model.setPhysicalName(3, gmsh.model.addPhysicalGroup(3, tags), name)


def _sizes(gmsh, size, near):
    """Set the lengths of edges: ``near`` at the body, ``size`` from ten of these edges away on."""
    gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5 * min(size, near))
    gmsh.option.setNumber("Mesh.MeshSizeMax", max(size, near))
    if near == size:
        return
    fields = gmsh.model.mesh.field
    body = next(tag for dim, tag in gmsh.model.getPhysicalGroups(2) if gmsh.model.getPhysicalName(2, tag) == "body")
    distance, threshold = fields.add("Distance"), fields.add("Threshold")
    fields.setNumbers(distance, "SurfacesList", gmsh.model.getEntitiesForPhysicalGroup(2, body))
    for name, value in (("InField", distance), ("SizeMin", near), ("SizeMax", size), ("DistMin", 0.0),
                        ("DistMax", 10 * near)):
        fields.setNumber(threshold, name, value)
    fields.setAsBackgroundMesh(threshold)
