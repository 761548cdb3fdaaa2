"""Adjoint solves: Aᴴ λ = g by the setup of A x = b, for sensitivities, gradients and error estimates.

A goal j = (g, x) of the solution of A x = b changes by (λ, δb − δA x), where Aᴴ λ = g. One adjoint solve gives the
derivatives with respect to every entry of b and of A.
"""
import numpy as np

import swell

A = swell.gallery.convection_diffusion((40, 40), 10.0)          # not symmetric
n = A.shape[0]
b = np.ones(n)
g = np.zeros(n)
g[n // 2] = 1.0                                                 # the goal: x at one point

s = swell.prepare(A, method="gmres", precond="ilu0", rtol=1e-10)
x = s.solve(b).x
r = s.solve(g, adjoint=True)                                    # transposed factors: nothing is factored again
print(r)
lam = r.x

# The derivative with respect to a source two rows away, beside a second solve with a changed b.
change = np.zeros(n)
change[n // 2 + 2] = 1.0
changed = s.solve(b + change).x
predicted, found = lam @ change, g @ (changed - x)
print(f"predicted {predicted:.6e}, found {found:.6e}")
assert abs(predicted - found) <= 1e-5 * abs(found)

# A prepared Solver says beforehand if a part has no adjoint.
own = swell.prepare(A, method="gmres", M=lambda r: r / A.diagonal())
try:
    own.require_adjoint()
except swell.InputError as error:
    print(error)
