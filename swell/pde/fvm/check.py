"""Checks of a mesh; each error message names the first place where the check fails."""
from __future__ import annotations

import re

import numpy as np

from swell.core.arrays import for_kernels
from swell.core.errors import InputError
from swell.core.library import native_kernels

kernels = native_kernels("swell.pde.fvm", "geometry")
OPEN = 1e-8             # |sum of area vectors| / surface above which a cell is open; a closed cell's is rounding
FLAT = 1e-14            # area / perimeter² up to which a face counts as without area
EMPTY = 1e-15           # volume / surface^(3/2) up to which a cell counts as without volume
HUGE = 1e75             # coordinates below it have a finite fourth power
INT32 = np.iinfo(np.int32).max
# Unsupported kinds of patches that couple faces or turn planes, and the advice for each; the first match counts.
REMEDIES = {
    "wedge": "give it the type symmetryPlane, and Neumann(0), where nothing depends on the angle, as for a scalar",
    "overset": "make one mesh without holes",
    "nonConformal": "make one mesh whose faces match, for OpenFOAM couples these as it runs",
    "cyclic": "make both patches of matched faces, in the same order, and give them the type cyclic; or give each the "
              "type patch and a condition",
}
COUPLED = re.compile("|".join(REMEDIES), re.IGNORECASE)


def points(coordinates) -> np.ndarray:
    """Return the points as a float64 array of shape (p, 3); raise InputError unless all are finite."""
    try:
        points = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"points: numbers of shape (p, 3) were expected: {error}") from error
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise InputError(f"points has shape {points.shape}, expected (p, 3), or (p, 2) for z = 0; reshape it")
    if points.shape[1] == 2:
        points = np.column_stack([points, np.zeros(len(points))])
    bad = ~(abs(points) < HUGE).all(axis=1)
    if bad.any():
        raise InputError(f"point {_first(bad)} has the coordinates {points[np.argmax(bad)].tolist()}, expected "
                         f"finite numbers below {HUGE:g}; write the mesh again")
    return for_kernels(points)


def faces(face_ptr, face_points, n_points):
    """Return face_ptr and face_points (see ``Mesh``) as int32 arrays; raise InputError if they do not describe faces of
    3 or more of the ``n_points`` points."""
    face_ptr, face_points = _integers("face_ptr", face_ptr), _integers("face_points", face_points)
    if face_ptr.size < 2 or face_ptr[0] != 0 or face_ptr[-1] != face_points.size:
        raise InputError(f"face_ptr must begin with 0 and end with the size of face_points, {face_points.size}; it "
                         f"has {face_ptr.size} entries and ends with {face_ptr[-1] if face_ptr.size else 'nothing'}")
    lengths = np.diff(face_ptr)
    if (lengths < 3).any():
        raise InputError(f"face {_first(lengths < 3)} has {lengths[np.argmax(lengths < 3)]} points, expected 3 or "
                         "more; drop it or write the mesh again")
    bad = (face_points < 0) | (face_points >= n_points)
    if bad.any():
        where = int(np.argmax(bad))
        face = int(np.searchsorted(face_ptr, where, side="right")) - 1
        raise InputError(f"face {face} has the point {face_points[where]}, but points are numbered 0 to "
                         f"{n_points - 1}; the faces belong to other points, or count from 1")
    return face_ptr, face_points


