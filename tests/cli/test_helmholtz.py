"""``swell helmholtz``: what it sweeps, prints and writes, and what it says about a command line that cannot be."""
import csv
import json

import numpy as np
import pytest

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
meshio = pytest.importorskip("meshio", reason="needs meshio: pip install 'swell[pde]'")

from swell.pde import helmholtz as h                             # noqa: E402

ROOM = ("--source", "xmin", "--ear", "0.8,0.4,0.3", "--band", "100:200:50", "--damping", "0.02")


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    path = tmp_path_factory.mktemp("meshes") / "room.msh"
    h.box((8, 6, 5), upper=(1.0, 0.8, 0.6)).write(path)
    return path


def test_a_response(cli, room, tmp_path):
    status, out, err = cli("helmholtz", room, *ROOM, "--wall", "zmax=impedance:1000+200j", "--method", "bicgstab", "--precond",
                           "ilu0", "--csv", tmp_path / "r.csv", "--plot", tmp_path / "r.png", "--vtu", tmp_path / "p.vtu",
                           "--vtu-at", "100,200")
    assert status == 0 and not err
    assert "240 cells (hexahedron)" in out and "xmin (30)" in out and "3 of 3 frequencies converged" in out
    assert "loudest" in out and "BiCGSTAB" in out and "p_200Hz.vtu" in out
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["frequency_Hz"] for row in rows] == ["100", "150", "200"]
    by_hand = h.Helmholtz(h.read_mesh(room), h.Medium(damping=0.02), {"zmax": h.Impedance(1000 + 200j)}).response(
        "xmin", (0.8, 0.4, 0.3), [100, 150, 200], method="direct")
    assert [float(row["level_dB"]) for row in rows] == pytest.approx(by_hand.level[:, 0].tolist(), abs=1e-3)
    assert (tmp_path / "r.png").stat().st_size > 5000
    assert meshio.read(tmp_path / "p_100Hz.vtu").point_data["level_dB"].size == 378


def test_json_is_one_object(cli, room):
    status, out, err = cli("helmholtz", room, *ROOM, "--ear", "0.1,0.1,0.1", "--degree", "2", "--velocity", "0.002", "--json",
                           "--method", "direct", "--wall", "zmin=absorbing")
    found = json.loads(out)
    assert status == 0 and not err and out.count("\n") == 1
    assert found["converged"] is True and found["asked"] == 3 and len(found["points"]) == 3 and len(found["ears"]) == 2
    assert found["unknowns"] == 17 * 13 * 11 and found["points"][0]["converged"] is True
    assert found["boundaries"]["xmin"] == 30 and len(found["points"][2]["level"]) == 2 and found["nodes"] == 9 * 7 * 6


def test_several_sources(cli, room, tmp_path):
    """Each on its own, a column each; with --at-once they sound together."""
    several = (*ROOM, "--source", "0.2,0.2,0.2", "--ear", "0.1,0.1,0.1", "--method", "cocg", "--precond", "ilu0")
    status, out, err = cli("helmholtz", room, *several, "--csv", tmp_path / "r.csv", "--plot", tmp_path / "r.png", "--vtu",
                           tmp_path / "p.vtu")
    assert status == 0 and not err and "3 of 3 frequencies converged: 2 sources" in out and "solved together" in out
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["source"] for row in rows[:4]] == ["xmin", "xmin", "0.2,0.2,0.2", "0.2,0.2,0.2"] and len(rows) == 3 * 2 * 2
    assert [row["ear"] for row in rows[:2]] == ["0.8,0.4,0.3", "0.1,0.1,0.1"]
    problem = h.Helmholtz(h.read_mesh(room), h.Medium(damping=0.02))
    ears, band = [(0.8, 0.4, 0.3), (0.1, 0.1, 0.1)], [100, 150, 200]
    alone = [problem.response(source, ears, band, method="direct").level for source in ("xmin", (0.2, 0.2, 0.2))]
    assert [float(row["level_dB"]) for row in rows] == pytest.approx(np.stack(alone, axis=1).ravel().tolist(), abs=1e-3)
    assert meshio.read(tmp_path / "p_source2.vtu").point_data["level_dB"].size == 378 and "p_source1.vtu" in out
    found = json.loads(cli("helmholtz", room, *several, "--json")[1])
    assert found["sources"] == ["xmin", "0.2,0.2,0.2"] and np.shape(found["points"][0]["level"]) == (2, 2)
    both = json.loads(cli("helmholtz", room, *several, "--at-once", "--json")[1])
    pressure = np.array(found["points"][1]["pressure"]).sum(axis=0)
    assert "sources" not in both and np.allclose(both["points"][1]["pressure"], pressure, rtol=1e-4)


def test_a_point_source_and_quiet(cli, room):
    status, out, err = cli("helmholtz", room, *ROOM[2:], "--source", "0.2,0.2,0.2", "--method", "direct", "--quiet")
    assert (status, out, err) == (0, "", "")


def test_regions_of_other_media(cli, room):
    """The one region of the room as a gas of half the speed: the levels of half the frequency, but for the source's ω."""
    a = json.loads(cli("helmholtz", room, *ROOM[:4], "--band", "100", "--medium", "box=171.5:1.204:0.02", "--method", "direct",
                       "--json")[1])
    b = json.loads(cli("helmholtz", room, *ROOM[:4], "--band", "200", "--damping", "0.02", "--method", "direct", "--json")[1])
    assert b["points"][0]["level"][0] - a["points"][0]["level"][0] == pytest.approx(6.0206, abs=1e-3)
    assert "no region 'bx': did you mean 'box'" in cli("helmholtz", room, *ROOM, "--medium", "bx=300:1")[2]
    assert "--medium box=300: expected NAME=SPEED" in cli("helmholtz", room, *ROOM, "--medium", "box=300")[2]


