"""Reading meshes from OpenFOAM cases and from files."""
from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.mesh import Mesh


def read_mesh(path, ranks=None) -> Mesh:
    """Read a mesh from an OpenFOAM folder, or from a file of any format that meshio knows.

    Parameters
    ----------
    path : str or path-like
        An OpenFOAM case or its polyMesh folder, or a file such as .msh, .vtk, .exo, .med, .inp.
    ranks : Communicator, optional
        The result of ``swell.distributed.init()``, in a collective call. If an OpenFOAM case is decomposed into as many
        parts as there are ranks, each rank reads its own part. Every rank reads other meshes whole.

    Returns
    -------
    Mesh
        A PartMesh if the rank read its own part.

    Raises
    ------
    InputError, MissingDependency
        See `read_polymesh` and `read_meshio`.
    """
    with nullcontext() if ranks is None else ranks.agreed():
        path = as_path(path)
        if not path.exists():
            raise InputError(f"{path} does not exist; name an OpenFOAM case or a mesh file (relative to {Path.cwd()})")
        if ranks is not None and ranks.size > 1:
            from swell.pde.fvm.part_mesh import count_parts, read_part
            whole, parts = (path / "constant" / "polyMesh").is_dir(), count_parts(path)
            ranks.require_equal((whole, parts), "whether the mesh is there, and in how many parts")
            if parts and (parts == ranks.size or not whole):
                return read_part(path, ranks)
        if path.is_dir():
            from swell.pde.fvm.polymesh import read_polymesh
            return read_polymesh(path)
        from swell.pde.fvm.meshio_reader import read_meshio
        return read_meshio(path)
