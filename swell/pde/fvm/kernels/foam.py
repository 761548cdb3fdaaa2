"""Kernel of the parser of OpenFOAM's files, on the CPU."""
from __future__ import annotations

from swell.core.compiled import njit



@njit(cache=True)
def split_faces(numbers, ptr, points):
    """Split ``numbers``, which has ``n p1 ... pn`` for each face, into ptr and points: face f has
    points[ptr[f]:ptr[f+1]]. Writes ``ptr`` and ``points``; returns False if the counts do not fit their sizes."""
    at, total = 0, 0
    ptr[0] = 0
    for f in range(ptr.size - 1):
        if at >= numbers.size:
            return False
        length = numbers[at]
        if length < 0 or at + 1 + length > numbers.size or total + length > points.size:
            return False
        for k in range(length):
            points[total + k] = numbers[at + 1 + k]
        at += 1 + length
        total += length
        ptr[f + 1] = total
    return at == numbers.size and total == points.size
