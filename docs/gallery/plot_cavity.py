"""
Flow in a driven cavity
=======================

SIMPLE on 48 × 48 cells at Reynolds number 400. ``examples/08_lid_driven_cavity.py`` compares it with the tables of
Ghia, Ghia and Shin.
"""
import matplotlib.pyplot as plt
import numpy as np

from swell.pde import fvm

n = 48
mesh = fvm.box((n, n))
walls = {name: fvm.Dirichlet((0.0, 0.0, 0.0)) for name in ("xmin", "xmax", "ymin")}
lid = {"ymax": fvm.Dirichlet((1.0, 0.0, 0.0))}
flow = fvm.Flow(mesh, {**walls, **lid}, viscosity=1 / 400).solve(fvm.SIMPLE(velocity=0.9, scheme="linear", rtol=1e-5))
print(flow)

# %%
u, v = (flow.velocity[:, i].reshape(n, n) for i in (0, 1))
x = mesh.centres[:n, 0]
figure, axes = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
speed = np.hypot(u, v)
image = axes.pcolormesh(x, x, speed, cmap="magma", vmax=0.6, shading="gouraud")
axes.streamplot(x, x, u, v, density=1.6, color="w", linewidth=0.5, arrowsize=0.6)
axes.set(aspect="equal", xlim=(x[0], x[-1]), ylim=(x[0], x[-1]), title="the lid moves to the right")
axes.set_axis_off()
figure.colorbar(image, label="speed over the lid's")
