"""Pictures of the pages of algorithms: the texts in docs/algorithms call these functions."""
from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg

import swell


def histories(A, b, runs):
    """Plot the relative residuals of solves of A x = b over the iterations; ``runs``: options by label."""
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for label, options in runs.items():
        r = swell.solve(A, b, **options)
        axes.semilogy(r.history / r.history[0], label=f"{label}: {r.iterations}")
    axes.axhline(1e-8, color="k", lw=0.6, ls=":")
    axes.set(xlabel="iteration", ylabel="relative residual", ylim=(1e-9, 20))
    axes.legend(frameon=False, title="iterations")


def coarse_points(A, side):
    """Plot the points that multigrid keeps of a square grid with ``side`` points a side."""
    M = swell.prepare(A, method="cg", precond=swell.AMG(coarsest=20)).M
    y, x = np.divmod(np.arange(side * side), side)
    figure, axes = plt.subplots(figsize=(4.6, 4.8), layout="constrained")
    axes.plot(x, y, ".", ms=3, color="#9aa5b1", label=f"level 1: {side * side}")
    points = np.arange(side * side)
    for level, step in enumerate(M.hierarchy.levels[:2], 2):
        P = step.P.to_scipy()
        alone = np.flatnonzero((np.diff(P.indptr) == 1) & (P.data[P.indptr[:-1].clip(max=P.nnz - 1)] == 1))
        points = points[alone]                             # a kept point interpolates from itself alone
        axes.plot(x[points], y[points], "o", ms=3 * level, color=f"C{level - 2}", fillstyle="none",
                  label=f"level {level}: {len(points)}")
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, frameon=False)


def fill(A):
    """Plot the patterns of the factor of IC(0) and of the complete Cholesky factor of A."""
    lower = np.tril(A.toarray()) != 0
    whole = np.abs(scipy.linalg.cholesky(A.toarray(), lower=True)) > 1e-14
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
    for axis, (title, pattern) in zip(axes, {"IC(0): the pattern of A": lower, "Cholesky: L fills": whole}.items()):
        axis.spy(pattern, markersize=2)
        axis.set(title=f"{title}, {pattern.sum()} entries", xticks=[], yticks=[])


def polynomials():
    """Plot the polynomials by which Chebyshev sweeps multiply the error, on the spectrum [0, 1.1]."""
    x = np.linspace(0, 1.1, 400)
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for degree, fraction in ((1, 0.1), (3, 0.1), (8, 0.02)):
        T = np.polynomial.Chebyshev.basis(degree)
        low = fraction * 1.1
        place = (1.1 + low) / (1.1 - low)
        axes.plot(x, np.abs(T(place - 2 * x / (1.1 - low)) / T(place)), label=f"degree {degree}, fraction {fraction}")
    axes.set(xlabel="eigenvalue of D⁻¹A", ylabel="factor of the error", ylim=(0, 1))
    axes.legend(frameon=False)
