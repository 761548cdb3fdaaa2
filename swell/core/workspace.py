"""Workspace: the named buffers of a solve, allocated once and kept, so that a second solve allocates nothing."""
from __future__ import annotations


class Workspace:
    """Named arrays of one space; asking again for a name of the same shape and type returns the same array.

    The contents of a buffer are undefined when it is handed out: whoever reads it writes it first.
    """

    def __init__(self, space):
        self.space = space
        self._buffers = {}

    def array(self, name: str, shape, dtype):
        """The buffer called ``name`` (uninitialised)."""
        shape = tuple(shape) if isinstance(shape, tuple) else (int(shape),)
        held = self._buffers.get(name)
        if held is None or held.shape != shape or held.dtype != dtype:
            held = self._buffers[name] = self.space.empty(shape, dtype)
        return held

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(b.nbytes for b in self._buffers.values())

    def poison(self):
        """Fill every buffer with NaN (integers with a huge number), to test that nothing is read before it is written.
        """
        for buffer in self._buffers.values():
            buffer.fill(float("nan") if buffer.dtype.kind in "fc" else 2**31 - 1)
