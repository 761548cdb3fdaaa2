"""Writers: meshes with their names as Gmsh files, for `read_mesh` and other programs; fields as VTU files."""
import numpy as np

from swell.core.errors import MissingDependency

INSTALL = "pip install 'swell[pde]' (or: pip install scikit-fem meshio gmsh)"
FACE = {"triangle": "line", "quad": "line", "tetra": "triangle", "hexahedron": "quad"}


def write(path, mesh):
    """Write a mesh in Gmsh's format 2.2; a cell or face in two groups gets the name of the first.

    Parameters
    ----------
    path : str or path-like
        Must end in .msh.
    mesh : Mesh
    """
    path, meshio = _checked(path, ".msh")
    tags = np.zeros(len(mesh.cells), int)
    names = {}
    for k, (name, cells) in enumerate(mesh.regions.items(), 1):
        tags[cells[tags[cells] == 0]] = k
        names[name] = np.array([k, mesh.dim])
    facet_tags = np.zeros(len(mesh.exterior), int)
    for k, (name, facets) in enumerate(mesh.boundaries.items(), len(names) + 1):
        facet_tags[facets[facet_tags[facets] == 0]] = k
        names[name] = np.array([k, mesh.dim - 1])
    chosen = np.flatnonzero(facet_tags)
    both = [tags, facet_tags[chosen]]
    faces = _around(mesh, mesh.fem.facets[:, chosen].T)
    meshio_mesh = meshio.Mesh(np.pad(mesh.points, ((0, 0), (0, 3 - mesh.dim))),
                              [(mesh.shape, mesh.cells), (FACE[mesh.shape], faces)],
                              cell_data={"gmsh:physical": both, "gmsh:geometrical": both}, field_data=names)
    _write(path, meshio, meshio_mesh, "gmsh22")


def write_point_data(path, mesh, data):
    """Write values at the mesh's points for ParaView.

    Parameters
    ----------
    path : str or path-like
        Must end in .vtu.
    mesh : Mesh
    data : dict of str to array, shape (points,)
    """
    path, meshio = _checked(path, ".vtu")
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.dim)))
    _write(path, meshio, meshio.Mesh(points, [(mesh.shape, mesh.cells)], point_data=data), "vtu")


def _checked(path, ending):
    """Return (path, the module meshio); raise InputError for another ending."""
    from swell.io.files import to_write
    path = to_write(path, ending)
    try:
        import meshio
    except ImportError as error:
        raise MissingDependency(f"writing {path.name} needs meshio: {INSTALL}") from error
    return path, meshio


def _write(path, meshio, meshio_mesh, form):
    """Write a ``meshio.Mesh`` in a format of meshio's, completely or not at all."""
    from swell.io.files import temporary_folder, write_atomically
    with temporary_folder(f"writing {path}") as folder:          # meshio takes names, not streams
        plain = folder / f"mesh{path.suffix}"
        meshio.write(plain, meshio_mesh, file_format=form)
        write_atomically(path, lambda stream: stream.write(plain.read_bytes()))


def _around(mesh, faces):
    """Return quadrilateral faces with their corners reordered so that they go around each face; triangles unchanged."""
    if mesh.shape != "hexahedron":
        return faces
    x = mesh.points[faces]
    for a, b, c, d in ((0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3)):
        good = _crosses(*(x[:, k] for k in (a, b, c, d))) & _crosses(*(x[:, k] for k in (b, c, d, a)))
        faces = np.where(good[:, None], faces[:, [a, b, c, d]], faces)
        x = mesh.points[faces]
    return faces


def _crosses(a, b, c, d):
    """Return a bool array: True where the triangles abc and acd have the same orientation; a, b, c, d: points, shape
    (k, 3).

    Corners go around a convex face if this holds for both diagonals.
    """
    return (np.cross(b - a, c - a) * np.cross(c - a, d - a)).sum(axis=1) > 0
