"""Counting what a host reads from a GPU: ``with host_reads(space) as sizes: ...`` leaves the bytes of each read in ``sizes``."""
from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

READS = ("get", "item", "tolist", "__int__", "__float__", "__bool__", "__complex__", "__index__")


@contextmanager
def host_reads(space):
    """Reads of arrays, and of last entries, which are one read together."""
    sizes, within = [], []

    def counted(function, size):
        def call(self, *given, **named):
            if not within:
                sizes.append(size(self, *given))
            within.append(True)
            try:
                return function(self, *given, **named)
            finally:
                within.pop()
        return call

    array, kind = space.xp.ndarray, type(space)
    patches = [patch.object(array, name, counted(getattr(array, name), lambda self, *given: self.nbytes))
               for name in READS if hasattr(array, name)]
    patches.append(patch.object(kind, "last_entries", counted(kind.last_entries, lambda self, *given: 8 * len(given))))
    for each in patches:
        each.start()
    try:
        yield sizes
    finally:
        for each in patches:
            each.stop()
