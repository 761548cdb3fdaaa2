"""Your own preconditioner, a progress callback, and code written for SciPy."""
import numpy as np
import scipy.sparse.linalg as spla

import swell
from swell.scipy_like import gmres

A = swell.gallery.convection_diffusion((40, 40)).tocsc()
b = np.ones(A.shape[0])
ilu = spla.spilu(A, drop_tol=1e-3)
M = spla.LinearOperator(A.shape, ilu.solve)

seen = []
result = swell.solve(A, b, method="gmres", M=M, monitor=lambda k, residual: seen.append(residual))
print(result)
assert result.converged and len(seen) == result.iterations + 1

x, info = gmres(A, b, M=M, rtol=1e-8)                             # SciPy's call
assert info == 0 and np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b)
