"""Advection by multigrid: iterations that do not depend on the mesh, flows with closed streamlines, and a little diffusion."""
import numpy as np

import swell

rng = np.random.default_rng(25)


def iterations(A, precond, method="fgmres"):
    b = rng.standard_normal(A.shape[0])
    result = swell.solve(A, b, method=method, precond=precond, maxiter=600)
    assert result.converged
    return result.iterations


# A flow around a point: streamlines are closed, so no order of the rows makes the matrix triangular.
counts: dict[str, list[int]] = {"ilu0": [], "air": []}
for m in (40, 80, 160):
    A = swell.gallery.advection((m, m), "rotating")
    for precond, found in counts.items():
        found.append(iterations(A, precond))
print("grids of 40², 80², 160² cells:", counts)
assert counts["ilu0"][2] > 3 * counts["ilu0"][0] and max(counts["air"]) <= 18

# The levels: each coarse row restricts the residuals of its upwind neighbours.
solver = swell.prepare(A, method="fgmres", precond="air")
print(solver.M)

# Curved streamlines from side to side, in a cube. At distance 1 the levels are thinner.
A = swell.gallery.advection((24, 24, 24), "inset")
for distance in (1, 2):
    multigrid = swell.AIR(distance=distance)
    complexity = swell.prepare(A, method="fgmres", precond=multigrid).M.hierarchy.operator_complexity
    print(f"distance {distance}: {iterations(A, multigrid)} iterations, operator complexity {complexity:.1f}")

# Diffusion, from none to much. AIR does not mind; for diffusion alone AMG is cheaper.
for diffusion in (0.0, 1e-4, 1e-2, 1.0):
    A = swell.gallery.advection((80, 80), "rotating", diffusion)
    count = iterations(A, "air", method="bicgstab")
    print(f"diffusion {diffusion:g}, cell Péclet number {1 / (80 * diffusion) if diffusion else np.inf:g}: {count} iterations")
    assert count <= 25

# A flow that changes in time: the levels keep their patterns.
b = rng.standard_normal(160 * 160)
for step in range(3):
    solver.update(swell.gallery.advection((160, 160), "rotating") * (1 + 0.1 * step))
    assert solver.solve(b).converged
