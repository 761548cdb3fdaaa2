"""ILU(k): incomplete LU with fill up to level k. Watts 1981; Saad, Iterative Methods, section 10.3.3.

An entry of A has level 0; eliminating row m makes an entry (i, j) of level lev(i, m) + lev(m, j) + 1, or keeps the
least it has. Entries of level at most k are kept, so that k = 0 is ILU(0).

Before any of it is made, the fill is estimated: entry (i, j), j > i, has level at most k if a path of at most k + 1
edges leads from i to j through rows before i (Hysom and Pothen 2002), which a search from some hundred rows counts; the
same with Aᵀ for the lower triangle. What would not fit in memory is refused with that estimate.

The pattern is found on the host, whatever the device: a matrix on a GPU sends its pattern there once. Numbers are
computed where the matrix lives. Cost of an application: that of ILU(0) with the longer rows.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.settings import positive
from swell.core.devices import make_space
from swell.formats.matrix import index_type
from swell.preconditioners.incomplete_lu import PatternLU

SAMPLE = 400                # rows from which the fill is estimated
SYMBOLIC_BYTES = 30         # for each entry while the pattern is found: columns and levels, with room to grow


@dataclass(frozen=True)
class ILUK(PatternLU):
    """Incomplete LU with fill up to a level.

    Attributes
    ----------
    level : int
        Fill up to this level is kept; 0 is ILU(0).
    """

    level: int = 1

    def __post_init__(self):
        super().__post_init__()
        positive(self, "level", 0)

    def estimate(self, A) -> int:
        """Entries that L and U will have together, about; for a matrix of few rows, exactly."""
        return self._estimate(*(A.space.to_host(a) for a in (A.indptr, A.indices)))      # sync

    def _estimate(self, indptr, indices):
        from swell.preconditioners.kernels import iluk
        n = indptr.size - 1
        rows = np.unique(np.linspace(0, max(n - 1, 0), min(n, SAMPLE)).astype(np.int64))
        triangles = (indptr, indices), iluk.transposed(indptr, indices)
        counts = [iluk.reached(*pattern, self.level, rows).sum() for pattern in triangles]
        return int(n * (1 + sum(counts) / max(rows.size, 1)))

    def pattern(self, A):
        from swell.preconditioners.kernels import iluk
        space = A.space
        indptr, indices = (space.to_host(a) for a in (A.indptr, A.indices))              # sync
        entries = self._estimate(indptr, indices)
        times = entries / max(A.nnz, 1)
        what = f"ILU({self.level}), its factors of about {entries:.2g} entries, {times:.1f} times those of A,"
        remedy = "a lower level, ILU0, or ILUT, whose fill is bounded"
        make_space("cpu").check_fits(entries * SYMBOLIC_BYTES, what, remedy)
        space.check_fits(entries * (20 + 3 * A.dtype.itemsize), what, remedy)            # A on the pattern, L U, solves
        filled, columns = iluk.fill(indptr, indices, self.level)
        index = index_type(*A.shape, columns.size)
        return space.from_host(filled.astype(index)), space.from_host(columns.astype(index))
