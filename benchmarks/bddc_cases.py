"""BDDC for convection, with approximate interiors, and with adaptive constraints: iterations, as Markdown tables.

    python benchmarks/bddc_cases.py convection
    python benchmarks/bddc_cases.py interiors
    python benchmarks/bddc_cases.py adaptive

Right-hand sides are random. Iterations to 1e-8; "-" where 400 do not suffice.
"""
from __future__ import annotations

import sys

import numpy as np

import swell
from swell import gallery
from swell.pde.poisson_cube import PoissonCube


def count(result):
    """Its iterations as a text."""
    return str(result.iterations) if result.converged else "-"


def squares(edge, parts):
    """The subdomain of each node of a square grid."""
    at = np.arange(edge) * parts // edge
    return (at[:, None] * parts + at).ravel()


def convection():
    """Upwind convection on a square, by Péclet number, number of subdomains and their interiors."""
    from swell.preconditioners.bddc.splitting import split
    names = "gmres", "bicgstab", "ilu0 interiors, gmres"
    print("| Péclet number of a cell | subdomains |", " | ".join(names), "| ilu0 alone, gmres |\n" + "|---" * 6 + "|")
    for peclet in (0.1, 1.0, 10.0, 100.0, 1000.0):
        A = gallery.convection_diffusion((64, 64), peclet, "upwind").tocsr()
        b = np.random.default_rng(0).standard_normal(A.shape[0])
        alone = count(swell.solve(A, b, method="gmres(restart=100)", precond="ilu0", maxiter=400))
        for parts in (2, 4, 8):
            S = split(A, squares(64, parts))
            found = [count(swell.solve(A, b, method=method, maxiter=400,
                                       precond=swell.BDDC(subdomains=S, interior=interior)))
                     for method, interior in (("gmres(restart=100)", "direct"), ("bicgstab", "direct"),
                                              ("gmres(restart=100)", "ilu0"))]
            print(f"| {peclet:g} | {parts}² |", " | ".join(found), f"| {alone} |", flush=True)


def interiors():
    """Poisson's cube by the solver of the interiors."""
    sizes = (6, 10)
    heads = " | ".join(f"H/h = {size}: iterations, λ min, λ max" for size in sizes)
    print("| interior |", heads, "|\n" + "|---" * 3 + "|")
    for interior in ("direct", "ic0", "smoothed_aggregation", "amg", "amg(degree=4, cycle=W)"):
        found = []
        for size in sizes:
            system = PoissonCube(size, 3).assemble()
            r = system.solve(interior=interior, b=np.random.default_rng(0).standard_normal(system.cube.n))
            found.append(f"{count(r.result)}, {r.extremes[0]:.3f}, {r.extremes[1]:.3f}")
        print(f"| {interior} |", " | ".join(found), "|", flush=True)


def adaptive():
    """Random coefficients from 1e-3 to 1e3 in every element, on two and three levels."""
    k = 10.0 ** np.random.default_rng(0).uniform(-3, 3, (16,) * 3)
    print("| levels | threshold | iterations | λ max | adaptive constraints | of them on the second level | s |\n"
          + "|---" * 7 + "|")
    for levels in (2, 3):
        for threshold in (0, 10, 3, 2):
            system = PoissonCube(4, 4, levels, coefficient=k).assemble()
            r = system.solve(adaptive=threshold, b=np.random.default_rng(1).standard_normal(system.cube.n))
            level = r.bddc.level
            more = [one.constraints.more if one else 0 for one in (level, level.next)]
            print(f"| {levels} | {threshold or 'none'} | {count(r.result)} | {r.extremes[1]:.2f} | {sum(more)} | "
                  f"{more[1]} | {r.timings.get('adaptive', 0):.2f} |", flush=True)


if __name__ == "__main__":
    chosen = {"convection": convection, "interiors": interiors, "adaptive": adaptive}.get("".join(sys.argv[1:]))
    if chosen is None:
        sys.exit(__doc__)
    chosen()
