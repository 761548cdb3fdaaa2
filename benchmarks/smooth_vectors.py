"""The iterations of CG with Jacobi that smooth vectors foresee (swell/advisor/smooth_vectors.py), beside those taken.

    python benchmarks/smooth_vectors.py [--scale 0.15] [--files foam_hump_p.mtx.gz foam_motorBike_ldu.npz]

For each system: iterations taken to 1e-8 for b = A times random numbers, iterations foreseen, and the number that n and
the layers of the graph would give on a CPU. No time is measured.
"""
from __future__ import annotations

import argparse
import pathlib

import numpy as np
import scipy.sparse as sp

import swell
from swell import gallery
from swell.advisor.predictions import ITERATIONS, LAYER_ITERATIONS
from swell.advisor.smooth_vectors import jacobi_iterations
from swell.bench import engine
from swell.bench.kinds import KINDS
from swell.cli.source import read_system
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.orderings.cuthill_mckee import layers

NAMES = "boundary_layers", "log_normal", "points27", "rotated", "beam", "plate", "tetrahedra_p2", "triangles_p3", "fourth_order"
GALLERY = "thermal2~", "ecology2~", "parabolic_fem~"


def systems(scale, files):
    yield "poisson2d", gallery.poisson2d(210)
    yield "poisson3d", gallery.poisson3d(50)
    yield "jumping_diffusion", gallery.jumping_diffusion((40,) * 3)
    yield "elasticity2d", gallery.elasticity2d(60)
    for name in GALLERY:
        yield from engine.matrices(name, 0.1)
    for name in NAMES:
        yield name, KINDS[name](scale)
    for file in files:
        yield pathlib.Path(file).name, read_system(file)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.15, help="of the number of unknowns of swell.bench.kinds")
    parser.add_argument("--files", nargs="*", default=[])
    arguments = parser.parse_args()
    print("| system, rows | taken | foreseen | n and layers |\n|---|---|---|---|")
    for name, A in systems(arguments.scale, arguments.files):
        A = sp.csr_matrix(A).astype(float)
        A.sort_indices()
        b = A @ np.random.default_rng(0).random(A.shape[0])
        taken = swell.solve(A, b, method="cg", scaling="jacobi", rtol=1e-8, maxiter=20_000, device="cpu").iterations
        M = CSRMatrix.from_scipy(A, make_space("cpu"))
        iterations, follows = jacobi_iterations(M)
        by_layers = max(ITERATIONS["jacobi"] * M.shape[0] ** (1 / 3), LAYER_ITERATIONS["jacobi"] * layers(M))
        print(f"| {name}, {M.shape[0]} | {taken} | {'' if follows else '≥ '}{iterations:.0f} | {by_layers:.0f} |", flush=True)


if __name__ == "__main__":
    main()
