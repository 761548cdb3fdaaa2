"""Meshes from meshio: solids of every kind, mixed; plane meshes; groups; what is refused; and the real files."""
import builtins
import gzip

import numpy as np
import pytest

from swell.core.errors import InputError, MissingDependency
from swell.pde.fvm import box, from_meshio, read_mesh, read_meshio

meshio = pytest.importorskip("meshio", reason="needs meshio: pip install 'swell[pde]'")

HEXAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], float)
# One solid of each kind, its corners in VTK's order, and its volume.
SOLIDS = {
    "tetra": (HEXAHEDRON[[0, 1, 3, 4]], 1 / 6), "pyramid": (np.vstack([HEXAHEDRON[:4], [[0.5, 0.5, 1]]]), 1 / 3),
    "wedge": (HEXAHEDRON[[0, 1, 3, 4, 5, 7]], 1 / 2), "hexahedron": (HEXAHEDRON, 1.0),
}


def hexahedra(cells):
    """A unit box as meshio has it: points and corners."""
    mesh = box(cells)
    nx, ny, nz = cells
    first = np.array([i + (nx + 1) * (j + (ny + 1) * k) for k in range(nz) for j in range(ny) for i in range(nx)])
    up, deep = nx + 1, (nx + 1) * (ny + 1)
    return mesh.points, first[:, None] + np.array([0, 1, 1 + up, up, deep, 1 + deep, 1 + up + deep, up + deep])


def mixed():
    """A column of a hexahedron, a pyramid on it, and tetrahedra and a wedge beside them."""
    points = np.vstack([HEXAHEDRON, [[0.5, 0.5, 2], [2, 0, 0], [2, 0, 1], [2, 0.5, 1.5]]])
    return meshio.Mesh(points, [("hexahedron", [range(8)]), ("pyramid", [[4, 5, 6, 7, 8]]),
                                ("wedge", [[1, 9, 2, 5, 10, 6]]), ("tetra", [[5, 10, 6, 11], [5, 6, 8, 11]])])


@pytest.mark.parametrize("kind", SOLIDS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_one_solid(kind, mirrored):
    """Corners of both orientations: conventions differ, and a cell has no inside out."""
    points, volume = SOLIDS[kind]
    mesh = from_meshio(meshio.Mesh(points * [1, 1, -1 if mirrored else 1], [(kind, [range(len(points))])]))
    assert mesh.n_cells == 1 and mesh.n_internal == 0 and mesh.patches[0].name == "boundary"
    assert mesh.volumes[0] == pytest.approx(volume, rel=1e-14)


def test_hexahedra_are_the_box():
    points, cells = hexahedra((4, 3, 2))
    mesh, expected = from_meshio(meshio.Mesh(points, [("hexahedron", cells)])), box((4, 3, 2))
    np.testing.assert_array_equal(mesh.owner[:mesh.n_internal], expected.owner[:mesh.n_internal])
    np.testing.assert_array_equal(mesh.neighbour, expected.neighbour)
    np.testing.assert_allclose(mesh.face_areas[:mesh.n_internal], expected.face_areas[:mesh.n_internal], atol=1e-15)
    np.testing.assert_allclose(mesh.centres, expected.centres, atol=1e-14)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]])
def test_arrays_of_any_layout(layout):
    """netCDF's points come by columns."""
    given = mixed()
    expected = from_meshio(given)
    points, cells = layout(given.points), [(block.type, layout(block.data)) for block in given.cells]
    mesh = from_meshio(meshio.Mesh(points, cells))
    np.testing.assert_array_equal(mesh.volumes, expected.volumes)
    np.testing.assert_array_equal(mesh.owner, expected.owner)


def test_mixed_solids():
    mesh = from_meshio(mixed())
    assert mesh.n_cells == 5 and mesh.n_internal == 5
    pairs = set(zip(mesh.owner[:5].tolist(), mesh.neighbour.tolist()))
    assert pairs == {(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)}
    assert mesh.volumes[:3] == pytest.approx([1, 1 / 3, 1 / 2])


@pytest.mark.parametrize("kind, count", [("tetra10", 10), ("hexahedron20", 20), ("hexahedron27", 27), ("wedge18", 18),
                                         ("pyramid14", 14)])
def test_corners_of_higher_orders(kind, count):
    points, volume = SOLIDS[kind.rstrip("0123456789")]
    more = np.vstack([points, np.random.default_rng(1).random((count - len(points), 3))])
    mesh = from_meshio(meshio.Mesh(more, [(kind, [range(count)])]))
    assert mesh.volumes[0] == pytest.approx(volume) and mesh.n_points == count


