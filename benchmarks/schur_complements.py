"""The Schur complement of a subdomain's interior: by block elimination (``bddc/schur.py``) and by SuperLU, a solve for each
dof on the interface.

    OPENBLAS_NUM_THREADS=1 python benchmarks/schur_complements.py [H/h ...]

The subdomain in the middle of 3³ of Poisson's cube. Best of three, in one process.
"""
import sys
import time

import numpy as np
from scipy.sparse.linalg import splu

from swell.core.devices import make_space
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.schur import schur

TOGETHER = 64           # right-hand sides of a solve by SuperLU


def by_superlu(matrix, own):
    """A_ΓΓ − A_ΓI A_II⁻¹ A_IΓ."""
    inner = np.setdiff1d(np.arange(matrix.shape[0]), own)
    solver, coupling = splu(matrix[inner][:, inner].tocsc()), matrix[inner][:, own].tocsc()
    S = matrix[own][:, own].toarray()
    for first in range(0, own.size, TOGETHER):
        some = slice(first, first + TOGETHER)
        S[:, some] -= coupling.T @ solver.solve(coupling[:, some].toarray())
    return S


def best(call):
    """(result, least seconds of three)."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return result, min(times)


for elements in map(int, sys.argv[1:] or ("8", "12", "16")):
    system = PoissonCube(elements, 3).assemble()
    matrix, own = system.subdomains.matrices[13], Interface(system.A.to_scipy(), system.subdomains).local[13]
    ours, fast = best(lambda: schur(make_space("cpu"), matrix, own))
    theirs, slow = best(lambda: by_superlu(matrix, own))
    print(f"H/h = {elements}: {own.size} dofs on the interface, {matrix.shape[0] - own.size} inside; blocks {fast:.3f} s, "
          f"SuperLU {slow:.3f} s; difference {abs(ours - theirs).max() / abs(ours).max():.1e}", flush=True)
