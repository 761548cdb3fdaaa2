"""Code written for SciPy: the same calls from swell, and what swell accepts beyond them."""
import numpy as np
import scipy.sparse.linalg as spla

import swell
from swell.scipy_like import cg, gmres, minres, qmr

A = swell.gallery.convection_diffusion((40, 40)).tocsc()
S = swell.gallery.poisson2d(40)
b = np.ones(A.shape[0])

# 1. SciPy's calls, with callbacks that get x.
errors: list[np.floating] = []
exact = spla.spsolve(S.tocsc(), b)
x, info = cg(S, b, rtol=1e-10, callback=lambda xk: errors.append(np.linalg.norm(xk - exact)))
print(f"cg: info {info}, {len(errors)} callbacks, error {errors[0]:.1e} to {errors[-1]:.1e}")
assert info == 0 and errors[-1] < 1e-6 * errors[0]
x, info = minres(S, b, shift=0.1, rtol=1e-10)                                   # (A − 0.1 I) x = b
assert info == 0 and np.allclose(S @ x - 0.1 * x, b)

# 2. Factors need no LinearOperator around them; "Mb" starts from M b.
factors = spla.spilu(A, drop_tol=1e-3)
x, info = gmres(A, b, x0="Mb", M=factors, rtol=1e-10)
y, _ = qmr(A, b, M1=factors, rtol=1e-10)
print(f"gmres and qmr agree to {abs(x - y).max():.1e}")
assert info == 0 and np.allclose(x, y)

# 3. A prepared Solver as a preconditioner: single precision, to two digits, inside a double-precision FGMRES.
inner = swell.prepare(S, method="cg", precond="ic0", dtype="float32", rtol=1e-2)
r = swell.solve(S, b, method="fgmres", M=inner)
print(f"fgmres: {r.iterations} outer iterations, residual {r.residual:.1e}")
assert r.converged and r.iterations < 10

# 4. x while swell.solve iterates.
seen: list[float] = []
r = swell.solve(S, b, method="cg", monitor=swell.SolutionMonitor(lambda k, residual, x: seen.append(x.max())))
print(f"largest value: {seen[0]:.1f}, ... {seen[-1]:.1f}, in {r.iterations} iterations")
assert len(seen) == r.iterations + 1
