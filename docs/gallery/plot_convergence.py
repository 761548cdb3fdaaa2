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

figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name in ("none", "jacobi", "ic0", "amg"):
    r = swell.solve(A, b, method="cg", precond=name, maxiter=5000)
    print(r.reason, r.iterations, f"{r.residual:.1e}")
    axes.semilogy(r.history / r.history[0], label=f"{name}: {r.iterations} iterations")
axes.axhline(1e-8, color="k", lw=0.6, ls=":")
axes.set(xlabel="iteration", ylabel="relative residual", xscale="symlog", xlim=(0, None))
axes.legend(frameon=False)
