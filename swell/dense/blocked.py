"""Crout's method by sections and fronts: the contributions of finished steps are subtracted as matrix products.

The matrix is cut into square sections (figure 2.2 of the thesis), and a section's rows and columns into fronts of x.
The diagonal part of a section and all rows below it come first, since pivots are chosen there. The part to the right of
the section follows. Before each of the two, one product subtracts the contributions of all finished sections, whole
sums of (1.11) and (1.12). Within a section, columns are halved until they are one front (Toledo, SIAM J. Matrix Anal.
Appl. 18, 1997): the left half, then its contributions to the right half in one product, then the right half. Rows of U
are halved in the same way. This takes 2/3 n³ operations in products of nearly square parts, and O(n² x) in the fronts.

Matrices of one size are decomposed together: one launch does a product, or a front, of all of them.

Whole rows are swapped. This is right at any time, because all rows from the current front on are in the same state.
"""
from __future__ import annotations

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.dense.products import Subtraction

MIN_SECTION, MAX_SECTION = 256, 1024    # bounds for the rows of a section, from the thesis
ROWS = 256              # least rows of a front for a further block
OTHER_SHARED = 2048     # bytes of static shared memory in a front's kernel, beside the diagonal block


def section_size(n: int, x: int, wanted: int | None = None) -> int:
    """Return the rows of a section: ``wanted``, or min(max(n / 10, 256), 1024) for None (listing 2.6), rounded up to a
    multiple of x."""
    size = min(max(n // 10, MIN_SECTION), MAX_SECTION) if wanted is None else wanted
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
    n, subtract = work.n, Subtraction(work)

    def columns(a, b):
        """Complete columns a to b of L, and the block of U in rows and columns a to b."""
        if b - a <= x:
            panel(a, b)
            return
        half = a + -(-(b - a) // (2 * x)) * x
        columns(a, half)
        rows(a, half, half, b)
        subtract((half, n), (a, half), (half, b))
        columns(half, b)

    def rows(a, b, left, end):
        """Complete rows a to b of U, columns ``left`` to ``end``."""
        if b - a <= x:
            right(a, b, left, end)
            return
        half = a + -(-(b - a) // (2 * x)) * x
        rows(a, half, left, end)
        subtract((half, b), (a, half), (left, end))
        rows(half, b, left, end)

    for a in range(0, n, section):
        b = min(a + section, n)
        subtract((a, n), (0, a), (a, b))
        columns(a, b)
        if b < n:
            subtract((a, b), (0, a), (b, n))
            rows(a, b, b, n)


def cluster(work, tiles, rows, x):
    """Return (array, bytes, blocks) with which a front of x columns is launched on ``rows`` rows below its diagonal
    block: an array whose size tells the kernel its number of blocks, the shared memory of a block, and the blocks of
    one matrix, which are one cluster. ``tiles``: of ``Work.tiles(x)``.

    A block has about ROWS rows or more. All clusters run at the same time. The size of ``tiles`` bounds the number of
    blocks."""
    space, blocks, shared = work.space, 1, 0
    if space.name == "cuda":
        largest = min(space.cluster_blocks, space.multiprocessors // work.count, (tiles.size - 1) // work.count)
        while 2 * blocks <= largest and blocks * ROWS < rows:
            blocks *= 2
        size = work.dtype.itemsize
        candidates = 2 * blocks * -(-(16 + x * size) // 16) * 16
        line, static = (x + 1) * size, x * (x + 1) * size + OTHER_SHARED
        most = (space.shared_memory - static - candidates) // line
        shared = candidates + min(-(-rows // blocks) + x, most) * line
    return tiles[:work.count * blocks + 1], shared, blocks
