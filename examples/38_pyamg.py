"""PyAMG and swell: a hierarchy of PyAMG as swell's preconditioner, and swell as PyAMG's accelerator."""
import numpy as np
import pyamg

import swell
from swell.guests.pyamg import cg

np.random.seed(0)                                # PyAMG estimates spectral radii from random vectors
A = swell.gallery.poisson2d(150)
b = np.ones(A.shape[0])
ml = pyamg.smoothed_aggregation_solver(A)

r = swell.solve(A, b, method="cg", M=ml)                                        # the V-cycle
w = swell.solve(A, b, method="cg", M=ml.aspreconditioner(cycle="W"))
own = swell.solve(A, b, method="cg", precond="amg")
print(f"swell's CG: {r.iterations} iterations with PyAMG's V-cycle, {w.iterations} with its W-cycle, "
      f"{own.iterations} with swell's own AMG")
assert r.converged and w.iterations <= r.iterations

history: list[float] = []
x = ml.solve(b, tol=1e-8, accel=cg, residuals=history)
print(f"PyAMG with swell's CG: residual norms {history[0]:.1e} to {history[-1]:.1e} in {len(history) - 1} iterations")
assert np.allclose(x, r.x, rtol=1e-5) and history[-1] <= 1e-8 * np.linalg.norm(b)
