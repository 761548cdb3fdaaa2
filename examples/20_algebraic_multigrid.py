"""Algebraic multigrid: iterations that hardly depend on n, its levels, updates with new values, its limits."""
import numpy as np

import swell
from swell.gallery.poisson import diffusion

rng = np.random.default_rng(5)

# With four times as many unknowns, IC(0) needs twice the iterations, and multigrid about equally many.
counts: dict[str, list[int]] = {"ic0": [], "amg": []}
for m in (60, 120, 240):
    A = swell.gallery.poisson2d(m)
    b = A @ rng.random(m * m)
    for precond, found in counts.items():
        found.append(swell.solve(A, b, method="cg", precond=precond).iterations)
print("n = 60², 120², 240²:", counts)
assert counts["ic0"][2] > 3 * counts["ic0"][0] and counts["amg"][2] <= counts["amg"][0] + 4

# The levels: each has about 3 to 5 times fewer rows than the next finer level.
solver = swell.prepare(A, method="cg", precond="amg")
print(solver.M)
hierarchy = solver.M.hierarchy
assert hierarchy.operator_complexity < 3 and hierarchy.matrices[-1].shape[0] <= 300

# Coefficients that jump by 1e6 change the number of iterations little.
layers = swell.gallery.jumping_diffusion((20, 20, 20), contrast=1e6, block=5)
b = layers @ rng.random(8000)
result = swell.solve(layers, b, method="cg", precond="amg")
print(result)
assert result.converged and result.iterations < 20

# New values on the same pattern: an update keeps strong links, coarse rows and patterns, and recomputes the values.
solver = swell.prepare(layers, method="cg", precond=swell.AMG(degree=2))
warmer = swell.gallery.jumping_diffusion((20, 20, 20), contrast=2e6, block=5)
again = solver.update(warmer).solve(b)
assert again.converged and again.iterations < 20

# Do not use a scaling with multigrid: it hides the row sums from which interpolation takes its weights.
k = 10.0 ** rng.uniform(-3, 3, (20, 20, 20))
at_one_side = np.zeros_like(k)
at_one_side[0] = k[0]
rough = diffusion(k, (1.0, 1.0, 1.0), at_one_side)
b = rough @ rng.random(8000)
plain, scaled = (swell.solve(rough, b, method="cg", precond="amg", scaling=scaling) for scaling in (None, "jacobi"))
print("iterations without a scaling and with one:", plain.iterations, scaled.iterations)
assert 2 * plain.iterations < scaled.iterations

# Insulated walls: constants are in the null space on every level; a pseudo-inverse solves the coarsest level.
walls = swell.gallery.neumann((60, 60))
sources = rng.random(3600)
result = swell.solve(walls, sources - sources.mean(), method="cg", precond="amg", nullspace="constants")
assert result.converged and result.iterations < 25

# Multigrid refuses unsuitable matrices; the message names alternatives.
for A in (swell.gallery.convection_diffusion((9, 9)), swell.gallery.helmholtz((9, 9))):
    try:
        swell.solve(A, np.ones(81), method="gmres", precond="amg")
    except swell.InputError as error:
        print(error)
