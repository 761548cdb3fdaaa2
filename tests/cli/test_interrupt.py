"""Ctrl-C: during the iteration the current iterate is written, with its reason; before it, nothing is."""
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest

from swell.solving.progress import Progress


def test_during_the_iteration(cli, folder, monkeypatch):
    def monitor(self, iteration, residual):
        if iteration == 5:
            signal.raise_signal(signal.SIGINT)
        return False
    monkeypatch.setattr(Progress, "monitor", monitor)
    status, out, err = cli("solve", folder / "A.mtx", "--method", "cg", "--out", folder / "x.npy", "--report",
                           folder / "r.html")
    assert status == 1 and "INTERRUPTED" in out and "interrupted" in err
    assert np.load(folder / "x.npy").any()
    assert "INTERRUPTED" in (folder / "r.html").read_text("utf-8")


def test_before_the_iteration(cli, folder, monkeypatch):
    def interrupted(path, name):
        raise KeyboardInterrupt
    monkeypatch.setattr("swell.io.read_matrix_with_notes", interrupted)
    status, out, err = cli("solve", folder / "A.mtx", "--out", folder / "x.npy")
    assert status == 130 and not out and err.startswith("swell: interrupted") and err.count("\n") == 1
    assert not (folder / "x.npy").exists()


def test_while_the_command_line_is_read(cli, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt
    monkeypatch.setattr("swell.cli.parser", interrupted)
    status, out, err = cli("solve", "A.mtx")
    assert status == 130 and not out and err.startswith("swell: interrupted") and err.count("\n") == 1


@pytest.mark.slow
def test_a_real_process_with_its_progress_display(tmp_path):
    terminal, shown = pty.openpty()
    command = [sys.executable, "-m", "swell", "solve", "gallery:poisson2d:1000000", "--method", "cg", "--rtol", "1e-14",
               "--report", str(tmp_path / "r.html")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=shown, text=True) as process:
        os.close(shown)
        seen = b""
        while b"residual" not in seen:           # the live line: it iterates
            seen += os.read(terminal, 4096)
        process.send_signal(signal.SIGINT)
        drained = True
        while drained:
            try:
                drained = os.read(terminal, 4096)
            except OSError:                      # the other end has closed
                break
        out = process.stdout.read()
    os.close(terminal)
    assert process.returncode == 1
    assert "INTERRUPTED" in out
    assert "INTERRUPTED" in (tmp_path / "r.html").read_text("utf-8")