def cells(owner, neighbour, n_faces):
    """Return owner and neighbour (see ``Mesh``) as int32 arrays. Raise InputError unless they fit ``n_faces``, the
    number of faces, and every cell between the first and the last has a face."""
    owner, neighbour = _integers("owner", owner), _integers("neighbour", neighbour)
    if owner.size != n_faces:
        raise InputError(f"owner has {owner.size} entries, but there are {n_faces} faces; every face has one owner")
    if neighbour.size > n_faces:
        raise InputError(f"neighbour has {neighbour.size} entries, but there are only {n_faces} faces; expected one "
                         "entry for each internal face, and internal faces first")
    for name, of in (("owner", owner), ("neighbour", neighbour)):
        if (of < 0).any():
            raise InputError(f"face {_first(of < 0)} has the {name} {of[np.argmax(of < 0)]}; cells are numbered from "
                             "0, and neighbour has entries for internal faces only")
    same = owner[:neighbour.size] == neighbour
    if same.any():
        raise InputError(f"face {_first(same)} has cell {neighbour[np.argmax(same)]} on both sides; an internal face "
                         "lies between two cells")
    count = np.bincount(np.concatenate([owner, neighbour]))
    if not count.all():
        raise InputError(f"cell {_first(count == 0)} has no face, though cells are numbered up to {count.size - 1}; "
                         "number them without gaps")
    return owner, neighbour


def patches(patch_list, n_internal, n_faces, Patch) -> tuple:
    """Return the patches in order, as a tuple; raise InputError unless they cover each boundary face (``n_internal`` …
    ``n_faces`` − 1) once. ``patch_list``: sequence of Patch, or None for one patch "boundary"; ``Patch``: the class."""
    if patch_list is None:
        return (Patch("boundary", n_internal, n_faces - n_internal),)
    ordered = sorted(patch_list, key=lambda patch: (patch.start, patch.size))
    names = [patch.name for patch in ordered]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"two patches have the name {min(twice)!r}; rename one")
    at = n_internal
    for patch in ordered:
        if COUPLED.search(patch.kind) and patch.kind != "cyclic":
            remedy = next(words for kind, words in REMEDIES.items() if kind.lower() in patch.kind.lower())
            raise InputError(f"patch {patch.name!r} is of kind {patch.kind!r}, which is not supported, and would be a "
                             f"wall: {remedy}")
        where = f"patch {patch.name!r} has {patch.size} faces from {patch.start} on"
        if patch.size < 0 or patch.start < n_internal or patch.start + patch.size > n_faces:
            raise InputError(f"{where}, but the boundary faces are {n_internal} to {n_faces - 1}; write the mesh again")
        if not patch.size:                      # an empty patch may start anywhere
            continue
        if patch.start != at:
            problem = "which overlaps the patch before it" if patch.start < at else f"but no patch has face {at}"
            raise InputError(f"{where}, {problem}; patches must cover the boundary, each face once")
        at += patch.size
    if at != n_faces:
        raise InputError(f"no patch has the boundary faces {at} to {n_faces - 1}; give them to one")
    return tuple(ordered)


def no_face_twice(mesh):
    """Check that no two faces have the same points, except the two sides of a wall without thickness.

    Raises
    ------
    InputError
        For a duplicate face; the message names both faces and their cells.
    """
    hashes = np.empty(mesh.n_faces, np.uint64)
    kernels.face_hashes(mesh.face_ptr, mesh.face_points, hashes)
    order = np.argsort(hashes, kind="stable")
    pairs = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    for a, b in zip(order[pairs], order[pairs + 1]):        # a < b, as the sort is stable
        one, two = (np.sort(mesh.face_points[mesh.face_ptr[f]:mesh.face_ptr[f + 1]]) for f in (a, b))
        wall = a >= mesh.n_internal and mesh.owner[a] != mesh.owner[b]
        if not wall and np.array_equal(one, two):
            raise InputError(f"face {b} of cell {mesh.owner[b]} has the same points as face {a} of cell "
                             f"{mesh.owner[a]} ({_near(mesh.points[one].mean(axis=0))}): one face would have two "
                             "owners; merge them into one internal face, or drop the duplicate cell")


