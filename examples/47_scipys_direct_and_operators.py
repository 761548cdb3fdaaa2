"""swell in SciPy's place: factors, a Solver and its preconditioner as linear operators, a time loop."""
import numpy as np
import scipy.sparse as sp
from scipy.optimize import newton_krylov
from scipy.sparse.linalg import cg, eigsh, lobpcg

import swell
from swell.scipy_like import splu, spsolve

A = swell.gallery.poisson2d(60)
n = A.shape[0]
b = np.ones(n)

# The calls by factors: change the import. A solve that fails warns, or raises an error.
x = spsolve(A, b)
lu = splu(A)
assert np.allclose(A @ x, b) and np.allclose(lu.solve(b, "T"), x)

# A Solver is A⁻¹ as a linear operator, and its M one application of the preconditioner.
direct, multigrid = swell.prepare(A, method="direct"), swell.prepare(A, method="cg", precond="amg")
lowest = eigsh(A, k=3, sigma=0, OPinv=direct, return_eigenvectors=False)
start = np.random.default_rng(0).random((n, 3))
values, _ = lobpcg(A, start, M=multigrid.M, largest=False, tol=1e-5, maxiter=40)
steps: list[int] = []
y, info = cg(A, b, M=multigrid.M, rtol=1e-8, callback=lambda x: steps.append(1))
print(f"lowest eigenvalues {np.sort(lowest).round(5)} by eigsh, {np.sort(values).round(5)} by lobpcg; "
      f"SciPy's cg with swell's V-cycle: {len(steps)} iterations")
assert np.allclose(np.sort(lowest), np.sort(values), rtol=1e-4) and info == 0 and len(steps) < 15

u = newton_krylov(lambda u: A @ u + 0.001 * u**3 - 0.001, np.zeros(n), inner_M=multigrid.M, f_tol=1e-8)
assert abs(A @ u + 0.001 * u**3 - 0.001).max() < 1e-8

# In a time loop SciPy's sums drop entries that cancel, so that the pattern shrinks and grows.
flow = swell.Recurring()
M, C = sp.eye_array(n, format="csr"), swell.gallery.convection_diffusion((60, 60))
for step in range(6):
    r = flow.solve((M + 0.1 * (A if step % 3 else C - A)).tocsr(), b)
    assert r.converged
print(flow)
