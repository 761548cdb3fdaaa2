"""Structured boxes of hexahedra, for tests, benchmarks and examples."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.mesh import Mesh, Patch
from swell.pde.fvm.periodic import CYCLIC

AXES = "xyz"


def box(cells, lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 1.0), grading=None, skew=None, perturb=0.0, seed=0,
        periodic="") -> Mesh:
    """Make a box of hexahedra with the patches xmin, xmax, ymin, ymax, zmin, zmax.

    Parameters
    ----------
    cells : tuple of 1 to 3 int
        Number of cells along each axis; cell (i, j, k) has the number i + nx (j + ny k). One or two numbers make a
        one- or two-dimensional mesh: one cell along each other axis, whose patches are of kind "empty" and need no
        condition.
    lower, upper : tuple of 3 float
        Opposite corners.
    grading : tuple of float, optional
        Along each axis, the ratio of the last cell's size to the first's; sizes grow geometrically.
    skew : tuple of 2 float, optional
        Shear by (a, b): x grows by a y + b z, measured from the lower corner. Planes stay planes, but the mesh is no
        longer orthogonal.
    perturb : float
        Move each point at random by up to this fraction of the smaller adjacent cell width; below 0.5. Boundary points
        stay on the boundary. In three dimensions faces are then no longer plane.
    seed : int
        Seed of the random numbers.
    periodic : str
        Axes along which the box repeats, such as "x" or "xz"; their patches are of kind "cyclic".

    Returns
    -------
    Mesh

    Raises
    ------
    InputError
        For parameters out of range.

    Examples
    --------
    >>> from swell.pde.fvm import box
    >>> box((4, 3, 2))
    Mesh(24 cells, 98 faces, 60 points; patches xmin, xmax, ymin, ymax, zmin, zmax)
    """
    shape = _shape(cells)
    _check_tuples({"lower": (lower, 3), "upper": (upper, 3), "grading": (grading, 1), "skew": (skew, 2)})
    lines = [_line(axis, shape[axis], lower, upper, grading) for axis in range(3)]
    points = np.empty((shape[2] + 1, shape[1] + 1, shape[0] + 1, 3))
    for axis, line in enumerate(lines):
        points[..., axis] = line.reshape([-1 if 2 - axis == k else 1 for k in range(3)])
    axes = _periodic(periodic, len(tuple(cells)))
    if perturb:
        _perturb(points, lines, perturb, seed)
        for axis in axes:                        # the two cyclic patches must match
            first, last = (tuple(end if 2 - axis == k else slice(None) for k in range(3)) for end in (0, -1))
            across = [other for other in range(3) if other != axis]
            points[last][..., across] = points[first][..., across]
    if skew is not None:
        points[..., 0] += skew[0] * (points[..., 1] - lower[1]) + skew[1] * (points[..., 2] - lower[2])
    face_points, owner, neighbour, patches = _connect(shape, len(tuple(cells)))
    pairs = {AXES[axis] + end: AXES[axis] + other for axis in axes for end, other in (("min", "max"), ("max", "min"))}
    patches = tuple(replace(patch, kind=CYCLIC, neighbour=pairs[patch.name]) if patch.name in pairs else patch
                    for patch in patches)
    face_ptr = np.arange(0, 4 * owner.size + 1, 4, dtype=np.int32)
    return Mesh(points.reshape(-1, 3), face_ptr, face_points, owner, neighbour, patches)


def _shape(cells):
    """Return the numbers of cells along x, y and z as a tuple of 3; raise InputError unless ``cells`` is one to three
    positive integers."""
    shape = tuple(cells) if isinstance(cells, (tuple, list)) else None
    if shape is None or not 1 <= len(shape) <= 3 or any(not isinstance(m, (int, np.integer)) or m < 1 for m in shape):
        raise InputError(f"cells={cells!r}: expected one to three positive integers, such as (32, 32, 32)")
    if np.prod([m + 1.0 for m in shape]) * 3 * 4 > np.iinfo(np.int32).max:
        raise InputError(f"cells = {cells!r}: more faces than 32-bit indices can name; split the mesh")
    return (*(int(m) for m in shape), *(1,) * (3 - len(shape)))


def _periodic(periodic, dimensions):
    """Return the letters of ``periodic`` as a list of axes (0 to 2); raise InputError for others. ``dimensions``: of
    the box."""
    letters = AXES[:dimensions]
    if not isinstance(periodic, str) or set(periodic) - set(letters) or len(set(periodic)) < len(periodic):
        raise InputError(f"periodic={periodic!r}: expected letters of {letters!r}, each once, such as 'x'; '' for none")
    return [AXES.index(letter) for letter in periodic]


def _check_tuples(parameters):
    """Raise InputError for values that are not sequences of the right length. ``parameters``: name → (value or None,
    least length)."""
    for name, (values, count) in parameters.items():
        if values is not None and (np.ndim(values) != 1 or len(values) < count):
            more = "" if name != "grading" else " or more"
            raise InputError(f"{name} = {values!r} came, expected a tuple of {count}{more} numbers, also for boxes of "
                             "fewer dimensions")


def _line(axis, m, lower, upper, grading):
    """Return the coordinates of the m + 1 planes across ``axis``; ``lower``, ``upper``, ``grading`` as in ``box``."""
    start, stop = float(lower[axis]), float(upper[axis])
    ratio = float(grading[axis]) if grading is not None and axis < len(grading) else 1.0
    if not start < stop or not np.isfinite(stop - start):
        raise InputError(f"lower = {lower}, upper = {upper}: along {AXES[axis]} the box has no extent; swap them or "
                         "move one")
    if not 0 < ratio < np.inf:
        raise InputError(f"grading={grading}: expected positive ratios of the last cell's size to the first's")
    sizes = ratio ** (np.arange(m) / max(m - 1, 1))
    line = start + (stop - start) * np.concatenate([[0.0], np.cumsum(sizes) / sizes.sum()])
    line[-1] = stop
    return line


def _perturb(points, lines, share, seed):
    """Perturb ``points``, shape (nz + 1, ny + 1, nx + 1, 3), in place by up to ``share`` of a cell's width; not along
    axes with a single cell. ``lines``: the coordinates along each axis."""
    if not 0 < share < 0.5:
        raise InputError(f"perturb={share}: expected a share of a cell's width below 0.5: cells would fold")
    counts = tuple(line.size if line.size > 2 else 1 for line in lines)[::-1]
    random = np.random.default_rng(seed)
    for axis, line in enumerate(lines):
        if line.size == 2:
            continue
        width = np.zeros(line.size)             # zero at both ends: the boundary does not move
        width[1:-1] = np.minimum(np.diff(line)[1:], np.diff(line)[:-1])
        way = width.reshape([-1 if 2 - axis == k else 1 for k in range(3)])
        points[..., axis] += share * way * random.uniform(-1.0, 1.0, counts)


def _connect(shape, dimensions):
    """Return (face_points, owner, neighbour, patches) of a box of shape = (nx, ny, nz) cells; see ``Mesh``.
    ``dimensions``: 1 to 3; patches of other axes are "empty"."""
    nx, ny, nz = shape
    step = np.array([1, nx + 1, (nx + 1) * (ny + 1)])           # from a point to the next along x, y and z
    number = np.arange(nx * ny * nz, dtype=np.int32).reshape(nz, ny, nx)
    corner = (np.arange(nx) + step[1] * np.arange(ny)[:, None] + step[2] * np.arange(nz)[:, None, None])
    corner = corner.astype(np.int32)
    # The four points of a cell's face on the low side of an axis, anticlockwise seen from above.
    around = [(step[(axis + 1) % 3], step[(axis + 2) % 3]) for axis in range(3)]
    square = np.array([(0, one, one + two, two) for one, two in around], np.int32)
    # Internal faces, cell by cell, towards +x, +y and +z: the upper triangle of the matrix row by row.
    inner = np.zeros((nz, ny, nx, 3), bool)
    inner[:, :, :-1, 0] = inner[:, :-1, :, 1] = inner[:-1, :, :, 2] = True
    beyond = np.array([1, nx, nx * ny], np.int32)
    owner = [np.broadcast_to(number[..., None], inner.shape)[inner]]
    neighbour = (number[..., None] + beyond)[inner]
    high = (step[:, None] + square).astype(np.int32)
    faces = [(corner[..., None, None] + high)[inner].reshape(-1, 4)]
    patches, at = [], neighbour.size
    for axis in range(3):
        for end, side in ((0, "min"), (-1, "max")):
            plane = tuple(end if 2 - axis == k else slice(None) for k in range(3))
            first = corner[plane].ravel()[:, None] + (square[axis][::-1] if end == 0 else step[axis] + square[axis])
            faces.append(first.astype(np.int32))
            owner.append(number[plane].ravel())
            patches.append(Patch(AXES[axis] + side, at, len(first), "patch" if axis < dimensions else "empty"))
            at += len(first)
    return np.concatenate(faces).ravel(), np.concatenate(owner), neighbour, tuple(patches)
