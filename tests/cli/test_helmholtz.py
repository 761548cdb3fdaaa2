"""``swell helmholtz``: what it sweeps, prints and writes, and what it says about a command line that cannot be."""
import csv
import json

import numpy as np
import pytest

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
meshio = pytest.importorskip("meshio", reason="needs meshio: pip install 'swell[pde]'")

from swell.core.errors import InputError                         # noqa: E402
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
    ((*ROOM, "--vtu-at", "100"), "--vtu FILE.vtu or --picture FILE.png is missing"),
    ((*ROOM, "--picture", "x.jpg"), "--picture x.jpg: the extension is .jpg, expected .png"),
    ((*ROOM, "--wav", "x.wav"), "a sound needs 8 or more in equal steps"),
    ((*ROOM, "--vtu", "x.vtu", "--vtu-at", "120"), "--vtu-at 120: the band has no such frequency; the nearest is 100 Hz"),
    ((*ROOM, "--plot", "x.pdf"), "expected .png"),
    ((*ROOM, "--precond", "ilu00"), "did you mean 'ilu'"),
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


def test_tables_layers_and_waves(cli, tmp_path):
    """Each word of the command line gives what the call in Python gives."""
    mesh = h.box((6, 5, 5), lower=-0.5, upper=0.5)
    mesh.write(tmp_path / "box.msh")
    (tmp_path / "felt.csv").write_text("Hz,re,im\n50,900,-100\n300,500,0\n")
    (tmp_path / "spectrum.csv").write_text("50,0.001,0\n300,0.002,0.001\n")
    found = json.loads(cli("helmholtz", tmp_path / "box.msh", "--source", "xmin", "--ear", "0.1,0.2,0.1", "--band",
                           "100,200", "--wall", f"zmax=impedance:{tmp_path / 'felt.csv'}", "--velocity",
                           tmp_path / "spectrum.csv", "--pml=-0.5,-0.5,-0.5:0.3,0.5,0.5", "--method", "direct", "--json")[1])
    felt, spectrum = h.read_table(tmp_path / "felt.csv"), h.read_table(tmp_path / "spectrum.csv")
    room = h.Helmholtz(mesh, boundary={"zmax": h.Impedance(felt)}, pml=h.PML((-0.5,) * 3, (0.3, 0.5, 0.5)))
    wanted = room.response({"xmin": h.Velocity(spectrum)}, (0.1, 0.2, 0.1), [100, 200], method="direct").pressure[:, 0]
    assert found["converged"]
    assert np.allclose([complex(*p["pressure"][0]) for p in found["points"]], wanted, rtol=1e-6)
    assert cli("helmholtz", tmp_path / "box.msh", "--source", "wave:1,0,0@xmin", "--ear", "0.1,0.2,0.1", "--band", "100",
               "--pml=-0.5,-0.5,-0.5:0.3,0.5,0.5", "--method", "direct", "--quiet")[0] == 0


@pytest.mark.parametrize("arguments, message", [
    (("--pml", "1,2"), "expected two corners"), (("--pml", "0,0,0:1,1,1"), "does not reach outside"),
    (("--source", "wave:1,0,0"), "expected wave:DIRECTION@BOUNDARY"), (("--wall", "zmax=impedance:none.csv"), "cannot read"),
    (("--damping", "1j"), "--damping 1j: expected a real number"), (("--wav", "a.mp3"), "expected .wav"),
    (("--row", "3"), "--row has no effect without --matrices")])
def test_bad_words_of_acoustics(cli, room, arguments, message):
    status, out, err = cli("helmholtz", room, *ROOM, *arguments)
    assert status == 2 and message in err and err.count("\n") == 1


def test_sound_at_the_ears(cli, room, tmp_path):
    """The file has a channel for each ear. Its spectrum in the band's middle is the response."""
    from scipy.io import wavfile
    several = ["--source", "xmin", "--ear", "0.7,0.4,0.3", "--ear", "0.2,0.1,0.1", "--band", "20:400:20", "--damping", "0.1"]
    status, out, err = cli("helmholtz", room, *several, "--method", "direct", "--wav", tmp_path / "a.wav")
    assert status == 0 and "full scale is" in out
    rate, samples = wavfile.read(tmp_path / "a.wav")
    assert rate == 44_100 and samples.shape == (2205, 2) and abs(samples).max() == pytest.approx(0.9)
    mesh = h.read_mesh(room)
    r = h.Helmholtz(mesh, h.Medium(damping=0.1)).response("xmin", [(0.7, 0.4, 0.3), (0.2, 0.1, 0.1)], h.band("20:400:20"),
                                                          method="direct")
    t, p = h.impulse(r)
    assert np.allclose(np.fft.rfft(p, axis=0)[10] * t[1], r.pressure[9]) and np.allclose(p.mean(axis=0), 0, atol=1e-9)
    for change, message in (({"rate": 700}, "at least 800"), ({"rate": 44100.5}, "expected a whole number")):
        with pytest.raises(InputError, match=message):
            h.impulse(r, **change)
    r.points.pop(3)
    with pytest.raises(InputError, match="needs all of them"):
        h.impulse(r)
    r.asked = len(r.points)
    with pytest.raises(InputError, match="needs equal steps"):
        h.impulse(r)


