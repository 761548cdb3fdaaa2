"""Incomplete LU for unsymmetric systems, with GMRES and BiCGSTAB: fill, orderings, sweeps, and zero pivots."""
import numpy as np

import swell

A = swell.gallery.get("atmosmodd~", 8000)
b = A @ np.random.default_rng(1).standard_normal(A.shape[0])


def iterations(precond, method="gmres"):
    result = swell.solve(A, b, method=method, precond=precond, rtol=1e-10)
    assert result.converged
    print(f"{method:9s} {precond!s:45s} {result.iterations}")
    return result.iterations


# Fill makes the factors stronger and more expensive; it is limited by level, or by the size of entries. ilu0 is ilu's
# usual name for level 0.
jacobi, ilu0, ilu1, ilut = (iterations(p) for p in ("jacobi", "ilu0", "ilu(level=1)", "ilu(drop=1e-3, fill=4.0)"))
assert ilut < ilu1 < ilu0 < jacobi / 2
assert iterations("ilu0", "bicgstab") < iterations("jacobi", "bicgstab") / 2

# For a GPU: colouring gives few levels, and a fixed number of sweeps replaces factorisation and triangular solves.
assert iterations("ilu0(ordering='multicolor')") < jacobi
few, many = (iterations(f"ilu0(factor='sweeps', solve='sweeps(count={k})')") for k in (2, 5))
assert ilu0 <= many < few < jacobi

# New values on the old pattern: the solver keeps its analysis.
solver = swell.prepare(A, method="gmres", precond="ilu0", rtol=1e-10)
solver.update(2 * A)
assert solver.solve(2 * b).iterations == ilu0

# A zero pivot: swell factors a shifted matrix, or replaces only the pivot. A note says which.
K = np.array([[1.0, 2, 0, 0], [0, 1, 1, 0], [0, 3, 3, 1], [1, 0, 1, 5]])
for pivot in ("shift", "perturb"):
    result = swell.solve(K, np.ones(4), method="gmres", precond=swell.ILU0(pivot=pivot))
    print(result.notes)
    assert result.converged and "the pivot of row 2 was tiny" in result.notes[0]
