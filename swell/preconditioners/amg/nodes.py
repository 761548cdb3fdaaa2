"""Systems of PDEs: how many unknowns a mesh point has, and whether they are coupled as in elasticity.

A block of A that couples two points of an elastic body has entries of both signs: nearly as many entries of A are
positive as negative. Classical multigrid sees only the negative ones. CG with it takes 5 to 28 times the iterations of
CG with aggregates of whole points (benchmarks/notes/elasticity.md). If the unknowns of a point are coupled but each
diffuses on its own, classical multigrid is as good or better.
"""
from __future__ import annotations

import numpy as np

from swell.formats.blocks import detect

FILL = 1.5              # stored values of all blocks over entries: regular meshes of elastic cells miss some couplings
MIXED = 0.25            # least share of positive entries off the diagonal


def unknowns(A) -> int:
    """Return the number of consecutive unknowns of a mesh point: A's block size if it is known, else the largest size
    whose blocks are filled to two thirds."""
    return A.known_block or detect(A, FILL)


def like_elasticity(A) -> bool:
    """True if points of a real symmetric CSRMatrix A with a positive diagonal have two unknowns or more, and at least a
    quarter of the entries off the diagonal is positive."""
    n = A.shape[0]
    positive = A.space.find_true(A.data > 0)[1] - n  # sync
    return positive > 0 and positive >= MIXED * (A.nnz - n) and unknowns(A) > 1


def null_share(A, modes) -> float:
    """Return the share of the rows of a real CSRMatrix A in which A B = 0 but for rounding, with B the columns of
    ``modes``, a float64 array of shape (n, k) on the device.

    Near null vectors of A have a share near 1: only rows beside boundary values, or of a body in motion, are left. The
    constants of each unknown of a node, `aggregation.blocks`, have one for elasticity. They have none for a scalar
    problem whose unknowns only look like groups, such as elements of high degree."""
    space, n = A.space, A.shape[0]
    if not n:
        return 0.0
    double, null = A.in_double(), space.xp.ones(n, bool)
    sums, product = double.modulus_sums(), space.empty(n, np.float64)
    for mode in space.xp.ascontiguousarray(modes.T):
        double.apply(mode, product)
        null &= abs(product) <= np.sqrt(np.finfo(A.dtype).eps) * abs(mode).max() * sums
    return space.find_true(null)[1] / n  # sync
