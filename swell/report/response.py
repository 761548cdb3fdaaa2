"""The frequency response: level in dB over frequency, one line for each ear; failed frequencies are marked.

Of several sources, one line for each pair of a source and an ear: a colour for each source, a dash for each ear.
"""
import numpy as np

from swell.core.errors import InputError
from swell.display.figure import GRID, INK, colour_of, new_figure, with_legend
from swell.report.files import save

SPAN = 10.0             # least range of the picture in dB
MAX_MARKERS = 60        # points of a line from which markers are left out: they would hide it
LINES = 4               # most lines for a legend in the picture; one of more stands beside it
PER_COLUMN = 24         # lines in a column of that legend
DASHES = "-", "--", ":", "-."


def plot(response, path, modes=None):
    """Write the level at the ears over the frequency as a PNG file.

    Parameters
    ----------
    response : swell.pde.helmholtz.Response
    path : str or path-like
    modes : swell.pde.helmholtz.Modes, optional
        A thin line marks the frequency of each mode.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    save(figure(response, modes), path)


def figure(response, modes=None):
    """Return the picture as a matplotlib figure; `plot` describes ``response``.

    Raises
    ------
    InputError
        If the response has no ear or no frequency.
    """
    if not len(response.ears) or not response.points:
        raise InputError("there is nothing to draw: the response needs an ear and at least one frequency")
    sources = [None] if response.sources is None else response.sources
    lines = len(sources) * len(response.ears)
    beside = -(-lines // PER_COLUMN) if lines > LINES else 0     # columns of a legend beside the picture
    figure, axes = new_figure(7.0 + 3.2 * beside)
    order = np.argsort(response.frequencies, kind="stable")
    hertz = response.frequencies[order]
    levels = response.level.reshape(len(hertz), len(sources), -1)[order]
    good = np.array([[r.converged for r in point.results] for point in response.points], bool)[order]
    for s, source in enumerate(sources):
        for k, ear in enumerate(response.ears):
            shown, at = good[:, s] & np.isfinite(levels[:, s, k]), f"ear at ({', '.join(f'{v:g}' for v in ear)}) m"
            colour, dash = (colour_of(k), "-") if source is None else (colour_of(s), DASHES[k % len(DASHES)])
            axes.plot(hertz, np.where(shown, levels[:, s, k], np.nan), color=colour, ls=dash, lw=1.6,
                      label=at if source is None else f"{source} to {at}",
                      marker="o" if len(hertz) < MAX_MARKERS and lines <= LINES else None, ms=3.5)
    if not good.all():                           # at the bottom: their levels are unknown
        bad = hertz[~good.all(axis=1)]
        axes.plot(bad, np.full(bad.size, 0.02), "x", color=INK, ms=7, clip_on=False,
                  transform=axes.get_xaxis_transform(),
                  label="not solved" if response.sources is None else "not solved for every source")
    if hertz.size and hertz.max() > response.problem.finest:
        axes.axvspan(response.problem.finest, hertz.max(), color=GRID, alpha=0.5, lw=0,
                     label="fewer than 10 nodes a wavelength")
    if modes is not None and hertz.size:
        inside = modes.frequencies[(modes.frequencies >= hertz.min()) & (modes.frequencies <= hertz.max())]
        for k, f in enumerate(inside):
            axes.axvline(f, color=INK, lw=0.8, alpha=0.7, ls=":", zorder=1.5,
                         label="" if k else "modes, without damping")
    axes.set_xlabel("frequency in Hz", color=INK)
    axes.set_ylabel("sound pressure level in dB re 20 µPa", color=INK)
    low, high = axes.get_ylim()
    if high - low < SPAN:
        axes.set_ylim((low + high - SPAN) / 2, (low + high + SPAN) / 2)
    axes.grid(True, color=GRID, lw=0.6)
    if len(hertz) > 1:
        axes.set_xlim(hertz.min(), hertz.max())
    if beside:
        figure.legend(loc="outside right upper", ncols=beside, fontsize=7, frameon=False)
        return figure
    return with_legend(figure, 2)
