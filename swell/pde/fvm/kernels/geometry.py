"""Areas, volumes and centres of polyhedra, computed once for each mesh, on the CPU, where meshes live.

Arguments: points, shape (p, 3); face_ptr, face_points, owner, neighbour as in ``Mesh``. Each kernel writes its last
arguments, which the caller allocates: one value, or one vector of 3 numbers, for each face or cell.
"""
from __future__ import annotations

import math

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel


@parallel
def face_geometry(points, face_ptr, face_points, areas, centres):
    """Write each face's area vector to ``areas`` and its centre to ``centres``, from its triangles about the mean of
    its points. The top of this file explains the other arguments."""
    for f in prange(face_ptr.size - 1):
        start, stop = face_ptr[f], face_ptr[f + 1]
        count = stop - start
        mx, my, mz = 0.0, 0.0, 0.0
        for k in range(start, stop):
            p = face_points[k]
            mx += points[p, 0]
            my += points[p, 1]
            mz += points[p, 2]
        mx, my, mz = mx / count, my / count, mz / count
        sx, sy, sz = 0.0, 0.0, 0.0
        last = face_points[stop - 1]
        ax, ay, az = points[last, 0] - mx, points[last, 1] - my, points[last, 2] - mz
        for k in range(start, stop):            # S = 1/2 Σ a × b
            p = face_points[k]
            bx, by, bz = points[p, 0] - mx, points[p, 1] - my, points[p, 2] - mz
            sx += 0.5 * (ay * bz - az * by)
            sy += 0.5 * (az * bx - ax * bz)
            sz += 0.5 * (ax * by - ay * bx)
            ax, ay, az = bx, by, bz
        areas[f, 0], areas[f, 1], areas[f, 2] = sx, sy, sz
        cx, cy, cz, weight = 0.0, 0.0, 0.0, 0.0
        ax, ay, az = points[last, 0] - mx, points[last, 1] - my, points[last, 2] - mz
        for k in range(start, stop):            # weights: the triangles' areas along S, negative where the face folds
            p = face_points[k]
            bx, by, bz = points[p, 0] - mx, points[p, 1] - my, points[p, 2] - mz
            w = sx * (ay * bz - az * by) + sy * (az * bx - ax * bz) + sz * (ax * by - ay * bx)
            cx += w * (ax + bx)
            cy += w * (ay + by)
            cz += w * (az + bz)
            weight += w
            ax, ay, az = bx, by, bz
        third = 1.0 / (3.0 * weight) if weight > 0.0 else 0.0
        centres[f, 0], centres[f, 1], centres[f, 2] = mx + third * cx, my + third * cy, mz + third * cz


@njit(cache=True)
def cell_geometry(areas, face_centres, owner, neighbour, volumes, centres, closure, surface):
    """Write each cell's volume and centre, from the pyramids of its faces about the mean of their centres; ``areas``,
    ``face_centres`` as ``face_geometry`` writes them.

    ``closure`` gets the sum of the cell's outward area vectors, ``surface`` the sum of their lengths. ``owner``,
    ``neighbour``: the two cells of each face, see ``Mesh``.
    """
    n, internal = volumes.size, neighbour.size
    apex = np.zeros((n, 3))
    count = np.zeros(n)
    volumes[:] = 0.0
    centres[:] = 0.0
    closure[:] = 0.0
    surface[:] = 0.0
    for f in range(owner.size):
        size = math.sqrt(areas[f, 0] ** 2 + areas[f, 1] ** 2 + areas[f, 2] ** 2)
        for side in range(2 if f < internal else 1):
            c = owner[f] if side == 0 else neighbour[f]
            count[c] += 1.0
            surface[c] += size
            for d in range(3):
                apex[c, d] += face_centres[f, d]
                closure[c, d] += areas[f, d] if side == 0 else -areas[f, d]
    for c in range(n):
        for d in range(3):
            apex[c, d] /= count[c]
    for f in range(owner.size):
        for side in range(2 if f < internal else 1):
            c = owner[f] if side == 0 else neighbour[f]
            third = 0.0                         # three times the pyramid's volume
            for d in range(3):
                third += areas[f, d] * (face_centres[f, d] - apex[c, d])
            if side == 1:
                third = -third
            volumes[c] += third / 3.0
            for d in range(3):                  # the pyramid's centre is 3/4 of the way from the apex
                centres[c, d] += third * 0.25 * (face_centres[f, d] - apex[c, d])
    for c in range(n):
        for d in range(3):
            centres[c, d] = apex[c, d] + (centres[c, d] / volumes[c] if volumes[c] != 0.0 else 0.0)


@parallel
def non_orthogonality(areas, centres, owner, neighbour, degrees):
    """Write to ``degrees`` the angle between each internal face's normal (area vectors ``areas``) and the line between
    its two cells' centres (``centres``). The top of this file explains the other arguments."""
    for f in prange(neighbour.size):
        o, n = owner[f], neighbour[f]
        dx, dy, dz = centres[n, 0] - centres[o, 0], centres[n, 1] - centres[o, 1], centres[n, 2] - centres[o, 2]
        sx, sy, sz = areas[f, 0], areas[f, 1], areas[f, 2]
        along = dx * sx + dy * sy + dz * sz
        across = math.sqrt((dy * sz - dz * sy) ** 2 + (dz * sx - dx * sz) ** 2 + (dx * sy - dy * sx) ** 2)
        degrees[f] = math.degrees(math.atan2(across, along))        # acos is inaccurate for small angles


@njit(cache=True)
def projected_areas(areas, owner, neighbour, projected):
    """Write to projected[c] the sum of |S| over cell c's faces, component by component; S: a face's area vector in
    ``areas``. The top of this file explains the other arguments."""
    projected[:] = 0.0
    for f in range(owner.size):
        for d in range(3):
            size = abs(areas[f, d])
            projected[owner[f], d] += size
            if f < neighbour.size:
                projected[neighbour[f], d] += size


@parallel
def face_hashes(face_ptr, face_points, hashes):
    """Write a hash of each face's point numbers to ``hashes``; it does not depend on their order. The top of this file
    explains the other arguments."""
    for f in prange(face_ptr.size - 1):
        total = np.uint64(0)
        for k in range(face_ptr[f], face_ptr[f + 1]):
            z = (np.uint64(face_points[k]) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)     # SplitMix64
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            total += z ^ (z >> np.uint64(31))
        hashes[f] = total


@parallel
def perimeters(points, face_ptr, face_points, lengths):
    """Write the perimeter of each face to ``lengths``. The top of this file explains the other arguments."""
    for f in prange(face_ptr.size - 1):
        total = 0.0
        last = face_points[face_ptr[f + 1] - 1]
        for k in range(face_ptr[f], face_ptr[f + 1]):
            p = face_points[k]
            total += math.sqrt((points[p, 0] - points[last, 0]) ** 2 + (points[p, 1] - points[last, 1]) ** 2
                               + (points[p, 2] - points[last, 2]) ** 2)
            last = p
        lengths[f] = total
