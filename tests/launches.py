"""A plugin for pytest that notes which kernels each test launches: ``python -m pytest -p tests.launches``.

``SWELL_LAUNCHES`` names a folder for the notes, a file for each process with a line of JSON for each test. With
``SWELL_NO_POOL`` every array of the GPU is an allocation of its own, so that a memory checker sees its ends.
``benchmarks/sanitize.py`` uses both.
"""
from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from swell.core.cuda_kernels import Kernel

launched = set()
launch = Kernel.__call__


def noted(self, *arguments):
    launched.add(f"{self.path.parent.parent.name}/{self.path.stem}:{self.signature.name}")
    return launch(self, *arguments)


Kernel.__call__ = noted
if os.environ.get("SWELL_NO_POOL"):
    import cupy
    cupy.cuda.set_allocator(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    launched.clear()
    begin = time.perf_counter()
    result = yield
    folder = os.environ.get("SWELL_LAUNCHES")
    if folder and launched:
        line = {"test": item.nodeid, "seconds": time.perf_counter() - begin, "kernels": sorted(launched)}
        with open(pathlib.Path(folder) / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as notes:
            notes.write(json.dumps(line) + "\n")
    return result
