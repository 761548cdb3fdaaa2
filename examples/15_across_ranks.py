"""A distributed matrix, in parts on MPI's ranks: mpiexec -n 2 python examples/15_across_ranks.py

Needs mpi4py and an MPI library: pip install 'swell[mpi]' mpich. Without mpiexec there is one rank.
"""
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import swell

ranks = swell.distributed.init()

# Each rank reads its own rows. (Here rank 0 writes the file first.)
folder = Path(ranks.allgather(tempfile.mkdtemp())[0])
if ranks.rank == 0:
    sp.save_npz(folder / "a.npz", sp.csr_matrix(swell.gallery.poisson3d(20)))
ranks.allgather("written")                                     # a barrier: all ranks wait for the file
A = swell.distributed.read(ranks, folder / "a.npz")
print(A.origin)

# A rank gives its part of b and gets its part of x. Preconditioners act on each rank's own diagonal block.
b = np.sin(np.arange(A.shape[0]))
for settings in ({"method": "single_reduction_cg", "scaling": "jacobi"}, {"method": "cg", "precond": "ic0"}, {}):
    result = swell.solve(A, b[A.rows], **settings)
    assert result.converged
    if ranks.rank == 0:
        print(result)

x = A.gather(result.x)                                         # the whole solution, on every rank
whole = sp.load_npz(folder / "a.npz")
assert np.linalg.norm(b - whole @ x) <= 1e-8 * np.linalg.norm(b)

# One rank has the matrix and scatters it by a partition of its graph; A.rows and A.gather hide the reordering.
A = swell.distributed.scatter(ranks, whole if ranks.rank == 0 else None, partition="graph")
x = A.gather(swell.solve(A, b[A.rows], method="cg").x)
assert np.linalg.norm(b - whole @ x) <= 1e-8 * np.linalg.norm(b)

# A system in blocks: three unknowns a cell. Every rank has whole cells, and each part of the solver knows their size.
system = swell.gallery.coupled_transport((8, 8, 10), 3) if ranks.rank == 0 else None
A = swell.distributed.scatter(ranks, system, block=3)                # without block=3 swell detects it
for precond in ("ilu(block=None)", "schwarz(inner=ilu(block=None), overlap=1)"):
    result = swell.solve(A, b[:A.shape[0]][A.rows], method="gmres", precond=precond, format="bsr")
    assert A.block_size == 3 and result.converged
    if ranks.rank == 0:
        print(result)
