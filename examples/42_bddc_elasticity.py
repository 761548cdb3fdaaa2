"""BDDC for elastic bodies: rigid motions, corners, jumps of the material, nearly incompressible material, a mesh."""
import numpy as np

import swell
from swell import gallery
from swell.pde.elasticity_cube import ElasticityCube


def solved(cube, **settings):
    """Solve for a random right-hand side, which shows all of the spectrum."""
    system = cube.assemble()
    return system.solve(b=np.random.default_rng(0).standard_normal(cube.n), **settings)


# 1. A cube that is clamped at one side: 3³ subdomains, and all but nine of them float. The rigid motions are its near
#    null vectors: averages and first moments over edges and faces hold them.
r = solved(ElasticityCube(elements=4, subdomains=3))
print(r)
assert r.result.converged and abs(r.extremes[0] - 1) < 1e-3      # the smallest eigenvalue is 1

# 2. Fewer constraints: corners alone (BDDC finds three nodes a face), with edges, and averages without moments.
for settings in ({"constraints": "c"}, {"constraints": "ce"}, {"near_nullspace": "constants"}):
    s = solved(ElasticityCube(4, 3), **settings)
    print(f"{settings}: {s.result.iterations} iterations, eigenvalues to {s.extremes[1]:.2f}, "
          f"{s.bddc.level.constraints.count} coarse unknowns")

# 3. Young's modulus jumps by 1e4 between subdomains: that costs nothing.
s = solved(ElasticityCube(4, 3, young="checkerboard", jump=1e4))
print(f"jumps of 1e4: {s.result.iterations} iterations, eigenvalues to {s.extremes[1]:.2f}")
assert s.extremes[1] < 1.5

# 4. Nearly incompressible material needs a stable pair of displacements and pressures, and faces, which preserve the
#    volume of subdomains.
for pressure, constraints in (("none", "cef"), ("patches", "ce"), ("patches", "cef")):
    s = solved(ElasticityCube(4, 3, poisson=0.4999, pressure=pressure), constraints=constraints)
    print(f"ν = 0.4999, pressure={pressure!r}, {constraints}: {s.result.iterations} iterations, "
          f"eigenvalues to {s.extremes[1]:.3g}")

# 5. A mesh of tetrahedra, cut into 4 x 2 x 2 boxes. With pymetis a number does it: parts=16.
points, cells = gallery.box_mesh((16, 6, 6), (3.0, 1.0, 1.0))
boxes = (points[cells].mean(axis=1) / (0.75, 0.5, 0.5)).astype(int)
parts, nodes = gallery.elastic_subdomains(points, cells, points[:, 0] == 0, boxes @ [4, 2, 1])
subdomains = swell.Subdomains(parts)
A, b = subdomains.assemble(), np.tile([0.0, 0, -1], len(nodes))
bddc = swell.BDDC(subdomains=subdomains, near_nullspace=swell.rigid_body_modes(nodes))
result = swell.solve(A, b, method="cg", precond=bddc)
print(f"a beam of {len(cells)} tetrahedra in {len(subdomains)} subdomains: {result.iterations} iterations")
assert result.converged

# 6. Deluxe weights: matrices from the Schur complements, for subdomains of irregular shapes.
middle = points[cells].mean(axis=1) / (3.0, 1.0, 1.0)
seeds = np.random.default_rng(3).random((12, 3))
owner = np.unique(((middle[:, None] - seeds) ** 2).sum(axis=2).argmin(axis=1), return_inverse=True)[1]
irregular = swell.Subdomains(gallery.elastic_subdomains(points, cells, points[:, 0] == 0, owner)[0])
for weights in ("stiffness", "deluxe"):
    bddc = swell.BDDC(subdomains=irregular, near_nullspace=swell.rigid_body_modes(nodes), weights=weights)
    result = swell.solve(irregular.assemble(), b, method="cg", precond=bddc)
    print(f"{len(irregular)} irregular subdomains, {weights}: {result.iterations} iterations")
    assert result.converged

# 7. An error names the motions that nothing holds.
try:
    swell.solve(A, b, method="cg", precond=swell.BDDC(subdomains=subdomains, constraints="c"))
except swell.InputError as error:
    print(error)
