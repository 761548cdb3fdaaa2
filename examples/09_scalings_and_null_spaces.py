"""Badly scaled systems: Ruiz equilibration and condition estimates. Singular systems: null spaces."""
import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

import swell

rng = np.random.default_rng(3)
A = swell.gallery.poisson2d(60)
units = sp.diags_array(10.0 ** rng.uniform(-3, 3, A.shape[0]))          # each unknown has its own unit
mixed = units @ A @ units
b = mixed @ rng.standard_normal(A.shape[0])

for scaling in ("jacobi", "ruiz", swell.RuizScaling(p=np.inf)):
    r = swell.solve(mixed, b, method="cg", scaling=scaling, stopping=swell.Stopping(every=10))
    assert r.converged and r.spectrum is not None
    print(f"{scaling}: {r.iterations} iterations, condition at least {r.spectrum.condition:.3g}\n{r}\n")

# Pressure with walls everywhere is determined only up to a constant, and the sources must add up to zero.
walls = swell.gallery.neumann((40, 40))
sources = np.zeros(1600)
sources[0], sources[-1] = 1, -1
pressure = swell.solve(walls, sources, method="cg", nullspace="constants")
assert pressure.converged and abs(pressure.x.sum()) < 1e-8

sources[-1] = -0.9
try:
    swell.solve(walls, sources, method="cg", nullspace="constants")
except swell.InputError as error:
    print(error)
balanced = swell.solve(walls, sources, method="cg", nullspace=swell.NullSpace("constants", project=True))
print(balanced)
assert balanced.converged

# A truss without supports moves and turns freely: it has three rigid motions in the plane. Loads must not excite them.
points = rng.random((60, 2))
triangles = Delaunay(points).simplices
bars = np.unique(np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), 1), axis=0)
along = points[bars[:, 1]] - points[bars[:, 0]]
along /= np.linalg.norm(along, axis=1)[:, None]
stretch = sp.lil_array((len(bars), 120))
for k, (i, j) in enumerate(bars):
    stretch[k, [2 * i, 2 * i + 1]], stretch[k, [2 * j, 2 * j + 1]] = -along[k], along[k]
stiffness = sp.csr_array(stretch.T @ stretch)
modes = swell.rigid_body_modes(points)
loads = stiffness @ rng.standard_normal(120)
moved = swell.solve(stiffness, loads, method="cg", nullspace=modes)
print(moved)
assert moved.converged and abs(modes.T @ moved.x).max() < 1e-8 * np.linalg.norm(moved.x)
