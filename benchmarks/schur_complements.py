"""The Schur complement of a subdomain's interior: by fronts (``bddc/schur.py``) and by SuperLU, a solve for each dof on
the interface, both with their factorisations.

    OPENBLAS_NUM_THREADS=1 python benchmarks/schur_complements.py [H/h ...]

The subdomain in the middle of 3³ of Poisson's cube. CPU seconds, the least of three, in one process.
"""
import sys
import time

import numpy as np
from scipy.sparse.linalg import splu

from swell.core.devices import make_space
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.problems import eliminations
from swell.preconditioners.bddc.schur import schur
from swell.preconditioners.bddc.symmetry import HERMITIAN
from swell.preconditioners.bddc.unknowns import Unknowns

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
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return result, min(times)


def by_fronts(space, system):
    """The Schur complement of the subdomain in the middle, with its factorisation."""
    interface = Interface(system.A, system.subdomains, Unknowns(1))
    for interior in eliminations(space, system.subdomains, interface):
        for one in interior.subdomains:
            if 13 in one.members:
                return best(lambda: schur(one.A, one.order, one.own, interior.factors(HERMITIAN)))


for elements in map(int, sys.argv[1:] or ("8", "12", "16")):
    system = PoissonCube(elements, 3).assemble()
    matrix = system.subdomains.matrices[13]
    own = Interface(system.A, system.subdomains, Unknowns(1)).local[13]
    ours, fast = by_fronts(make_space("cpu"), system)
    theirs, slow = best(lambda: by_superlu(matrix, own))
    print(f"H/h = {elements}: {own.size} dofs on the interface, {matrix.shape[0] - own.size} inside; fronts {fast:.3f} s, "
          f"SuperLU {slow:.3f} s; difference {abs(ours - theirs).max() / abs(ours).max():.1e}", flush=True)
