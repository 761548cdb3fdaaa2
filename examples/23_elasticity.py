"""Elasticity by multigrid: rigid motions from coordinates, iterations that hardly depend on the mesh, fixed unknowns."""
import numpy as np

import swell

rng = np.random.default_rng(23)


def plate(m, poisson=0.3):
    """A plate of 2 m² triangles, clamped at its left side: the matrix, and the positions of its free nodes."""
    points, triangles = swell.gallery.box_mesh((m, m))
    return swell.gallery.elastic_body(points, triangles, points[:, 0] == 0, poisson=poisson)


# Jacobi needs twice the iterations on a mesh of half the width; multigrid with the rigid motions about equally many.
counts: dict[str, list[int]] = {"jacobi": [], "smoothed aggregation": []}
for m in (20, 40, 80):
    A, points = plate(m)
    b = rng.standard_normal(A.shape[0])
    multigrid = swell.SmoothedAggregation(coordinates=points)
    counts["jacobi"].append(swell.solve(A, b, method="cg", precond="jacobi").iterations)
    counts["smoothed aggregation"].append(swell.solve(A, b, method="cg", precond=multigrid).iterations)
print("meshes of 20², 40², 80² squares:", counts)
assert counts["jacobi"][2] > 3 * counts["jacobi"][0] and max(counts["smoothed aggregation"]) <= 20

# The levels: nodes become aggregates of about ten, with three unknowns each, one for each rigid motion.
solver = swell.prepare(A, method="cg", precond=multigrid)
print(solver.M)

# Without coordinates the near null vectors are constants: rotations are missing, and iterations are more.
plain = swell.solve(A, b, method="cg", precond="smoothed_aggregation")
print("iterations with rigid motions and with constants:", counts["smoothed aggregation"][-1], plain.iterations)
assert plain.iterations > 1.4 * counts["smoothed aggregation"][-1]

# Nearly incompressible material is harder; smoothing steps of degree 3 help.
soft, points = plate(60, poisson=0.45)
b = rng.standard_normal(soft.shape[0])
for degree in (2, 3):
    result = swell.solve(soft, b, method="cg", precond=swell.SmoothedAggregation(coordinates=points, degree=degree))
    print(f"Poisson's ratio 0.45, degree {degree}: {result.iterations} iterations")
    assert result.converged and result.iterations < 40

# Some unknowns are fixed one by one: name the node of each row that is left, and give their rows of the rigid motions.
kept = np.flatnonzero(rng.random(soft.shape[0]) > 0.05)
nodes = np.unique(kept // 2, return_inverse=True)[1]
multigrid = swell.SmoothedAggregation(near_nullspace=swell.rigid_body_modes(points)[kept], nodes=nodes, degree=3)
result = swell.solve(soft.tocsr()[kept][:, kept], b[kept], method="cg", precond=multigrid)
print(result)
assert result.converged and result.iterations < 40

# The same in three dimensions, with six rigid motions: a cube of tetrahedra of two materials, one 1000 times as stiff.
points, tetrahedra = swell.gallery.box_mesh((10, 10, 10))
stiff = points[tetrahedra].mean(axis=1)[:, 2] > 0.5
body, nodes = swell.gallery.elastic_body(points, tetrahedra, points[:, 0] == 0, young=np.where(stiff, 1000.0, 1.0))
result = swell.solve(body, rng.standard_normal(body.shape[0]), method="cg",
                     precond=swell.SmoothedAggregation(coordinates=nodes))
print("a cube of two materials:", result.iterations, "iterations")
assert result.converged and result.iterations < 30

# A body that nothing holds: its rigid motions are the null space of A, and near null vectors as well.
free, nodes = swell.gallery.elastic_body(points, tetrahedra, np.zeros(len(points), bool))
result = swell.solve(free, free @ rng.standard_normal(free.shape[0]), method="cg",
                     nullspace=swell.rigid_body_modes(nodes), precond=swell.SmoothedAggregation(coordinates=nodes))
print("a body that nothing holds:", result.iterations, "iterations")
assert result.converged and result.iterations < 25

# Subdomains instead of levels: the second level of Schwarz has the rigid motions of each of 30 subdomains.
points, tetrahedra = swell.gallery.box_mesh((30, 3, 3), (10.0, 1.0, 1.0))
beam, nodes = swell.gallery.elastic_body(points, tetrahedra, points[:, 0] == 0)
b, modes = rng.standard_normal(beam.shape[0]), swell.rigid_body_modes(nodes)
one = swell.solve(beam, b, method="cg", precond=swell.Schwarz(domains=30, kind="additive", inner="ic0"))
two = swell.solve(beam, b, method="cg", precond=swell.Schwarz(
    domains=30, kind="additive", inner="ic0", coarse="nicolaides", near_nullspace=modes))
print("a beam of 30 subdomains, one level and two:", one.iterations, two.iterations)
assert two.converged and two.iterations < one.iterations / 3
