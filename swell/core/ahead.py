"""Compilation of GPU kernels ahead of their use, in threads; and the table of the kernels to compile.

A first solve needs dozens of kernels, and NVRTC takes a tenth of a second for each. ``ahead.json`` lists the kernels of
common calls, by part of a configuration: kernels for every matrix, for a method, and for a preconditioner. Threads
compile them in parallel as soon as the parts are known. A launch takes a kernel that is ready, waits for one that a
thread is compiling, and compiles any other. A kernel missing from the table, or listed but unused, therefore changes no
result. ``python tests/foreseen.py`` writes the table from the launches of solves on the emulated GPU.
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
MATRIX = "matrix"       # the part that every configuration has
CHOICE = "choice"       # the part of a configuration that names no method


@functools.cache
def _table() -> dict:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def foreseen(part: str, value: str) -> list[tuple[pathlib.Path, str]]:
    """Return the kernels to compile for a part of a configuration, as (file, instantiation) in order of use.

    ``part``: such as "method cg". ``value``: the C++ type of the values."""
    return [(ROOT / file, name.replace("double", value)) for file, name in
            (kernel.split(" ", 1) for kernel in _table().get(part, ()))]


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Ahead:
    """Results of ``work(*key)``, which threads may compute before they are needed.

    By default there are at most as many threads as cores. A thread ends when no key waits, or when the main thread has
    ended.
    """

    def __init__(self, work, threads=None):
        self._work, self._max_threads = work, threads or cores()
        self._lock, self._waiting, self._threads, self._begun = threading.Lock(), collections.deque(), 0, {}

    def begin(self, *key):
        """Queue the call ``work(*key)`` for a thread, unless the key was requested before. Returns at once."""
        with self._lock:
            if key in self._begun:
                return
            self._begun[key] = Future()
            self._waiting.append(key)
            if self._threads == self._max_threads:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._run, name="swell-ahead").start()
        except RuntimeError:                     # the interpreter is ending: `result` does the work itself
            with self._lock:
                self._threads -= 1

    def result(self, *key):
        """Return ``work(*key)``: wait if a thread has begun it, else compute it in this thread.

        Work that failed in a thread is repeated here, and raises its error here."""
        future = self._begun.get(key)
        if future is None or future.cancel() or future.exception() is not None:
            return self._work(*key)
        return future.result()

    def _run(self):
        """Run one thread: take waiting keys and compute their results, until no key waits."""
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
            except BaseException as error:       # noqa: BLE001: `result` raises it for the launch
                future.set_exception(error)
