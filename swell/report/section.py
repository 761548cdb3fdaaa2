"""A cut through a mesh of polyhedra: the cells' polygons in a plane, coloured by a field."""
import numpy as np

from swell.core.errors import InputError
from swell.display.figure import INK

SHIFT = 1e-7            # of the extent: the plane must not go through points
BESIDE = 0.45           # height over width from which pictures stand side by side
MAX_POLYGONS = 400_000  # polygons that a picture shows
CLIPPED = 0.5, 99.5     # percentiles of the values at the ends of the colours


def section(mesh, axis=None, at=None):
    """Cut a mesh by the plane x[axis] = at.

    Parameters
    ----------
    mesh : swell.pde.fvm.Mesh
        Of a PartMesh: each rank cuts its part, by one plane. All ranks call it together.
    axis : int, optional
        0 to 2; by default normal to patches of kind "empty", else the shortest extent.
    at : float, optional
        The middle of the extent by default.

    Returns
    -------
    cells : int array, shape (m,)
        The cells that the plane cuts.
    polygons : list of arrays, shape (k, 2)
        For each, its corners in the plane, in order around it.
    axes : (int, int)
        The coordinates of the corners.

    Raises
    ------
    InputError
        If the plane lies beside the mesh.
    """
    lows, highs = zip(*mesh.of_ranks((mesh.points.min(axis=0), mesh.points.max(axis=0))))
    low, extent = np.min(lows, axis=0), np.max(highs, axis=0) - np.min(lows, axis=0)
    axis = _flat(mesh, extent) if axis is None else axis
    at = low[axis] + 0.5 * extent[axis] if at is None else at
    height = mesh.points[:, axis] - (at + SHIFT * extent[axis])
    axes = tuple(a for a in range(3) if a != axis)

    lengths = np.diff(mesh.face_ptr)
    face = np.repeat(np.arange(mesh.n_faces), lengths)
    following = np.arange(1, mesh.face_points.size + 1)
    following[mesh.face_ptr[1:] - 1] = mesh.face_ptr[:-1]
    a, b = mesh.face_points, mesh.face_points[following]
    crossing = np.flatnonzero((height[a] > 0) != (height[b] > 0))
    a, b, face = a[crossing], b[crossing], face[crossing]
    share = (height[a] / (height[a] - height[b]))[:, None]
    corner = (1 - share) * mesh.points[a][:, axes] + share * mesh.points[b][:, axes]

    inside = face < mesh.neighbour.size
    cell = np.concatenate([mesh.owner[face], mesh.neighbour[face[inside]]])
    corner = np.concatenate([corner, corner[inside]])
    cells, place, count = np.unique(cell, return_inverse=True, return_counts=True)
    middle = np.stack([np.bincount(place, corner[:, k]) / count for k in (0, 1)], axis=1)[place]
    angle = np.arctan2(*(corner - middle).T[::-1])
    if not any(mesh.of_ranks(cells.size)):
        raise InputError(f"the plane {'xyz'[axis]} = {at:g} cuts no cell: the mesh lies between {low[axis]:g} "
                         f"and {low[axis] + extent[axis]:g}")
    order = np.lexsort((angle, place))
    return cells, np.split(corner[order], np.cumsum(count)[:-1]) if len(cells) else [], axes


def _flat(mesh, extent):
    """Return the axis along which there is the least to see."""
    empty = np.zeros(3)
    for patch in mesh.patches:
        if patch.kind == "empty":
            empty += abs(mesh.face_areas[patch.start:patch.start + patch.size]).sum(axis=0)
    empty = sum(mesh.of_ranks(empty))
    return int(np.argmax(empty)) if empty.any() else 2 - int(np.argmin(extent[::-1]))


def figure(mesh, fields, cut=None):
    """Return a matplotlib figure with a picture for each of ``fields`` (label → values of the cells, shape (n,)), side
    by side or one below the other, in the same cut; ``cut``: the result of `section`, by default through the middle.

    Of a PartMesh: of all parts together. All ranks call it together."""
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    cells, polygons, axes = section(mesh) if cut is None else cut
    parts, polygons = zip(*mesh.of_ranks(([np.asarray(values)[cells] for values in fields.values()], polygons)))
    polygons = [polygon for part in polygons for polygon in part]
    fields = dict(zip(fields, map(np.concatenate, zip(*parts))))
    of_all = len(polygons)
    cells = np.arange(of_all)
    if of_all > MAX_POLYGONS:
        keep = np.linspace(0, of_all - 1, MAX_POLYGONS).astype(int)
        cells, polygons = cells[keep], [polygons[k] for k in keep]
    corners = np.concatenate(polygons)
    low, high = corners.min(axis=0), corners.max(axis=0)
    width, height = high - low
    tall = height > BESIDE * width
    size = ((5.4 * len(fields), min(7.0, 1.0 + 4.0 * height / width)) if tall
            else (9.0, (0.9 + 7.3 * height / width) * len(fields)))
    drawing = Figure(figsize=size, layout="constrained", facecolor="white")
    if of_all > MAX_POLYGONS:
        drawing.suptitle(f"{MAX_POLYGONS} of the {of_all} cells in this cut are drawn", fontsize=8, color=INK)
    panels = drawing.subplots(1 if tall else len(fields), len(fields) if tall else 1, squeeze=False).ravel()
    for panel, (label, values) in zip(panels, fields.items()):
        shown = PolyCollection(polygons, array=np.asarray(values)[cells], cmap="viridis", edgecolors="none",
                               antialiased=False, rasterized=True)
        panel.add_collection(shown)
        panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        panel.set_xlabel("xyz"[axes[0]], color=INK)
        panel.set_ylabel("xyz"[axes[1]], color=INK)
        panel.tick_params(colors=INK, labelsize=8)
        low_value, high_value = np.percentile(np.asarray(values)[cells], CLIPPED)     # corners are singular
        if low_value < high_value:
            shown.set_clim(low_value, high_value)
        beside = panel.inset_axes([1.02, 0, 0.25 / size[0], 1])
        bar = drawing.colorbar(shown, extend="both", extendfrac=0.03, cax=beside)
        panel.set_title(label, loc="left", color=INK, fontsize=9)
        bar.ax.tick_params(colors=INK, labelsize=8)
    return drawing