@pytest.fixture
def own(tmp_path):
    """K, M and B in files, and the matrices."""
    import scipy.sparse as sp
    from swell import gallery
    K = gallery.poisson2d(12)
    matrices = {"K": K, "M": sp.eye(144, format="csr") * (1 - 0.02j), "B": sp.eye(144, format="csr") * 0.1}
    for name, A in matrices.items():
        sp.save_npz(tmp_path / f"{name}.npz", A.tocsr())
    np.save(tmp_path / "f.npy", np.arange(288.0).reshape(144, 2))
    return [str(tmp_path / f"{name}.npz") for name in "KMB"], matrices


@pytest.mark.parametrize("wavenumber", [False, True])
def test_own_matrices(cli, own, tmp_path, wavenumber):
    files, A = own
    words = ["--wavenumber", "--speed", "6.283185307179586"] if wavenumber else []
    band = "0.5,1.0" if wavenumber else "0.1,0.2"
    status, out, _ = cli("helmholtz", "--matrices", *files, "--load", tmp_path / "f.npy", "--load", "7", "--row", "3",
                         "--row", "100", "--band", band, *words, "--csv", tmp_path / "x.csv", "--plot",
                         tmp_path / "x.png", "--json")
    found = json.loads(out)
    assert status == 0 and found["converged"] and (tmp_path / "x.png").exists() and found["loads"][2] == "row 7"
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1 + 2 * 3 * 2
    for point in found["points"]:
        w = point["frequency"] * (1 if wavenumber else 2 * np.pi)
        f = np.column_stack([np.load(tmp_path / "f.npy"), np.eye(144)[7]])
        x = np.linalg.solve((A["K"] - w ** 2 * A["M"] + 1j * w * A["B"]).toarray(), 1j * w * f)
        values = np.array(point["values"]) @ [1, 1j]
        assert np.allclose(values, x[[3, 100]].T, rtol=1e-4, atol=1e-4 * abs(x).max())


@pytest.mark.parametrize("wrong, words", [
    ({"B": None}, "B is of type NoneType"), ({"K": np.ones((6, 4))}, "expected a square matrix"),
    ({"M": np.eye(5)}, "M has shape"), ({"loads": ["a"] * 6}, "expected numbers"),
    ({"loads": np.ones(5)}, "loads have shape"),
    ({"names": ["one"], "loads": np.ones((6, 2))}, "1 names and 2 loads"), ({"rows": [-1]}, "row -1 of x"),
    ({"rows": []}, "rows is empty"), ({"speed": -1.0}, "expected a positive number"),
    ({"frequencies": [-1.0]}, "not negative")])
def test_bad_matrices_of_a_sweep(wrong, words):
    given = {"K": np.eye(6), "M": np.eye(6), "B": np.eye(6), "loads": np.ones(6), "rows": [0], "frequencies": [0.1]}
    with pytest.raises(InputError, match=words):
        h.sweep_matrices(**{**given, **wrong})


@pytest.mark.parametrize("arguments, message", [
    ((), "--load is missing"), (("--load", "7"), "--row is missing"),
    (("--load", "144", "--row", "3"), "a row from 0 to 143"), (("--load", "7", "--row", "200"), "row 200 of x"),
    (("--load", "7", "--row", "3", "--ear", "0,0,0"), "--ear needs a mesh"),
    (("--load", "none.npy", "--row", "3"), "none.npy"),
    (("--load", "7", "--row", "3", "--damping", "0.1"), "--damping needs a mesh"),
    (("--load", "7", "--row", "3", "--at-once"), "--at-once needs a mesh"),
    (("--load", "7", "--row", "3", "--vtu-at", "0.1"), "--vtu-at needs a mesh")])
def test_bad_input_with_own_matrices(cli, own, arguments, message):
    status, _, err = cli("helmholtz", "--matrices", *own[0], "--band", "0.1", *arguments)
    assert status == 2 and message in err
    assert "give a mesh or matrices" in cli("helmholtz", "a.msh", "--matrices", *own[0], "--band", "0.1")[2]
    assert "neither a MESH nor" in cli("helmholtz", "--band", "0.1")[2]
