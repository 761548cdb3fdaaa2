"""
Heat in a chip
==============

Two cores of 60 and 40 W in a silicon die, under a copper spreader: 262 144 unknowns, conductivities that differ by a
factor of 500.
"""
import matplotlib.pyplot as plt

import swell

A, b, shape, description = swell.gallery.chip_heat(cells=64)
r = swell.solve(A, b, method="cg", precond="amg")
print(r)

# %%
# The die is the hottest layer. The copper spreads the heat; the moulding compound below stays warm.
T = r.x.reshape(shape)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(1, 1.5))
top = axes[0].imshow(T[25], origin="lower", extent=(0, 20, 0, 20), cmap="inferno", vmin=0)
axes[0].set(xlabel="x in mm", ylabel="y in mm", title="in the die")
axes[1].imshow(T[:, 32], origin="lower", extent=(0, 20, 0, 4), cmap="inferno", vmin=0, vmax=T[25].max(), aspect=2.2)
axes[1].set(xlabel="x in mm", ylabel="z in mm", title="section through both cores")
figure.colorbar(top, ax=axes, label="K above the coolant")
