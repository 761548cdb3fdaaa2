"""Kernels for the conversion of elements to faces: pairs of equal faces, and signed volumes; on the CPU."""
from __future__ import annotations

import numpy as np

from swell.core.compiled import njit


@njit(cache=True)
def match(corners, n_points, mates):
    """Write to mates[i] the face with the same corners as face i, or −1. ``corners``: one row a face, each sorted;
    entries up to n_points.

    Only faces with the same lowest corner are compared. Returns the first face found to have two mates, or −1.
    """
    m, k = corners.shape
    ptr = np.zeros(n_points + 2, np.int64)
    for i in range(m):
        ptr[corners[i, 0] + 2] += 1
    for p in range(2, n_points + 2):
        ptr[p] += ptr[p - 1]
    bucket = np.empty(m, np.int64)
    for i in range(m):
        bucket[ptr[corners[i, 0] + 1]] = i
        ptr[corners[i, 0] + 1] += 1
    mates[:] = -1
    for p in range(n_points):
        for a in range(ptr[p], ptr[p + 1]):
            i = bucket[a]
            for b in range(a + 1, ptr[p + 1]):
                j = bucket[b]
                same = True
                for d in range(1, k):
                    same = same and corners[i, d] == corners[j, d]
                if same:
                    if mates[i] >= 0:
                        return i
                    mates[i] = j
                    mates[j] = i
    return -1


@njit(cache=True)
def signed_volumes(points, faces, volumes):
    """Write six times the signed volume of each cell to ``volumes``. ``points``: shape (p, 3); ``faces``: the corners
    of each cell's faces, shape (cells, faces, 4), −1 for none."""
    for c in range(faces.shape[0]):
        o = faces[c, 0, 0]
        total = 0.0
        for f in range(faces.shape[1]):
            p = faces[c, f, 0]
            ax, ay, az = points[p, 0] - points[o, 0], points[p, 1] - points[o, 1], points[p, 2] - points[o, 2]
            for k in range(1, 3 if faces[c, f, 3] >= 0 else 2):
                q, r = faces[c, f, k], faces[c, f, k + 1]
                bx, by, bz = points[q, 0] - points[o, 0], points[q, 1] - points[o, 1], points[q, 2] - points[o, 2]
                dx, dy, dz = points[r, 0] - points[o, 0], points[r, 1] - points[o, 1], points[r, 2] - points[o, 2]
                total += ax * (by * dz - bz * dy) + ay * (bz * dx - bx * dz) + az * (bx * dy - by * dx)
        volumes[c] = total
