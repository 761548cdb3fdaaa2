"""``swell fvm``: what it solves, prints and writes, and what it says about conditions that are none."""
import json

import numpy as np
import pytest

from swell.pde.fvm import box, write_polymesh

meshio = pytest.importorskip("meshio", reason="needs meshio: pip install 'swell[pde]'")
OTHERS = ("--patch-bc", "*=neumann:0")


@pytest.fixture
def cube(tmp_path):
    """A .msh of 27 hexahedra with the patches inlet (x = 0) and outlet (x = 1)."""
    mesh = box((3, 3, 3))
    step = np.array([0, 1, 5, 4])
    first = np.array([i + 4 * j + 16 * k for k in range(3) for j in range(3) for i in range(3)])
    side = np.array([4 * j + 16 * k for k in range(3) for j in range(3)])[:, None] + np.array([0, 4, 20, 16])
    given = meshio.Mesh(mesh.points, [("quad", np.vstack([side, side + 3])),
                                      ("hexahedron", first[:, None] + np.concatenate([step, step + 16]))],
                        cell_data={key: [np.repeat([1, 2], 9), np.full(27, 3)] for key in ("gmsh:physical", "gmsh:geometrical")},
                        field_data={"inlet": np.array([1, 2]), "outlet": np.array([2, 2]), "air": np.array([3, 3])})
    meshio.write(tmp_path / "cube.msh", given, file_format="gmsh22")
    return tmp_path / "cube.msh"


def test_a_channel_is_linear(cli, cube, tmp_path):
    status, out, err = cli("fvm", cube, "--patch-bc", "inlet=1", "--patch-bc", "outlet=dirichlet:3", *OTHERS,
                           "--diffusivity", "5", "--out", tmp_path / "p.vtu", "--report", tmp_path / "r.html", "--rtol", "1e-12")
    assert status == 0 and not err
    assert "27 cells, 108 faces (54 internal)" in out and "patch inlet: 9 faces, area 1" in out
    assert "non-orthogonality: at most 0.0°" in out and "converged" in out and "inlet: +10 out" in out
    p = meshio.read(tmp_path / "p.vtu").cell_data["p"][0]
    np.testing.assert_allclose(p, np.tile([4 / 3, 2, 8 / 3], 9), rtol=1e-10)
    report = (tmp_path / "r.html").read_text("utf-8")
    assert "27 cells" in report and "inlet, outlet, boundary" in report


def test_json_is_one_object(cli):
    status, out, err = cli("fvm", "box:8,8", "--patch-bc", "x*=0", "--patch-bc", "y*=neumann:0", "--patch-bc",
                           "ymax=robin:1:0.5:2", "--source", "1", "--method", "bicgstab", "--precond", "jacobi", "--json")
    found = json.loads(out)
    assert status == 0 and not err and out.count("\n") == 1
    assert found["converged"] is True and found["method"] == "bicgstab" and found["precond"] == "jacobi"
    assert found["cells"] == 64 and found["non_orthogonality"]["max"] == 0
    assert found["conservation"]["source"] == pytest.approx(1) and found["conservation"]["relative"] < 1e-6
    assert found["conservation"]["patches"]["ymin"] == 0 and found["p"]["max"] > 0


def test_an_openfoam_case(cli, tmp_path):
    inside = tmp_path / "case" / "constant" / "polyMesh"
    inside.mkdir(parents=True)
    mesh = box((3, 2, 1), skew=(0.3, 0))
    lists = {"points": ["({} {} {})".format(*map(float, p)) for p in mesh.points],
             "faces": [f"4({' '.join(map(str, face))})" for face in mesh.face_points.reshape(-1, 4)],
             "owner": mesh.owner, "neighbour": mesh.neighbour,
             "boundary": [f"{p.name} {{ type {p.kind}; nFaces {p.size}; startFace {p.start}; }}" for p in mesh.patches]}
    for name, lines in lists.items():
        (inside / name).write_text("FoamFile { format ascii; class list; }\n" + f"{len(lines)}\n(\n" + "\n".join(map(str, lines))
                                   + "\n)\n")
    status, out, err = cli("fvm", tmp_path / "case", "--patch-bc", "xmin=0", "--patch-bc", "*=neumann:0", "--source", "1")
    assert status == 0 and not err and "6 cells" in out and "xmin: +1 out" in out
    assert " 0 corrections" not in out
    (inside / "owner").unlink()
    status, out, err = cli("fvm", tmp_path / "case", *OTHERS)
    assert status == 2 and not out and "no file owner or owner.gz" in err


