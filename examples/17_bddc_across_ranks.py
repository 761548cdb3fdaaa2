"""BDDC with its subdomains spread over ranks: mpiexec -n 2 python examples/17_bddc_across_ranks.py

Needs mpi4py and an MPI library: pip install 'swell[mpi]' mpich. Without mpiexec there is one rank.
"""
import numpy as np

import swell
from swell.pde.poisson_cube import PoissonCube

ranks = swell.distributed.init()

# 1. Each rank makes its own subdomains of the cube; no rank has the whole matrix.
cube = PoissonCube(elements=4, subdomains=4, coefficient="checkerboard")
A, S = swell.distributed.from_subdomains(ranks, cube.rank_subdomains(ranks.rank, ranks.size))
print(A.origin)
b = np.full(A.own.shape[0], cube.load)                           # this rank's part
result = swell.solve(A, b, method="cg", precond=swell.BDDC(subdomains=S))
if ranks.rank == 0:
    print(result)
assert result.converged and result.iterations <= 8
x = A.gather(result.x)                                           # the whole solution, in the order of the cube's nodes

# 2. Three levels: groups says which subdomains are joined on the next level.
cube = PoissonCube(elements=4, subdomains=4, levels=3)
A, S = swell.distributed.from_subdomains(ranks, cube.rank_subdomains(ranks.rank, ranks.size), groups=cube.groups())
result = swell.solve(A, np.full(A.own.shape[0], cube.load), method="cg", precond=swell.BDDC(levels=3, subdomains=S))
assert result.converged and result.iterations <= 10

# 3. Your own subdomain matrices: a bar in floating pieces, two on each rank, held at its left end.
pieces = []
for k in (2 * ranks.rank, 2 * ranks.rank + 1):
    K = 2 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
    K[0, 0], K[-1, -1] = (2 if k == 0 else 1), 1
    pieces.append((K, np.arange(4 * k, 4 * k + 5)))              # dofs of the whole bar
A, S = swell.distributed.from_subdomains(ranks, pieces)
result = swell.solve(A, np.ones(A.own.shape[0]), method="cg", precond=swell.BDDC(subdomains=S))
assert result.converged

# 4. A matrix without subdomains, from finite volumes or differences: each rank divides its own rows into subdomains.
A = swell.distributed.scatter(ranks, swell.gallery.poisson3d(16) if ranks.rank == 0 else None)
result = swell.solve(A, np.ones(A.own.shape[0]), method="cg", precond=swell.BDDC(domains=8, partition="rows"))
assert result.converged
if ranks.rank == 0:
    print(f"finite differences in 8 subdomains: {result.iterations} iterations")
