"""Damaged files: readers answer each with an error of swell's own."""
from __future__ import annotations

from hypothesis import strategies as st

from swell.core.errors import InputError, OutOfMemory
from swell.io import read_matrix, read_vector


def damaged(content, data, lowest=0, highest=255):
    """Return ``content``, bytes, with up to four bytes replaced; ``data`` is Hypothesis's source of choices."""
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(lowest, highest))
    return bytes(content)


def require_own_errors(path, content):
    """Write ``content`` to ``path`` and read it; any error but InputError and OutOfMemory fails the test."""
    path.write_bytes(content)
    for read in (read_matrix, read_vector):
        try:
            read(path)
        except (InputError, OutOfMemory):
            pass
