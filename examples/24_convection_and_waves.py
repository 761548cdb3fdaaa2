"""Multigrid for convection and for waves: nonsymmetric and complex systems."""
import numpy as np
import scipy.sparse as sp

import swell

# Convection and diffusion: GMRES iterations hardly depend on the grid.
for n in (50, 100, 200):
    A = swell.gallery.convection_diffusion((n, n), 1.0, "upwind")
    r = swell.solve(A, np.ones(A.shape[0]), method="gmres", precond="amg")
    assert r.converged
    print(f"convection on {n} x {n}: {r.iterations} iterations")

# Waves, A = K − ω²M + iωB, complex symmetric: multigrid of the shifted Laplacian, within COCG.
n = 60
K = sp.csr_array(swell.gallery.poisson2d(n))
A = sp.csr_array(K - (0.1 - 0.01j) * sp.eye_array(n * n))
b = np.zeros(n * n, complex)
b[n * n // 2 + n // 2] = 1
M = swell.ShiftedLaplacian(shift=1.0, inner="amg")
r = swell.solve(A, b, method="cocg", precond=M)
assert r.converged
print(f"waves: {r.iterations} iterations")
