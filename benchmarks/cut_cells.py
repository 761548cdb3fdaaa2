"""Iterations across ranks for a system in blocks: with whole blocks on each rank, and with even shares of the rows.

    python benchmarks/cut_cells.py fasp_spe01_bsr3.mtx.gz --block 3 [--ranks 2,3,4,5]

Prints a row for each preconditioner and number of ranks, which are threads of this process: GMRES(60) to 1e-8, with
b = A 1. Both columns have blocks of the same size in the preconditioner. Ranks of the second column may begin and end
inside a block, and its overlaps are layers of rows instead of blocks.
"""
from __future__ import annotations

import argparse

import numpy as np

import swell
from swell import distributed
from swell.distributed.partition import consecutive

PRECONDS = ("ilu(block=None)", "block_jacobi",
            *(f"schwarz(inner=ilu(block=None), overlap={k})" for k in range(4)))


def iterations(A, ranks, block, precond) -> int:
    """Return the iterations of one solve, whose residual is checked with A itself. ``block``: the block size of the
    distributed matrix."""
    b = A @ np.ones(A.shape[0])

    def solved(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=block)
        result = swell.solve(M, b[M.rows], method="gmres(restart=60)", precond=precond, maxiter=3000)
        return result.iterations, M.gather(result.x)

    count, x = distributed.run(ranks, solved)[0]
    assert np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b), f"{precond} on {ranks} ranks: not converged"
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--block", type=int, required=True)
    parser.add_argument("--ranks", default="2,3,4,5")
    arguments = parser.parse_args()
    A, block = swell.io.read_matrix(arguments.file), arguments.block
    for ranks in map(int, arguments.ranks.split(",")):
        cut = int((consecutive(A.shape[0], ranks) % block > 0).sum())
        print(f"{ranks} ranks: iterations with whole blocks, and with even shares of the rows, which cut {cut} blocks")
        for precond in PRECONDS:
            named = (precond.replace("block=None", f"block={block}, pad=True") if "ilu" in precond
                     else f"{precond}(block={block})")
            print(f"  {precond:40s} {iterations(A, ranks, block, precond):5d} {iterations(A, ranks, 1, named):5d}",
                  flush=True)


if __name__ == "__main__":
    main()
