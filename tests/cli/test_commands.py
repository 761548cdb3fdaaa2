"""``info``, ``doctor`` and ``demo``."""
import json
import shlex
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell import gallery


def test_info_says_what_the_matrix_is_like(cli, folder):
    status, out, err = cli("info", folder / "A.mtx", "--picture", folder / "p.png")
    assert status == 0 and not err
    for words in ("144 unknowns", "symmetric", "positive definite", "bandwidth", "Cuthill–McKee", "blocks",
                  "entries a row: 3 to 5", "recommended: --method ", "--method cg", "because", "padding"):
        assert words in out
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")


def test_info_json(cli):
    found = json.loads(cli("info", "gallery:elasticity2d:400", "--json")[1])
    assert found["symmetry"] == "symmetric" and found["block_size"] == 2 and found["n"] > 300
    assert sum(step["rows"] for step in found["row_lengths"]["histogram"]) == found["n"]
    first = found["recommendation"][0]
    assert first["method"] == "Direct()" and first["predicted"]["setup"] > 0      # so few unknowns are factored outright
    assert "CG()" in [choice["method"] for choice in found["recommendation"]]


def test_info_hints_at_a_null_space(cli):
    out = cli("info", "gallery:neumann2d:100")[1]
    assert "every row sums to zero" in out and "singular: fix one unknown, or give --nullspace constants" in out


def test_what_info_recommends_can_be_given_to_solve(cli):
    for name in ("upwind2d:400", "poisson2d:400"):
        for choice in json.loads(cli("info", f"gallery:{name}", "--json")[1])["recommendation"]:
            status, out, _ = cli("solve", f"gallery:{name}", "--json", *shlex.split(choice["options"]))
            found = json.loads(out)
            assert status == 0 and choice["method"].lower().startswith(found["method"].replace("_", "")), choice


def test_info_of_a_singular_matrix(cli, tmp_path):
    """It says why, and recommends no direct solver: an isolated unknown, a floating part, a Neumann problem."""
    N, P = gallery.neumann((6,)), gallery.poisson1d(5)
    for k, (A, words) in enumerate(((sp.block_diag([P, sp.csr_array((1, 1))]), "row 5 is empty"),
                                    (sp.block_diag([P, N]), "component 2 of 2 (6 unknowns, from row 5) has rows that"),
                                    (N, "A has rows that all sum to zero"))):
        scipy.io.mmwrite(tmp_path / f"{k}.mtx", sp.coo_array(A))
        out = cli("info", tmp_path / f"{k}.mtx")[1]
        assert f"singular: {words}" in out and "direct" not in out.lower() and "nullspace=" not in out
        found = json.loads(cli("info", tmp_path / f"{k}.mtx", "--json")[1])
        assert found["recommendation"] and all("Direct" not in choice["method"] for choice in found["recommendation"])
    assert not json.loads(cli("info", "gallery:poisson2d:100", "--json")[1])["singular"]


def test_info_shows_the_levels_of_algebraic_multigrid_where_asked(cli):
    out = cli("info", "gallery:poisson2d:2500", "--amg")[1]
    assert "share of rows above" in out and "operator complexity" in out and "dense inverse" in out
    amg = json.loads(cli("info", "gallery:poisson2d:2500", "--amg", "--json")[1])["amg"]
    assert amg["levels"][0]["rows"] == 2500 and 1 < amg["operator_complexity"] < 4 and amg["setup_seconds"] > 0
    assert "amg" not in json.loads(cli("info", "gallery:poisson2d:2500", "--json")[1])


@pytest.mark.parametrize("name, words", [("saddle_point:100", "zero")])
def test_info_says_why_there_are_no_levels(cli, name, words):
    status, out, _ = cli("info", f"gallery:{name}", "--amg")
    assert status == 0 and "algebraic multigrid: " in out and words in out.split("algebraic multigrid: ")[1]


@pytest.mark.parametrize("name", ["saddle_point:100", "helmholtz2d:100", "upwind2d:100", "poisson1d:1"])
def test_info_of_every_structure(cli, name):
    assert cli("info", f"gallery:{name}")[0] == 0


def test_doctor(cli):
    status, out, _ = cli("doctor")
    assert status == 0
    for words in ("Python", "NumPy", "CuPy", "cuDSS", "NCCL", "mpi4py", "CPU: solved 2500 unknowns", "GPU: "):
        assert words in out
    found = json.loads(cli("doctor", "--json")[1])
    assert found["cpu_works"] and all(part["found"] or part["remedy"] for part in found["parts"])


def test_doctor_leaves_mpi_to_the_process():
    """MPI once loaded without being started, as looking for it must, would end a process that goes on to use it."""
    pytest.importorskip("mpi4py", reason="needs mpi4py and an MPI: pip install 'swell[mpi]' mpich")
    code = "from swell.cli import main; import swell; main(['doctor']); print(swell.distributed.init().size, 'rank')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "MissingDependency" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0 and "1 rank" in done.stdout and " MPI " in done.stdout, done.stdout + done.stderr


def test_doctor_reports_a_broken_cpu(cli, monkeypatch):
    def broken(device):
        raise RuntimeError("no kernels")
    monkeypatch.setattr("swell.cli.doctor._solve", broken)
    status, out, _ = cli("doctor")
    assert status == 2 and "RuntimeError: no kernels" in out


def test_doctor_finds_the_nccl_that_cupy_finds(cli, monkeypatch):
    """A module of CuPy's of its own, which ``import cupy.cuda`` does not load."""
    monkeypatch.setattr("swell.cli.doctor._version", lambda distributions: "")
    monkeypatch.setitem(sys.modules, "cupy.cuda", ModuleType("cupy.cuda"))
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", SimpleNamespace(available=True, get_version=lambda: 22703))
    parts = json.loads(cli("doctor", "--json")[1])["parts"]
    assert {part["name"]: part["found"] for part in parts}["NCCL"] == "as CuPy finds it, 22703"


def test_doctor_tells_a_petsc_that_does_not_load_from_one_that_does(cli, monkeypatch, tmp_path):
    """As a distribution's petsc4py, built for NumPy 1, beside NumPy 2."""
    monkeypatch.setattr("swell.cli.doctor._version", lambda distributions: "3.18.4")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "petsc4py").mkdir()
    (tmp_path / "petsc4py" / "__init__.py").touch()

    def petsc(content):
        (tmp_path / "petsc4py" / "PETSc.py").write_text(content)
        return next(part for part in json.loads(cli("doctor", "--json")[1])["parts"] if part["name"] == "petsc4py")
    broken = petsc("raise ImportError('numpy.core.multiarray failed to import')")
    assert not broken["found"] and "apt" not in broken["remedy"]
    assert "pip install petsc petsc4py" in broken["remedy"] and "3.18.4 is installed and does not load" in broken["remedy"]
    assert "multiarray failed to import" in broken["remedy"]
    assert petsc("")["found"] == "3.18.4"


def test_demo(cli, tmp_path):
    status, out, _ = cli("demo", "--cells", "16", "--out", tmp_path / "demo")
    assert status == 0
    assert "Hottest: " in out and "4096 unknowns" in out and "because" in out
    temperature = np.load(tmp_path / "demo" / "x.npy")
    assert temperature.min() > 0 and 40 < temperature.max() < 120
    for name in ("temperature.png", "convergence.png"):
        assert (tmp_path / "demo" / name).read_bytes().startswith(b"\x89PNG")
        assert name in out
    assert "chip" in (tmp_path / "demo" / "report.html").read_text("utf-8")
