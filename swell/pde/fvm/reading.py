"""One door for meshes from files."""
from __future__ import annotations

from pathlib import Path

from swell.core.errors import InputError
from swell.io.files import as_path
from swell.pde.fvm.mesh import Mesh


def read_mesh(path, ranks=None) -> Mesh:
    """Read a mesh: a folder is one of OpenFOAM, a file of any format that meshio knows.

    Parameters
    ----------
    path : str or path-like
        An OpenFOAM case or its polyMesh folder, or a file such as .msh, .vtk, .exo, .med, .inp.
    ranks : Communicator, optional
        Of ``swell.distributed.init()``: of an OpenFOAM case that is decomposed, and has no whole mesh, each rank reads
        its own part. Other meshes are read whole by every rank.

    Returns
    -------
    Mesh
        Or a PartMesh.

    Raises
    ------
    InputError, MissingDependency
        As `read_polymesh` and `read_meshio`.
    """
    path = as_path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist; name an OpenFOAM case or a mesh file (relative to {Path.cwd()})")
    decomposed = (path / "processor0").is_dir() and not (path / "constant" / "polyMesh").is_dir()
    if decomposed and ranks is not None and ranks.size > 1:
        from swell.pde.fvm.part_mesh import read_part
        return read_part(path, ranks)
    if path.is_dir():
        from swell.pde.fvm.polymesh import read_polymesh
        return read_polymesh(path)
    from swell.pde.fvm.meshio_reader import read_meshio
    return read_meshio(path)
