"""
What a smoother does
====================

A random error, and the same error after a few sweeps. Sweeps remove what oscillates; the smooth rest is left to coarser
levels.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell
from swell.core.devices import make_space

n = 64
A = swell.gallery.poisson2d(n)
matrix = swell.CSRMatrix.from_scipy(A, make_space("cpu"))
start = np.random.default_rng(1).standard_normal(n * n)
smoothers = {"Jacobi, damped": swell.JacobiSmoother(omega=0.8), "Gauss–Seidel": swell.GaussSeidel(direction="forward"),
             "Chebyshev, degree 4": swell.Chebyshev(degree=4)}

figure, axes = plt.subplots(2, 4, figsize=(12, 6.2), layout="constrained", height_ratios=(1, 0.8))
spectrum = np.linspace(0, np.pi, n)
for (name, settings), axis, below in zip({"the error": None, **smoothers}.items(), axes[0], axes[1]):
    error = start.copy()
    if settings is not None:
        settings.build(matrix).smooth(np.zeros_like(error), error, 4)
    field = error.reshape(n, n)
    axis.imshow(field, cmap="RdBu_r", vmin=-2, vmax=2)
    axis.set_title(name if settings is None else f"{name}: 4 sweeps")
    axis.set_axis_off()
    share = abs(np.fft.rfft2(np.pad(field, n // 2))) / n
    rings = np.add.outer(np.minimum(np.arange(2 * n), 2 * n - np.arange(2 * n))**2, np.arange(n + 1)**2)**0.5
    mean = np.bincount(rings.astype(int).ravel(), share.ravel()) / np.bincount(rings.astype(int).ravel())
    below.semilogy(np.arange(n) / n, mean[:n])
    below.set(ylim=(3e-3, 3), xlabel="frequency over the grid's")
    below.grid(alpha=0.3)
axes[1, 0].set_ylabel("size of the error")
