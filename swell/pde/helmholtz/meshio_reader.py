"""Meshes from Gmsh and every other format that meshio reads: cells of one shape, named regions, named boundaries.

Names come from physical groups, tags or sets. In a file without solids, the cells are plane elements, and lines are
their boundary.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.faces_of_cells import DIMENSION, corners
from swell.pde.fvm.meshio_reader import TAGS, parsed
from swell.pde.helmholtz.meshes import CORNERS, Mesh


def read_mesh(path) -> Mesh:
    """Read a mesh from a file of any format that meshio knows, also compressed (.gz, .bz2).

    Raises
    ------
    InputError
        For a damaged file, cells of several shapes, or of an unsupported shape.
    MissingDependency
        Without meshio, or without a package that meshio needs for this format.
    """
    from swell.io.files import regular_file
    path = regular_file(path)
    return from_meshio(parsed(Path(path)), str(path))


def from_meshio(given, name="the mesh") -> Mesh:
    """Convert a ``meshio.Mesh`` to a Mesh; ``name``: the mesh in messages. See `read_mesh` for the errors."""
    try:
        blocks = [corners(block.type, block.data) for block in given.cells]
        dimension = max((DIMENSION[shape] for shape, _ in blocks), default=0)
        shapes = sorted({shape for shape, _ in blocks if DIMENSION[shape] == dimension})
        if len(shapes) != 1 or shapes[0] not in CORNERS:
            counts = ", ".join(f"{sum(len(c) for s, c in blocks if s == shape)} {shape}" for shape in shapes)
            raise InputError(f"its cells are {counts or 'missing'}: expected one shape of {', '.join(CORNERS)}; mesh "
                             "it with tetrahedra alone, or with hexahedra alone")
        cells = np.concatenate([members for shape, members in blocks if shape == shapes[0]])
        regions = _groups(given, blocks, dimension, lambda first, members, chosen: first + np.flatnonzero(chosen))
        groups = _groups(given, blocks, dimension - 1, lambda first, members, chosen: members[chosen])
        return Mesh(given.points, shapes[0], cells, {key: np.concatenate(of) for key, of in regions.items()},
                    {key: np.concatenate(of) for key, of in groups.items() if len({of_.shape[1] for of_ in of}) == 1})
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _groups(meshio_mesh, blocks, dimension, take) -> dict:
    """Return the named groups of elements of one dimension: name → list of results of ``take(first, members, chosen)``,
    one for each block of elements with members of the group.

    ``blocks``: (shape, corners) of each block. ``first`` is the block's first element among all elements of that
    dimension, ``members`` its corners, ``chosen`` the mask of the group's members.
    """
    names = {int(tag): name for name, (tag, of) in (meshio_mesh.field_data or {}).items() if of == dimension}
    firsts, first = [], 0
    for shape, members in blocks:
        firsts.append(first)
        first += len(members) if DIMENSION[shape] == dimension else 0
    groups = {}

    def add(name, k, chosen):
        if chosen.any():
            groups.setdefault(name, []).append(take(firsts[k], blocks[k][1], chosen))

    for key in TAGS:
        for k, tags in enumerate(meshio_mesh.cell_data.get(key, [])):
            if DIMENSION[blocks[k][0]] == dimension:
                tags = np.asarray(tags).ravel()
                for tag in np.unique(tags):
                    if tag or int(tag) in names:        # 0 without a name: in no group
                        add(names.get(int(tag), f"group{int(tag)}"), k, tags == tag)
    for name, members in meshio_mesh.cell_sets.items():
        for k, chosen in enumerate(members):
            if not name.startswith("gmsh:") and DIMENSION[blocks[k][0]] == dimension and chosen is not None:
                mask = np.zeros(len(blocks[k][1]), bool)
                mask[np.asarray(chosen, np.int64)] = True
                add(name, k, mask)
    return groups
