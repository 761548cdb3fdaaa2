"""The live line of a solve: iteration, residual, progress to the tolerance, rate and elapsed time.

A terminal shows the line on stderr, drawn by rich, and removes it at the end. A notebook shows it below the cell and
keeps its last state. Anywhere else, as in a log file, nothing is shown; the logger "swell" reports the solve.

The monitor, which the solver calls in every iteration, only stores two numbers. A thread of the display shows them a
few times a second, so that even iterations of microseconds are not slowed down.
"""
from __future__ import annotations

import contextvars
import math
import sys
import threading
import time
from contextlib import contextmanager
from html import escape
from typing import NamedTuple

from swell.core.errors import InputError
from swell.core.monitor import SolutionMonitor
from swell.core.settings import shown

UPDATES = 8             # updates of the line a second


@contextmanager
def live_line(progress, monitor, stopping, space=None):
    """Return a context that shows a solve's progress, if ``progress`` is true; it gives the monitor for the solve.

    Parameters
    ----------
    progress : bool
        As `check_progress` has accepted it.
    monitor : callable or None
        The user's monitor, which is called as well.
    stopping : Stopping
    space : Space, optional
        Across ranks only rank 0 shows anything.
    """
    if not progress or not (space is None or space.ranks.single or space.ranks.communicator.rank == 0):
        yield monitor
        return
    with Progress() as line:
        line.tolerance = None if stopping.atol else stopping.rtol        # ‖b‖, the unit of atol, is not known
        line.of_the_first = stopping.relative_to == "r0"
        yield line.beside(monitor) if line.visible else monitor


def check_progress(progress):
    """Raise InputError unless ``progress`` is True or False; called before the setup, which may take long."""
    if not isinstance(progress, bool):
        raise InputError(f"progress={shown(progress)}: expected True, to show a live line in a terminal or a "
                         "notebook, or False")


class Cells(NamedTuple):
    """The parts of the line: texts, the filled share of the bar between them or None for no bar, and more texts."""

    before: tuple[str, ...]
    share: float | None
    after: tuple[str, ...]


class Progress:
    """Context manager that shows the line in a notebook, or on stderr if that is a terminal.

    Parameters
    ----------
    shown : bool
        False shows nothing, as with --quiet.

    Attributes
    ----------
    phase : str
        The present work, shown until the first iteration.
    tolerance : float or None
        The relative residual at which the bar is full; None: no bar.
    of_the_first : bool
        True if ``tolerance`` is relative to the first residual.
    visible : bool
        False if nothing is shown.
    """

    def __init__(self, shown=True):
        self.phase = "preparing"
        self.tolerance, self.of_the_first = 1e-8, False
        self._began = time.perf_counter()
        self._first = None                       # (residual, time, number) of the first iteration
        self._latest = None                      # (number, residual) of the latest iteration
        self._display = _display(self) if shown else None

    @property
    def visible(self):
        return self._display is not None

    def __enter__(self):
        if self._display:
            self._display.start()
        return self

    def __exit__(self, *problem):
        if self._display:
            self._display.stop()

    def monitor(self, iteration, residual):
        """Store the iteration and the residual for the display. Passed as ``swell.solve(monitor=...)``; returns False,
        which lets the solve continue."""
        if iteration == 0 or self._first is None:
            self._first = (residual, time.perf_counter(), iteration)
        self._latest = (iteration, residual)
        return False

    def beside(self, monitor):
        """Return one monitor that calls this one and the user's ``monitor``, which may be None."""
        if monitor is None:
            return self.monitor

        def both(iteration, residual, *x):
            self.monitor(iteration, residual)
            return monitor(iteration, residual, *x)
        return SolutionMonitor(both) if isinstance(monitor, SolutionMonitor) else both

    def cells(self) -> Cells:
        """Return the present parts of the line."""
        now = time.perf_counter()
        elapsed = f"{now - self._began:.1f} s"
        if self._latest is None:
            return Cells((self.phase,), None, (elapsed,))
        (iteration, residual), (first, start, offset) = self._latest, self._first
        rate = (iteration - offset) / max(now - start, 1e-9)
        before, after = (f"iteration {iteration}", f"residual {residual:.2e}"), (f"{rate:.3g} it/s", elapsed)
        if self.tolerance is None:
            return Cells(before, None, after)
        tolerance = self.tolerance * (first if self.of_the_first else 1)
        return Cells(before, share_done(first, residual, tolerance), (f"{tolerance:.1e}", *after))


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


def _display(progress):
    """Return the display of ``progress``, with methods ``start`` and ``stop``; None without notebook and terminal."""
    if in_notebook():
        return NotebookLine(progress)
    return _terminal_line(progress) if sys.stderr.isatty() else None


def in_notebook() -> bool:
    """True in a Jupyter kernel, whose front end shows HTML."""
    ipython, kernel = sys.modules.get("IPython"), sys.modules.get("ipykernel.zmqshell")
    if ipython is None or kernel is None:
        return False
    return isinstance(ipython.get_ipython(), kernel.ZMQInteractiveShell)


def _terminal_line(progress):
    """Return a rich ``Live`` that draws the line on stderr."""
    from rich.console import Console
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    spinner = Spinner("dots")

    def line():
        before, share, after = progress.cells()
        bar = () if share is None else (ProgressBar(total=1.0, completed=share, width=30),)
        drawn = Table.grid(padding=(0, 2))
        drawn.add_row(spinner, *before, *bar, *after)
        return drawn
    return Live(console=Console(stderr=True), get_renderable=line, refresh_per_second=UPDATES, transient=True,
                redirect_stdout=sys.stdout.isatty())             # what a monitor prints to a file goes there


class NotebookLine:
    """The line below a notebook's cell, updated by a thread."""

    def __init__(self, progress):
        self._progress, self._ended = progress, threading.Event()
        here = contextvars.copy_context()        # it tells IPython which cell the output belongs to
        self._thread = threading.Thread(target=here.run, args=(self._refresh,), name="swell-progress", daemon=True)

    def start(self):
        """Show the line."""
        from IPython.display import display
        self._handle = display(self._bundle(), raw=True, display_id=True)
        self._thread.start()

    def stop(self):
        """Show the last state, which stays."""
        self._ended.set()
        self._thread.join()
        self._handle.update(self._bundle(), raw=True)

    def _refresh(self):
        while not self._ended.wait(1 / UPDATES):
            self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict:
        """Return the line in the formats that front ends choose from."""
        before, share, after = self._progress.cells()
        bar = [] if share is None else [f'<progress value="{share:.3f}" style="width: 14em"></progress>']
        parts = [*map(escape, before), *bar, *map(escape, after)]
        return {"text/html": f'<div style="font-variant-numeric: tabular-nums">{"&ensp; ".join(parts)}</div>',
                "text/plain": "  ".join((*before, *after))}
