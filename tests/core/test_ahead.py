"""Work that threads begin ahead of whoever asks for it, and the table of the kernels that are compiled so."""
from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from tests.conftest import ROOT

from swell.core.ahead import Ahead, foreseen
from swell.core.ahead import _table as table
from swell.core.cuda_sources import signatures


class Work:
    """Notes its threads; waits for ``go`` where it is not the main one's."""

    def __init__(self, fails=False):
        self.go, self.begun, self.by, self.fails = threading.Event(), threading.Semaphore(0), [], fails

    def __call__(self, key):
        mine = threading.current_thread() is threading.main_thread()
        self.by.append((key, mine))
        if not mine:
            self.begun.release()
            assert self.go.wait(60)
        if self.fails:
            raise ValueError(key)
        return key, mine


def test_who_asks_takes_what_a_thread_has_made_and_makes_the_rest():
    work = Work()
    ahead = Ahead(work, threads=2)
    for key in "abca":
        ahead.begin(key)
    for _ in range(2):
        assert work.begun.acquire(timeout=60)    # a and b are under way, and no thread is free for c
    assert ahead.result("c") == ("c", True) and ahead.result("d") == ("d", True)
    work.go.set()
    assert ahead.result("a") == ("a", False) == ahead.result("a") and ahead.result("b") == ("b", False)
    assert sorted(work.by) == [("a", False), ("b", False), ("c", True), ("d", True)]


def test_an_error_is_raised_where_the_result_is_asked_for():
    work = Work(fails=True)
    work.go.set()
    ahead = Ahead(work, threads=1)
    ahead.begin("a")
    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            ahead.result("a")


def test_threads_end_when_nothing_waits():
    work = Work()
    work.go.set()
    ahead = Ahead(work, threads=3)
    for key in range(10):
        ahead.begin(key)
    for thread in threading.enumerate():
        if thread.name == "swell-ahead":
            thread.join(60)
            assert not thread.is_alive()
    assert sorted(key for key, _ in work.by) == list(range(10))


END = """
import sys, time
from swell.core.ahead import Ahead
def work(key):
    time.sleep(0.2)
    print(key, flush=True)
ahead = Ahead(work, threads=1)
for key in range(500):
    ahead.begin(key)
"""


def test_a_process_ends_without_what_nobody_has_begun():
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0 and not done.stderr and len(done.stdout.split()) < 100, done


def test_the_table_names_kernels_that_there_are():
    for part in table():
        for path, expression in foreseen(part, "complex<float>"):
            name, _, given = expression.rstrip(">").partition("<")
            template = signatures(path)[name].template
            assert len(template) == given.count(",") + 1, f"{part}: {path.name} {expression}"
            assert "double" not in expression
    assert foreseen("method without kernels", "double") == []
