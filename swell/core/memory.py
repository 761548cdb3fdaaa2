"""This machine's memory. Linux reports free and total memory, macOS only the total, Windows neither."""
from __future__ import annotations

import os
import pathlib
import sys

MEMINFO = pathlib.Path("/proc/meminfo")
STATM = pathlib.Path("/proc/self/statm")    # pages of this process; the first number is the size of its addresses
LIMITS, ADDRESSES = pathlib.Path("/proc/self/limits"), b"Max address space"
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
    """Free memory in bytes, or UNKNOWN. On Linux it includes the page cache, which can be reclaimed.

    A limit on this process' addresses (``ulimit -v``) counts too."""
    fields = _start_of(MEMINFO).split()
    if AVAILABLE in fields:
        return min(int(fields[fields.index(AVAILABLE) + 1]) * 1024, _allowed())
    return min(_bytes_of("SC_AVPHYS_PAGES"), total())


def _start_of(path, size=HEAD) -> bytes:
    """The first bytes of a file of the system; none if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:              # each solve reads some
            return file.read(size)
    except OSError:
        return b""


def _allowed() -> int:
    """Bytes that the limit on this process' addresses still allows on Linux, or UNKNOWN."""
    limit = _start_of(LIMITS, 4096).partition(ADDRESSES)[2].split(None, 1)[:1]
    if not limit or not limit[0].isdigit():      # "unlimited"
        return UNKNOWN
    sizes = _start_of(STATM).split()
    return max(int(limit[0]) - int(sizes[0]) * os.sysconf("SC_PAGE_SIZE"), 0) if sizes else UNKNOWN
