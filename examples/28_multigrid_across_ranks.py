"""Multigrid across ranks: mpiexec -n 2 python examples/28_multigrid_across_ranks.py [cuda]

Needs mpi4py and an MPI library: pip install 'swell[mpi]' mpich. Without mpiexec there is one rank. "cuda": a GPU for each rank.
"""
import sys

import numpy as np

import swell
from swell.distributed.amg import hierarchy

ranks = swell.distributed.init()
whole = swell.gallery.poisson3d(24)
device = "cuda" if "cuda" in sys.argv else "cpu"
A = swell.distributed.scatter(ranks, whole if ranks.rank == 0 else None, device=device)
b = np.random.default_rng(0).random(A.shape[0])

# All ranks coarsen the matrix together. One device takes as many iterations.
solver = swell.prepare(A, method="cg", precond="amg")
result = solver.solve(b[A.rows])
x = A.gather(result.x)
assert result.converged and result.iterations <= 12
assert np.linalg.norm(b - whole @ x) <= 1e-8 * np.linalg.norm(b)

# Blocks of the ranks alone, without coarse levels in common, take more iterations with every further rank.
alone = swell.solve(A, b[A.rows], method="cg", precond=swell.Schwarz(inner="amg", kind="additive"))
if ranks.rank == 0:
    print(f"{ranks.size} ranks: {result.iterations} iterations; {alone.iterations} with multigrid of each rank's rows")
    print(solver.M)
    print(f"Levels of more than {hierarchy.GATHERED['cpu']} rows a rank stay in parts: {len(solver.M.hierarchy.levels)} here")

# New values keep the coarse rows.
solver.update(A.with_values(2 * A.own.to_scipy().data, 2 * A.rest.to_scipy().data))
again = solver.solve(b[A.rows])
assert again.iterations == result.iterations

# An elastic beam: aggregates cross the borders of ranks, too. A node's three unknowns stay on one rank.
corners, cells = swell.gallery.box_mesh((40, 5, 5), (8.0, 1.0, 1.0))
K, points = swell.gallery.elastic_body(corners, cells, corners[:, 0] == 0)
beam = swell.distributed.scatter(ranks, K if ranks.rank == 0 else None, device=device, block=3)
result = swell.solve(beam, (K @ np.ones(K.shape[0]))[beam.rows], method="cg",
                     precond=swell.SmoothedAggregation(coordinates=points))
assert result.converged and result.iterations <= 16, result.iterations