def test_groups_of_gmsh(tmp_path):
    """Physical names and bare tags, through a real file; what is in no group is the boundary."""
    points, cells = hexahedra((2, 2, 2))
    xmin = [[0, 3, 12, 9], [3, 6, 15, 12], [9, 12, 21, 18], [12, 15, 24, 21]]
    inside = [[1, 4, 13, 10]]
    given = meshio.Mesh(points, [("quad", xmin), ("quad", [[2, 5, 14, 11]]), ("quad", inside), ("hexahedron", cells)],
                        cell_data={"gmsh:physical": [[7] * 4, [9], [7], [1] * 8], "gmsh:geometrical": [[7] * 4, [9], [7], [1] * 8]},
                        field_data={"inlet": np.array([7, 2]), "fluid": np.array([1, 3])})
    meshio.write(tmp_path / "a.msh", given, file_format="gmsh22", binary=False)
    mesh = read_mesh(tmp_path / "a.msh")
    assert [(patch.name, patch.size) for patch in mesh.patches] == [("inlet", 4), ("patch9", 1), ("boundary", 19)]
    np.testing.assert_allclose(mesh.face_centres[mesh.patch("inlet").faces][:, 0], 0)
    np.testing.assert_allclose(mesh.face_centres[mesh.patch("patch9").faces], [[1, 0.25, 0.25]])


def test_groups_that_are_sets():
    points, cells = hexahedra((2, 1, 1))
    given = meshio.Mesh(points, [("hexahedron", cells), ("quad", [[0, 3, 9, 6], [2, 5, 11, 8]])],
                        cell_sets={"left": [[], [0]], "right": [None, [1]], "all": [[0, 1], []], "gmsh:entities": [[], [0, 1]]})
    mesh = from_meshio(given)
    assert [(patch.name, patch.size) for patch in mesh.patches] == [("left", 1), ("right", 1), ("boundary", 8)]
    given.cell_sets["both"] = [[], [0, 1]]
    with pytest.raises(InputError, match="groups 'left' and 'both' share 1 faces"):
        from_meshio(given)


def test_a_group_of_triangles_and_quadrilaterals():
    points, _ = SOLIDS["wedge"]
    given = meshio.Mesh(points, [("wedge", [range(6)]), ("triangle", [[0, 1, 2]]), ("quad", [[0, 1, 4, 3]])],
                        cell_data={"gmsh:physical": [[0], [5], [5]]})
    assert [(patch.name, patch.size) for patch in from_meshio(given).patches] == [("patch5", 2), ("boundary", 3)]


# --- the plane ---

def plane():
    """A unit square: a triangle turned the other way, a quadrilateral, and a pentagon, with one group of edges."""
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0], [0.5, 0.5], [0, 0.5]])
    return meshio.Mesh(points, [("triangle", [[4, 1, 5][::-1]]), ("quad", [[0, 4, 5, 6]]), ("polygon", [[1, 2, 3, 6, 5]]),
                                ("line", [[0, 4], [1, 4]])],
                       cell_data={"gmsh:physical": [[1], [1], [1], [3, 3]]}, field_data={"floor": np.array([3, 1])})


@pytest.mark.parametrize("thickness", [1.0, 0.25])
def test_plane_meshes_become_a_layer(thickness):
    mesh = from_meshio(plane(), thickness)
    assert [(patch.name, patch.size, patch.kind) for patch in mesh.patches] == [
        ("floor", 2, "patch"), ("boundary", 4, "patch"), ("back", 3, "empty"), ("front", 3, "empty")]
    np.testing.assert_allclose(mesh.volumes, thickness * np.array([0.125, 0.25, 0.625]))
    assert mesh.n_internal == 3 and mesh.n_points == 14
    np.testing.assert_allclose(mesh.face_areas[mesh.patch("front").faces][:, 2], [0.125, 0.25, 0.625])
    np.testing.assert_allclose(mesh.face_centres[mesh.patch("floor").faces][:, 1], 0)


def test_a_plane_at_another_height():
    given = plane()
    given.points = np.column_stack([given.points, np.full(7, 3.0)])
    assert from_meshio(given).centres[0][2] == pytest.approx(3.5)


# --- what is refused ---

def refused(given, words):
    with pytest.raises(InputError, match=words):
        from_meshio(given)


def test_what_is_no_mesh_of_solids():
    refused(meshio.Mesh(HEXAHEDRON, [("line", [[0, 1]])]), "the mesh: it has line, but neither solids nor plane")
    refused(meshio.Mesh(HEXAHEDRON, []), "no cells at all")
    refused(meshio.Mesh(HEXAHEDRON, [("triangle", [[0, 1, 6]])]), "between z = 0 and z = 1: a surface in space")
    refused(meshio.Mesh(HEXAHEDRON, [("polyhedron8", [[[0, 1, 2, 3]]])]), "1 cells of the type 'polyhedron8', expected tetra")
    refused(meshio.Mesh(HEXAHEDRON, [("tetra", [[0, 1, 3, 8]])]), "has the point 8, but points are numbered 0 to 7")


