"""
The levels of multigrid
=======================

Which points algebraic multigrid keeps on each level. It sees only the matrix: where diffusion is stronger along x, it
keeps fewer points along x.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell

n = 40
y, x = np.divmod(np.arange(n * n), n)
problems = {"the same in all directions": swell.gallery.poisson2d(n),
            "100 times stronger along x": swell.gallery.anisotropic2d(n, 0.01)}
figure, axes = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
for (title, A), axis in zip(problems.items(), axes):
    M = swell.prepare(A, method="cg", precond=swell.AMG(coarsest=20)).M
    points = np.arange(n * n)
    axis.plot(x, y, ".", ms=2, color="#9aa5b1", label=f"{n * n} points")
    for level, step in enumerate(M.hierarchy.levels[:4], 2):
        P = step.P.to_scipy()
        alone = np.flatnonzero((np.diff(P.indptr) == 1) & (P.data[P.indptr[:-1].clip(max=P.nnz - 1)] == 1))
        points = points[alone]                         # a kept point interpolates from itself alone
        axis.plot(x[points], y[points], "o", ms=1.5 * level + 1, color=f"C{level - 2}", fillstyle="none", mew=1.2,
                  label=f"level {level}: {len(points)}")
    axis.set(title=f"diffusion {title}", aspect="equal")
    axis.set_axis_off()
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, frameon=False)
    print(M)
