"""A decomposed mesh, of which each rank reads only its part: mpiexec -n 2 python examples/18_mesh_across_ranks.py

swell can decompose any mesh that swell.pde.fvm reads; OpenFOAM's decomposePar writes the same folders. On the command
line: swell decompose mesh.msh --parts 2 --out case. Without mpiexec there is one rank.
"""
import tempfile
from pathlib import Path

import numpy as np

import swell
from swell.pde import fvm

ranks = swell.distributed.init()
folder = Path(ranks.allgather(tempfile.mkdtemp())[0])

# One process decomposes the mesh, here into slabs. (Given a number of parts instead, pymetis partitions the graph.)
if ranks.rank == 0:
    mesh = fvm.box((32, 16, 16))
    fvm.decompose(mesh, np.minimum((mesh.centres[:, 0] * ranks.size).astype(int), ranks.size - 1), folder)
ranks.allgather("written")

# Each rank reads its own part, and learns of the cells behind its faces. No rank has the whole mesh.
mesh = fvm.read_part(folder, ranks)
walls = {name: fvm.Neumann(0.0) for name in ("ymin", "ymax", "zmin", "zmax")}
solution = fvm.Poisson(mesh, {"xmin": fvm.Dirichlet(1.0), "xmax": fvm.Dirichlet(0.0), **walls}).solve(method="cg")
assert solution.converged
assert np.allclose(solution.p, 1 - mesh.centres[:, 0], atol=1e-6)          # on this rank's cells
if ranks.rank == 0:
    print(solution)
print(f"rank {ranks.rank} of {ranks.size}: {mesh.n_cells} of {solution.cells} cells")

# Each rank writes its piece; ParaView opens p.pvtu.
solution.write(folder / "p.pvtu")
assert (folder / f"p_{ranks.rank}.vtu").exists()

# A flow through the same parts, from xmin to xmax, between a wall and planes of symmetry.
sides = {name: fvm.Symmetry() for name in ("ymax", "zmin", "zmax")}
channel = fvm.Flow(mesh, {"xmin": fvm.Dirichlet((1.0, 0.0, 0.0)), "xmax": fvm.Neumann(),
                          "ymin": fvm.Dirichlet((0.0, 0.0, 0.0)), **sides}, 0.05, pressure={"xmax": fvm.Dirichlet(0.0)})
flow = channel.solve(fvm.SIMPLE(rtol=1e-4, pressure_precond="amg"))
forces = channel.forces(flow)
assert flow.converged and flow.cells == 32 * 16 * 16
if ranks.rank == 0:
    print(flow)
    print(f"friction on the wall of all ranks: {forces['ymin'][1][0]:.4f}")
flow.write(folder / "flow.pvtu")
