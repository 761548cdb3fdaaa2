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
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=(1, 1.5))
for panel, layer, extent in ((axes[0], T[25], (0, 20, 0, 20)), (axes[1], T[:, 32], (0, 20, 0, 4))):
    shown = panel.imshow(layer, origin="lower", extent=extent, cmap="inferno", vmin=T.min(), vmax=T.max(), aspect="auto")
    panel.contour(layer, levels=range(40, 100, 5), extent=extent, colors="white", linewidths=0.5)
axes[0].set(xlabel="x in mm", ylabel="y in mm", title="in the die")
axes[1].set(xlabel="x in mm", ylabel="z in mm", title="section through both cores; a line every 5 K")
figure.colorbar(shown, ax=axes, label="K above the coolant")
