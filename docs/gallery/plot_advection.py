"""
Smoke in a rotating flow
========================

Advection with hardly any diffusion: four sources in a flow around the middle, each of which leaves a ring. Most
streamlines are closed, so no order of the rows makes the matrix triangular. AIR takes about as many
iterations on every mesh.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell

counts = {"ilu0": [], "air": []}
sizes = (40, 80, 160)
for m in sizes:
    A = swell.gallery.advection((m, m), "rotating", diffusion=1e-5)
    x, y = np.meshgrid(*((np.arange(m) + 0.5) / m,) * 2, indexing="ij")
    b = sum(np.exp(-((x - 0.5 - 0.1 * k) ** 2 + (y - 0.5) ** 2) * 4000) for k in range(1, 5)).ravel()
    for precond, found in counts.items():
        r = swell.solve(A, b, method="fgmres", precond=precond, maxiter=1000)
        assert r.converged
        found.append(r.iterations)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", width_ratios=(1.2, 1))
left.imshow(r.x.reshape(m, m).T, cmap="cividis", origin="lower", vmax=np.percentile(r.x, 99.5))
left.set_axis_off()
for name, found in counts.items():
    right.loglog(np.square(sizes), found, "o-", label=name)
right.set(xlabel="unknowns", ylabel="iterations of FGMRES", ylim=(5, None))
right.set_xticks(np.square(sizes), [f"{m}²" for m in sizes])
right.minorticks_off()
right.legend(frameon=False)
