"""Slow flow by block preconditioners: index sets, a multigrid on the velocity, the mass matrix as Schur complement."""
import numpy as np
import scipy.sparse as sp
import skfem as fe
from skfem.helpers import ddot, div, grad

import swell

# 1. A driven cavity by finite differences (MAC): A = [F Bᵀ; B 0] and the rows of velocities and pressures.
counts: dict[str, list[int]] = {"minres, diagonal": [], "gmres, lower": [], "gmres, full": []}
for m in (16, 32, 64):
    A, b, fields, mass = swell.gallery.stokes((m, m))
    pressure = np.zeros(A.shape[0])
    pressure[fields["p"]] = 1                    # p is determined up to a constant
    for name in counts:
        method, kind = name.split(", ")
        blocks = swell.FieldSplit(fields=fields, inner={"u": "amg", "p": "jacobi"}, kind=kind, schur=mass)
        result = swell.solve(A, b, method=method, precond=blocks, nullspace=pressure)
        assert result.converged
        counts[name].append(result.iterations)
print("cavities of 16², 32², 64² cells:", counts)
print(result)
assert all(max(found) - min(found) <= 6 for found in counts.values()) and max(counts["gmres, full"]) <= 24

# 2. Other Schur complements. SIMPLE's needs no mass matrix, and more iterations on finer meshes; the commutator is between.
for schur in ("diagonal", "lsc"):
    blocks = swell.FieldSplit(fields=fields, inner="amg", kind="upper", schur=schur)
    result = swell.solve(A, b, method="gmres", precond=blocks, nullspace=pressure)
    print(f"schur={schur!r}: {result.iterations} iterations")
    assert result.converged


# 3. Taylor–Hood elements: a channel with an obstacle, parabolic inflow at the left, free outflow at the right.
def channel(level):
    """The matrix, the right-hand side, the fields and the pressure's mass matrix divided by the viscosity."""
    viscosity, x, y = 0.01, np.linspace(0, 3, 3 * level + 1), np.linspace(0, 1, level + 1)
    mesh = fe.MeshTri.init_tensor(x, y)
    mesh = mesh.remove_elements(mesh.elements_satisfying(lambda x: np.hypot(x[0] - 0.8, x[1] - 0.5) < 0.2))
    u = fe.Basis(mesh, fe.ElementVector(fe.ElementTriP2()), intorder=4)
    p = u.with_element(fe.ElementTriP1())
    F = fe.BilinearForm(lambda u, v, w: viscosity * ddot(grad(u), grad(v))).assemble(u)
    B = fe.BilinearForm(lambda u, q, w: -div(u) * q).assemble(u, p)
    M = fe.BilinearForm(lambda p, q, w: p * q / viscosity).assemble(p)
    A = sp.csr_matrix(sp.bmat([[F, B.T], [B, None]]))
    outflow = mesh.facets_satisfying(lambda x: x[0] > 3 - 1e-9, boundaries_only=True)
    inflow = mesh.facets_satisfying(lambda x: x[0] < 1e-9, boundaries_only=True)
    walls = u.get_dofs(np.setdiff1d(mesh.boundary_facets(), outflow)).flatten()
    given = np.zeros(A.shape[0])
    rows = u.get_dofs(inflow).all("u^1")
    height = u.doflocs[1, rows]
    given[rows] = 4 * height * (1 - height)
    free = np.setdiff1d(np.arange(A.shape[0]), walls)
    b = -(A @ given)[free]
    return sp.csr_matrix(A[free][:, free]), b, {"u": free < F.shape[0], "p": free >= F.shape[0]}, M


found = []
for level in (10, 20, 40):
    A, b, fields, mass = channel(level)
    blocks = swell.FieldSplit(fields=fields, inner={"u": "amg(degree=2)", "p": "jacobi"}, kind="full", schur=mass)
    result = swell.solve(A, b, method="gmres(restart=100)", precond=blocks)
    assert result.converged
    found.append(result.iterations)
print("Taylor–Hood elements, iterations from mesh to mesh:", found)
assert max(found) <= 60
