"""A disk that becomes full at the k-th write of a program."""
from __future__ import annotations

import builtins
import errno
import io
import os
from contextlib import contextmanager


@contextmanager
def full_at(k: int):
    """From its k-th write on (the first is 1), each file opened within raises ENOSPC; gives a list of these writes."""
    writes, real = [], io.open

    def opened(file, mode="r", *arguments, **named):
        stream = real(file, mode, *arguments, **named)
        if any(letter in mode for letter in "wax+"):
            write = stream.write

            def write_or_fail(content):
                writes.append(file)
                if len(writes) >= k:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
                return write(content)
            stream.write = write_or_fail
        return stream
    builtins.open = io.open = opened
    try:
        yield writes
    finally:
        builtins.open = io.open = real
