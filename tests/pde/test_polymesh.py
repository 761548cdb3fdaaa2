"""OpenFOAM's polyMesh folders: text, binary of both widths, gzip; damaged ones; and the real ones."""

import numpy as np
import pytest
from tests.support.polymeshes import CLASSES, RULE, binaries, header, texts, write

from swell.core.errors import InputError, OutOfMemory
from swell.pde.fvm import box, read_mesh, read_polymesh


def same(a, b, exact=True):
    for name in ("face_ptr", "face_points", "owner", "neighbour"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.patches == b.patches
    if exact:
        np.testing.assert_array_equal(a.points, b.points)
    else:
        np.testing.assert_allclose(a.points, b.points, rtol=1e-6, atol=1e-7)


MESH = box((4, 3, 2), perturb=0.2)


@pytest.mark.parametrize("case", [True, False], ids=["case", "polyMesh"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_text(tmp_path, packed, case):
    same(read_polymesh(write(tmp_path, texts(MESH), packed, case)), MESH)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("label, scalar, order", [(32, 64, "<"), (64, 64, "<"), (32, 32, "<"), (64, 32, ">"), (32, 64, ">")])
def test_binary(tmp_path, label, scalar, order, packed):
    same(read_polymesh(write(tmp_path, binaries(MESH, label, scalar, order), packed)), MESH, scalar == 64)


def test_polyhedra_with_faces_of_all_lengths(tmp_path):
    """Two cells that share a triangle beside a hexagon, and one that shares two faces with them."""
    from swell.pde.fvm import Mesh
    outline = np.array([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]], float)
    points = np.vstack([np.column_stack([outline, np.full(6, z)]) for z in (0.0, 1.0, 3.0)])
    sides = [[k + 6 * z, (k + 1) % 6 + 6 * z, 6 + (k + 1) % 6 + 6 * z, 6 + k + 6 * z] for z in (0, 1) for k in range(6)]
    faces = [list(range(6, 12)), *sides, [5, 4, 3, 2, 1, 0], list(range(12, 18))]
    mesh = Mesh.from_faces(points, np.cumsum([0, *map(len, faces)]), np.concatenate(faces), [0] * 7 + [1] * 6 + [0, 1], [1])
    same(read_polymesh(write(tmp_path / "text", texts(mesh))), mesh)
    same(read_polymesh(write(tmp_path / "binary", binaries(mesh))), mesh)


def test_one_cell_has_no_neighbours(tmp_path):
    mesh = box((1, 1, 1))
    same(read_polymesh(write(tmp_path / "text", texts(mesh))), mesh)
    same(read_polymesh(write(tmp_path / "binary", binaries(mesh))), mesh)
    files = texts(mesh)
    files["owner"] = header("owner") + b"6{0}\n"            # how OpenFOAM writes what is all the same
    files["neighbour"] = header("neighbour") + b"0()\n"
    same(read_polymesh(write(tmp_path / "short", files)), mesh)


def test_thousands_of_blanks_and_comments_are_read(tmp_path):
    files = texts(MESH)
    for blank in (b" " * 10_000, b"\n" * 10_000, b"// a\n" * 5_000, b"/* a */" * 5_000):
        path = write(tmp_path, {**files, "owner": blank + files["owner"].replace(b"98\n(", blank + b"98" + blank + b"(")})
        same(read_polymesh(path), MESH)


def test_a_count_that_no_memory_holds(tmp_path):
    path = write(tmp_path, {**texts(MESH), "owner": header("owner") + b"1000000000000000{0}"})
    with pytest.raises(OutOfMemory, match="owner declares 1000000000000000 times the same value"):
        read_polymesh(path)


def test_comments_and_old_forms(tmp_path):
    files = texts(MESH)
    files["owner"] = files["owner"].replace(b"(\n", b"( // the cells\n/* of the\nfaces */ ", 1)
    files["boundary"] = files["boundary"].replace(b"type patch;", b"type patch; transform { type none; at (0 0 0); } // x", 1)
    files["neighbour"] = header("neighbour") + f"{MESH.n_faces}\n(\n".encode() + "\n".join(
        map(str, [*MESH.neighbour, *[-1] * (MESH.n_faces - MESH.n_internal)])).encode() + b"\n)\n"     # before 1.5
    same(read_polymesh(write(tmp_path, files)), MESH)


def test_text_and_compressed_files_may_be_mixed(tmp_path):
    write(tmp_path, texts(MESH))
    inside = tmp_path / "constant" / "polyMesh"
    (inside / "faces").unlink()
    write(tmp_path, {"faces": binaries(MESH)["faces"]}, packed=True)
    same(read_mesh(tmp_path), MESH)


# --- damage ---

def complaint(folder):
    with pytest.raises(InputError) as caught:
        read_polymesh(folder)
    return str(caught.value)


@pytest.mark.parametrize("name", list(CLASSES))
@pytest.mark.parametrize("make", [texts, binaries], ids=["text", "binary"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.8])
def test_truncated_files_are_named(tmp_path, make, name, share):
    """Cut anywhere from the header's end to the list's end."""
    files = make(MESH)
    start = files[name].index(RULE.encode()) + len(RULE)
    stop = files[name].rindex(b")")
    files[name] = files[name][:start + int(share * (stop - start))]
    words = complaint(write(tmp_path, files))
    assert f"polyMesh/{name}" in words, words


@pytest.mark.parametrize("name", ["points", "faces", "owner", "neighbour"])
def test_truncated_gzip_is_named(tmp_path, name):
    write(tmp_path, texts(MESH), packed=True)
    path = tmp_path / "constant" / "polyMesh" / f"{name}.gz"
    path.write_bytes(path.read_bytes()[:-40])
    assert f"{name}.gz is truncated" in complaint(tmp_path)


@pytest.mark.parametrize("name", list(CLASSES))
def test_missing_files_are_named(tmp_path, name):
    write(tmp_path, texts(MESH))
    (tmp_path / "constant" / "polyMesh" / name).unlink()
    assert f"no file {name} or {name}.gz" in complaint(tmp_path)


@pytest.mark.parametrize("name, old, new, words", [
    ("points", b"60\n(", b"61\n(", "announces 61 points, and 60 are there"),
    ("owner", b"98\n(", b"99\n(", "announces 99 integers and has 98 numbers"),
    ("faces", b"98\n(", b"97\n(", "announces 97 faces, and 98 are there"),
    ("faces", b"\n4(", b"\n5(", "face 0 announces 5 points and has 4"),
    ("faces", b"\n4(1 6", b"\n4(one 6", "has 'one' where a number was expected"),
    ("neighbour", b"(\n1\n", b"(\n1.5\n", "has '1.5' where a number was expected"),
    ("points", b"(0.0 0.0 0.0)", b"(0.0 0.0 x)", "has 'x' where a number was expected"),
    ("points", b"(0.0 0.0 0.0)", b"(0.0 0.0)", "announces 60 points and has 179 numbers"),
    ("points", b"(0.0 0.0 0.0)", b"(0.0 0.0 nan)", "point 0 has the coordinates"),
    ("boundary", b"nFaces 6;", b"nFaces six;", "patch 'xmin' has nFaces = six"),
    ("boundary", b"nFaces 6;", b"", "patch 'xmin' has nFaces = nothing"),
    ("boundary", b"6\n(", b"7\n(", "announces 7 patches and has 6"),
    ("boundary", b"nFaces 6;", b"nFaces 5;", "patch 'xmax' .* no patch has face"),
    ("owner", b"FoamFile", b"Foam", "does not begin with OpenFOAM's header"),
    ("owner", b"98\n(", b"9" * 5000 + b"\n(", "the count 9+... has 5000 digits"),
    ("points", b"60\n(", b"9" * 5000 + b"\n(", "the count 9+... has 5000 digits"),
    ("boundary", b"nFaces 6;", b"nFaces %b;" % (b"9" * 5000), "has nFaces = 9+, expected a number"),
    ("boundary", b"6\n(", b"9" * 5000 + b"\n(", "the count 9+... has 5000 digits"),
    # Expressions that give back what they took would take longer than the universe exists: 2^10000 steps.
    ("owner", b"FoamFile", b" " * 10_000 + b"x", "does not begin with OpenFOAM's header"),
    ("owner", b"FoamFile", b"/* a */" * 10_000 + b"x", "does not begin with OpenFOAM's header"),
    ("owner", b"98\n(", b" " * 10_000 + b"x", "no list of integers follows its header"),
    ("owner", b"98\n(", b"\n" * 10_000 + b"x", "no list of integers follows its header"),
    ("owner", b"FoamFile\n{", b"FoamFile\n{ a" + b" " * 100_000, "the header FoamFile .* has 100... bytes"),
    # A million digits, or blanks: an expression that tries each start would take 10^12 steps.
    ("points", b"(0.0 0.0 0.0)", b"(0.0 0.0 %bx)" % (b"1" * 1_000_000), "where a number was expected"),
    ("faces", b"\n4(", b"\n%b5(" % (b" " * 1_000_000), "face 0 announces 5 points and has 4"),
])
def test_wrong_content(tmp_path, name, old, new, words):
    import re
    files = texts(MESH)
    assert old in files[name]
    files[name] = files[name].replace(old, new, 1)
    found = complaint(write(tmp_path, files))
    assert re.search(words, found) and str(tmp_path) in found, found


def test_files_of_two_meshes(tmp_path):
    other = texts(box((2, 2, 2)))
    assert "owner has 36 faces and the file faces 98" in complaint(write(tmp_path, {**texts(MESH), "owner": other["owner"]}))


def test_the_wrong_width(tmp_path):
    files = binaries(MESH, label=64)
    files["owner"] = files["owner"].replace(b"label=64", b"label=32")
    words = complaint(write(tmp_path, files))
    assert "owner: its list of integers does not end after 98 numbers of 32 bits" in words and "arch" in words
    files["owner"] = files["owner"].replace(b"label=32", b"label=16")
    assert "label=16, expected 32 or 64" in complaint(write(tmp_path, files))


def test_folders_that_are_no_cases(tmp_path):
    assert "no constant/polyMesh" in complaint(tmp_path) and "blockMesh" in complaint(tmp_path)
    (tmp_path / "processors4").mkdir()
    assert "uncollated" in complaint(tmp_path)
    (tmp_path / "processor0").mkdir()
    assert "as many ranks as it has parts, or put the mesh together" in complaint(tmp_path)
    (tmp_path / "constant" / "solid" / "polyMesh").mkdir(parents=True)
    assert "regions solid" in complaint(tmp_path)
    assert "is no folder" in complaint(tmp_path / "nothing")
    with pytest.raises(InputError, match="does not exist"):
        read_mesh(tmp_path / "nothing")


# --- the real ones ---

@pytest.mark.data
def test_ac_room(data):
    mesh = read_polymesh(data / "openfoam" / "ac_room")
    assert (mesh.n_cells, mesh.n_faces, mesh.n_internal, mesh.n_points) == (153029, 517315, 458974, 213571)
    assert [patch.name for patch in mesh.patches] == ["inlet1", "inlet2", "Machine_heat", "Machine_wall", "outlet1",
                                                      "outlet2", "Walls"]
    assert mesh.patch("Walls").kind == "wall" and mesh.patch("Walls").size == 15018
    assert set(np.diff(mesh.face_ptr)) == set(range(3, 11))
    np.testing.assert_allclose(mesh.volumes.sum(), (mesh.face_areas * mesh.face_centres)[mesh.n_internal:].sum() / 3)


@pytest.mark.data
def test_hump(data):
    mesh = read_polymesh(data / "openfoam" / "hump")
    assert (mesh.n_cells, mesh.n_faces, len(mesh.patches)) == (44064, 176772, 6)
    front = mesh.face_areas[mesh.patch("b2-symmetry1").faces]
    np.testing.assert_allclose(mesh.volumes.sum(), 0.1 * np.linalg.norm(front, axis=1).sum(), rtol=1e-9)     # its depth
    assert mesh.facts()["aspect_ratio"]["max"] > 1e4
