"""Kernels that turn METIS's partition into slices, on the host: choose separator rows, and adjust the parts' sizes."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


@njit(cache=True)
def outside(indptr, neighbours, home):
    """Return for each vertex v the number of neighbours in other parts, less the number in its own; int64.

    home[v] is the part of v, −1 for none. The neighbours are neighbours[indptr[v]:indptr[v + 1]]."""
    count = np.zeros(home.size, np.int64)
    for v in range(home.size):
        for k in range(indptr[v], indptr[v + 1]):
            count[v] += 1 if home[neighbours[k]] != home[v] else -1
    return count


@njit(cache=True)
def cut_off(indptr, neighbours, home, chosen, v):
    """True if all neighbours of vertex v in other parts are chosen. ``home`` is the part, ``chosen`` a flag of each
    vertex; the neighbours are neighbours[indptr[v]:indptr[v + 1]]."""
    for k in range(indptr[v], indptr[v + 1]):
        u = neighbours[k]
        if home[u] != home[v] and not chosen[u]:
            return False
    return True


@njit(cache=True)
def cover(indptr, neighbours, home, visit):
    """Return a vertex cover of the edges between parts, a bool array with an entry for each vertex.

    home[v] is the part of v. Vertices are chosen in the order of ``visit``, an array of vertices. A second pass, in
    reverse order, drops superfluous vertices."""
    chosen = np.zeros(home.size, np.bool_)
    for v in visit:
        chosen[v] = not cut_off(indptr, neighbours, home, chosen, v)
    for v in visit[::-1]:
        chosen[v] = chosen[v] and not cut_off(indptr, neighbours, home, chosen, v)
    return chosen


@njit(cache=True)
def best_home(indptr, neighbours, home, room, v):
    """Return (part, number of neighbours of v in it) for the part with the most neighbours of v among parts with room.

    (−1, 0) if there is none. home[u] is the part of vertex u, −1 for none; part h takes room[h] more vertices."""
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
    """Change ``home``, the part of each vertex, in place until every part h has sizes[h] vertices.

    Parts that are too large shed vertices in the order of ``loose``, an array of vertices. Vertices without a part (−1)
    move to parts with room, the best connected first, and finally wherever room is left. Vertices for which no room is
    left keep −1."""
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