def test_what_is_reported_is_the_equation(cli, tmp_path):
    """Each linear solve converges, and the equation with its corrections does not: exit status, text, JSON, badge."""
    write_polymesh(box((8, 8), skew=(0.6, 0)), tmp_path / "case")
    few = ("fvm", tmp_path / "case", "--patch-bc", "xmin=0", *OTHERS, "--source", "1", "--corrections", "1")
    status, out, err = cli(*few, "--report", tmp_path / "r.html")
    report = (tmp_path / "r.html").read_text("utf-8")
    assert status == 1 and not err and "NOT converged" in out and "allow more" in out
    assert '<span class="badge bad">not converged: MAXITER' in report and "badge good" not in report
    assert "The corrections did not bring the equation to the tolerance" in report and "The longest linear solve" in report
    status, out, err = cli(*few, "--json")
    found = json.loads(out)
    assert status == 1 and not found["converged"] and found["reason"] == "MAXITER" and "allow more" in found["message"]
    assert found["residual"] > found["tolerance"] == 1e-8 and found["imbalance"] > 1e-8
    status, out, err = cli(*few[:-1], "50", "--report", tmp_path / "r.html", "--json")
    report, found = (tmp_path / "r.html").read_text("utf-8"), json.loads(out)
    assert status == 0 and found["converged"] and max(found["residual"], found["imbalance"]) <= 1e-8
    assert '<span class="badge good">converged' in report and f"{found['residual']:.3e}" in report


def test_cyclic_patches(cli, tmp_path):
    """They need no condition, '*' does not mean them, and one on them is refused; a box all round needs none."""
    write_polymesh(box((8, 6, 1), periodic="xz"), tmp_path / "case")
    status, out, err = cli("fvm", tmp_path / "case", "--patch-bc", "*=0", "--source", "1", "--report", tmp_path / "r.html",
                           "--out", tmp_path / "p.vtu")
    assert status == 0 and not err and "patch xmin: 6 faces, area 1, kind cyclic with xmax" in out
    assert "ymin: +0.5 out" in out and "xmin: " not in out.split("converged")[1]
    status, out, err = cli("fvm", tmp_path / "case", "--patch-bc", "ymin=1", "--json")
    assert status == 2 and not out and err.startswith("swell: no condition for patch ymax: ")
    status, out, err = cli("fvm", tmp_path / "case", "--patch-bc", "xmin=1", "--patch-bc", "*=0")
    assert status == 2 and "'xmin' is of kind 'cyclic' and takes no condition" in err
    write_polymesh(box((4, 4, 4), periodic="xyz"), tmp_path / "all")
    assert cli("fvm", tmp_path / "all", "--source", "1", "--balance", "--quiet") == (0, "", "")
    status, out, err = cli("decompose", tmp_path / "all", "--parts", "2", "--out", tmp_path / "parts")
    boundary = (tmp_path / "parts" / "processor0" / "constant" / "polyMesh" / "boundary").read_text()
    assert status == 0 and "processorCyclic" in boundary and "referPatch" in boundary


def test_not_converged_is_status_one(cli):
    status, out, err = cli("fvm", "box:20,20", "--patch-bc", "*=0", "--source", "1", "--maxiter", "3")
    assert status == 1 and not err and "NOT converged" in out


def test_all_neumann(cli):
    """What flows in through xmin must leave as a sink, or is made to, where that is asked for."""
    walls = ("--patch-bc", "xmin=neumann:1", *OTHERS)
    assert cli("fvm", "box:6,6", *walls, "--source", "-1")[0] == 0
    status, out, err = cli("fvm", "box:6,6", *walls)
    assert status == 2 and "differ by 1" in err and "--balance" in err and err.count("\n") == 1
    status, out, err = cli("fvm", "box:6,6", *walls, "--balance")
    assert status == 0 and "was subtracted from the source" in out


def test_exact_names_come_before_patterns(cli):
    out = cli("fvm", "box:4,4", "--patch-bc", "*=5", "--patch-bc", "xmin=7", "--json")[1]
    assert 5 < json.loads(out)["p"]["mean"] < 7


def test_without_conditions_the_mesh_is_described(cli, cube):
    status, out, err = cli("fvm", cube)
    assert status == 2 and "27 cells" in out and "patch outlet: 9 faces" in out
    assert "patches inlet, outlet, boundary; give each one with --patch-bc NAME=CONDITION" in err


def test_quiet(cli):
    assert cli("fvm", "box:4,4", "--patch-bc", "*=1", "--quiet") == (0, "", "")


