"""
Waves around a cylinder
=======================

A point source beside a stiff cylinder, in the frequency domain: −∇²p − k² p = δ, with a sponge at the edges that
absorbs the waves. The matrix is complex symmetric and indefinite.
"""
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import swell

n, wavelengths = 240, 12
h, k = 1 / n, 2 * np.pi * wavelengths
y, x = np.divmod(np.arange(n * n), n) + np.array([[0.5], [0.5]])
x, y = x * h, y * h
edge = np.clip(1 - np.minimum.reduce([x, 1 - x, y, 1 - y]) / 0.15, 0, None)           # 0 inside, 1 at the boundary
inside = np.hypot(x - 0.6, y - 0.5) < 0.14
k2 = np.where(inside, -(4 * k) ** 2, k**2 * (1 + 0.8j * edge**2))                     # evanescent in the cylinder
A = sp.csr_array(swell.gallery.poisson2d(n) / h**2 - sp.diags_array(k2))
b = np.exp(-((x - 0.25) ** 2 + (y - 0.5) ** 2) / h**2) / h**2

r = swell.solve(A, b.astype(complex), rtol=1e-6)
print(r)

# %%
p = np.where(inside, np.nan, r.x.real).reshape(n, n)
figure, axes = plt.subplots(figsize=(6.4, 6), layout="constrained")
limit = np.nanpercentile(abs(p), 98)
axes.imshow(p, cmap="RdBu_r", vmin=-limit, vmax=limit, origin="lower", interpolation="bicubic")
axes.set_axis_off()
