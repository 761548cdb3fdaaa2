"""Meshes written for ranks; what ranks make of them is in tests/distributed/test_part_mesh.py."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.cases import rng
from tests.support.polymeshes import skewed

from swell import InputError
from swell.cli import main
from swell.pde import fvm
from swell.pde.fvm.foam_file import FoamFile


def test_a_mesh_is_read_as_it_was_written(tmp_path):
    mesh = skewed((5, 4, 3))
    fvm.write_polymesh(mesh, tmp_path, {"xmin": {"sampleMode": "nearestCell"}}, {"cellLevel": np.arange(60)})
    again, folder = fvm.read_polymesh(tmp_path), tmp_path / "constant" / "polyMesh"
    for name in ("points", "face_ptr", "face_points", "owner", "neighbour"):
        assert np.array_equal(getattr(again, name), getattr(mesh, name)), name
    assert again.patches == mesh.patches
    assert dict(FoamFile(folder, "boundary").patches())["xmin"]["sampleMode"] == "nearestCell"
    assert np.array_equal(FoamFile(folder, "cellLevel").labels(), np.arange(60))


def test_names_that_are_no_words(tmp_path):
    one = fvm.box((1, 1, 1))
    patches = [fvm.Patch("outer wall", 0, 5), fvm.Patch("in;let", 5, 1)]
    fvm.write_polymesh(fvm.Mesh(one.points, one.face_ptr, one.face_points, one.owner, one.neighbour, tuple(patches)), tmp_path)
    assert [patch.name for patch in fvm.read_polymesh(tmp_path).patches] == ["outer wall", "in;let"]


@pytest.mark.parametrize("parts", [1, 2, 5, "chance"])
def test_parts_make_up_the_mesh(tmp_path, parts):
    """As reconstructPar puts them together: from the lists beside the parts."""
    mesh = skewed((6, 5, 4))
    if parts == "chance":
        parts = rng().integers(0, 3, mesh.n_cells).astype(np.uint8)
    elif parts > 1:
        pytest.importorskip("pymetis", reason="partitions of graphs need pymetis")
    cells = fvm.decompose(mesh, parts, tmp_path)
    assert np.array_equal(np.sort(np.concatenate(cells)), np.arange(mesh.n_cells))
    seen = np.zeros(mesh.n_faces, int)
    for rank, own in enumerate(cells):
        part, folder = fvm.read_polymesh(tmp_path / f"processor{rank}"), tmp_path / f"processor{rank}" / "constant" / "polyMesh"
        of_cell, of_face, of_point, of_patch = (FoamFile(folder, f"{what}ProcAddressing").labels()
                                                for what in ("cell", "face", "point", "boundary"))
        faces, backwards = abs(of_face) - 1, of_face < 0
        assert np.array_equal(of_cell, own) and np.array_equal(part.points, mesh.points[of_point])
        assert np.allclose(part.volumes, mesh.volumes[own]) and np.allclose(part.centres, mesh.centres[own])
        assert np.allclose(part.face_areas, np.where(backwards, -1, 1)[:, None] * mesh.face_areas[faces])
        assert np.array_equal(own[part.owner[~backwards]], mesh.owner[faces[~backwards]])
        assert np.array_equal(own[part.neighbour], mesh.neighbour[faces[:part.n_internal]])
        between = sum(patch.size for patch in part.patches if patch.kind == "processor")
        assert [mesh.patches[k].name for k in of_patch if k >= 0] == [p.name for p in part.patches if p.kind != "processor"]
        assert part.n_faces - between <= faces.size and backwards.sum() <= between
        seen[faces] += 1
    assert (seen[mesh.n_internal:] == 1).all() and (seen >= 1).all() and (seen <= 2).all()


@pytest.mark.parametrize("parts, message", [
    (0, "expected 1 or more"), (True, "expected a number of parts"), ([0.5] * 24, "float64 of shape"), ([0] * 7, "shape \\(7,\\)"),
    ([-1] + [0] * 23, "cell 0 is in part -1"), ([0, 2] * 12, "part 1 of 3 has no cell"), (99, "24 cells cannot be shared by 99 ranks")])
def test_wrong_parts(tmp_path, parts, message):
    with pytest.raises(InputError, match=message):
        fvm.decompose(fvm.box((4, 3, 2)), parts, tmp_path / "case")
    assert not (tmp_path / "case").exists()


def test_folders_that_are_taken(tmp_path):
    mesh = fvm.box((2, 2, 2))
    fvm.decompose(mesh, [0, 1] * 4, tmp_path / "parts")
    with pytest.raises(InputError, match="is divided into 2 parts already"):
        fvm.decompose(mesh, [0, 1] * 4, tmp_path / "parts")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fvm.decompose(mesh, [0, 1] * 4, tmp_path / "file")


def test_command(tmp_path, capsys):
    pytest.importorskip("pymetis", reason="partitions of graphs need pymetis")
    assert main(["decompose", "box:6,5,4", "--parts", "3", "--out", str(tmp_path / "case")]) == 0
    out = capsys.readouterr().out
    for rank in range(3):
        sides = [p.size for p in fvm.read_polymesh(tmp_path / "case" / f"processor{rank}").patches if p.kind == "processor"]
        assert f"processor{rank}: 40 cells, {sum(sides)} faces to other parts" in out and sum(sides) > 0
    assert "load balance 1.000" in out and "mpiexec -n 3 swell fvm" in out
    assert main(["decompose", "box:6,5,4", "--parts", "0", "--out", str(tmp_path / "other")]) == 2
    assert main(["decompose", str(tmp_path / "none"), "--parts", "2", "--out", str(tmp_path / "other")]) == 2
    assert "does not exist" in capsys.readouterr().err
