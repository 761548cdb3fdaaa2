"""The frequency response: level in dB over frequency, one line for each ear; failed frequencies are marked."""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.report.figure import GRID, INK, colour_of, new_figure, save

SPAN = 10.0             # least range of the picture in dB
MANY = 60               # points of a line from which markers are left out: they would hide it


def plot(response, path):
    """Write the level at the ears over the frequency as a PNG file.

    Parameters
    ----------
    response : swell.pde.helmholtz.Response
    path : str or path-like

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(response), path)


def figure(response):
    """Return the picture as a matplotlib figure; `plot` describes ``response``.

    Raises
    ------
    InputError
        If the response has no ear or no frequency.
    """
    if not len(response.ears) or not response.points:
        raise InputError("there is nothing to draw: the response needs an ear and at least one frequency")
    figure, axes = new_figure()
    order = np.argsort(response.frequencies, kind="stable")
    hertz, levels = response.frequencies[order], response.level[order]
    good = np.array([point.converged for point in response.points], bool)[order]
    for k, ear in enumerate(response.ears):
        colour = colour_of(k)
        shown = good & np.isfinite(levels[:, k])
        label = f"ear at ({', '.join(f'{v:g}' for v in ear)}) m"
        axes.plot(hertz, np.where(shown, levels[:, k], np.nan), color=colour, lw=1.6, label=label,
                  marker="o" if len(hertz) < MANY else None, ms=3.5)
    if not good.all():                           # at the bottom: their levels are unknown
        axes.plot(hertz[~good], np.full(np.count_nonzero(~good), 0.02), "x", color=INK, ms=7, clip_on=False,
                  transform=axes.get_xaxis_transform(), label="not solved")
    if hertz.size and hertz.max() > response.problem.finest:
        axes.axvspan(response.problem.finest, hertz.max(), color=GRID, alpha=0.5, lw=0,
                     label="fewer than 10 nodes a wavelength")
    axes.set_xlabel("frequency in Hz", color=INK)
    axes.set_ylabel("sound pressure level in dB re 20 µPa", color=INK)
    low, high = axes.get_ylim()
    if high - low < SPAN:
        axes.set_ylim((low + high - SPAN) / 2, (low + high + SPAN) / 2)
    axes.grid(True, color=GRID, lw=0.6)
    if len(hertz) > 1:
        axes.set_xlim(hertz.min(), hertz.max())
    axes.legend(fontsize=8, frameon=True, framealpha=0.9, edgecolor=GRID)
    return figure
