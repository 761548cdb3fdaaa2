"""Times of single launches of swell's kernels on a GPU, by events; other benchmarks use them.

Before each launch a kernel of one thread holds the GPU, so that launch and events are in its queue when it comes to
them: the time between the events is the kernel's, and a microsecond or two. Caches are as the launches before it
left them.
"""
from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from swell.core.cuda_kernels import Kernel

HOLD = r"""
extern "C" __global__ void hold(double* out, int count) {
  double x = out[0];
  for (int k = 0; k < count; ++k) x = x * 0.999 + 0.001;
  out[0] = x;
}
"""
COUNT = 12000           # dependent sums: some 50 µs


class Hold:
    """Keeps the GPU of a space busy for some 50 µs a call."""

    def __init__(self, space):
        self._arguments = space.xp.zeros(1), np.int32(COUNT)
        self._kernel = space.xp.RawKernel(HOLD, "hold")

    def __call__(self):
        self._kernel((1,), (1,), self._arguments)


@dataclass
class Launched:
    """A launch, with the events around it.

    Attributes
    ----------
    name : str
        File and kernel, ``product.count``.
    bytes : int
        Of all arrays among its arguments.
    """

    kernel: Kernel
    arguments: tuple
    bytes: int
    begin: Any = None
    end: Any = None

    @property
    def name(self):
        return f"{self.kernel.path.stem}.{self.kernel.signature.name}"

    def milliseconds(self, space):
        """Between its events, which are past."""
        return space.xp.cuda.get_elapsed_time(self.begin, self.end)


def parser(summary):
    """A command line for systems, and for constants that are to have other values."""
    made = argparse.ArgumentParser(description=summary)
    made.add_argument("systems", nargs="+", help="files, or names of the gallery")
    made.add_argument("--set", action="append", default=[], metavar="MODULE:NAME=VALUE",
                      help="another value of a constant, as swell.core.graph:MICROSECONDS_PER_LAUNCH=50")
    return made


def set_constants(texts):
    """Give constants of modules other values, each told as ``MODULE:NAME=VALUE``."""
    for text in texts:
        name, _, value = text.partition("=")
        module, _, name = name.partition(":")
        module = importlib.import_module(module)
        if not hasattr(module, name):
            raise SystemExit(f"--set {text}: {module.__name__} has no {name}")
        setattr(module, name, ast.literal_eval(value))
        print(f"{module.__name__}.{name} = {value}")


@contextlib.contextmanager
def launches(space, timed, note):
    """Call ``note`` with each `Launched` of this block; ``timed``: with events around it, for which the GPU is held."""
    original, hold = Kernel.__call__, Hold(space) if timed else None

    def call(kernel, *arguments):
        size = sum(a.nbytes for a in arguments if hasattr(a, "nbytes") and getattr(a, "ndim", 0))
        launched = Launched(kernel, arguments, size)
        if timed:
            launched.begin, launched.end = space.xp.cuda.Event(), space.xp.cuda.Event()
            launched.arguments = ()              # or memory that is free by then would be held
            hold()
            launched.begin.record(space.stream)
        original(kernel, *arguments)
        if timed:
            launched.end.record(space.stream)
        note(launched)

    with patch.object(Kernel, "__call__", call):
        yield
