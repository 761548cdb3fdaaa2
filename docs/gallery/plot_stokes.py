"""
Slow flow with a stiff disc
===========================

Stokes' equations in a driven cavity, on a staggered grid. The disc's viscosity is 10 000 times as large: it turns as a
rigid body. Multigrid preconditions the velocities, a mass matrix the pressure.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell

n = 64
x, y = np.meshgrid(*((np.arange(n) + 0.5) / n,) * 2, indexing="ij")
viscosity = np.where(np.hypot(x - 0.55, y - 0.45) < 0.16, 1e4, 1.0)
A, b, fields, mass = swell.gallery.stokes((n, n), viscosity)
constant = np.zeros(A.shape[0])
constant[fields["p"]] = 1                              # p is determined up to a constant
blocks = swell.FieldSplit(fields=fields, inner={"u": "amg", "p": "jacobi"}, kind="full", schur=mass)
r = swell.solve(A, b, method="gmres", precond=blocks, nullspace=constant)
print(r)

# %%
# The faces' velocities, averaged to the cells, and the pressure.
first = n * (n - 1)
u, v = np.zeros((n + 1, n)), np.zeros((n, n + 1))
u[1:-1], v[:, 1:-1] = r.x[:first].reshape(n - 1, n), r.x[first:2 * first].reshape(n, n - 1)
u, v, p = (u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2, r.x[fields["p"]].reshape(n, n)
figure, axes = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
limit = np.percentile(abs(p), 97)
image = axes.pcolormesh(x[:, 0], y[0], p.T, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="gouraud")
axes.streamplot(x[:, 0], y[0], u.T, v.T, color="k", linewidth=0.6, density=1.5, arrowsize=0.6)
axes.add_patch(plt.Circle((0.55, 0.45), 0.16, fill=False, lw=2, color="k"))
axes.set(aspect="equal")
axes.set_axis_off()
figure.colorbar(image, label="pressure")
