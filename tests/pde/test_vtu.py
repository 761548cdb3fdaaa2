"""VTU files: what is written is read back, by meshio and by the bytes."""
import base64
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

from swell.core.errors import InputError
from swell.pde.fvm import Mesh, box, read_polymesh, write_vtu

NUMPY = {"Float64": "f8", "Float32": "f4", "Int32": "i4", "Int64": "i8", "UInt8": "u1"}


def arrays(path):
    """Every DataArray by name, decompressed by the specification, and the piece's counts."""
    root = ET.parse(path).getroot()
    assert root.attrib["compressor"] == "vtkZLibDataCompressor" and root.attrib["header_type"] == "UInt64"
    piece = root.find("UnstructuredGrid/Piece")
    found = {}
    for array in piece.iter("DataArray"):
        text = array.text.strip()
        count = int(np.frombuffer(base64.b64decode(text[:12]), "<u8", 1)[0])
        head_chars = -(-8 * (3 + count) // 3) * 4
        head = np.frombuffer(base64.b64decode(text[:head_chars]), "<u8")
        assert head[0] == count == head.size - 3
        data, at, raw = base64.b64decode(text[head_chars:]), 0, []
        for size in head[3:]:
            raw.append(zlib.decompress(data[at:at + int(size)]))
            at += int(size)
        assert at == len(data)
        whole = [int(head[1])] * count
        if count and head[2]:
            whole[-1] = int(head[2])
        assert [len(part) for part in raw] == whole
        values = np.frombuffer(b"".join(raw), NUMPY[array.attrib["type"]])
        columns = int(array.attrib.get("NumberOfComponents", 1))
        found[array.attrib["Name"]] = values.reshape(-1, columns) if columns > 1 else values
    return found, piece.attrib


def check(path, mesh):
    """The stream of faces gives the mesh's own cells: closed, outwards, of its volumes."""
    found, counts = arrays(path)
    assert int(counts["NumberOfCells"]) == mesh.n_cells and int(counts["NumberOfPoints"]) == mesh.n_points
    np.testing.assert_array_equal(found["Points"], mesh.points)
    assert set(found["types"]) == {42}
    assert found["faceoffsets"][-1] == found["faces"].size and found["offsets"][-1] == found["connectivity"].size
    at, point = 0, 0
    for cell in range(mesh.n_cells):
        sides, at, used = found["faces"][at], at + 1, set()
        volume, total = 0.0, np.zeros(3)
        for _ in range(sides):
            corners = found["faces"][at + 1:at + 1 + found["faces"][at]]
            at += 1 + found["faces"][at]
            used |= set(corners.tolist())
            p = mesh.points[corners]
            area = 0.5 * np.cross(p, np.roll(p, -1, axis=0)).sum(axis=0)
            total += area
            volume += area @ p.mean(axis=0) / 3         # plane faces of a box: exact
        assert at == found["faceoffsets"][cell]
        listed = found["connectivity"][point:found["offsets"][cell]].tolist()
        point = found["offsets"][cell]
        assert sorted(listed) == sorted(used) and len(set(listed)) == len(listed)
        np.testing.assert_allclose(total, 0, atol=1e-12)
        yield volume
    assert at == found["faces"].size


@pytest.mark.parametrize("settings", [{}, {"skew": (0.4, 0.1), "grading": (2, 3, 4)}], ids=str)
def test_boxes(tmp_path, settings):
    mesh = box((4, 3, 2), **settings)
    write_vtu(tmp_path / "a.vtu", mesh)
    np.testing.assert_allclose(list(check(tmp_path / "a.vtu", mesh)), mesh.volumes, rtol=1e-12)


def test_one_polyhedron_of_mixed_faces(tmp_path):
    outline = np.array([[0, 0], [2, 0], [3, 1], [2, 2], [0, 2]], float)
    points = np.vstack([np.column_stack([outline, np.full(5, z)]) for z in (0.0, 1.0)])
    faces = [[k, (k + 1) % 5, 5 + (k + 1) % 5, 5 + k] for k in range(5)] + [[4, 3, 2, 1, 0], [5, 6, 7, 8, 9]]
    mesh = Mesh.from_faces(points, np.cumsum([0, *map(len, faces)]), np.concatenate(faces), [0] * 7, [])
    write_vtu(tmp_path / "a.vtu", mesh, {"p": [1.0]})
    assert list(check(tmp_path / "a.vtu", mesh)) == pytest.approx([5.0], rel=0.2)
    assert mesh.volumes[0] == pytest.approx(5.0)


def test_fields(tmp_path):
    mesh = box((4, 3, 2))
    fields = {"p": np.linspace(-1, 1, 24), "velocity & <more>": mesh.centres, "number": np.arange(24), "inside": mesh.volumes > 0,
              "single": mesh.volumes.astype(np.float32), "half": mesh.volumes.astype(np.float16)}
    write_vtu(tmp_path / "a.vtu", mesh, fields)
    found = arrays(tmp_path / "a.vtu")[0]
    for name, values in fields.items():
        np.testing.assert_array_equal(found[name], values)
    assert found["single"].dtype == np.float32 and found["inside"].dtype == np.uint8


def test_fields_of_the_other_byte_order(tmp_path):
    """The file names one byte order for all arrays."""
    mesh, values = box((3, 1)), np.array([[1.0, 2], [3, 4], [5, 6]])
    write_vtu(tmp_path / "f.vtu", mesh, {"a": values.astype(">f8"), "b": values[::-1, 0].astype(">i4")})
    found, _ = arrays(tmp_path / "f.vtu")
    assert found["a"].tolist() == values.tolist() and found["b"].tolist() == [5, 3, 1]


def test_blocks_of_the_compression(tmp_path, monkeypatch):
    """A last block that is whole, one that is not, and many of them."""
    mesh = box((4, 4, 4))
    for size in (8, 64, 512, 520, 100):
        monkeypatch.setattr("swell.pde.fvm.vtu.BLOCK", size)
        write_vtu(tmp_path / "a.vtu", mesh, {"p": np.arange(64.0)})
        np.testing.assert_array_equal(arrays(tmp_path / "a.vtu")[0]["p"], np.arange(64.0))


def test_meshio_reads_it(tmp_path):
    meshio = pytest.importorskip("meshio", reason="needs meshio: pip install 'swell[pde]'")
    mesh = box((4, 3, 2), perturb=0.2)
    write_vtu(tmp_path / "a.vtu", mesh, {"p": mesh.centres[:, 0], "U": mesh.centres})
    found = meshio.read(tmp_path / "a.vtu")
    np.testing.assert_array_equal(found.points, mesh.points)
    assert [(block.type, len(block.data)) for block in found.cells] == [("polyhedron8", 24)]
    np.testing.assert_array_equal(found.cell_data["p"][0], mesh.centres[:, 0])
    np.testing.assert_array_equal(found.cell_data["U"][0], mesh.centres)


@pytest.mark.parametrize("name, field, words", [
    ("a.vtk", None, r"extension is \.vtk, expected \.vtu"), ("a", None, "extension is missing"),
    ("nothing/a.vtu", None, "nothing is not a folder"),
    ("a.vtu", np.zeros(23), r"field 'p' has shape \(23,\), expected \(24,\)"),
    ("a.vtu", np.zeros((24, 3, 3)), r"has shape \(24, 3, 3\)"),
    ("a.vtu", np.zeros(24, complex), "complex128, expected real numbers; write .real"),
    ("a.vtu", np.full(24, "a"), "expected real numbers"),
])
def test_bad_arguments_leave_nothing(tmp_path, name, field, words):
    with pytest.raises(InputError, match=words):
        write_vtu(tmp_path / name, box((4, 3, 2)), None if field is None else {"p": field})
    assert not list(tmp_path.iterdir())


@pytest.mark.data
def test_ac_room(tmp_path, data):
    mesh = read_polymesh(data / "openfoam" / "ac_room")
    write_vtu(tmp_path / "a.vtu", mesh, {"V": mesh.volumes})
    found = arrays(tmp_path / "a.vtu")[0]
    lengths = np.diff(mesh.face_ptr)
    assert found["faces"].size == mesh.n_cells + mesh.n_faces + mesh.n_internal + lengths.sum() + lengths[:mesh.n_internal].sum()
    np.testing.assert_array_equal(found["V"], mesh.volumes)
