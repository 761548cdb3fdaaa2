"""This machine's memory, as far as its system tells: Linux tells what is free, macOS the whole, Windows nothing."""
from __future__ import annotations

import os
import pathlib
import sys

MEMINFO = pathlib.Path("/proc/meminfo")
AVAILABLE, HEAD = b"MemAvailable:", 256     # its third line, and bytes that hold the first three
UNKNOWN = sys.maxsize   # more than any need: what nobody knows refuses nothing


def _bytes_of(pages: str) -> int:
    """Bytes of the pages that sysconf counts under a name, or UNKNOWN."""
    try:
        size = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):    # Windows has no sysconf, macOS not every name
        return UNKNOWN
    return size if size > 0 else UNKNOWN


def whole() -> int:
    """Bytes that this machine has, or UNKNOWN."""
    return _bytes_of("SC_PHYS_PAGES")


def free() -> int:
    """Bytes that are free: counting the page cache, which gives way, where the system tells."""
    try:
        with open(MEMINFO, "rb", buffering=0) as file:           # each solve reads it twice
            fields = file.read(HEAD).split()
    except OSError:
        fields = []
    if AVAILABLE in fields:
        return int(fields[fields.index(AVAILABLE) + 1]) * 1024
    return min(_bytes_of("SC_AVPHYS_PAGES"), whole())
