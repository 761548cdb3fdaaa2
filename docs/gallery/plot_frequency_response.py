"""
Sound in a car cabin
====================

The firewall vibrates with 1 mm/s. How the roof's lining changes the level at the driver's ear, and the field at two
frequencies.
"""
import matplotlib.pyplot as plt
import numpy as np

from swell.pde import helmholtz

mesh = helmholtz.car_cabin(size=0.2)
air = helmholtz.Medium(speed=343.0, density=1.204, damping=0.02)
ear, band = (0.95, 0.27, 0.9), helmholtz.band("30:150:6")

figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
for name, roof in (("bare roof", helmholtz.Rigid()), ("lined roof", helmholtz.Impedance(800 - 600j))):
    cabin = helmholtz.Helmholtz(mesh, air, {"roof": roof}, degree=2)
    r = cabin.response("firewall", ear, band, fields=[66.0, 126.0])
    assert r.converged
    axes.plot(r.frequencies, r.level, label=name)
axes.set(xlabel="frequency in Hz", ylabel="level in dB re 20 µPa")
axes.legend(frameon=False)
axes.grid(alpha=0.3)

# %%
# The real part of the pressure on the cabin's surface, with the lining.
faces = mesh.fem.facets[:, mesh.exterior].T
figure = plt.figure(figsize=(10, 4.2), layout="constrained")
for k, (frequency, field) in enumerate(r.fields.items()):
    p = field.p[:len(mesh.points)].real
    axes = figure.add_subplot(1, 2, k + 1, projection="3d", box_aspect=np.ptp(mesh.points, axis=0))
    surface = axes.plot_trisurf(*mesh.points.T, triangles=faces, cmap="RdBu_r", lw=0.1, edgecolor="#00000020")
    surface.set_array(p[faces].mean(axis=1))
    surface.set_clim(-abs(p).max(), abs(p).max())
    axes.view_init(24, -60)
    axes.set_axis_off()
    axes.set_title(f"{frequency:g} Hz")
    figure.colorbar(surface, shrink=0.6, label="Pa")
