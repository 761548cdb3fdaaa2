"""Strength of connection. Ruge and Stüben 1987.

Row i depends strongly on row j if −aᵢⱼ ≥ θ maxₖ(−aᵢₖ): after smoothing, the error varies little along such links. A row
whose entries sum to more than ``max_row_sum`` times its diagonal has no strong links, since the smoother alone corrects
it.

With ``strength=None`` each row has its own θᵢ = 2 Σ aᵢⱼ⁺ / Σ |aᵢⱼ⁻|, but at least 0.25 and at most 0.5. Bilinear
elements of length h and height 1 with h large show why. Their matrix is the product of (1, 4, 1) h/6 along the cells
and (−1, 2, −1) across them. The links across are −2h/3. The links to the diagonal neighbours are −h/6, a quarter, but
the positive entries h/3 along the cells cancel them: the error is smooth across the cells only. There θᵢ = 0.5. A row
without positive entries has θᵢ = 0.25, hypre's default.

A large positive aᵢⱼ acts like a spring that pushes its ends apart; a flat triangle on the hull of a mesh makes one.
Classical interpolation lumps it to the diagonal and carries a wrong stiff link to every coarser level. If at most one
row in a hundred has an aᵢⱼ > 0.05 aᵢᵢ, these rows and their neighbours stay on every level, down to the coarsest, which
is solved exactly.

Cost: one pass over the matrix, a byte an entry.
"""
from __future__ import annotations

import numpy as np

AUTO = 0.25, 0.5        # least and greatest θ of a row with strength=None
MAX_FORCED = 0.01       # share of the rows that may be forced to stay


def strong_links(A, settings):
    """Return a new uint8 array with an entry for each entry of A: 1 for a strong link, else 0. ``settings`` is an
    `AMG`."""
    least, most = AUTO if settings.strength is None else (settings.strength, settings.strength)
    strong = A.space.empty(A.nnz, np.uint8)
    _kernels(A).strong_links(A.indptr, A.indices, A.data, float(least), float(most), settings.max_row_sum, strong)
    return strong


def positive_rows(A, settings):
    """Return a uint8 array with an entry for each row: 1 if it has an aᵢⱼ above ``settings.positive`` times aᵢᵢ, else
    0. An empty array if no row, or more than one in a hundred, has one, or if ``settings.positive`` is 0. ``settings``
    is an `AMG`."""
    none = A.space.empty(0, np.uint8)
    if not settings.positive:
        return none
    marked = A.space.empty(A.shape[0], np.uint8)
    _kernels(A).positive_rows(A.indptr, A.indices, A.data, settings.positive, marked)
    count = A.space.find_true(marked)[1]  # sync
    return marked if 0 < count <= MAX_FORCED * A.shape[0] else none


def with_neighbours(A, marked):
    """Return a uint8 array with an entry for each row: 1 if the row or a neighbour is marked in ``marked``, else 0. An
    empty array if ``marked`` is empty."""
    forced = A.space.empty(marked.size, np.uint8)
    if marked.size:
        _kernels(A).with_neighbours(A.indptr, A.indices, marked, forced)
    return forced


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "strength", A.dtype)
