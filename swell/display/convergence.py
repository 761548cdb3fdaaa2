"""The convergence plot: relative residuals over iterations, on a logarithmic scale, with the tolerance."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swell.display.figure import GRID, INK, colour_of, new_figure

SHOWN = 4000                # most points of a line; a picture cannot show more
MAX_LEGEND_LINES = 8        # lines; more get no legend


class Line(NamedTuple):
    """One line of the plot.

    Attributes
    ----------
    label : str
    history : array
        The relative residual before the first and after each iteration.
    iterations : int
    residual : float
        The true relative residual at the end, which gets a mark.
    converged : bool
    tolerance : float
        0: none is drawn.
    earlier : bool
        True for an earlier attempt, a dashed line.
    """

    label: str
    history: np.ndarray
    iterations: int
    residual: float
    converged: bool
    tolerance: float
    earlier: bool = False


def figure(lines, ylabel="relative residual ‖b − Ax‖₂ / ‖b‖₂", points=SHOWN, width=7.0, height=4.2):
    """Return the convergence plot as a matplotlib figure.

    Parameters
    ----------
    lines : list of Line
    ylabel : str
    points : int
        Most points of a line.
    width, height : float
        Inches.
    """
    figure, axes = new_figure(width, height)
    for k, line in enumerate(lines):
        iterations, history = thinned(line.history, points)
        axes.semilogy(iterations, history, color=colour_of(k), label=line.label, lw=1.6,
                      ls="--" if line.earlier else "-", marker="o" if len(history) < 25 else None, ms=3.5)
        if np.isfinite(line.residual) and line.residual > 0:     # else a logarithmic scale cannot show it
            axes.plot(line.iterations, line.residual, "o" if line.converged else "X", color=colour_of(k), ms=7,
                      mec="white")
    for tolerance in {line.tolerance for line in lines if line.tolerance > 0}:
        axes.axhline(tolerance, color=INK, lw=1, ls=":")
        axes.annotate(f"tolerance {tolerance:.3g}", (0, tolerance), xycoords=("axes fraction", "data"), xytext=(4, 3),
                      textcoords="offset points", ha="left", va="bottom", fontsize=8, color=INK)
    axes.set_xlabel("iteration", color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.grid(True, color=GRID, lw=0.6)
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    if len(lines) <= MAX_LEGEND_LINES:
        figure.legend(loc="outside upper left", ncols=1 + (len(lines) > 1), fontsize=8, frameon=False, labelcolor=INK)
    return figure


def thinned(history, points=SHOWN):
    """Return (iterations, residuals) of a history, thinned to ``points``.

    Zeros and non-finite values are left out: a logarithmic scale cannot show them.
    """
    history = np.asarray(history, dtype=np.float64)
    iterations = np.arange(history.size)
    if history.size > points:
        keep = np.unique(np.linspace(0, history.size - 1, points).astype(int))
        iterations, history = iterations[keep], history[keep]
    shown = np.isfinite(history) & (history > 0)
    return iterations[shown], history[shown]
