"""Boxes: hexahedra or tetrahedra, quadrilaterals or triangles, with the boundaries xmin, xmax, ymin, ..."""
from __future__ import annotations

import itertools

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.meshes import Mesh

SHAPES = {2: ("quad", "triangle"), 3: ("hexahedron", "tetra")}


def box(cells, lower=0.0, upper=1.0, shape=None) -> Mesh:
    """Mesh a box.

    Parameters
    ----------
    cells : tuple of 2 or 3 int
        Number of boxes along each axis; each is one hexahedron or six tetrahedra, one quadrilateral or two triangles.
    lower, upper : float or sequence
        Opposite corners, m.
    shape : {"hexahedron", "tetra", "quad", "triangle"}, optional
        Shape of the cells; hexahedra in 3D and quadrilaterals in 2D by default.

    Examples
    --------
    >>> from swell.pde import helmholtz
    >>> mesh = helmholtz.box((4, 2, 2), upper=(2.0, 1.0, 1.0), shape="tetra")
    >>> len(mesh.cells), sorted(mesh.boundaries)[:2]
    (96, ['xmax', 'xmin'])
    """
    counts = tuple(cells) if np.iterable(cells) else ()
    dim = len(counts)
    if dim not in SHAPES or not all(isinstance(c, (int, np.integer)) and c > 0 for c in counts):
        raise InputError(f"box({cells!r}): expected two or three positive numbers of cells, such as (32, 32, 32)")
    shape = shape or SHAPES[dim][0]
    if shape not in SHAPES[dim]:
        raise InputError(f"box of {dim} dimensions with shape={shape!r}: expected one of {', '.join(SHAPES[dim])}")
    lower, upper = (_corner(name, value, dim) for name, value in (("lower", lower), ("upper", upper)))
    if not (upper > lower).all():
        raise InputError(f"box from {lower.tolist()} to {upper.tolist()}: expected upper above lower on every axis")
    axes = [np.linspace(low, high, c + 1) for low, high, c in zip(lower, upper, counts)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    number = np.arange(len(points)).reshape([c + 1 for c in counts])
    corner = {offset: number[tuple(slice(o, o + c) for o, c in zip(offset, counts))].ravel()
              for offset in itertools.product((0, 1), repeat=dim)}
    solid = np.stack([corner[offset] for offset in _vtk(dim)], axis=1)
    groups = {}
    for axis, name in enumerate("xyz"[:dim]):
        for side, end in ((0, "min"), (-1, "max")):
            face = np.take(number, side, axis)
            groups[name + end] = _faces(face, shape)
    members = solid if shape in ("quad", "hexahedron") else _simplices(corner, dim)
    return Mesh(points, shape, members, {"box": np.arange(len(members))}, groups)


def _corner(name, value, dim):
    """Return a corner's coordinates, shape (dim,); ``value``: one number for all, or dim of them; ``name``: in
    messages."""
    try:
        return np.broadcast_to(np.asarray(value, float), dim)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r}: expected a number or {dim} of them, in m") from None


def _vtk(dim):
    square = ((0, 0), (1, 0), (1, 1), (0, 1))
    return square if dim == 2 else tuple((*c, z) for z in (0, 1) for c in square)


def _simplices(corner, dim):
    """Return the corners of the simplices of Kuhn's division of each cube along its diagonal, shape (simplices, dim +
    1); it matches between neighbours. ``corner``: for each offset, such as (0, 1, 0), the points at this corner of all
    cubes."""
    parts = []
    for order in itertools.permutations(range(dim)):
        offset, path = [0] * dim, [(0,) * dim]
        for axis in order:
            offset[axis] = 1
            path.append(tuple(offset))
        parts.append(np.stack([corner[o] for o in path], axis=1))
    return np.stack(parts, axis=1).reshape(-1, dim + 1)


def _faces(face, shape):
    """Return the corners of the facets of one side of the box; ``face``: the grid of its point numbers."""
    if face.ndim == 1:
        return np.stack([face[:-1], face[1:]], axis=1)
    a, b, c, d = (face[s].ravel() for s in (np.s_[:-1, :-1], np.s_[1:, :-1], np.s_[1:, 1:], np.s_[:-1, 1:]))
    if shape == "hexahedron":
        return np.stack([a, b, c, d], axis=1)
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, d, c], axis=1)])
