"""Kernels that turn METIS's partition into slices, on the host: choose separator rows, and adjust the parts' sizes."""
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def outside(indptr, neighbours, home):
    """For each vertex: the number of neighbours in other parts, less the number in its own. ``home`` is the part."""
    count = np.zeros(home.size, np.int64)
    for v in range(home.size):
        for k in range(indptr[v], indptr[v + 1]):
            count[v] += 1 if home[neighbours[k]] != home[v] else -1
    return count


@njit(cache=True)
def cut_off(indptr, neighbours, home, chosen, v):
    """True if all neighbours of v in other parts are chosen."""
    for k in range(indptr[v], indptr[v + 1]):
        u = neighbours[k]
        if home[u] != home[v] and not chosen[u]:
            return False
    return True


@njit(cache=True)
def cover(indptr, neighbours, home, visit):
    """A vertex cover of the edges between parts, as a mask of the vertices.

    Vertices are chosen in the order of ``visit``. A second pass, in reverse order, drops superfluous vertices."""
    chosen = np.zeros(home.size, np.bool_)
    for v in visit:
        chosen[v] = not cut_off(indptr, neighbours, home, chosen, v)
    for v in visit[::-1]:
        chosen[v] = chosen[v] and not cut_off(indptr, neighbours, home, chosen, v)
    return chosen


@njit(cache=True)
def best_home(indptr, neighbours, home, room, v):
    """The part with room in which v has the most neighbours, and their number; (−1, 0) if there is none."""
    best, most = -1, 0
    for k in range(indptr[v], indptr[v + 1]):
        h = home[neighbours[k]]
        if h >= 0 and h != best and room[h] > 0:
            count = 0
            for j in range(indptr[v], indptr[v + 1]):
                count += home[neighbours[j]] == h
            if count > most:
                best, most = h, count
    return best, most


@njit(cache=True)
def settle(indptr, neighbours, home, sizes, loose):
    """Change ``home`` in place until every part has its size in ``sizes``.

    Parts that are too large shed vertices in the order of ``loose``. Vertices without a part (−1) move to parts with
    room, the best connected first, and finally wherever room is left."""
    room = sizes.copy()
    for v in range(home.size):
        if home[v] >= 0:
            room[home[v]] -= 1
    for v in loose:
        if home[v] >= 0 and room[home[v]] < 0:
            room[home[v]] += 1
            home[v] = -1
    for least in (4, 3, 2, 1):
        for v in range(home.size):
            if home[v] < 0:
                best, most = best_home(indptr, neighbours, home, room, v)
                if most >= least:
                    home[v] = best
                    room[best] -= 1
    h = 0
    for v in range(home.size):
        if home[v] < 0:
            while h < room.size and room[h] <= 0:
                h += 1
            if h == room.size:
                return
            home[v] = h
            room[h] -= 1
