"""Solves in forked processes: `multiprocessing` forks by default on Linux up to Python 3.13.

Each script runs in a process of its own, which is killed with all its children if it hangs; that fails the test.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

KILL_AFTER = 300        # seconds, many times what a loaded machine takes: a guard, not a measurement
START = """
import multiprocessing, os, signal, sys, threading
import numpy as np
import swell
from swell import gallery

A = gallery.poisson2d(150)                       # more rows than one thread is used for
B = np.random.default_rng(1).standard_normal((4, A.shape[0]))

def right(b, x):
    return bool(np.linalg.norm(b - A @ x) <= 1e-7 * np.linalg.norm(b))

def solve(k):
    return right(B[k], swell.solve(A, B[k], method="cg", scaling="jacobi").x)

def in_child(work):
    \"\"\"Whether work() is true in a child of os.fork.\"\"\"
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = 0 if work() else 8
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def run(script):
    """What a script prints, one entry a line."""
    process = subprocess.Popen([sys.executable, "-W", "ignore::DeprecationWarning", "-c",
                                textwrap.dedent(START) + textwrap.dedent(script)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=KILL_AFTER)
    except subprocess.TimeoutExpired:
        pytest.fail("a forked process hangs")
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)       # children too, whatever happened
        except ProcessLookupError:
            pass
        process.wait()
    assert process.returncode == 0, err
    return out.split("\n")[:-1]


def test_a_pool_of_forked_processes_solves():
    said = run("""
        print(solve(0))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(all(pool.map(solve, range(4))))
        print(solve(1))                                          # the parent solves on
    """)
    assert said == ["True", "True", "True"]


def test_a_prepared_solver_is_inherited():
    said = run("""
        solver = swell.prepare(A, method="bicgstab", precond="ilu0")
        first = solver.solve(B[0]).x
        print(in_child(lambda: right(B[1], solver.solve(B[1]).x) and (solver.solve(B[0]).x == first).all()))
        print((solver.solve(B[0]).x == first).all())
    """)
    assert said == ["True", "True"]


def test_children_of_children_and_of_threads_solve():
    """A child forks again; a thread forks that has solved, and one that has not."""
    said = run("""
        print(solve(0) and in_child(lambda: solve(1) and in_child(lambda: solve(2)) and solve(3)))
        for work in (lambda: in_child(lambda: solve(1)), lambda: solve(2) and in_child(lambda: solve(3))):
            thread = threading.Thread(target=lambda: print(work()))
            thread.start()
            thread.join()
        print(solve(0))
    """)
    assert said == ["True"] * 4


def test_a_child_uses_as_many_threads_as_its_parent():
    said = run("""
        from swell.core.library import _native
        solve(0)
        threads = _native.threads()
        print(in_child(lambda: solve(1) and _native.threads() == threads))
        _native.limit_threads(1)
        print(in_child(lambda: solve(1) and _native.threads() == 1))
    """)
    assert said == ["True", "True"]


def test_a_solver_in_use_by_a_thread_is_refused_in_the_child():
    """The thread is gone there, and nothing says how far it came; its lock would never be free."""
    said = run("""
        solver = swell.prepare(A, method="cg")
        begun, go_on = threading.Event(), threading.Event()
        def monitor(k, residual):
            begun.set()
            go_on.wait()
        thread = threading.Thread(target=solver.solve, args=(B[0],), kwargs={"monitor": monitor})
        thread.start()
        begun.wait()
        def refused():
            try:
                solver.solve(B[1])
            except swell.SwellError as error:
                return print(error) or True
        print(in_child(lambda: refused() and refused() and solve(1)))
        go_on.set()
        thread.join()
        print(in_child(lambda: right(B[1], solver.solve(B[1]).x)))
        print(right(B[1], solver.solve(B[1]).x))
    """)
    assert said[2:] == ["True"] * 3 and "another thread" in said[0] and said[0] == said[1]


def test_a_fork_beside_a_thread_that_holds_factors():
    """SuperLU leaves an exception in the child, by which threading's own repair failed, and said so on the terminal."""
    said = run("""
        import sys
        factored, go_on = threading.Event(), threading.Event()
        def work():
            solver = swell.prepare(A, method="direct")
            factored.set()
            go_on.wait()
        thread = threading.Thread(target=work)
        thread.start()
        factored.wait()
        hook = sys.unraisablehook
        read, write = os.pipe()
        def alone():
            return threading.enumerate() == [threading.current_thread()] and sys.unraisablehook is hook and solve(1)
        terminal = os.dup(2)
        os.dup2(write, 2)
        print(in_child(alone))
        os.dup2(terminal, 2)
        os.close(write)
        print(os.read(read, 10_000) == b"")
        print(sys.unraisablehook is hook)
        go_on.set()
        thread.join()
    """)
    assert said == ["True"] * 3


@pytest.mark.gpu
def test_a_gpu_is_refused_in_a_forked_child():
    pytest.importorskip("cupy", reason="needs CuPy and a GPU")
    said = run("""
        solver = swell.prepare(A, method="cg", device="cuda")
        print(right(B[0], solver.solve(B[0]).x))
        def refused(work):
            try:
                work()
            except swell.SwellError as error:
                return print(error) or True
        for work in (lambda: solver.solve(B[0]), lambda: swell.solve(A, B[0], device="cuda")):
            print(in_child(lambda: refused(work)))
        print(in_child(lambda: solve(1)))                        # the CPU half works there
        print(right(B[1], solver.solve(B[1]).x))
    """)
    assert said[0] == "True" and said[2:5:2] == ["True", "True"] and said[5:] == ["True", "True"]
    for message in said[1:5:2]:
        assert "fork" in message and "multiprocessing.get_context('spawn')" in message
