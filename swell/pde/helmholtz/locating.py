"""Search for the cell that contains a point, or for the mesh's nearest point."""
import numpy as np

from swell.core.errors import InputError

NEAREST = 48            # number of cells with the nearest centres that are tried first
INSIDE = 1e-9           # tolerance, relative to the reference cell's size
NEWTON = 12             # steps of Newton's method; the map of a cell is multilinear


def locate(mesh, point, what):
    """Return (cell, coordinates in the reference cell) of a point; messages call the point ``what``.

    Raises
    ------
    InputError
        For a point of a wrong dimension, or outside; the message gives the nearest point of the mesh.
    """
    try:
        x = np.asarray(point, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} = {point!r}: expected {mesh.dim} coordinates in m") from None
    if x.shape != (mesh.dim,) or not np.isfinite(x).all():
        raise InputError(f"{what} = ({_words(x.ravel())}): expected {mesh.dim} finite coordinates in m for this mesh")
    for cells in _candidates(mesh, x):
        local = _reference(mesh, cells, x)
        over = np.maximum(-local, local - 1).max(axis=0)
        if mesh.shape in ("triangle", "tetra"):
            over = np.maximum(over, local.sum(axis=0) - 1)
        best = int(np.nanargmin(over)) if np.isfinite(over).any() else 0
        if over[best] <= INSIDE:
            return int(cells[best]), local[:, best]
    near = nearest(mesh, x)
    raise InputError(f"{what} = ({_words(x)}) lies outside the mesh: the nearest point of the mesh is "
                     f"({_words(near)}), {np.linalg.norm(near - x):.4g} m away; the mesh reaches from "
                     f"({_words(mesh.points.min(0))}) to "
                     f"({_words(mesh.points.max(0))}); mind the unit")


def _words(x):
    return ", ".join(f"{v:.6g}" for v in x)


def _candidates(mesh, x):
    """Yield arrays of the cells that may contain the point x: first the cells with the nearest centres, then all cells
    whose bounding box contains x."""
    distance = ((mesh.centres - x) ** 2).sum(axis=1)
    count = min(NEAREST, len(distance))
    close = np.argpartition(distance, count - 1)[:count]
    yield close[np.argsort(distance[close], kind="stable")]
    corners = mesh.points[mesh.cells]
    low, high = corners.min(axis=1), corners.max(axis=1)
    slack = INSIDE * (high - low).max(axis=1, keepdims=True)
    inside = np.flatnonzero(((x >= low - slack) & (x <= high + slack)).all(axis=1))
    if inside.size:
        yield inside


def _reference(mesh, cells, x):
    """Return the reference coordinates of the point x in each of ``cells``, shape (dim, cells), by Newton's method."""
    element = mesh.fem.elem()
    corners = mesh.fem.p[:, mesh.fem.t[:, cells]]                # (dim, corners, cells)
    local = np.full((mesh.dim, len(cells)), 0.25 if mesh.shape in ("triangle", "tetra") else 0.5)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON):
            values, slopes = zip(*(element.lbasis(local, k) for k in range(corners.shape[1])))
            gap = x[:, None] - np.einsum("kc,dkc->dc", _filled(values, local[0]), corners)
            jacobian = np.einsum("kec,dkc->cde", _filled(slopes, local), corners)
            try:
                local = local + np.linalg.solve(jacobian, gap.T[..., None])[..., 0].T
            except np.linalg.LinAlgError:
                local = local + np.einsum("cde,ec->dc", np.linalg.pinv(np.nan_to_num(jacobian)), gap)
            local = np.clip(local, -1e3, 1e3)                    # far outside: only keep the values finite
    return local


def _filled(values, like):
    """Return ``values``, a sequence of arrays or scalars, as one array: each is broadcast to the shape of ``like``.
    (scikit-fem returns constants as scalars.)"""
    return np.stack([np.broadcast_to(v, np.shape(like)) for v in values])


def nearest(mesh, x):
    """Return the point of the mesh's outer facets that is nearest to x, shape (dim,)."""
    facets = mesh.fem.facets[:, mesh.exterior]
    corners = mesh.points[facets]                                # (corners of a face, faces, dim)
    if mesh.dim == 2:
        parts = [_on_segment(x, corners[0], corners[1])]
    else:
        turn = [(0, 1, 2)] if len(facets) == 3 else [(0, 1, 2), (0, 2, 3), (0, 1, 3), (1, 2, 3)]
        parts = [_on_triangle(x, *(corners[k] for k in three)) for three in turn]
    points = np.concatenate(parts)
    return points[np.argmin(((points - x) ** 2).sum(axis=1))]


def _on_segment(x, a, b):
    along = b - a
    t = np.clip(((x - a) * along).sum(axis=1) / (along ** 2).sum(axis=1), 0, 1)
    return a + t[:, None] * along


def _on_triangle(x, a, b, c):
    """Return the point of each triangle (corners a, b, c, shape (k, 3)) that is nearest to x: inside the triangle, or
    on the nearest of its sides."""
    u, v, w = b - a, c - a, x - a
    uu, uv, vv, wu, wv = ((p * q).sum(axis=1) for p, q in ((u, u), (u, v), (v, v), (w, u), (w, v)))
    below = np.maximum(uu * vv - uv ** 2, np.finfo(float).tiny)
    s, t = (vv * wu - uv * wv) / below, (uu * wv - uv * wu) / below
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
    sides = np.stack([_on_segment(x, *side) for side in ((a, b), (b, c), (c, a))])
    best = np.argmin(((sides - x) ** 2).sum(axis=2), axis=0)
    return np.where(inside[:, None], a + s[:, None] * u + t[:, None] * v, sides[best, np.arange(len(a))])