@pytest.mark.parametrize("arguments, words", [
    (["CUBE", "--patch-bc", "inlt=1"], ["no patch 'inlt'", "did you mean 'inlet'"]),
    (["CUBE", "--patch-bc", "wall*=1"], ["no patch 'wall*'"]),
    (["CUBE", "--patch-bc", "*=1", "--patch-bc", "*=2"], ["patch '*' has two conditions"]),
    (["CUBE", "--patch-bc", "inlet=1"], ["no condition for patches outlet, boundary", "--patch-bc outlet=VALUE", "neumann:0"]),
    (["CUBE", "--patch-bc", "inlet=1", "--patch-bc", "inlet=2"], ["'inlet' has two conditions"]),
    (["CUBE", "--patch-bc", "inlet"], ["--patch-bc inlet", "NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "=1"], ["NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet="], ["NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet=one"], ["inlet=one", "NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet=nan"], ["--patch-bc inlet=nan: Expected NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet1"], ["--patch-bc inlet1: Expected NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet=neumann"], ["neumann takes 1 number. Expected NAME=CONDITION"]),
    (["CUBE", "--patch-bc", "inlet=dirichlett:1"], ["did you mean 'dirichlet'"]),
    (["CUBE", "--patch-bc", "inlet=neuman:0"], ["did you mean 'neumann'"]),
    (["CUBE", "--patch-bc", "inlet=robin:1"], ["robin takes 3 numbers", "robin:1:0.5:0"]),
    (["CUBE", "--patch-bc", "inlet=robin:1:-1:0", *OTHERS], ["opposite sign"]),
    (["CUBE", "--patch-bc", "*=0", "--diffusivity", "0"], ["diffusivity"]),
    (["CUBE", "--patch-bc", "*=0", "--diffusivity", "nan"], ["--diffusivity"]),
    (["CUBE", "--patch-bc", "*=0", "--source", "inf"], ["--source"]),
    (["CUBE", "--patch-bc", "*=0", "--corrections", "-1"], ["--corrections -1"]),
    (["CUBE", "--patch-bc", "*=0", "--rtol", "2"], ["rtol"]),
    (["CUBE", "--patch-bc", "*=0", "--method", "cgg"], ["did you mean 'cg'"]),
    (["CUBE", "--patch-bc", "*=0", "--device", "gpu"], ["gpu"]),
    (["CUBE", "--patch-bc", "*=0", "--out", "p.vtk"], [".vtu"]),
    (["CUBE", "--patch-bc", "*=0", "--out", "CUBE"], [".vtu"]),
    (["CUBE", "--patch-bc", "*=0", "--out", "nowhere/p.vtu"], ["nowhere"]),
    (["missing.msh", "--patch-bc", "*=0"], ["missing.msh does not exist"]),
    (["TRUNCATED", "--patch-bc", "*=0"], ["truncated.msh cannot be read"]),
    (["FOLDER", "--patch-bc", "*=0"], ["no OpenFOAM case"]),
    (["box:3", "--patch-bc", "zmin=0", "--patch-bc", "*=0"], ["'zmin'", "empty"]),
    (["box:3,x", "--patch-bc", "*=0"], ["box:3,x", "box:32,32,32"]),
    (["box:", "--patch-bc", "*=0"], ["box:32,32,32"]),
], ids=lambda value: " ".join(value)[:60])
def test_bad_input(cli, cube, tmp_path, arguments, words):
    (tmp_path / "truncated.msh").write_bytes(cube.read_bytes()[:900])
    (tmp_path / "folder").mkdir()
    names = {"CUBE": cube, "TRUNCATED": tmp_path / "truncated.msh", "FOLDER": tmp_path / "folder"}
    before = set(tmp_path.iterdir())
    status, out, err = cli("fvm", *(names.get(argument, argument) for argument in arguments), "--json")
    assert status == 2 and not out and err.startswith("swell: ") and err.count("\n") == 1
    assert all(word in err for word in words), err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.data
def test_the_hump(cli, data, tmp_path):
    status, out, err = cli("fvm", data / "openfoam" / "hump", "--patch-bc", "b4-inlet=1", "--patch-bc", "b5-outlet=0", *OTHERS,
                           "--corrections", "0", "--rtol", "1e-6", "--json", "--out", tmp_path / "p.vtu")
    found = json.loads(out)
    assert status == 0 and not err and found["cells"] == 44064 and 0 < found["p"]["min"] < found["p"]["max"] < 1
    assert found["conservation"]["patches"]["b5-outlet"] > 0 and (tmp_path / "p.vtu").stat().st_size > 1e6
