"""Workspace: the named buffers of a solve. They are allocated once and kept, so a second solve allocates nothing."""
from __future__ import annotations


class Workspace:
    """Named arrays of one space; `Columns`, if it has several right-hand sides.

    A second request for the same name, shape and type returns the same array.

    The contents of a buffer are undefined: the caller must write it before reading it.
    """

    def __init__(self, space):
        self.space = space
        self._buffers = {}

    def array(self, name: str, shape, dtype):
        """Return the buffer ``name``, not cleared; it is allocated anew unless it has this shape and dtype."""
        return self._held(name, shape, dtype, self.space.buffer)

    def shared(self, name: str, shape, dtype):
        """Return the buffer ``name``, like `array`, but a plain array that all right-hand sides share."""
        return self._held(name, shape, dtype, self.space.empty)

    def _held(self, name, shape, dtype, allocate):
        """Return the buffer ``name``; ``allocate(shape, dtype)`` makes it."""
        shape = tuple(shape) if isinstance(shape, tuple) else (int(shape),)
        held = self._buffers.get(name)
        if held is None or held.shape != shape or held.dtype != dtype:
            held = self._buffers[name] = allocate(shape, dtype)
        return held

    @property
    def nbytes(self) -> int:
        """Size of all buffers in bytes."""
        return sum(b.nbytes for b in self._buffers.values())

    def poison(self):
        """Fill every buffer with NaN (integers with a huge number), to test that no solve reads before it writes."""
        for buffer in self._buffers.values():
            buffer[...] = float("nan") if buffer.dtype.kind in "fc" else 2**31 - 1
