"""The sound pressure level in a mesh as a picture: on its surface, and in a cut through its middle.

Cells are split into tetrahedra, which the plane cuts into triangles with linear pressure. The colours reach
from the loudest places `SPAN` dB down: at a node of the sound the level has no bound.
"""
from functools import partial

import numpy as np

from swell.display.figure import INK
from swell.report.files import save

SPAN = 40.0             # dB from the highest to the lowest colour
LOUD = 0.999            # share of the points whose level is below the highest colour's
SHIFT = 1e-7            # of the extent: the plane must not go through points
MAP = "inferno"
VIEW = 24, -62          # elevation and azimuth of the surface's picture, degrees
TETRAHEDRA = {"tetra": ((0, 1, 2, 3),),
              "hexahedron": ((0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6), (0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6))}
TRIANGLES = {"triangle": ((0, 1, 2),), "quad": ((0, 1, 2), (0, 2, 3))}
EDGES = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])


def plot(field, decibels, path):
    """Write the picture of a Field as a PNG file; ``decibels`` as in `figure`."""
    save(figure(field, decibels), path)


def figure(field, decibels, axis=None):
    """Return a matplotlib figure of the level of a Field: the surface beside a cut, of a plane mesh all of it.

    Parameters
    ----------
    field : swell.pde.helmholtz.Field
    decibels : callable
        Returns the levels of complex amplitudes.
    axis : int, optional
        The normal of the cut through the middle; by default y, or the shortest extent if it is less than half of y's.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    mesh, p = field.problem.mesh, field.p[:len(field.problem.mesh.points)]
    level = decibels(p)
    loudest = np.quantile(level, LOUD, method="higher")       # a point source would leave its room dark
    top = 5 * np.ceil(max(loudest, -200.0) / 5)               # a field of zeros has no level
    colours, bounded = ScalarMappable(Normalize(top - SPAN, top), MAP), partial(np.maximum, top - SPAN)
    level = bounded(level)                                     # −∞ cannot be drawn
    flat = mesh.dim == 2
    drawing = Figure(figsize=(6.0, 4.2) if flat else (9.0, 3.0), layout="constrained", facecolor="white")
    if flat:
        panel = drawing.add_subplot()
        _colour(panel, mesh.points, _split(mesh, TRIANGLES), level, colours)
        axes, name = (0, 1), ""
    else:
        panel, axes, name = _surface_and_cut(drawing, mesh, level, colours, axis,
                                             lambda share, a, b: bounded(decibels((1 - share) * p[a] + share * p[b])))
    panel.set(aspect="equal")
    panel.set_xlabel(f"{'xyz'[axes[0]]} in m", color=INK)
    panel.set_ylabel(f"{'xyz'[axes[1]]} in m", color=INK)
    panel.set_title(name, fontsize=10, color=INK)
    panel.tick_params(colors=INK, labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    bar = drawing.colorbar(colours, ax=drawing.axes, shrink=0.9, pad=0.02,
                           extend="both" if level.max() > top else "min")
    bar.set_label("dB re 20 µPa", color=INK)
    failed = "" if field.converged else ", NOT converged"
    drawing.suptitle(f"sound pressure level at {field.frequency:g} Hz{failed}", color=INK)
    return drawing


def _surface_and_cut(drawing, mesh, level, colours, axis, between):
    """Draw both pictures of a mesh in space; return (the cut's axes, its two coordinates, its title).

    ``level``: at the mesh's points; ``between(share, a, b)`` returns it on the lines from points a to b."""
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection
    extent, low = np.ptp(mesh.points, axis=0), mesh.points.min(axis=0)
    shortest = int(np.argmin(extent))
    axis = (shortest if extent[shortest] < 0.5 * extent[1] else 1) if axis is None else axis
    at, axes = low[axis] + 0.5 * extent[axis], tuple(a for a in range(3) if a != axis)
    whole, panel = drawing.add_subplot(1, 2, 1, projection="3d"), drawing.add_subplot(1, 2, 2)
    facets = mesh.fem.facets[:, mesh.exterior].T
    fill = colours.to_rgba(level[facets].mean(axis=1))
    shown = Poly3DCollection(mesh.points[facets], facecolors=fill, edgecolors=fill, linewidths=0.2, rasterized=True,
                             clip_on=False)
    whole.add_collection3d(shown)
    whole.set(xlim=(low[0], low[0] + extent[0]), ylim=(low[1], low[1] + extent[1]), zlim=(low[2], low[2] + extent[2]))
    whole.set_box_aspect(extent, zoom=1.0)
    whole.view_init(*VIEW)
    whole.set_axis_off()
    whole.set_title("on the surface", fontsize=10, color=INK)
    height = mesh.points[:, axis] - (at + SHIFT * extent[axis])
    points, values, triangles = _cut(mesh, height, axes, between)
    _colour(panel, points, triangles, values, colours)
    sides = facets[(height[facets] > 0).any(axis=1) & (height[facets] < 0).any(axis=1)]
    panel.add_collection(LineCollection(_outline(mesh.points, sides, height, axes), colors=INK, linewidths=1.2))
    return panel, axes, f"cut at {'xyz'[axis]} = {at + 0.0:.3g} m"


def _split(mesh, kinds):
    """Return the simplices of all cells, in the order of the cells."""
    return np.concatenate([mesh.cells[:, corners] for corners in kinds[mesh.shape]])


def _colour(panel, points, triangles, level, colours):
    """Fill triangles, with levels at the points that are linear between them."""
    panel.tripcolor(points[:, 0], points[:, 1], triangles, level, shading="gouraud", cmap=colours.cmap,
                    norm=colours.norm, rasterized=True)


def _cut(mesh, height, axes, between):
    """Return (points, levels there, triangles) of the plane height = 0 through all cells."""
    cells = _split(mesh, TETRAHEDRA)
    above = height[cells] > 0
    cells = cells[above.any(axis=1) & ~above.all(axis=1)]
    a, b = np.moveaxis(cells[:, EDGES], -1, 0)
    crossing = (height[a] > 0) != (height[b] > 0)
    cell = np.nonzero(crossing)[0]
    a, b = a[crossing], b[crossing]
    share = height[a] / (height[a] - height[b])
    points = ((1 - share)[:, None] * mesh.points[a] + share[:, None] * mesh.points[b])[:, axes]
    count = np.bincount(cell, minlength=len(cells))
    middle = np.stack([np.bincount(cell, points[:, k], len(cells)) / count for k in (0, 1)], axis=1)[cell]
    angle = np.arctan2(*(points - middle).T[::-1])
    order = np.lexsort((angle, cell))
    first = np.cumsum(count) - count
    fan = [np.stack([first, first + 1, first + 2], axis=1)]
    fan.append(np.stack([first, first + 2, first + 3], axis=1)[count == 4])
    return points[order], between(share, a, b)[order], np.concatenate(fan)


def _outline(points, sides, height, axes):
    """Return the segments in which the plane height = 0 cuts the facets ``sides``, shape (segments, 2, 2)."""
    a, b = sides, np.roll(sides, -1, axis=1)
    crossing = (height[a] > 0) != (height[b] > 0)
    twice = crossing.sum(axis=1) == 2            # a warped facet may be cut in four sides
    a, b = a[twice][crossing[twice]], b[twice][crossing[twice]]
    share = (height[a] / (height[a] - height[b]))[:, None]
    return ((1 - share) * points[a] + share * points[b])[:, axes].reshape(-1, 2, 2)
