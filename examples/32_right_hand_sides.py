"""Several right-hand sides: solved together, one record for each, and when one by one is the better way."""
import numpy as np

import swell

A = swell.gallery.jumping_diffusion((24, 24, 24), contrast=100.0)
n, rng = A.shape[0], np.random.default_rng(3)
loads = np.zeros((n, 6))
loads[rng.integers(n, size=6), np.arange(6)] = 1.0               # six point sources

# All at once: one setup, and one product with A for six vectors.
solver = swell.prepare(A, method="cg", precond="ic0")
together = solver.solve(loads, together=True)
print(together)
assert isinstance(together, swell.Results) and together.converged and together.x.shape == loads.shape
assert np.allclose(A @ together.x, loads, atol=1e-6)

# Each column is a solve of its own: its iterations, its history, even its bits.
alone = solver.solve(loads[:, 4])
assert isinstance(alone, swell.Result) and np.array_equal(alone.x, together[4].x) and alone.iterations == together[4].iterations
print("iterations of each:", [r.iterations for r in together], "history:", together.history.shape)

# Columns with little to do end early, and cost nothing from then on.
loads[:, 0] = 0
loads[:, 1] = A @ np.ones(n)
mixed = solver.solve(loads, x0=np.ones_like(loads), together=True)
assert isinstance(mixed, swell.Results) and mixed.converged
print("with a zero column, and one that is solved already:", [r.iterations for r in mixed])
assert mixed[0].iterations == mixed[1].iterations == 0

# Nothing said: what is predicted to be faster, and the note that tells.
print(swell.solve(A, loads).notes)
