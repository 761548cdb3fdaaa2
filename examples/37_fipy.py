"""FiPy with swell as its solver: a plume that is carried and spreads, in time steps that keep the setup."""
import fipy as fp

from swell.guests.fipy import SwellSolver

n = 60
mesh = fp.Grid2D(nx=n, ny=n, dx=1 / n, dy=1 / n)
phi = fp.CellVariable(mesh=mesh, value=0.0)
phi.constrain(1.0, mesh.facesLeft)
phi.constrain(0.0, mesh.facesRight)
equation = fp.TransientTerm() == fp.DiffusionTerm(coeff=0.05) - fp.UpwindConvectionTerm(coeff=(1.0, 0.3))

solver = SwellSolver(tolerance=1e-9, method="bicgstab", precond="ilu0")         # give the same object to every step
for step in range(5):
    equation.solve(var=phi, dt=0.02, solver=solver)
    print(f"step {step}: {solver.convergence.status_name}, {solver.convergence.iterations} iterations, "
          f"mean value {phi.value.mean():.4f}")
print(solver.result)
assert solver.setups == 1                        # the other steps updated it

values = phi.value.copy()
phi.value = 0.0
for step in range(5):
    equation.solve(var=phi, dt=0.02, solver=fp.LinearLUSolver(tolerance=1e-12))
print(f"difference from FiPy's LU: {abs(values - phi.value).max():.1e}")
assert abs(values - phi.value).max() < 1e-7
