"""Session of gmsh, opened and closed around the generation of one mesh."""
from contextlib import contextmanager

from swell.core.errors import InputError, MissingDependency

INSTALL = "pip install 'swell[pde]' (or: pip install gmsh)"
MAX_CELLS = 30_000_000  # maximum of a mesh's estimated number of cells


@contextmanager
def session():
    """Context manager: return the module gmsh with an empty model, which prints nothing; it is finalised at the end."""
    try:
        import gmsh
    except (ImportError, OSError) as error:                      # OSError: a system library is missing
        raise MissingDependency(f"generating a mesh needs gmsh ({error}): {INSTALL}; its wheel needs the system's "
                                "libGL, libGLU and X11 libraries too") from None
    if gmsh.isInitialized():
        raise InputError("gmsh is in use: finish with gmsh.finalize() before swell makes a mesh with it")
    gmsh.initialize(["", "-v", "0"], readConfigFiles=False, interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("General.NumThreads", 1)           # for a reproducible mesh
        gmsh.model.add("swell")
        yield gmsh
    finally:
        gmsh.finalize()


def finished(gmsh, dimension):
    """Mesh gmsh's current model in the given dimension; return a ``meshio.Mesh``. Errors of gmsh become InputError."""
    from swell.io.files import temporary_folder
    from swell.pde.fvm.meshio_reader import parsed
    try:
        gmsh.model.mesh.generate(dimension)
    except Exception as error:
        raise InputError(f"gmsh could not mesh this shape ({error}): take another size") from error
    with temporary_folder("meshing with gmsh") as folder:
        plain = folder / "mesh.msh"
        gmsh.option.setNumber("Mesh.MshFileVersion", 2.2)
        gmsh.write(str(plain))
        return parsed(plain)
