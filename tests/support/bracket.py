"""A bracket, meshed by gmsh: a body of few tetrahedra whose parts by METIS are irregular."""
from __future__ import annotations

import gmsh
import numpy as np


def bracket(size):
    """Return (points, tetrahedra) of two plates at a right angle with a hole in each; ``size``: the largest edge."""
    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.MeshSizeMax", size)
        gmsh.option.setNumber("Mesh.MeshSizeMin", size / 2)
        shape = gmsh.model.occ
        plates = [(3, shape.addBox(0, 0, 0, 1.0, 0.4, 0.1)), (3, shape.addBox(0, 0, 0, 0.1, 0.4, 0.8))]
        holes = [(3, shape.addCylinder(0.7, 0.2, -0.1, 0, 0, 0.4, 0.1)),
                 (3, shape.addCylinder(-0.1, 0.2, 0.55, 0.4, 0, 0, 0.08))]
        shape.cut(shape.fuse(plates[:1], plates[1:])[0], holes)
        shape.synchronize()
        gmsh.model.mesh.generate(3)
        tags, points, _ = gmsh.model.mesh.getNodes()
        cells = gmsh.model.mesh.getElementsByType(4)[1]
    finally:
        gmsh.finalize()
    place = np.zeros(int(tags.max()) + 1, int)
    place[tags.astype(int)] = np.arange(tags.size)
    used, cells = np.unique(place[cells.astype(int)], return_inverse=True)
    return points.reshape(-1, 3)[used], cells.reshape(-1, 4)
