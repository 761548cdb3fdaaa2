"""IC(k): incomplete Cholesky with fill up to level k. Watts 1981; Saad, Iterative Methods, section 10.3.3.

An entry of A has level 0. Eliminating row m gives entry (i, j) the level lev(i, m) + lev(m, j) + 1, unless its level is
lower already. Entries of level at most k are kept, so k = 0 is IC(0). (Some texts take the pattern of Aᵏ, which is the
diagonal for k = 0.)

The host finds the pattern on every device: a matrix on a GPU sends its pattern there once. The device computes the
values. An application costs as much as with IC(0), for longer rows.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.settings import positive
from swell.formats.matrix import index_type
from swell.preconditioners.iluk import find_fill, transposed
from swell.preconditioners.incomplete_cholesky import IncompleteCholesky


@dataclass(frozen=True)
class ICK(IncompleteCholesky):
    """Incomplete Cholesky with fill up to a level.

    Attributes
    ----------
    level : int
        Fill up to this level is kept; 0 is IC(0).
    """

    level: int = 1

    def __post_init__(self):
        super().__post_init__()
        positive(self, "level", 0)

    def pattern(self, A):
        space = A.space
        indptr, indices = (space.to_host(a) for a in (A.indptr, A.indices))              # sync
        filled, columns = transposed(*find_fill("ick", indptr, indices, self.level))
        index = index_type(*A.shape, columns.size)
        return space.from_host(filled.astype(index)), space.from_host(columns.astype(index))
