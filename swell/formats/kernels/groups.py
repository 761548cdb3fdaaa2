"""Which columns of x a product on a CPU takes together: as many as the cache holds the entries of, near a row's.

A product with k columns reads the matrix once, but needs k vectors in the cache at once. Where the columns of a row lie
far apart, as in a mesh without an ordering, one vector alone fills the cache, and k products one after the other take
less time.
"""
from __future__ import annotations

CACHE = 1 << 20         # bytes of x that stay in a core's caches while rows pass
SAMPLES = 64            # rows or slices that tell how far the columns of a row lie apart


def groups(running, reach, itemsize):
    """Return arrays of columns, which together are ``running``; each is to be taken at once.

    ``reach``: the distance between the first and the last column of a row, on average. ``itemsize``: bytes of a number.
    """
    size = int(CACHE / (itemsize * max(reach, 1)))
    size = running.size if size >= running.size else max(size & ~1, 1)      # pairs, or one after the other
    return [running[begin:begin + size] for begin in range(0, running.size, size)]
