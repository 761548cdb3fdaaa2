"""Iterations of GMRES(100) with ILU(0) on real systems: exact, by sweeps, and by sparse approximate inverses.

    python benchmarks/inexact_iterations.py FOLDER

FOLDER has the matrices as NAME.mtx.gz. The right-hand side is A times ones; guards are off. "−": not in 1000.
"""
from __future__ import annotations

import argparse
import pathlib

import numpy as np
import scipy.io
import scipy.sparse as sp

import swell

CASES = {"ml_elasticity": (3, 1e-8), "hypre_beam_tet_dof2475": (3, 1e-8), "fasp_spe01_bsr3": (3, 1e-8),
         "foam_hump_U": (1, 1e-8), "Grond4e4": (1, 1e-3), "sherman5": (1, 1e-8), "muelu_condif2": (1, 1e-8)}
SWEEPS, POWERS = (2, 4, 8, 16, 64), (1, 2, 3, 4)
SOLVES = ("exact", *(f"sweeps(count={k}, guard=off)" for k in SWEEPS), *(f"isai(power={k}, guard=off)" for k in POWERS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    print("matrix, reduction | exact |", *(f"{k} sweeps |" for k in SWEEPS), *(f"power {k} |" for k in POWERS))
    for name, (block, rtol) in CASES.items():
        A = sp.csr_array(scipy.io.mmread(arguments.folder / f"{name}.mtx.gz")).astype(float)
        kind = "ilu0(" if block == 1 else f"ilu(block={block}, "
        row = []
        for solve in SOLVES:
            result = swell.solve(A, A @ np.ones(A.shape[0]), method="gmres(restart=100)", rtol=rtol, maxiter=1000,
                                 precond=f"{kind}solve={solve})", device=arguments.device)
            row.append(str(result.iterations) if result.converged else "−")
        print(f"{name}, {rtol:g} |", " | ".join(row), flush=True)


if __name__ == "__main__":
    main()
