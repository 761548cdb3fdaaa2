"""Finite volumes on meshes of arbitrary polyhedra.

    from swell.pde import fvm
    mesh = fvm.read_mesh("case")            # an OpenFOAM case, or a file that meshio reads
    mesh = fvm.box((64, 64, 64))            # or a box

Names are imported when they are first used. No module is named as something public is: it would hide it.
"""
import importlib

_PLACES = {
    "Poisson": "problem", "ScalarTransport": "problem", "Flow": "simple", "SIMPLE": "simple",
    "Solution": "solution", "PartSolution": "solution",
    "Dirichlet": "boundary", "Neumann": "boundary", "Robin": "boundary", "Extrapolated": "boundary",
    "Symmetry": "boundary", "Boundary": "boundary",
    "Metrics": "metrics", "Pattern": "assembly", "Flux": "flux", "Laplacian": "laplacian", "Convection": "convection",
    "LeastSquares": "gradient", "Gauss": "gradient",
    "Mesh": "mesh", "Patch": "mesh", "box": "structured", "read_polymesh": "polymesh",
    "PartMesh": "part_mesh", "read_part": "part_mesh",
    "read_meshio": "meshio_reader", "from_meshio": "meshio_reader",
    "read_mesh": "reading", "write_vtu": "vtu", "write_polymesh": "foam_writer", "decompose": "decomposing",
}

__all__ = [*_PLACES]


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f"swell.pde.fvm.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'swell.pde.fvm' has no attribute {name!r}")


def __dir__():
    return __all__
