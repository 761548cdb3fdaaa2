"""A prepared solver: one setup for many right-hand sides, and for new values on the same pattern."""
import numpy as np

import swell

A = swell.gallery.convection_diffusion((16, 16, 16))
rng = np.random.default_rng(7)

solver = swell.prepare(A, method="gmres(restart=40)", precond="jacobi", rtol=1e-10)
for _ in range(3):
    b = rng.standard_normal(A.shape[0])
    assert solver.solve(b).converged

A2 = A.copy()
A2.data = A2.data * 1.5
result = solver.update(A2).solve(b)
assert np.linalg.norm(b - A2 @ result.x) <= 1e-10 * np.linalg.norm(b)

narrow = swell.prepare(A, method="gmres", precond="ilu0", ordering="rcm")   # A is reordered inside, b and x are not
result = narrow.solve(b)
assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)

both = solver.solve(rng.standard_normal((A.shape[0], 2)))          # b of shape (n, k): one report for each column
print(both)
assert both.converged and both.x.shape == (A.shape[0], 2)
