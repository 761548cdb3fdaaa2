"""What a partition needs after METIS, on the host: the rows between parts, and parts of the sizes that slices have."""
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def outside(indptr, neighbours, home):
    """For each vertex, how many neighbours more have another home than have its own."""
    count = np.zeros(home.size, np.int64)
    for v in range(home.size):
        for k in range(indptr[v], indptr[v + 1]):
            count[v] += 1 if home[neighbours[k]] != home[v] else -1
    return count


@njit(cache=True)
def cut_off(indptr, neighbours, home, chosen, v):
    """All neighbours of v in other homes are chosen."""
    for k in range(indptr[v], indptr[v + 1]):
        u = neighbours[k]
        if home[u] != home[v] and not chosen[u]:
            return False
    return True


@njit(cache=True)
def cover(indptr, neighbours, home, visit):
    """Vertices without which no edge leads from one home to another: chosen in the order of ``visit``, and those left
    out again, last first, that the others make superfluous."""
    chosen = np.zeros(home.size, np.bool_)
    for v in visit:
        chosen[v] = not cut_off(indptr, neighbours, home, chosen, v)
    for v in visit[::-1]:
        chosen[v] = chosen[v] and not cut_off(indptr, neighbours, home, chosen, v)
    return chosen


@njit(cache=True)
def best_home(indptr, neighbours, home, room, v):
    """The home with room in which v has the most neighbours, and how many; −1 and 0 if there is none."""
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
    """Give every home its size, in place: too large ones shed vertices in the order of ``loose``; vertices without a
    home (−1) move into those with room, the best connected first, and at last wherever room is left."""
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
