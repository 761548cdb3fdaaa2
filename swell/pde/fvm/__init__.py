"""Finite volumes on meshes of arbitrary polyhedra.

    from swell.pde import fvm
    mesh = fvm.read_mesh("case")            # an OpenFOAM case, or a file that meshio reads
    mesh = fvm.box((64, 64, 64))            # or a box
"""
from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {
    "Poisson": "problem", "ScalarTransport": "problem", "solve_together": "fields",
    "Flow": "flow", "FlowSolution": "solution", "SIMPLE": "simple", "PISO": "piso", "Case": "case", "read_case": "case",
    "Solution": "solution", "PartSolution": "solution",
    "Dirichlet": "boundary", "Neumann": "boundary", "Robin": "boundary", "Extrapolated": "boundary",
    "Symmetry": "boundary", "InletOutlet": "boundary", "Boundary": "boundary",
    "Metrics": "metrics", "Pattern": "assembly", "Flux": "flux", "Laplacian": "laplacian", "Convection": "convection",
    "LeastSquares": "gradient", "Gauss": "gradient",
    "Mesh": "mesh", "Patch": "mesh", "box": "structured", "read_polymesh": "polymesh",
    "PartMesh": "part_mesh", "read_part": "part_mesh",
    "read_meshio": "meshio_reader", "from_meshio": "meshio_reader",
    "read_mesh": "reading", "write_vtu": "vtu", "write_polymesh": "foam_writer", "decompose": "decomposing",
})
