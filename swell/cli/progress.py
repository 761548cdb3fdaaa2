"""The live line of a solve on stderr: iteration, residual, progress to the tolerance, rate and elapsed time.

The monitor, which the solver calls in every iteration, only stores two numbers. A thread of the display shows them a
few times a second, so that even iterations of microseconds are not slowed down.
"""
from __future__ import annotations

import math
import sys
import time

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table

UPDATES = 8             # updates of the line a second


class Progress:
    """Context manager that shows the line if stderr is a terminal.

    Parameters
    ----------
    shown : bool
        False shows nothing, as with --quiet.

    Attributes
    ----------
    phase : str
        The present work, shown until the first iteration.
    tolerance : float
        The relative residual at which the bar is full.
    """

    def __init__(self, shown=True):
        self.phase = "preparing"
        self.tolerance = 1e-8
        self._began = time.perf_counter()
        self._first = None                       # (residual, time, number) of the first iteration
        self._latest = None                      # (number, residual) of the latest iteration
        self._spinner = Spinner("dots")
        self._live = Live(console=Console(stderr=True), get_renderable=self._line, refresh_per_second=UPDATES,
                          transient=True) if shown and sys.stderr.isatty() else None

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *problem):
        if self._live:
            self._live.stop()

    def monitor(self, iteration, residual):
        """Store the iteration and the residual for the display. Passed as ``swell.solve(monitor=...)``; returns False,
        which lets the solve continue."""
        if iteration == 0 or self._first is None:
            self._first = (residual, time.perf_counter(), iteration)
        self._latest = (iteration, residual)
        return False

    def _line(self):
        """Return the present line, a rich table."""
        now = time.perf_counter()
        line = Table.grid(padding=(0, 2))
        if self._latest is None:
            line.add_row(self._spinner, self.phase, f"{now - self._began:.1f} s")
            return line
        (iteration, residual), (first, start, offset) = self._latest, self._first
        rate = (iteration - offset) / max(now - start, 1e-9)
        line.add_row(self._spinner, f"iteration {iteration}", f"residual {residual:.2e}",
                     ProgressBar(total=1.0, completed=share_done(first, residual, self.tolerance), width=30),
                     f"{self.tolerance:.1e}", f"{rate:.3g} it/s", f"{now - self._began:.1f} s")
        return line


def share_done(first, residual, tolerance) -> float:
    """Return the progress of the residual from the first one (0) to the tolerance (1), on a logarithmic scale.

    Examples
    --------
    >>> share_done(1.0, 1e-4, 1e-8)
    0.5
    """
    if not (0 < tolerance < first < math.inf and 0 < residual < math.inf):
        return 0.0
    return min(max(math.log(first / residual) / math.log(first / tolerance), 0.0), 1.0)
