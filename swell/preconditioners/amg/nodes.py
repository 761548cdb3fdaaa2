"""Systems of PDEs: how many unknowns a mesh point has, and whether they are coupled as in elasticity.

A block of A that couples two points of an elastic body has entries of both signs: nearly as many entries of A are
positive as negative. Classical multigrid sees only the negative ones. CG with it takes 5 to 28 times the iterations of
CG with aggregates of whole points (benchmarks/notes/elasticity.md). If the unknowns of a point are coupled but each
diffuses on its own, classical multigrid is as good or better.
"""
from __future__ import annotations

from swell.formats.blocks import detect

FILL = 1.5              # stored values of all blocks over entries: regular meshes of elastic cells miss some couplings
UNMOVED = 1e-2          # largest force on an unknown beside its diagonal entry that counts as none
MOVED = 0.5             # largest share of unknowns that a rigid motion may move, next to boundaries
MIXED = 0.25            # least share of positive entries off the diagonal


def unknowns(A) -> int:
    """Return the number of consecutive unknowns of a mesh point: A's block size if it is known, else the largest size
    whose blocks are filled to two thirds."""
    return A.known_block or detect(A, FILL)


def like_elasticity(A, positive=None) -> bool:
    """True if points of a real symmetric CSRMatrix A with a positive diagonal have two unknowns or more, at least a
    quarter of the entries off the diagonal is positive, and A moves no point where all points move alike.

    Elements of higher degree have blocks and positive entries, too. In them a constant in one unknown of each block is
    no motion: A changes it in most rows. ``positive``: the number of A's positive entries, counted if None."""
    n, space = A.shape[0], A.space
    off = (space.count_positive(A.data) if positive is None else positive) - n  # sync
    if not (off > 0 and off >= MIXED * (A.nnz - n)):
        return False
    size = unknowns(A)
    if size == 1:
        return False
    first, forces = space.xp.zeros(n, A.dtype), space.empty(n, A.dtype)
    first[::size] = 1
    A.apply(first, forces)
    moved = space.find_true(abs(forces) > UNMOVED * A.diagonal())[1]  # sync
    return moved <= MOVED * n
