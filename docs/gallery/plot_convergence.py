"""
Convergence histories
=====================

Residuals of CG on diffusion whose coefficient jumps by a factor of 1000: what each preconditioner saves.
"""
import matplotlib.pyplot as plt
import numpy as np

import swell

A = swell.gallery.jumping_diffusion((128, 128), contrast=1e3, block=8)
b = np.random.default_rng(0).standard_normal(A.shape[0])

figure, (all_of_it, beginning) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for name in ("none", "jacobi", "ic0", "amg"):
    r = swell.solve(A, b, method="cg", precond=name, maxiter=5000)
    print(r.reason, r.iterations, f"{r.residual:.1e}")
    for axes in (all_of_it, beginning):
        axes.semilogy(r.history / r.history[0], lw=0.8, label=f"{name}: {r.iterations} iterations")
for axes in (all_of_it, beginning):
    axes.axhline(1e-8, color="k", lw=0.6, ls=":")
all_of_it.set(xlabel="iteration", ylabel="relative residual", xlim=(0, None))
beginning.set(xlabel="iteration", xlim=(0, 30), title="the first 30: multigrid's slope")
beginning.legend(frameon=False, loc="center right")