def test_failures_are_status_one(cli, room, tmp_path):
    status, out, err = cli("helmholtz", room, *ROOM, "--method", "gmres", "--maxiter", "2", "--csv", tmp_path / "r.csv",
                           "--plot", tmp_path / "r.png")
    assert status == 1 and not err and "0 of 3 frequencies converged" in out and "100, 150, 200 Hz NOT conv" in out
    assert [row["converged"] for row in csv.DictReader((tmp_path / "r.csv").open())] == ["0", "0", "0"]


def test_a_coarse_mesh_is_said(cli, room):
    out = cli("helmholtz", room, *ROOM[:4], "--band", "1000", "--damping", "0.1", "--method", "direct")[1]
    assert "too coarse above" in out and "10 are needed" in out


@pytest.mark.parametrize("arguments, message", [
    (("--source", "xmn", *ROOM[2:]), "no boundary 'xmn': did you mean 'xmin'"),
    (ROOM[:4], "--band is missing; the mesh has the boundaries xmin, xmax"),
    (("--band", "100:200:50"), "--ear is missing"),
    (ROOM[2:], "nothing makes sound"),
    ((*ROOM, "--source", "9,9,9"), "sources[1]: source = (9, 9, 9) lies outside the mesh"),
    ((*ROOM[:4], "--band", "100:200"), "band '100:200': expected numbers"),
    ((*ROOM[:4], "--band=-5:200:5"), "frequency of -5 Hz"),
    ((*ROOM[:4], "--band", "0:200:50"), "frequency 0: without a wall of given pressure"),
    ((*ROOM[:2], "--ear", "5,0.4,0.3", *ROOM[4:]), "nearest point of the mesh is (1, 0.4, 0.3), 4 m away"),
    ((*ROOM[:2], "--ear", "a,b", *ROOM[4:]), "--ear a,b: expected coordinates"),
    ((*ROOM, "--damping=-1"), "damping=-1"),
    ((*ROOM, "--wall", "zmax=impedence:3"), "did you mean 'impedance'"),
    ((*ROOM, "--wall", "zmax=impedance"), "impedance takes one number"),
    ((*ROOM, "--wall", "zmax=impedance:0"), "use Pressure(0)"),
    ((*ROOM, "--wall", "zmax=impedance:soft"), "expected a number"),
    ((*ROOM, "--wall", "zmax=rigid", "--wall", "zmax=absorbing"), "'zmax' has two conditions"),
    ((*ROOM, "--velocity", "quick"), "--velocity quick: expected a number"),
    ((*ROOM, "--vtu-at", "100"), "--vtu FILE.vtu is missing"),
    ((*ROOM, "--vtu", "x.vtu", "--vtu-at", "120"), "--vtu-at 120: the band has no such frequency; the nearest is 100 Hz"),
    ((*ROOM, "--plot", "x.pdf"), "expected .png"),
    ((*ROOM, "--precond", "ilu00"), "did you mean 'ilu0'"),
])
def test_bad_command_lines(cli, room, arguments, message):
    status, out, err = cli("helmholtz", room, *arguments)
    assert status == 2 and message in err and err.count("\n") == 1


@pytest.mark.parametrize("mesh, message", [("none.msh", "does not exist"), ("cabin:x", "expected a size in m"),
                                           ("paper:Audi", "table 1 has no mesh 'Audi'"), ("cabin:-1", "size=-1")])
def test_bad_meshes(cli, mesh, message):
    status, out, err = cli("helmholtz", mesh, *ROOM)
    assert status == 2 and not out and message in err


def test_a_generated_cabin(cli, tmp_path):
    pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    status, out, err = cli("helmholtz", "cabin:0.25", "--source", "firewall", "--ear", "0.95,0.35,0.9", "--band", "40,80",
                           "--damping", "0.05", "--method", "direct", "--save-mesh", tmp_path / "c.msh")
    assert status == 0 and not err and "2 of 2 frequencies converged" in out
    assert cli("helmholtz", "cylinder:0.1", "--save-mesh", tmp_path / "t.msh")[::2] == (0, "")   # and that is all
    assert "wall" in h.read_mesh(tmp_path / "t.msh").boundaries
    assert "seats" in h.read_mesh(tmp_path / "c.msh").boundaries


def test_info_on_a_mesh_of_table_1(cli, tmp_path):
    pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    status, out, err = cli("info", "paper:Cylinder3D-0:300", "--json", "--picture", tmp_path / "p.png")
    found = json.loads(out)
    assert status == 0 and found["symmetry"] == "complex symmetric" and 2000 < found["n"] < 4500
    assert found["density"] == pytest.approx(found["nnz"] / found["n"] ** 2) and found["row_lengths"]["deviation"] > 3
    assert "300 Hz" in found["notes"][0] and (tmp_path / "p.png").exists()
    assert "did you mean 'Cylinder3D-" in cli("info", "paper:Cylinder3D-7")[2]
    assert "expected a frequency" in cli("info", "paper:Cylinder3D-0:x")[2]
    for name, hertz in (("cabin:0.25", 100), ("cabin:0.3:divided:140", 140), ("cylinder:0.1:hexahedron", 500),
                        ("cylinder:0.1:90", 90)):
        found = json.loads(cli("info", name, "--json")[1])
        assert f"{hertz} Hz" in found["notes"][0] and found["symmetry"] == "complex symmetric"
    assert "kind='wedge'" in cli("info", "cabin:0.3:wedge")[2] and "expected a size" in cli("info", "cabin:big")[2]
    assert "frequency -5.0" in cli("info", "cabin:0.3:-5")[2]
