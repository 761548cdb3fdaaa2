"""scikit-fem with swell as its solver: Poisson's equation, time steps that keep the setup, and an elastic beam."""
import numpy as np
import skfem
from skfem.models.elasticity import lame_parameters, linear_elasticity
from skfem.models.poisson import laplace, mass, unit_load

from swell.guests.skfem import solver

# 1. One line: solver=solver(). swell chooses; solve.result says what it did.
mesh = skfem.MeshTri().refined(6)
basis = skfem.Basis(mesh, skfem.ElementTriP1())
A, M, b = laplace.assemble(basis), mass.assemble(basis), unit_load.assemble(basis)
solve = solver()
x = skfem.solve(*skfem.condense(A, b, D=mesh.boundary_nodes()), solver=solve)
print(solve.result)
print(f"difference from SciPy's LU: {abs(x - skfem.solve(*skfem.condense(A, b, D=mesh.boundary_nodes()))).max():.1e}")

# 2. Time steps of growing length: the pattern recurs, so swell updates its setup.
solve, u = solver(method="cg", precond="ic0"), np.zeros(basis.N)
for dt in (0.001, 0.002, 0.004, 0.008):
    u = skfem.solve(*skfem.condense(M + dt * A, M @ u + dt * b, D=mesh.boundary_nodes()), solver=solve)
    print(f"dt = {dt}: {solve.result.iterations} iterations, largest value {u.max():.4f}")
assert solve.setups == 1

# 3. A beam, clamped at one end: its rigid motions are the near null space of smoothed aggregation.
mesh = skfem.MeshTri.init_tensor(np.linspace(0, 10, 201), np.linspace(0, 1, 21))
basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTriP1()))
K = linear_elasticity(*lame_parameters(1e3, 0.3)).assemble(basis)
load = skfem.LinearForm(lambda v, w: -v[1]).assemble(basis)
system = skfem.condense(K, load, D=basis.get_dofs(lambda x: x[0] == 0))
solve = solver(basis=(basis, system[3]), method="cg")
x = skfem.solve(*system, solver=solve)
plain = solver(method="cg", scaling="jacobi")
skfem.solve(*system, solver=plain)
print(f"beam: {solve.result.iterations} iterations with rigid motions, {plain.result.iterations} with Jacobi scaling")
assert solve.result.iterations < plain.result.iterations / 5
