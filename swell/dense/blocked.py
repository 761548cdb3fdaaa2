"""Crout's method by sections: the contributions of finished steps are subtracted once, as a matrix product.

The matrix is cut into square sections (figure 2.2 of the thesis), and a section's rows and columns into fronts of x.
The diagonal part of a section and all rows below it come first, front by front, since pivots are chosen there. The part
to the right of the section follows. Before each of the two, one product subtracts the contributions of all finished
sections. Before each front, one product subtracts the contributions of the section's finished fronts. This takes
2/3 n³ operations in products, and O(n² x) in the fronts.

Matrices of one size are decomposed together: one launch does a product, or a front, of all of them.

Whole rows are swapped. This is right at any time, because all rows from the current front on are in the same state.
"""
from __future__ import annotations

from functools import partial

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.dense.products import subtract_product

SMALLEST, LARGEST = 256, 1024           # bounds for the rows of a section, from the thesis


def section_size(n: int, x: int, wanted: int | None = None) -> int:
    """Return the rows of a section: ``wanted``, or min(max(n / 10, 256), 1024) for None (listing 2.6), rounded up to a
    multiple of x."""
    size = min(max(n // 10, SMALLEST), LARGEST) if wanted is None else wanted
    return -(-size // x) * x


def check_section(owner):
    """Raise InputError unless ``owner.section`` is None or a multiple of ``owner.x``, for settings ``owner``."""
    if owner.section is None:
        return
    positive(owner, "section")
    if owner.section % owner.x:
        raise InputError(f"{type(owner).__name__}(section={owner.section}, x={owner.x}): expected a multiple of x, "
                         f"such as {-(-owner.section // owner.x) * owner.x}")


def parts(tiles, length, x, count=1):
    """Return the part of the array ``tiles`` with one entry more than there are tiles of x lines in ``count`` matrices,
    of ``length`` lines each. Its size tells kernels the number of tiles."""
    return tiles[:count * -(-length // x) + 1]


def by_sections(work, section, x, panel, right):
    """Decompose ``work.matrix`` (decomposer.Work) in place, by sections of ``section`` rows with fronts of x rows.

    Parameters
    ----------
    panel : callable
        ``panel(f, g)`` completes columns f to g of L, and the block of U in rows and columns f to g; it swaps rows.
    right : callable
        ``right(f, g, left, end)`` completes the rows f to g of U, columns ``left`` to ``end``.
    """
    W, n, subtract = work.matrix, work.n, partial(subtract_product, work.space)
    for a in range(0, n, section):
        b = min(a + section, n)
        subtract(W[:, a:, a:b], W[:, a:, :a], W[:, :a, a:b])
        for f in range(a, b, x):
            g = min(f + x, b)
            subtract(W[:, f:, f:g], W[:, f:, a:f], W[:, a:f, f:g])
            panel(f, g)
            if g < b:
                subtract(W[:, f:g, g:b], W[:, f:g, a:f], W[:, a:f, g:b])
                right(f, g, g, b)
        if b < n:
            subtract(W[:, a:b, b:], W[:, a:b, :a], W[:, :a, b:])
            for f in range(a, b, x):
                g = min(f + x, b)
                subtract(W[:, f:g, b:], W[:, f:g, a:f], W[:, a:f, b:])
                right(f, g, b, n)
