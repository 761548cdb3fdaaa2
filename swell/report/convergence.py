"""The convergence plot: relative residuals over iterations, on a logarithmic scale, with the tolerance."""
from __future__ import annotations

import numpy as np

from swell.solving.result import Result
from swell.report.figure import GRID, INK, colour_of, new_figure, save

SHOWN = 4000                # most points of a line; a picture cannot show more
MANY = 8                    # most lines with a legend


def plot(results, path):
    """Write the convergence plot of one solve or of several as a PNG file.

    Parameters
    ----------
    results : Result, Results, sequence of Result, or dict of str to Result
        The keys of a dictionary name its lines; otherwise method and preconditioner name a line. Earlier attempts of
        an automatic choice are dashed lines.
    path : str or path-like

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(results), path)


def figure(results):
    """Return the convergence plot as a matplotlib figure; `plot` describes ``results``."""
    lines = _lines(results)
    figure, axes = new_figure()
    for k, (label, result, earlier) in enumerate(lines):
        iterations, history = thinned(result.history)
        axes.semilogy(iterations, history, color=colour_of(k), label=label, lw=1.6,
                      ls="--" if earlier else "-", marker="o" if len(history) < 25 else None, ms=3.5)
        end = _end(result)
        if end is not None:
            axes.plot(*end, "o" if result.converged else "X", color=colour_of(k), ms=7, mec="white")
    tolerances = {result.tolerance for _, result, _ in lines if result.tolerance > 0}
    for tolerance in tolerances:
        axes.axhline(tolerance, color=INK, lw=1, ls=":")
        axes.annotate(f"tolerance {tolerance:.3g}", (0, tolerance), xycoords=("axes fraction", "data"), xytext=(4, 3),
                      textcoords="offset points", ha="left", va="bottom", fontsize=8, color=INK)
    axes.set_xlabel("iteration", color=INK)
    axes.set_ylabel("relative residual ‖b − Ax‖₂ / ‖b‖₂", color=INK)
    axes.grid(True, color=GRID, lw=0.6)
    axes.set_xlim(left=0)
    if len(lines) <= MANY:
        axes.legend(fontsize=8, frameon=True, framealpha=0.9, edgecolor=GRID)
    return figure


def thinned(history):
    """Return (iterations, residuals) of a history, thinned to SHOWN points.

    Zeros and non-finite values are left out: a logarithmic scale cannot show them.
    """
    history = np.asarray(history, dtype=np.float64)
    iterations = np.arange(history.size)
    if history.size > SHOWN:
        keep = np.unique(np.linspace(0, history.size - 1, SHOWN).astype(int))
        iterations, history = iterations[keep], history[keep]
    shown = np.isfinite(history) & (history > 0)
    return iterations[shown], history[shown]


def _end(result):
    """Return (iterations, true residual) of a Result; None if a logarithmic scale cannot show this residual."""
    return (result.iterations, result.residual) if np.isfinite(result.residual) and result.residual > 0 else None


def _lines(results):
    """Return a list of (label, result, True for an earlier attempt), one a line; `plot` describes ``results``."""
    if isinstance(results, dict):
        return [(str(name), result, False) for name, result in results.items()]
    if isinstance(results, Result):
        return ([(f"{label(attempt)} (first: {attempt.reason.name})", attempt, True) for attempt in results.attempts]
                + [(label(results), results, False)])
    results = list(results)
    return [(f"[{k}] {label(result)}", result, False) for k, result in enumerate(results)]


def label(result) -> str:
    """Return method, preconditioner, scaling and ordering of a Result in a few words."""
    parts = [result.method]
    parts += [f"{kind} {value}" for kind, value in (("precond", result.precond), ("scaling", result.scaling),
                                                    ("ordering", result.ordering)) if value != "none"]
    return ", ".join(parts)
