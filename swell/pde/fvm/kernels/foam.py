"""Kernel of the parser of OpenFOAM's files, on the CPU."""
from __future__ import annotations

from numba import njit


@njit(cache=True)
def split_faces(numbers, ptr, points):
    """Split the sequence ``n p1 ... pn``, once a face, into ptr and points; False if the counts do not fit."""
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
