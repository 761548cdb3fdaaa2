"""A car's compartment, by gmsh: a side view with firewall, windscreen, roof, rear window and seats, extruded in y.

"tetra"        unstructured tetrahedra,
"hexahedron"   quadrilaterals of the side view, extruded across the width: good cells, at most 27 entries a row except
               where five or more quadrilaterals meet,
"divided"      every tetrahedron divided into four hexahedra: bad cells in an irregular order, as hard as the Twingo.

x runs from the firewall to the rear, y across, z up; the driver sits in front at small y.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.helmholtz.gmsh_session import MAX_CELLS, finished, session
from swell.pde.helmholtz.meshes import EDGES, Mesh

KINDS = ("tetra", "hexahedron", "divided")
# The side view: x of the windscreen's and rear window's upper ends, z of the rear window's lower end (fractions).
WINDSCREEN, REAR_TOP, REAR_FOOT = 0.30, 0.82, 0.60
# The seats: x of a cushion's two ends and of its back's end (fractions of the length), and both heights.
FRONT, REAR = (0.38, 0.55, 0.60), (0.74, 0.90, 0.95)
CUSHION, BACK = 0.30, 0.62
MARGIN, AISLE = 0.04, 0.16      # gaps beside the seats and between the front ones, fractions of the width


def car_cabin(size=0.1, kind="tetra", *, length=2.6, width=1.3, height=1.15, firewall=0.55, seats=True) -> Mesh:
    """Mesh the compartment of a car.

    Parameters
    ----------
    size : float
        Target length of the edges, m.
    kind : {"tetra", "hexahedron", "divided"}
    length, width, height : float
        m.
    firewall : float
        The firewall's height, as a fraction of the cabin's; the windscreen begins above it.
    seats : bool
        Cut out two front seats and a rear bench, as rigid bodies.

    Returns
    -------
    Mesh
        It has the boundaries firewall, windscreen, roof, rear_window, rear_wall, floor, left, right and seats, and the
        region cabin.

    Raises
    ------
    InputError
        For parameters out of range, or sizes that make too many cells.
    MissingDependency
        Without gmsh.
    """
    _check(size, kind, length, width, height, firewall, seats)
    if kind == "hexahedron":
        return _carried(size, length, width, height, firewall, seats)
    with session() as gmsh:
        edge = 2 * size if kind == "divided" else size
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.5 * edge)
        gmsh.option.setNumber("Mesh.MeshSizeMax", edge)
        profile = _outline(length, height, firewall)
        solid = _prism(gmsh, profile, 0.0, width)
        if seats:
            tools = [_prism(gmsh, outline, low, high - low) for outline, spans in _seats(length, height)
                     for low, high in np.array(spans) * width]
            gmsh.model.occ.cut([solid], tools)
        gmsh.model.occ.synchronize()
        _name(gmsh, profile, width)
        volumes = [tag for _, tag in gmsh.model.getEntities(3)]
        gmsh.model.setPhysicalName(3, gmsh.model.addPhysicalGroup(3, volumes), "cabin")
        meshio_mesh = finished(gmsh, 3)
    from swell.pde.helmholtz.meshio_reader import from_meshio
    mesh = from_meshio(meshio_mesh, "the cabin")
    return divided(mesh) if kind == "divided" else mesh


def _check(size, kind, length, width, height, firewall, seats):
    """Raise InputError for bad arguments of `car_cabin`."""
    for name, value in (("size", size), ("length", length), ("width", width), ("height", height)):
        if not real(value) or not math.isfinite(value) or value <= 0:
            raise InputError(f"{name}={value!r}: expected a positive number, in m")
    if kind not in KINDS:
        raise InputError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
    if not real(firewall) or not 0.2 <= firewall <= 0.95:
        raise InputError(f"firewall={firewall!r}: expected its height as a share of the cabin's, from 0.2 to 0.95")
    if not isinstance(seats, bool):
        raise InputError(f"seats={seats!r}: expected True or False")
    if size > 0.5 * min(length, width, height):
        raise InputError(f"size={size} is more than half the cabin's least side, {min(length, width, height)} m: "
                         "expected smaller cells, such as 0.1")
    cells = (8 if kind == "tetra" else 4 if kind == "divided" else 1) * length * width * height / size ** 3
    if cells > MAX_CELLS:
        raise InputError(f"size={size} would make about {cells:.1e} cells, more than {MAX_CELLS:.0e}: take larger ones")


def _outline(length, height, firewall):
    """Return the corners of the side view, a list of (x, z), anticlockwise seen with x to the right and z up."""
    return [(0, 0), (length, 0), (length, REAR_FOOT * height), (REAR_TOP * length, height),
            (WINDSCREEN * length, height), (0, firewall * height)]


def _seats(length, height):
    """Return a list with a pair for each row of seats: (its outline in the side view, its intervals across the width,
    as fractions)."""
    front = [(MARGIN, 0.5 - AISLE / 2), (0.5 + AISLE / 2, 1 - MARGIN)]
    rows = []
    for (start, end, back), spans in ((FRONT, front), (REAR, [(MARGIN, 1 - MARGIN)])):
        low = 0.05 * height                                      # room for feet below
        rows.append(([(start * length, low), (back * length, low), (back * length, BACK * height),
                      (end * length, BACK * height), (end * length, CUSHION * height),
                      (start * length, CUSHION * height)], spans))
    return rows


def _prism(gmsh, outline, start, width):
    """Extrude an outline of the side view, a list of (x, z), from y = start by ``width``; return gmsh's (3, tag) of the
    solid."""
    occ = gmsh.model.occ
    points = [occ.addPoint(x, start, z) for x, z in outline]
    lines = [occ.addLine(a, b) for a, b in zip(points, points[1:] + points[:1])]
    surface = occ.addPlaneSurface([occ.addCurveLoop(lines)])
    return next(entity for entity in occ.extrude([(2, surface)], 0, width, 0) if entity[0] == 3)


def _name(gmsh, profile, width):
    """Name the surfaces of the model in gmsh (as physical groups) by their positions; surfaces on no wall belong to the
    seats. ``profile``: the corners of the side view."""
    groups = {}
    for _, tag in gmsh.model.getEntities(2):
        x, y, z = gmsh.model.occ.getCenterOfMass(2, tag)
        groups.setdefault(_wall(np.array([[x, y, z]]), profile, width)[0], []).append(tag)
    for name, tags in groups.items():
        gmsh.model.setPhysicalName(2, gmsh.model.addPhysicalGroup(2, tags), name)


def _wall(centres, profile, width):
    """Return the wall's name for each face centre, shape (faces, 3); "seats" for centres on no wall. ``profile``: the
    corners of the side view."""
    corners = np.array(profile, float)
    tiny = 1e-6 * np.ptp(corners)
    names = np.full(len(centres), "seats", object)
    sides = ("floor", "rear_wall", "rear_window", "roof", "windscreen", "firewall")
    for name, a, b in zip(sides, corners, np.roll(corners, -1, axis=0)):
        along = (b - a) / np.linalg.norm(b - a)
        off = centres[:, [0, 2]] - a
        names[abs(off[:, 0] * along[1] - off[:, 1] * along[0]) < tiny] = name
    names[abs(centres[:, 1]) < tiny] = "left"
    names[abs(centres[:, 1] - width) < tiny] = "right"
    return names


def _carried(size, length, width, height, firewall, seats):
    """Return a Mesh of the cabin by hexahedra: quadrilaterals of the side view, extruded in layers, without the seats'
    cells. Arguments as in ``car_cabin``."""
    profile = _outline(length, height, firewall)
    rows = _seats(length, height) if seats else []
    with session() as gmsh:
        for name, value in (("MeshSizeMin", 2 * size), ("MeshSizeMax", 2 * size), ("Algorithm", 8), ("RecombineAll", 1),
                            ("RecombinationAlgorithm", 1), ("SubdivisionAlgorithm", 1)):     # 1: each divided into four
            gmsh.option.setNumber(f"Mesh.{name}", value)
        occ = gmsh.model.occ
        faces = [_face(occ, outline) for outline in (profile, *(outline for outline, _ in rows))]
        parts = [[(2, faces[0])]]
        if rows:
            _, parts = occ.fragment([(2, faces[0])], [(2, face) for face in faces[1:]])
        occ.synchronize()
        inside = {tag for part in parts[1:] for _, tag in part}
        cabin = [tag for _, tag in parts[0] if tag not in inside]
        for k, tags in enumerate([cabin, *([tag for _, tag in part] for part in parts[1:])]):
            gmsh.model.setPhysicalName(2, gmsh.model.addPhysicalGroup(2, tags), str(k))
        from swell.pde.helmholtz.meshio_reader import from_meshio
        flat = from_meshio(finished(gmsh, 2), "the side view of the cabin")
    cuts = np.unique(np.round([0, 1, *(y for _, spans in rows for span in spans for y in span)], 12)) * width
    across = np.concatenate([np.linspace(a, b, max(1, round((b - a) / size)) + 1)[:-1] for a, b in zip(cuts, cuts[1:])]
                            + [cuts[-1:]])
    points = np.concatenate([np.column_stack([flat.points[:, 0], np.full(len(flat.points), y), flat.points[:, 1]])
                             for y in across])
    middles, layers = (across[1:] + across[:-1]) / 2, []
    for k, y in enumerate(middles):
        keep = np.ones(len(flat.cells), bool)
        for row, (_, spans) in enumerate(rows, 1):
            if any(low * width < y < high * width for low, high in spans):
                keep[flat.regions[str(row)]] = False
        square = flat.cells[keep]
        layers.append(np.hstack([square + k * len(flat.points), square + (k + 1) * len(flat.points)]))
    cells = np.concatenate(layers)
    bare = Mesh(points, "hexahedron", cells)
    names = _wall(bare.facet_centres[bare.exterior], profile, width)
    faces = bare.fem.facets[:, bare.exterior].T
    return Mesh(bare.points, "hexahedron", bare.cells, {"cabin": np.arange(len(cells))},
                {name: faces[names == name] for name in sorted(set(names))})


def _face(occ, outline):
    points = [occ.addPoint(x, z, 0) for x, z in outline]
    lines = [occ.addLine(a, b) for a, b in zip(points, points[1:] + points[:1])]
    return occ.addPlaneSurface([occ.addCurveLoop(lines)])


def divided(mesh) -> Mesh:
    """Return a mesh in which each tetrahedron of ``mesh`` is divided into four hexahedra; new points are the middles of
    edges, faces and cells."""
    cells, p = mesh.cells, mesh.points
    edges, edge_of = _unique([cells[:, list(e)] for e in EDGES["tetra"]])
    around = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    faces, face_of = _unique([cells[:, list(f)] for f in around])
    points = np.concatenate([p, p[edges].mean(1), p[faces].mean(1), p[cells].mean(1)])
    edge_of, face_of = edge_of + len(p), face_of + len(p) + len(edges)
    middle = len(p) + len(edges) + len(faces) + np.arange(len(cells))
    edge = {frozenset(e): edge_of[k] for k, e in enumerate(EDGES["tetra"])}
    face = {frozenset(f): face_of[k] for k, f in enumerate(around)}
    parts = []
    for a, b, c, d in ((0, 1, 2, 3), (1, 0, 3, 2), (2, 0, 1, 3), (3, 0, 2, 1)):      # a's own part
        ab, ac, ad = (edge[frozenset(pair)] for pair in ((a, b), (a, c), (a, d)))
        abc, abd, acd = (face[frozenset(three)] for three in ((a, b, c), (a, b, d), (a, c, d)))
        parts.append(np.stack([cells[:, a], ab, abc, ac, ad, abd, middle, acd], axis=1))
    groups, count = {}, len(mesh.points)
    for name, facets in mesh.boundaries.items():
        corners = np.sort(mesh.fem.facets[:, facets].T, axis=1).astype(np.int64)
        key = (lambda f: (f[:, 0] * count + f[:, 1]) * count + f[:, 2])              # three corners below 2²¹ points
        at = np.searchsorted(key(faces), key(corners)) + len(p) + len(edges)
        number = edges[:, 0] * count + edges[:, 1]
        side = {(i, j): np.searchsorted(number, corners[:, i] * count + corners[:, j]) + len(p)
                for i, j in ((0, 1), (0, 2), (1, 2))}
        groups[name] = np.concatenate([
            np.stack([corners[:, i], side[min(i, j), max(i, j)], at, side[min(i, k), max(i, k)]], axis=1)
            for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))])
    regions = {name: (of[:, None] + len(cells) * np.arange(4)).ravel() for name, of in mesh.regions.items()}
    return Mesh(points, "hexahedron", np.concatenate(parts), regions, groups)


def _unique(tables):
    """Return (distinct rows, numbers) of several tables of corners with sorted rows: row i of table t is the distinct
    row numbers[t, i]."""
    every = np.sort(np.concatenate(tables), axis=1)
    rows, number = np.unique(every, axis=0, return_inverse=True)
    return rows, number.reshape(len(tables), -1)
