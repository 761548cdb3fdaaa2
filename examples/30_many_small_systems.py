"""Many small systems of one pattern at once: chemistry in every cell of a mesh, one implicit step each."""
import numpy as np

import swell

rng = np.random.default_rng(7)
cells, species = 500, 20
links = rng.random((species, species)) < 0.3                  # which species react with which: the same in every cell
np.fill_diagonal(links, True)

# One implicit step of y' = J y in each cell: (I − dt J) y_new = y. Each cell has its own rates.
rates = rng.uniform(0.1, 1.0, (cells, links.sum()))
rows, columns = np.nonzero(links)                             # the order of the values: row by row, as a dense pattern has
dt = 0.05
values = np.where(rows == columns, 1 + dt * 10 * rates, -dt * rates)
y = rng.uniform(0, 1, (cells, species))

r = swell.solve_batch(links, values, y)                       # swell chooses; print(r) says what it chose
print(r)
assert r.all_converged and r.x.shape == (cells, species)
assert r.method == "lu"                                       # not Hermitian, and few unknowns

# Time steps: the pattern is read once, and each step brings new values.
solver = swell.prepare_batch(links, method="bicgstab", precond="jacobi", rtol=1e-10)
for step in range(5):
    r = solver.update(values * (1 + 0.1 * step)).solve(y, x0=y)
    assert r.all_converged
    y = r.x
print(r)

# A cell that went wrong is one record, and has no effect on the others.
values[17, 3] = np.nan
r = solver.update(values).solve(y)
assert r.converged.sum() == cells - 1 and r.reason(17) is swell.Reason.NONFINITE
print(r[17])

# Matrices of different patterns: a list, grouped by pattern; the results have its order.
A, S = swell.gallery.poisson2d(6), swell.gallery.convection_diffusion((5, 5))
r = swell.solve_batch([A, S, 2 * A], B=[np.ones(36), np.ones(25), np.ones(36)])
assert r.all_converged and np.allclose(r[0].x, 2 * r[2].x)
print(r)