def test_a_face_of_three_cells():
    points = np.vstack([HEXAHEDRON[[0, 1, 3]], [[0, 0, 1], [0, 0, -1], [0.2, 0.2, 2]]])
    refused(meshio.Mesh(points, [("tetra", [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]])]), "cells 0, 1, 2 share one face, near")


def test_overlapping_cells():
    """Both cells lie on the same side of the face that they share."""
    points = np.vstack([HEXAHEDRON[[0, 1, 3]], [[0, 0, 1], [0.1, 0.1, 2]]])
    refused(meshio.Mesh(points, [("tetra", [[0, 1, 2, 3], [0, 1, 2, 4]])]), "cell 1 is open")


def test_flat_cells():
    refused(meshio.Mesh(HEXAHEDRON, [("tetra", [[0, 1, 2, 3]])]), "cell 0 has the zero volume")
    refused(meshio.Mesh(HEXAHEDRON, [("quad", [[0, 1, 1, 0]])]), "face 0 has cell 0 on both sides")


def test_bad_thickness():
    with pytest.raises(InputError, match="thickness"):
        from_meshio(plane(), 0)


def test_files_that_meshio_cannot_read(tmp_path):
    (tmp_path / "a.msh").write_text("no mesh\n")
    (tmp_path / "a.xyz").write_text("no mesh\n")
    for name in ("a.msh", "a.xyz"):
        with pytest.raises(InputError, match=f"{name} cannot be read by meshio.*name a mesh file"):
            read_meshio(tmp_path / name)


@pytest.mark.parametrize("name, settings", [("a.msh", {"file_format": "gmsh22", "binary": False}),
                                            ("b.msh", {"file_format": "gmsh", "binary": True}), ("a.vtk", {}), ("a.vtu", {}),
                                            ("a.mesh", {}), ("a.inp", {})])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_whole_and_truncated_files(tmp_path, name, settings, packed, capfd):
    """meshio prints, raises anything or ends the process: it is one error of ours."""
    points, cells = hexahedra((3, 2, 2))
    path = tmp_path / name
    meshio.write(path, meshio.Mesh(points, [("hexahedron", cells)]), **settings)
    content = path.read_bytes()

    def put(content):
        if not packed:
            path.write_bytes(content)
            return path
        path.with_name(f"{name}.gz").write_bytes(gzip.compress(content))
        return path.with_name(f"{name}.gz")

    capfd.readouterr()
    assert read_meshio(put(content)).volumes.sum() == pytest.approx(1)
    for share in (0.0, 0.2, 0.5, 0.7):
        with pytest.raises(InputError, match=name):
            read_meshio(put(content[:int(share * len(content))]))
    assert capfd.readouterr() == ("", "")


def test_without_meshio(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(module, *rest):
        if module.split(".")[0] == "meshio":
            raise ImportError("No module named 'meshio'")
        return real(module, *rest)

    (tmp_path / "a.msh").write_text("")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependency, match=r"a.msh needs meshio: pip install 'swell\[pde\]'"):
        read_meshio(tmp_path / "a.msh")


# --- the real ones ---

@pytest.mark.data
@pytest.mark.parametrize("name, cells, patches, volume", [
    ("anisotropy.msh", 8332, ["boundary", "back", "front"], np.pi),
    ("beams.msh", 851, ["fixed", "boundary"], 0.12),
    ("cylinder_stokes.msh", 293, ["boundary", "back", "front"], None),
    ("cub_wedge_tet.vtk.gz", 112393, ["boundary"], None),
])
def test_real_files(data, name, cells, patches, volume):
    mesh = read_mesh(data / "meshes" / name)
    assert mesh.n_cells == cells and [patch.name for patch in mesh.patches] == patches
    boundary = slice(mesh.n_internal, None)
    inside = (mesh.face_areas[boundary] * mesh.face_centres[boundary]).sum() / 3
    np.testing.assert_allclose(mesh.volumes.sum(), inside, rtol=1e-12)
    if volume:
        assert mesh.volumes.sum() == pytest.approx(volume, rel=1e-3)


@pytest.mark.data
def test_exodus(data):
    path = data / "meshes" / "plateWithHole3D-1.exo"
    try:
        import netCDF4
    except ImportError:
        with pytest.raises(MissingDependency, match="plateWithHole3D-1.exo with meshio needs netCDF4: pip install netCDF4"):
            read_mesh(path)
    else:
        assert netCDF4 and read_mesh(path).n_cells == 36744
