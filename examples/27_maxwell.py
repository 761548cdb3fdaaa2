"""Maxwell's curl-curl equation by AMS: what it needs besides the matrix, and iterations that do not grow with the mesh."""
import numpy as np
import scipy.sparse as sp
import skfem as fe
from skfem.helpers import curl, dot

import swell


def cavity(cells, mass):
    """∇×∇×E + β E in a cube with electric walls: the matrix, the discrete gradient, the vectors along edges."""
    mesh = fe.MeshTet.init_tensor(*(np.linspace(0, 1, cells + 1),) * 3)
    basis = fe.Basis(mesh, fe.ElementTetN0())    # one unknown an edge: the integral of E along it
    K = fe.BilinearForm(lambda u, v, w: dot(curl(u), curl(v))).assemble(basis)
    M = fe.BilinearForm(lambda u, v, w: dot(u, v)).assemble(basis)
    tail, head = mesh.edges
    count = tail.size
    rows, ends = np.tile(np.arange(count), 2), np.concatenate([tail, head])
    G = sp.csr_array((np.repeat([-1.0, 1.0], count), (rows, ends)), shape=(count, mesh.nvertices))
    assert abs(K @ G).max() < 1e-9               # the curl of a gradient is zero
    along = G @ mesh.p.T
    free = basis.complement_dofs(basis.get_dofs())                             # edges that are not on a wall
    inner = np.setdiff1d(np.arange(mesh.nvertices), mesh.boundary_nodes())     # and nodes
    return sp.csr_array((K + mass * M)[free][:, free]), sp.csr_array(G[free][:, inner]), along[free]


# Each mesh has half the width of the one before. Jacobi needs more and more iterations, AMS as many.
rng = np.random.default_rng(27)
counts: dict[str, list[int]] = {"jacobi": [], "AMS": []}
for cells in (4, 8, 16):
    A, gradient, along = cavity(cells, mass=0.01)
    b = rng.standard_normal(A.shape[0])
    for name, precond in (("jacobi", "jacobi"), ("AMS", swell.AMS(gradient=gradient, edges=along))):
        result = swell.solve(A, b, method="cg", precond=precond, rtol=1e-7)
        assert result.converged
        counts[name].append(result.iterations)
print("iterations with 4³, 8³, 16³ cubes of six tetrahedra:", counts)
print(result)
assert counts["jacobi"][2] > 30 * counts["AMS"][2] and max(counts["AMS"]) <= 28

# The same on a regular grid, from the gallery. The additive form does less a step, and takes more steps.
A, gradient, along = swell.gallery.curl_curl((16, 16, 16), mass=0.01)
for kind in ("multiplicative", "additive"):
    precond = swell.AMS(gradient=gradient, edges=along, kind=kind)
    result = swell.solve(A, np.ones(A.shape[0]), method="cg", precond=precond)
    print(f"Yee's grid, {kind}: {result.iterations} iterations")
    assert result.converged and result.iterations <= 25

# Without β E, A annihilates gradients: b must be a curl, and E is determined up to a gradient. A note says what was left out.
A, gradient, along = swell.gallery.curl_curl((16, 16, 16), mass=0.0)
b = A @ rng.standard_normal(A.shape[0])
result = swell.solve(A, b, method="cg", precond=swell.AMS(gradient=gradient, edges=along))
print(result.iterations, "iterations:", *result.notes)
assert result.converged
