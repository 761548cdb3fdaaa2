"""This machine's memory. Linux reports free and total memory, macOS only the total, Windows neither."""
from __future__ import annotations

import os
import pathlib
import sys

MEMINFO = pathlib.Path("/proc/meminfo")
AVAILABLE, HEAD = b"MemAvailable:", 256     # the third line of MEMINFO, and a length that covers the first three
UNKNOWN = sys.maxsize   # larger than any request: unknown memory refuses nothing


def _bytes_of(pages: str) -> int:
    """Return the bytes of a page count of sysconf, named by ``pages``, such as "SC_PHYS_PAGES"; or UNKNOWN."""
    try:
        size = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):    # Windows has no sysconf, macOS not every name
        return UNKNOWN
    return size if size > 0 else UNKNOWN


def total() -> int:
    """Total memory of this machine in bytes, or UNKNOWN."""
    return _bytes_of("SC_PHYS_PAGES")


def free() -> int:
    """Free memory in bytes, or UNKNOWN. On Linux it includes the page cache, which can be reclaimed."""
    try:
        with open(MEMINFO, "rb", buffering=0) as file:           # each solve reads it twice
            fields = file.read(HEAD).split()
    except OSError:
        fields = []
    if AVAILABLE in fields:
        return int(fields[fields.index(AVAILABLE) + 1]) * 1024
    return min(_bytes_of("SC_AVPHYS_PAGES"), total())
