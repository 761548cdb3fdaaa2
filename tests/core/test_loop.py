"""Interruption and monitoring: Ctrl-C keeps the iterate, wherever it comes; handlers and threads are left in order."""
from __future__ import annotations

import inspect
import signal
import threading

import numpy as np
import pytest

import swell
from swell import gallery
from swell.core.operator import CallableOperator
from swell.core.devices import make_space
from swell.core.stopping import Reason


def interrupting(A, at):
    """An operator that presses Ctrl-C in its product number ``at``."""
    count = [0]

    def matvec(x):
        count[0] += 1
        if count[0] == at:
            signal.raise_signal(signal.SIGINT)
        return A @ x
    return CallableOperator(A.shape, A.dtype, make_space("cpu"), matvec)


@pytest.mark.parametrize("at", [1, 2, 7, 30, 31, 32])
@pytest.mark.parametrize("method", ["cg", "gmres", "fgmres", "bicgstab"])
def test_ctrl_c_keeps_the_iterate(method, at):
    A, b = gallery.poisson2d(25), np.ones(625)
    before = signal.getsignal(signal.SIGINT)
    r = swell.solve(interrupting(A, at), b, method=method, rtol=1e-12)
    assert signal.getsignal(signal.SIGINT) is before
    assert r.reason is Reason.INTERRUPTED
    assert r.residual == pytest.approx(np.linalg.norm(b - A @ r.x) / 25, rel=1e-6)
    # The work up to then is in x: the same as a solve that is told to do so many iterations.
    same = swell.solve(A, b, method=method, rtol=1e-12, maxiter=max(r.iterations, 1))
    assert r.iterations == 0 or r.residual == pytest.approx(same.residual, rel=1e-8)
    on = swell.solve(A, b, method=method, x0=r.x)
    assert on.converged


def test_ctrl_c_inside_a_cycle_of_gmres_keeps_every_step():
    A, b = gallery.poisson2d(25), np.ones(625)
    r = swell.solve(interrupting(A, 12), b, method="gmres(restart=30)", rtol=1e-12)
    assert r.iterations == 12
    assert r.residual == pytest.approx(r.history[-1], rel=1e-8)


def test_a_second_ctrl_c_is_not_caught():
    A = gallery.poisson2d(10)

    def matvec(x):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return A @ x
    operator = CallableOperator(A.shape, A.dtype, make_space("cpu"), matvec)
    with pytest.raises(KeyboardInterrupt):
        swell.solve(operator, np.ones(100), method="cg")


@pytest.fixture
def ignored():
    """SIGINT as it is in what a shell starts by ``&`` or nohup."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_that_is_ignored_stays_ignored(ignored):
    A = gallery.poisson2d(25)
    r = swell.solve(interrupting(A, 3), np.ones(625), method="cg",
                    monitor=lambda k, residual: signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)
    assert r.converged and signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_that_python_did_not_install_stays(monkeypatch):
    """It could not be restored."""
    installed = []
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda *arguments: installed.append(arguments))
    assert swell.solve(gallery.poisson2d(10), np.ones(100), method="cg").converged and not installed


def test_a_solve_where_no_handler_can_be_installed(monkeypatch):
    """In another interpreter of the process, whose main thread gets no signals."""
    def refused(number, handler):
        raise ValueError("signal only works in main thread of the main interpreter")
    monkeypatch.setattr(signal, "signal", refused)
    assert swell.solve(gallery.poisson2d(10), np.ones(100), method="cg").converged


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_ends_a_solve_within_a_solve_and_the_one_around_it(presses):
    A, b, within = gallery.poisson2d(25), np.ones(625), []
    before = signal.getsignal(signal.SIGINT)

    def monitor(k, residual):
        if (len(within), k) == (1, 2):
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)

    def M(r):
        within.append(None)
        within[-1] = swell.solve(A, r, method="cg", rtol=1e-2, monitor=monitor)
        return within[-1].x

    if presses == 2:
        with pytest.raises(KeyboardInterrupt):
            swell.solve(A, b, method="fgmres", M=M, rtol=1e-12)
    else:
        r = swell.solve(A, b, method="fgmres", M=M, rtol=1e-12)
        assert r.reason is within[0].reason is Reason.INTERRUPTED and len(within) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_the_solves_of_all_threads():
    """Signals come to the main thread, here while it solves."""
    A, b, found = gallery.poisson2d(25), np.ones(625), []
    runs, pressed = threading.Event(), threading.Event()

    def elsewhere(k, residual):
        if k == 1:
            runs.set()
            assert pressed.wait(60)

    def here(k, residual):
        if k == 1:
            assert runs.wait(60)
            signal.raise_signal(signal.SIGINT)
            pressed.set()

    thread = threading.Thread(target=lambda: found.append(swell.solve(A, b, method="cg", monitor=elsewhere)))
    thread.start()
    found.append(swell.solve(A, b, method="cg", monitor=here))
    thread.join()
    assert [r.reason for r in found] == [Reason.INTERRUPTED] * 2
    assert all(0 < r.iterations < 5 for r in found)


def test_ctrl_c_while_the_next_choice_is_set_up(monkeypatch, nothing_outright):
    """The first choice has failed and the factorisation is under way: its iterate is what there is."""
    solver = swell.prepare(gallery.shifted_laplacian((10, 10), 0.5))
    prepare = solver._prepare

    def pressing(k):
        if k:
            raise KeyboardInterrupt
        return prepare(k)
    monkeypatch.setattr(solver, "_prepare", pressing)
    r = solver.solve(np.ones(100))
    assert r.reason is Reason.INTERRUPTED and r.method == "cg" and np.isfinite(r.x).all()


def test_a_solve_in_a_thread():
    found = []
    solver = swell.prepare(gallery.poisson2d(20), method="cg")
    thread = threading.Thread(target=lambda: found.append(solver.solve(np.ones(400))))
    thread.start()
    thread.join()
    assert found[0].converged


def test_an_error_in_a_monitor_is_the_users():
    def monitor(iteration, residual):
        raise RuntimeError("mine")
    before = signal.getsignal(signal.SIGINT)
    solver = swell.prepare(gallery.poisson2d(10), method="cg")
    with pytest.raises(RuntimeError, match="mine"):
        solver.solve(np.ones(100), monitor=monitor)
    assert signal.getsignal(signal.SIGINT) is before
    assert solver.solve(np.ones(100)).converged


@pytest.mark.parametrize("together, columns", [(True, 3), (False, 1)])
def test_a_stop_ends_all_right_hand_sides(together, columns):
    """One by one, those after the stop have no solution."""
    r = swell.solve(gallery.poisson2d(10), np.ones((100, 3)), method="cg", monitor=lambda k, residual: k == 2,
                    together=together)
    assert [c.reason for c in r] == [Reason.STOPPED] * columns and not r.converged and r.reason is Reason.STOPPED
    assert r.x.shape == (100, columns)


@pytest.mark.parametrize("name", ["begin", "end", "run", "halted", "report"])
def test_every_loop_takes_the_same_arguments(name):
    """A GPU's loops and those across ranks are called where no test of a CPU sees it."""
    from swell.core.graph import GraphLoop
    from swell.core.loop import DirectLoop, Loop
    from swell.distributed.graph import DistributedGraphLoop
    from swell.distributed.loop import DistributedLoop
    loops = [loop for loop in (Loop, DirectLoop, GraphLoop, DistributedLoop, DistributedGraphLoop) if hasattr(loop, name)]
    asked = [[p.name for p in inspect.signature(getattr(loop, name)).parameters.values()] for loop in loops]
    assert all(parameters == asked[0] for parameters in asked)
