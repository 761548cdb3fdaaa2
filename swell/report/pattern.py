"""Pictures of a matrix's pattern: the density of entries in each patch, as a PNG file and as text."""
from __future__ import annotations

import numpy as np

from swell.display.figure import GRID, INK, new_figure
from swell.report.files import save

CHUNK = 4_000_000           # entries handled at once, so that a picture of a huge matrix needs little memory
_SHADES = ("#7fb2d6", "#0b4f7d", "#10131f")            # a lone entry must still be seen on white
# Bits of the dots in a braille character, by (row, column) of its 4 × 2 dots.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def counts(A, rows: int, columns: int) -> np.ndarray:
    """Divide a SciPy CSR matrix into ``rows`` × ``columns`` equal patches, and count the entries in each.

    Returns
    -------
    ndarray of int, shape (rows, columns)
    """
    total = np.zeros(rows * columns, np.int64)
    indptr = A.indptr.astype(np.int64)
    for start in range(0, A.nnz, CHUNK):
        stop = min(start + CHUNK, A.nnz)
        row = np.searchsorted(indptr, np.arange(start, stop), side="right") - 1
        patch = (row * rows // A.shape[0]) * columns + A.indices[start:stop].astype(np.int64) * columns // A.shape[1]
        total += np.bincount(patch, minlength=total.size)
    return total.reshape(rows, columns)


def figure(A, title=None):
    """Return a matplotlib figure of the pattern of a SciPy CSR matrix, headed by ``title``."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    n = A.shape[0]
    side = max(1, min(n, 400))
    density = counts(A, side, side) / max(n / side, 1) ** 2
    figure, axes = new_figure(5.2, 4.6)
    shown = np.ma.masked_equal(density, 0)
    axes.set_facecolor("white")
    if shown.count():
        low, high = float(shown.min()), float(shown.max())
        colours = LinearSegmentedColormap.from_list("pattern", _SHADES)
        image = axes.imshow(shown, norm=LogNorm(low, high) if low < high else None, cmap=colours, extent=(0, n, n, 0),
                            interpolation="nearest" if side == n else "antialiased")
        if low < high:
            beside = axes.inset_axes([1.03, 0, 0.04, 1])
            places = np.geomspace(low, high, 3)
            bar = figure.colorbar(image, cax=beside, ticks=places)
            bar.ax.set_yticklabels([f"{place:.2g}" for place in places])
            bar.ax.minorticks_off()
            bar.set_label("share of a patch that is stored", color=INK, fontsize=8)
            bar.ax.tick_params(labelsize=8, colors=INK)
    axes.set_xlabel("column", color=INK)
    axes.set_ylabel("row", color=INK)
    axes.grid(False)
    axes.set_title(title or f"{n} × {A.shape[1]}, {A.nnz} entries", fontsize=9, color=INK)
    for side in axes.spines.values():
        side.set_color(GRID)
    return figure


def picture(A, path, title=None):
    """Write a picture of the pattern of a SciPy sparse matrix as a PNG file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(A.tocsr(), title), path)


def text(A, width=48) -> list[str]:
    """Return the pattern of a SciPy CSR matrix as lines of braille characters, each of 2 × 4 dots.

    Parameters
    ----------
    A : scipy.sparse.csr_matrix
    width : int
        Most characters a line; a matrix with fewer columns than dots gets fewer.

    Examples
    --------
    >>> import swell
    >>> from swell.report.pattern import text
    >>> text(swell.gallery.poisson1d(8), 4)
    ['⠻⣦⡀⠀', '⠀⠈⠻⣦']
    """
    if not A.shape[0]:
        return []
    wide = min(2 * width, -(-A.shape[1] // 2) * 2)
    high = min(2 * width, -(-A.shape[0] // 4) * 4)
    dots = counts(A, high, wide) > 0
    dots = np.pad(dots, ((0, -high % 4), (0, -wide % 2)))
    cells = dots.reshape(dots.shape[0] // 4, 4, dots.shape[1] // 2, 2).transpose(0, 2, 1, 3)
    return ["".join(chr(0x2800 + code) for code in row) for row in (cells * _DOTS).sum(axis=(2, 3))]
