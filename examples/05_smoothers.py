"""Smoothers: alone, as preconditioners, and by hand. Diffusion in a cube, 8000 unknowns."""
import numpy as np

import swell
from swell.core.devices import make_space

A = swell.gallery.poisson3d(20)
b = np.ones(A.shape[0])

# Alone: one iteration is ten sweeps. Smoothers reduce oscillating errors fast and smooth errors slowly.
for smoother in ("jacobi_sweeps(omega=0.8)", "gauss_seidel", "block_jacobi_sweeps(inner='cg')", "chebyshev(degree=4)"):
    alone = swell.solve(A, b, method=swell.Stationary(smoother, every=10), maxiter=20)
    print(f"{smoother:26s} after 200 sweeps: {alone.residual:.1e}")
    assert alone.residual < 0.2

# As preconditioners: two symmetric sweeps for CG. A preconditioner that varies from step to step needs FGMRES.
plain = swell.solve(A, b, method="cg", scaling="jacobi")
swept = swell.solve(A, b, method="cg", precond=swell.GaussSeidel(sweeps=2))
varying = swell.solve(A, b, method="fgmres", precond=swell.BlockJacobiSmoother(inner="cg", asynchronous=True))
print(f"cg: {plain.iterations} iterations, with Gauss–Seidel {swept.iterations}; fgmres {varying.iterations}")
assert plain.converged and swept.converged and varying.converged and swept.iterations < plain.iterations

# By hand: ten sweeps on a guess, in place. The energy of the error falls in each sweep.
matrix = swell.CSRMatrix.from_scipy(A, make_space("cpu"))
smooth = swell.GaussSeidel(direction="forward").build(matrix)
error = np.random.default_rng(7).standard_normal(A.shape[0])
energy = [error @ (A @ error)]
for _ in range(10):
    smooth.smooth(np.zeros_like(b), error, 1)
    energy.append(error @ (A @ error))
assert (np.diff(energy) < 0).all()
