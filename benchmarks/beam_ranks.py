"""A real clamped beam, hypre_beam_tet_dof2475, on one to three ranks: what stagnates, and what solves it.

    python benchmarks/beam_ranks.py FOLDER MODES

FOLDER has the matrix in Matrix Market format. MODES is a folder with hypre's files of that beam, rbms.0.00000 to
rbms.2.00003 and b.IJ.00000 to b.IJ.00003 (src/test/TEST_ij/data/beam_tet_dof2475_np4 of hypre): the three rotations and
the load. Translations are added. Ranks are threads with consecutive rows. To a true relative residual of 1e-8, for a
random right-hand side and for the load.
"""
from __future__ import annotations

import argparse
import pathlib

import numpy as np
import scipy.io
import scipy.sparse as sp

import swell
from swell import distributed

RANKS = 1, 2, 3
PLAIN = "gmres(restart=30, lengthen=False)"


def read(folder, stem):
    """The numbers of hypre's vector ``stem``, which lies in four parts."""
    return np.concatenate([np.loadtxt(folder / f"{stem}.{part:05d}", skiprows=1, ndmin=2)[:, -1] for part in range(4)])


def choices(modes):
    """(words, method, preconditioner)."""
    def schwarz(inner, overlap, coarse):
        more = {"coarse": "nicolaides", "near_nullspace": modes} if coarse else {}
        return swell.Schwarz(kind="additive", overlap=overlap, inner=inner, **more)

    aggregation = swell.SmoothedAggregation(near_nullspace=modes)
    yield "GMRES(30), block ILU(0)", PLAIN, "ilu(block=None)"
    yield "GMRES(30), block ILU(2)", PLAIN, "ilu(block=None, level=2)"
    yield "GMRES(30), block ILUT(1e-3)", PLAIN, "ilu(drop=0.001, block=None)"
    yield "GMRES(30, lengthened), block ILU(0)", "gmres", "ilu(block=None)"
    yield "cg, IC(0)", "cg", "ic0"
    yield "cg, aggregation, constants", "cg", "smoothed_aggregation"
    yield "cg, aggregation, rigid motions", "cg", aggregation
    for overlap in (1, 2):
        for name, inner in (("block ILU(2)", "ilu(block=None, level=2)"), ("aggregation", aggregation),
                            ("direct", "direct")):
            for coarse in (False, True):
                words = f"cg, Schwarz of {overlap} layer{'s'[overlap < 2:]}, {name}{', two levels' if coarse else ''}"
                yield words, "cg", schwarz(inner, overlap, coarse)
    yield "nothing named", None, None


def on_rank(communicator, A, b, method, precond):
    """(words for the table, the solver's choice)."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=3)
    named = {} if method is None else {"method": method, "precond": precond}
    result = swell.solve(M, b[M.rows], maxiter=2000, **named)
    residual = np.linalg.norm(b - A @ M.gather(result.x)) / np.linalg.norm(b)
    return f"{result.iterations if result.converged else result.reason.name} ({residual:.0e})", result.configuration


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("modes", type=pathlib.Path)
    arguments = parser.parse_args()
    A = sp.csr_array(scipy.io.mmread(arguments.folder / "hypre_beam_tet_dof2475.mtx.gz")).astype(float)
    translations = np.tile(np.eye(3), (A.shape[0] // 3, 1))
    modes = np.column_stack([translations, *(read(arguments.modes, f"rbms.{k}") for k in range(3))])
    sides = {"random": np.random.default_rng(0).standard_normal(A.shape[0]), "load": read(arguments.modes, "b.IJ")}
    for words, method, precond in choices(modes):
        for side, b in sides.items():
            found = [distributed.run(k, on_rank, A, b, method, precond)[0] for k in RANKS]
            print(f"{words} | {side} | " + " | ".join(text for text, _ in found), flush=True)
            if method is None:
                print("\n".join(str(configuration[:3]) for _, configuration in found))
    direct = swell.solve(A, sides["load"], block=3)
    print("one device, nothing named:", direct.method, direct.configuration[:3])


if __name__ == "__main__":
    main()
