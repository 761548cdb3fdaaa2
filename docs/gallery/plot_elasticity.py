"""
An elastic plate under load
===========================

A plate with a hole is clamped at its left side and bends under its own weight. Smoothed aggregation takes the rigid
motions from the points' coordinates.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell

points, triangles = swell.gallery.box_mesh((120, 40), size=(3.0, 1.0))
middle = points[triangles].mean(axis=1)
triangles = triangles[np.hypot(middle[:, 0] - 1.2, middle[:, 1] - 0.5) > 0.25]
used = np.unique(triangles)
points, triangles = points[used], np.searchsorted(used, triangles)
clamped = points[:, 0] == 0

A, nodes = swell.gallery.elastic_body(points, triangles, clamped, young=1e3)
r = swell.solve(A, np.tile([0.0, -2e-4], len(nodes)), method="cg", precond=swell.SmoothedAggregation(coordinates=nodes))
print(r)

# %%
# The deformed plate, and the distance that each point has moved.
moved = np.zeros_like(points)
moved[~clamped] = r.x.reshape(-1, 2)
moved *= 0.35 / abs(moved).max()
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
image = axes.tripcolor(*(points + moved).T, triangles, np.hypot(*moved.T), shading="gouraud", cmap="viridis")
axes.triplot(*(points + moved).T, triangles, color="w", lw=0.15)
axes.set(aspect="equal")
axes.set_axis_off()
figure.colorbar(image, label="displacement (magnified)")
