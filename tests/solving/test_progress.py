"""The live line: where it is shown, what it costs, and the monitor beside it."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from tests.conftest import ROOT

import swell
from swell.core.errors import InputError
from swell.solving import progress
from swell.solving.progress import NotebookLine, Progress, live_line, share_done

A = swell.gallery.poisson2d(30)
b = np.ones(900)


class Recorded:
    """A display that records that it was started and stopped, instead of showing anything."""

    def __init__(self, line, log):
        self.line, self.log = line, log

    def start(self):
        self.log.append("start")

    def stop(self):
        self.log.append(self.line.cells())


@pytest.fixture
def log(monkeypatch):
    found = []
    monkeypatch.setattr(progress, "_display", lambda line: Recorded(line, found))
    return found


def test_the_line_ends_with_the_last_iteration(log):
    r = swell.solve(A, b, method="cg", progress=True)
    before, share, after = log[-1]
    assert log[0] == "start" and before == (f"iteration {r.iterations}", f"residual {r.history[-1]:.2e}")
    assert share == 1 and after[0] == "1.0e-08"


def test_beside_a_monitor_that_stops(log):
    seen = []
    r = swell.solve(A, b, method="cg", progress=True, monitor=lambda k, residual: seen.append(k) or k == 5)
    assert r.reason is swell.Reason.STOPPED and seen == list(range(6)) and log[-1].before[0] == "iteration 5"


def test_beside_a_monitor_that_gets_x(log):
    seen = []
    monitor = swell.SolutionMonitor(lambda k, residual, x: seen.append(x.copy()))
    r = swell.solve(A, b, method="cg", progress=True, monitor=monitor)
    assert len(seen) == r.iterations + 1 and (seen[-1] == r.x).all()
    assert log[-1].before[0] == f"iteration {r.iterations}"


def test_beside_an_adjoint_solve(log):
    s = swell.prepare(swell.gallery.convection_diffusion((12, 12), 5.0), method="gmres")
    r = s.solve(np.ones(144), adjoint=True, progress=True)
    assert r.converged and log[-1].before[0] == f"iteration {r.iterations}"


@pytest.mark.parametrize("method", ["cg", "gmres"])
def test_it_reads_nothing_more_and_changes_no_bit(log, device, method):
    s = swell.prepare(A, method=method, device=device)
    without, shown = s.solve(b), s.solve(b, progress=True)
    assert log and shown.host_reads == without.host_reads and (shown.x == without.x).all()
    assert shown.iterations == without.iterations


def test_columns_and_every_choice(log):
    assert swell.solve(A, np.ones((900, 3)), progress=True).converged
    plate = swell.gallery.poisson2d(70)
    assert swell.solve(plate @ plate, np.ones(4900), progress=True).attempts
    assert log.count("start") == 2


def test_it_stops_where_the_solve_raises(log):
    def fails(iteration, residual):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        swell.solve(A, b, method="cg", progress=True, monitor=fails)
    assert log[-1].before[0] == "iteration 0"


def test_the_bar_knows_the_tolerance_or_is_left_out(log):
    swell.solve(A, b, method="cg", stopping=swell.Stopping(rtol=1e-3, relative_to="r0"), x0=np.full(900, 7.0),
                progress=True)
    assert log[-1].share == 1
    swell.solve(A, b, method="cg", atol=1e-5, progress=True)
    assert log[-1].share is None and len(log[-1].after) == 2


def test_nothing_is_shown_and_nothing_is_called_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", open(os.devnull, "w"))
    with live_line(True, None, swell.Stopping()) as monitor:
        assert monitor is None


def test_other_ranks_show_nothing(log):
    ranks = types.SimpleNamespace(single=False, communicator=types.SimpleNamespace(rank=1))
    with live_line(True, None, swell.Stopping(), types.SimpleNamespace(ranks=ranks)) as monitor:
        assert monitor is None and not log


@pytest.mark.parametrize("solve", [lambda **named: swell.solve(A, b, **named),
                                   lambda **named: swell.prepare(A, method="cg").solve(b, **named)])
def test_bad_input(solve, log):
    with pytest.raises(InputError, match="progress=1: expected True"):
        solve(progress=1)
    with pytest.raises(InputError, match="monitor=3: expected a function"):
        solve(monitor=3, progress=True)
    assert not log


def test_share_of_a_residual():
    assert [share_done(1.0, r, 1e-4) for r in (1.0, 1e-2, 1e-9, 10.0, np.nan)] == [0, 0.5, 1, 0, 0]
    assert share_done(1.0, 0.5, 0.0) == 0


# -- in a terminal -----------------------------------------------------------------------------------------------------

IN_TERMINAL = """
import numpy as np, sys, time, swell
def monitor(iteration, residual):
    if iteration < 3:
        print("seen", iteration)
        time.sleep(0.3)
swell.solve(swell.gallery.poisson2d(20), np.ones(400), method="cg", progress=True, monitor=monitor)
"""


def test_a_terminal_shows_it_and_prints_of_a_monitor_go_where_they_go():
    terminal, shown = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", IN_TERMINAL], stdout=subprocess.PIPE, stderr=shown, text=True,
                          cwd=ROOT, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"}) as process:
        os.close(shown)
        seen = b""
        while True:
            try:
                seen += os.read(terminal, 4096)
            except OSError:                      # the other end has closed
                break
        out, _ = process.communicate()
    os.close(terminal)
    assert process.returncode == 0 and out.splitlines() == ["seen 0", "seen 1", "seen 2"]
    assert b"iteration 1" in seen and b"residual" in seen and b"it/s" in seen and b"seen" not in seen


# -- in a notebook -----------------------------------------------------------------------------------------------------

class Front:
    """What `IPython.display.display` needs of a front end."""

    def __init__(self):
        self.bundles, self.threads = [], set()

    def display(self, bundle, raw, display_id):
        assert raw and display_id
        self.update(bundle, raw)
        return self

    def update(self, bundle, raw):
        self.bundles.append(bundle)
        self.threads.add(threading.current_thread().name)


@pytest.fixture
def front(monkeypatch):
    found = Front()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    module = types.ModuleType("IPython.display")
    module.display = found.display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    return found


def test_a_notebook_keeps_the_last_state(front):
    r = swell.solve(A, b, method="cg", progress=True)
    assert f"iteration {r.iterations}" in front.bundles[-1]["text/html"]
    assert '<progress value="1.000"' in front.bundles[-1]["text/html"]
    assert f"iteration {r.iterations}" in front.bundles[-1]["text/plain"]
    assert "swell-progress" not in {thread.name for thread in threading.enumerate()}


def test_a_notebook_gets_ten_updates_a_second_at_most(front):
    began = time.perf_counter()
    with Progress() as line:
        assert isinstance(line._display, NotebookLine)
        while len(front.bundles) < 5:
            line.monitor(1, 0.5)
    assert len(front.bundles) <= 10 * (time.perf_counter() - began) + 2 and "swell-progress" in front.threads


def test_a_phase_is_escaped(front):
    with Progress() as line:
        line.phase = "reading <a>&b"
    assert "reading &lt;a&gt;&amp;b" in front.bundles[-1]["text/html"]


def test_no_notebook_here():
    assert not progress.in_notebook()
