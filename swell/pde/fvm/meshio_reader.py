"""Meshes from every format that meshio reads: Gmsh .msh, VTK, Exodus, Abaqus, MED, XDMF, ...

Supported solids: tetrahedra, hexahedra, wedges and pyramids, mixed, of any order; only corners count. A file without
solids may have a plane mesh of triangles, quadrilaterals and polygons. It is extruded by one layer, whose front and
back are patches of kind "empty". Boundary patches come from the groups of boundary elements: physical names and tags,
or sets. The other boundary faces make one patch "boundary".
"""
import contextlib
import io

import numpy as np

from swell.core.arrays import for_kernels
from swell.core.errors import InputError, MissingDependency
from swell.pde.fvm.faces_of_cells import DIMENSION, corners, mesh_of_prisms, mesh_of_solids

INSTALL = "pip install 'swell[pde]' (or: pip install meshio)"
TAGS = ("gmsh:physical", "medit:ref", "su2:tag", "nastran:ref")     # names of cell data that hold group numbers
PACKED = (".gz", ".bz2")


def read_meshio(path, thickness=1.0):
    """Read a mesh from a file of any format that meshio knows, also compressed (.gz, .bz2).

    Parameters
    ----------
    path : str or path-like
    thickness : float
        Thickness of the layer by which a plane mesh is extruded; with 1, volumes equal the plane cells' areas.

    Returns
    -------
    Mesh

    Raises
    ------
    InputError
        For a damaged file, an unsupported cell type, a face shared by three cells, or an error of `Mesh.from_faces`.
    MissingDependency
        Without meshio, or without a package that meshio needs for this format.
    """
    from swell.io.files import regular_file
    path = regular_file(path)
    return from_meshio(parsed(path), thickness, str(path))


def from_meshio(given, thickness=1.0, name="the mesh"):
    """Convert a ``meshio.Mesh``.

    Parameters
    ----------
    given : meshio.Mesh
    thickness : float
        See `read_meshio`.
    name : str
        The mesh's name in error messages.

    Returns
    -------
    Mesh

    Raises
    ------
    InputError
        See `read_meshio`.
    """
    if not thickness > 0:
        raise InputError(f"thickness={thickness}: expected a positive number")
    try:
        blocks = [corners(block.type, block.data) for block in given.cells]
        dimension = max((DIMENSION[shape] for shape, _ in blocks), default=0)
        if dimension < 2:
            kinds = ", ".join(sorted({block.type for block in given.cells})) or "no cells at all"
            raise InputError(f"it has {kinds}, but neither solids nor plane elements; export the volume's elements too")
        inside = [(shape, cells) for shape, cells in blocks if DIMENSION[shape] == dimension]
        groups = _groups(given, blocks, dimension - 1)
        points = for_kernels(given.points, np.float64)
        if dimension == 3:
            return mesh_of_solids(points, inside, groups)
        return mesh_of_prisms(points, inside, groups, thickness)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def parsed(path):
    """Read the file ``path``, which may be compressed, with meshio; return a ``meshio.Mesh``."""
    try:
        import meshio
    except ImportError as error:
        raise MissingDependency(f"reading {path.name} needs meshio: {INSTALL}") from error
    if path.suffix.lower() in PACKED:
        from swell.io.files import opened, temporary_folder
        with opened(path) as stream:
            content = stream.read()
        with temporary_folder(f"unpacking {path}") as folder:
            (folder / path.stem).write_bytes(content)
            return _parse(meshio, folder / path.stem, path)
    return _parse(meshio, path, path)


def _parse(meshio, path, name):
    """Return the ``meshio.Mesh`` of the file ``path``; ``name``: the file in messages. Exceptions, exits and printed
    messages of meshio become one InputError."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return meshio.read(path)
    except ModuleNotFoundError as error:
        raise MissingDependency(f"reading {name} with meshio needs {error.name}: pip install {error.name}") from error
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        words = " ".join(said.getvalue().split()) or f"{type(error).__name__}: {error}"
        raise InputError(f"{name} cannot be read by meshio ({words}); it holds no mesh, is damaged, or has another "
                         "format than its extension says: name a mesh file, such as .msh or .vtk, or write it again"
                         ) from error


def _groups(meshio_mesh, blocks, dimension):
    """Return the named groups of boundary elements: name → list of arrays of their corners. ``blocks``: (shape,
    corners) of the blocks of ``meshio_mesh``; ``dimension``: of the boundary elements."""
    names = {int(tag): name for name, (tag, of) in (meshio_mesh.field_data or {}).items() if of == dimension}
    groups = {}
    for key in TAGS:
        for (shape, cells), tags in zip(blocks, meshio_mesh.cell_data.get(key, [])):
            if DIMENSION[shape] == dimension:
                for tag in np.unique(tags):
                    if tag or int(tag) in names:        # 0 without a name: in no group
                        name = names.get(int(tag), f"patch{int(tag)}")
                        groups.setdefault(name, []).append(cells[np.asarray(tags).ravel() == tag])
    for name, members in meshio_mesh.cell_sets.items():
        if name.startswith("gmsh:"):
            continue
        for (shape, cells), chosen in zip(blocks, members):
            if DIMENSION[shape] == dimension and chosen is not None and len(chosen):
                groups.setdefault(name, []).append(cells[np.asarray(chosen, dtype=np.int64)])
    return groups