def shapes(mesh):
    """Check that faces have area, and that cells are closed and have positive volume.

    Raises
    ------
    InputError
        The message names the face or the cell, and its location.
    """
    size, lengths = np.linalg.norm(mesh.face_areas, axis=1), np.empty(mesh.n_faces)
    kernels.perimeters(mesh.points, mesh.face_ptr, mesh.face_points, lengths)
    flat = size <= FLAT * lengths ** 2
    if flat.any():
        face = int(np.argmax(flat))
        raise InputError(f"face {_first(flat)} of cell {mesh.owner[face]} has no area "
                         f"({_near(mesh.face_centres[face])}, {_patch_of(mesh, face)}): its points lie on a line; "
                         "merge them")
    of = mesh.geometry
    gap = np.linalg.norm(of.closure, axis=1)
    open_cells = gap > OPEN * of.surface
    if open_cells.any():
        cell = int(np.argmax(open_cells))
        raise InputError(f"cell {_first(open_cells)} is open ({_near(of.centres[cell])}): the area vectors of its "
                         f"faces add up to {gap[cell]:.3g} of a surface of {of.surface[cell]:.3g}; a face is missing, "
                         "belongs to another cell, or has its points in the wrong order")
    bad = of.volumes <= EMPTY * of.surface ** 1.5
    if bad.any():
        cell = int(np.argmax(bad))
        volume = of.volumes[cell]
        negative = volume < -EMPTY * of.surface[cell] ** 1.5
        cause = ("it is inside out or folded: turn its faces round, or repair the mesh" if negative else
                 "it is flat: merge it with a cell beside it, or check the unit and the thickness of the mesh")
        raise InputError(f"cell {_first(bad)} has the {'negative' if negative else 'zero'} volume {volume:.3g} "
                         f"({_near(of.centres[cell])}): {cause}")


def every_part_is_fixed(mesh, fixed):
    """Check that a mesh is connected, or that each connected component has a face that fixes the solution.

    Parameters
    ----------
    mesh : Mesh
    fixed : numpy.ndarray of bool, shape (nb,)
        True for boundary faces with a Dirichlet or Robin condition.

    Raises
    ------
    InputError
        The message names the component.
    """
    count = int(mesh.parts.max()) + 1
    if count == 1:
        return
    fixed_parts = np.zeros(count, bool)
    fixed_parts[mesh.parts[mesh.owner[mesh.n_internal:][fixed]]] = True
    if not fixed_parts.all():
        cells = mesh.parts == np.argmin(fixed_parts)
        raise InputError(f"the mesh falls into {count} parts that share no face, and no patch fixes a value in the "
                         f"part of cell {np.argmax(cells)} ({np.count_nonzero(cells)} cells, "
                         f"{_near(mesh.centres[np.argmax(cells)])}), so that the system is singular: give one of its "
                         "patches a Dirichlet or Robin condition, or merge duplicate points")


def _integers(name, numbers) -> np.ndarray:
    """Return ``numbers`` as a contiguous int32 vector; raise InputError with ``name`` for anything else."""
    array = np.asarray(numbers)
    if array.size == 0:
        return np.zeros(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{name} has shape {array.shape} and dtype {array.dtype}, expected a vector of integers")
    if array.size > INT32 or array.max() > INT32:
        raise InputError(f"{name} has {array.size} entries up to {array.max()}, more than 32-bit indices can name; "
                         "split the mesh")
    return for_kernels(array, np.int32)


def _first(bad) -> str:
    """Return the index of the first True in ``bad`` as text, with the count if there are more."""
    count = int(np.count_nonzero(bad))
    return f"{int(np.argmax(bad))}" + (f" (the first of {count})" if count > 1 else "")


def _near(place) -> str:
    """Return the coordinates ``place`` as text: "near (x, y, z)"."""
    return "near " + "({:.6g}, {:.6g}, {:.6g})".format(*place)


def _patch_of(mesh, face) -> str:
    """Return a text that locates a face: its patch, or its two cells."""
    for patch in mesh.patches:
        if patch.start <= face < patch.start + patch.size:
            return f"patch {patch.name!r}"
    return f"between cells {mesh.owner[face]} and {mesh.neighbour[face]}"
