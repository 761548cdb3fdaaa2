"""Work that threads begin ahead of whoever will need its result; for kernels of a GPU, which kernels that is.

A first solve needs dozens of kernels, and NVRTC takes a tenth of a second for each. ``ahead.json`` names the kernels of
common calls by part of a configuration: what every matrix needs, what a method adds, and what a preconditioner adds to
that. They compile side by side from the moment in which the parts are known. Whoever launches a kernel takes it if it
is ready, waits for it if a thread is at it, and compiles it otherwise: a kernel that the table misses or names in vain
changes no result. ``python tests/foreseen.py`` writes the table from what solves on the emulated GPU launch.
"""
from __future__ import annotations

import collections
import functools
import json
import os
import pathlib
import threading
from concurrent.futures import Future

TABLE = pathlib.Path(__file__).with_suffix(".json")
ROOT = TABLE.parents[1]
MATRIX = "matrix"       # the part that all have


@functools.cache
def _table() -> dict:
    return json.loads(TABLE.read_text())


def foreseen(part: str, value: str) -> list[tuple[pathlib.Path, str]]:
    """The kernels of a part, such as "method cg", for values of a C++ type: (file, instantiation), in order of use."""
    return [(ROOT / file, name.replace("double", value)) for file, name in
            (kernel.split(" ", 1) for kernel in _table().get(part, ()))]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Ahead:
    """Results of ``work(*key)``, which threads may begin before they are asked for.

    There are as many threads as cores at most. Each ends when nothing waits, or the main thread has ended.
    """

    def __init__(self, work, threads=None):
        self._work, self._most = work, threads or cores()
        self._lock, self._waiting, self._threads, self._begun = threading.Lock(), collections.deque(), 0, {}

    def begin(self, *key):
        """Have a thread do the work for a key, unless it was begun before."""
        with self._lock:
            if key in self._begun:
                return
            self._begun[key] = Future()
            self._waiting.append(key)
            if self._threads == self._most:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._run, name="swell-ahead").start()
        except RuntimeError:                     # the interpreter ends: whoever needs a result works for it
            with self._lock:
                self._threads -= 1

    def result(self, *key):
        """What the work for a key gives; done here unless a thread has begun it. Its error is raised here."""
        future = self._begun.get(key)
        if future is None or future.cancel() or future.exception() is not None:
            return self._work(*key)
        return future.result()

    def _run(self):
        while True:
            with self._lock:
                if not self._waiting or not threading.main_thread().is_alive():
                    self._threads -= 1
                    return
                key = self._waiting.popleft()
            future = self._begun[key]
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._work(*key))
            except BaseException as error:       # noqa: BLE001: it is the launch's
                future.set_exception(error)
