"""The speed of this machine, which turns the advisor's bytes and calls into seconds.

The first automatic choice on a device measures the speed of a copy, in less than a second, and keeps it in
``machine.json`` (store.py). ``swell doctor`` shows it. The speed is rounded to a power of √2, so that other work on
the machine hardly changes it. If the file cannot be written, each process measures the speed again.
"""
from __future__ import annotations

import math
import pathlib
import platform
from dataclasses import dataclass
from functools import cache

import numpy as np

from swell.advisor.store import Store, folder
from swell.core import timing
from swell.core.library import _native

NAME = "machine.json"
COPY_BYTES = {"cpu": 128 << 20, "cuda": 256 << 20}    # more than caches hold
COPIES = 5              # timed copies
PLAUSIBLE = 1e8, 1e14   # bytes a second: least and largest speed that a file may give


@dataclass(frozen=True)
class Machine:
    """Speeds of a device.

    Attributes
    ----------
    copy : float
        Bytes a second that a copy reads and writes; on a CPU by one thread.
    threads : int
        Threads of a CPU that kernels use.
    """

    copy: float = 16e9
    threads: int = 1


_known = {}             # name of a device → its Machine
_complaints = []


def machine(space) -> Machine:
    """Return the Machine of the space's device: known to this process, from the file, or measured now."""
    key = name_of_device(space)
    if key not in _known:
        _known[key], complaints = _kept(space, key)
        _complaints.extend(complaints)
    return _known[key]


def complaints() -> list[str]:
    """Return, and forget, the sentences on problems with the file since the last call."""
    said = list(_complaints)
    _complaints.clear()
    return said


def _kept(space, key):
    """Return (Machine, complaints): the speeds from the file under ``key``, or measured now and written to it."""
    try:
        file = Store(folder() / NAME, "speeds of this machine", "")
    except RuntimeError as error:
        return measure(space), [f"speeds of this machine: there is no folder to keep them in ({error}), so they are "
                                "measured in each process; name one with SWELL_CACHE"]
    entry = file.get(key)
    if entry is not None:
        if isinstance(entry.get("copy"), float) and PLAUSIBLE[0] <= entry["copy"] <= PLAUSIBLE[1]:
            return Machine(entry["copy"], threads_of(space)), []
        file.complain(f"{file.path} holds {entry} for this machine, which is not plausible: measured anew")
    measured = measure(space)
    file.put(key, {"copy": measured.copy}, keep="")
    return measured, file.complaints


def measure(space) -> Machine:
    """Measure the speed of copies on the space's device, and return a Machine."""
    with space.active(1):
        size = COPY_BYTES[space.name]
        source, target = space.empty(size // 8, np.float64), space.empty(size // 8, np.float64)
        source.fill(1)
        seconds = timing.seconds(space, lambda: space.copy(source, target), COPIES)
    return Machine(2 ** (round(2 * math.log2(2 * size / seconds)) / 2), threads_of(space))


def threads_of(space) -> int:
    """Return the number of threads that kernels of a large system use; 1 on a GPU."""
    return _native.threads() if space.name == "cpu" else 1


def name_of_device(space) -> str:
    """Return the device's name: the GPU's, or the processor's with the number of threads used."""
    described = space.describe()
    if space.name != "cpu":
        return described.partition(", ")[2]
    return f"{described}, {_processor()}"


@cache
def _processor() -> str:
    """Return the processor's name."""
    info = pathlib.Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in info.read_text(encoding="utf-8", errors="replace").splitlines()
              if line.startswith("model name")] if info.exists() else []
    return models[0] if models else platform.processor() or platform.machine()
