"""Crout's method by sections: what finished steps contribute is added once, as a matrix product.

The matrix is cut into square sections (figure 2.2 of the thesis), and a section's rows and columns into fronts of x. A
section's diagonal part and all below it come first, front by front, since pivots are looked for there; what lies to the
right of the section follows. Before either, the contributions of all finished sections are subtracted by one product
each, and before a front those of the section's finished fronts: 2/3 n³ operations in products, and O(n² x) in the
fronts.

Matrices of one size are decomposed together, their products and fronts a launch each.

Rows are swapped whole. That is right at any time, because all rows from the current front on are in the same state.
"""
from __future__ import annotations

from functools import partial

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.dense.products import subtract_product

SMALLEST, LARGEST = 256, 1024           # rows of a section by the thesis' rule


def section_size(n: int, x: int, wanted: int | None = None) -> int:
    """Rows of a section: min(max(n / 10, 256), 1024), rounded up to a multiple of x (listing 2.6), or those wanted."""
    size = min(max(n // 10, SMALLEST), LARGEST) if wanted is None else wanted
    return -(-size // x) * x


def check_section(owner):
    """Raise InputError unless the field ``section`` is None or a multiple of ``x``."""
    if owner.section is None:
        return
    positive(owner, "section")
    if owner.section % owner.x:
        raise InputError(f"{type(owner).__name__}(section={owner.section}, x={owner.x}): expected a multiple of x, "
                         f"such as {-(-owner.section // owner.x) * owner.x}")


def parts(tiles, length, x, count=1):
    """As much of ``tiles`` as says how many tiles of x there are in a length of so many matrices."""
    return tiles[:count * -(-length // x) + 1]


def by_sections(work, section, x, panel, right):
    """Decompose ``work.matrix`` in place.

    Parameters
    ----------
    panel : callable
        ``panel(f, g)`` completes the columns f to g of L, and U between them; it swaps rows.
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
