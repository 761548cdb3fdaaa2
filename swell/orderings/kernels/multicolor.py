"""Colouring on the CPU: the greedy method one vertex after the other, Jones–Plassmann's rounds in parallel."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@njit(cache=True)
def least_free(indptr, neighbours, colors, i):
    """Return the smallest colour that no neighbour of vertex i has; the search takes 64 colours at a time.

    The neighbours are neighbours[indptr[i]:indptr[i + 1]]. colors[v] is −1 for a vertex without a colour."""
    base = 0
    while True:
        used = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            c = colors[neighbours[k]] - base
            if 0 <= c < 64:
                used |= np.uint64(1) << np.uint64(c)
        for c in range(64):
            if used & np.uint64(1) == 0:
                return base + c
            used >>= np.uint64(1)
        base += 64


@njit(cache=True)
def greedy(indptr, neighbours, turn, colors):
    """Colour the vertices greedily in the order of ``turn``, an array of vertices.

    Writes ``colors``, which is filled with −1 on entry. The neighbours of i are neighbours[indptr[i]:indptr[i + 1]]."""
    for i in turn:
        colors[i] = least_free(indptr, neighbours, colors, i)


@njit(cache=True)
def weight(i, seed):
    """Return the weight of vertex i, a 64-bit number: splitmix64 of i and ``seed``. It is a bijection of i, so no two
    vertices have equal weights."""
    z = np.uint64(i) + (np.uint64(seed) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@parallel
def jones_plassmann_round(indptr, neighbours, colors, seed):
    """Do one round: give each vertex whose heavier neighbours all have a colour the smallest free colour.

    Changes ``colors``, −1 for a vertex without a colour. Vertices are compared by `weight` for this ``seed``. The
    neighbours of i are neighbours[indptr[i]:indptr[i + 1]].

    A neighbour's colour from this round may be seen in this round or only in the next. This affects when a vertex is
    coloured, not its colour."""
    for i in prange(colors.size):
        if colors[i] < 0:
            mine = weight(i, seed)
            ready = True
            for k in range(indptr[i], indptr[i + 1]):
                j = neighbours[k]
                if colors[j] < 0 and weight(j, seed) > mine:
                    ready = False
                    break
            if ready:
                colors[i] = least_free(indptr, neighbours, colors, i)
