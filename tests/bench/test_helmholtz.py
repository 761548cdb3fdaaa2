"""swell bench helmholtz, on small cavities."""
import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")

from swell import gallery                                        # noqa: E402
from swell.bench import helmholtz as bench                       # noqa: E402
from swell.cli import main                                       # noqa: E402
from swell.pde import helmholtz as h                             # noqa: E402


@pytest.fixture
def own(tmp_path):
    """A mesh file and a folder of matrices: what needs no gmsh."""
    h.box((6, 5, 4), upper=(1.0, 0.8, 0.6)).write(tmp_path / "room.msh")
    folder = tmp_path / "matrices"
    folder.mkdir()
    K = gallery.neumann((8, 8, 8))
    n = K.shape[0]
    for name, A in (("K", K), ("M", sp.identity(n) / 64), ("B", sp.diags(np.where(np.arange(n) < 64, 0.1, 0)))):
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(A))
    return [str(tmp_path / "room.msh"), str(folder)]


def bench_own(*arguments):
    """Without generated cavities, once each."""
    return main(["bench", "helmholtz", "--meshes", "", "--repeat", "1", *map(str, arguments)])


def read(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_files(own, tmp_path, capsys):
    out, table = tmp_path / "r.jsonl", tmp_path / "r.csv"
    assert bench_own("--files", *own, "--frequencies", "60,90", "--methods", "bicgstabl(l=8)", "cocg", "cg", "--preconds",
                     "none", "ilu0", "--out", out, "--csv", table) == 0
    found = read(out)
    names = ["room, 60 Hz", "room, 90 Hz", "matrices, 60 Hz", "matrices, 90 Hz"]
    assert [(r["problem"], r["precond"], r["method"]) for r in found] == [
        (name, p, m) for name in names for p in ("none", "ilu0") for m in ("bicgstabl(l=8)", "cocg", "cg")]
    for r in found:
        if r["method"] == "cg":                                  # which a matrix that is not Hermitian refuses
            assert r["reason"] == "REFUSED" and "Hermitian" in r["failure"]
            continue
        assert r["reason"] == "CONVERGED" and r["residual"] <= 1.001e-9 and "history" not in r
        assert r["solve_seconds"] > 0 and r["setup_seconds"] > 0 and r["runs"] == 1 and r["on"] == "cpu"
        each = {"bicgstabl(l=8)": 16, "cocg": 1}[r["method"]]
        assert each * (r["iterations"] - 1) <= r["products"] <= each * r["iterations"] + 4
    shown = capsys.readouterr()
    assert "Other cavities, to 1e-09; the CPU alone (--device cuda puts a GPU beside it)" in shown.out
    assert "REFUSED" in shown.out and "GPU s" not in shown.out and "matrices, 90 Hz, cpu: cocg, ilu0" in shown.err
    with table.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found)


def test_ends_of_histories_lie_in_their_panel():
    """A method whose last step goes far below the tolerance ends within the axes, not under them."""
    record = {"problem": "room", "method": "cocg", "precond": "none", "reason": "CONVERGED", "residual": 1e-14,
              "products": 4, "iterations": 3, "history": np.array([1.0, 1e-3, 1e-5, 1e-14])}
    axes = bench._histories([record], 1e-9).axes[0]
    assert axes.get_ylim()[0] <= 1e-14


def test_a_method_that_fails_says_so(own, tmp_path, capsys):
    """And is nowhere called converged; no progress is judged, as in the paper."""
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert bench_own("--files", own[0], "--methods", "bicgstab", "--preconds", "none", "ilu0", "--maxiter", 14, "--out", out,
                     "--report", report) == 0
    r, good = read(out)
    assert good["reason"] == "CONVERGED" and report.read_text("utf-8").count("data:image/png") == 2
    assert bench_own("--files", own[0], "--methods", "cocg", "--preconds", "none", "--cpu-iterations", 3, "--out", out) == 0
    assert (read(out)[-1]["iterations"], read(out)[-1]["cut"]) == (3, True)
    assert (r["reason"], r["iterations"], r["maxiter"]) == ("MAXITER", 14, 14) and r["residual"] > 1e-9
    assert "MAXITER" in capsys.readouterr().out


def test_the_papers_cavities(tmp_path, capsys):
    """Each in its own table, with the paper's iterations beside Jacobi's at the full size alone."""
    pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    out = tmp_path / "r.jsonl"
    arguments = ["--out", out, "--maxiter", 60, "--preconds", "none", "jacobi", "--methods"]
    assert bench_own(*arguments, "qmr", "--scale", 0.1, "--meshes", "Audi3D-1,Cylinder3D-0,Twingo3D-0,cabin:0.2") == 0
    found = read(out)
    assert [r["problem"] for r in found[::2]] == ["Audi3D-1", "Twingo3D-0", "Cylinder3D-0", "cabin:0.2"]
    assert not any(r["paper_iterations"] for r in found) and 100 < found[0]["n"] < 400
    shown = capsys.readouterr().out
    assert all(f"Table {k}: " in shown for k in (1, 10, 11, 12)) and "Other cavities" in shown
    assert bench_own(*arguments, "bicgstab", "--meshes", "Audi3D-1") == 0
    assert [r["paper_iterations"] for r in read(out)[-2:]] == [None, 21]


def test_both_devices_in_a_row():
    """What stands beside a GPU: its host, whose time is that of as many iterations where they were cut short."""
    shared = {"problem": "Audi3D-1", "method": "tfqmr", "precond": "jacobi", "products": 49, "residual": 1e-10,
              "setup_seconds": 0.01, "paper_iterations": 24}
    cpu = {**shared, "on": "cpu", "reason": "MAXITER", "iterations": 12, "solve_seconds": 0.6, "cut": True}
    gpu = {**shared, "on": "cuda", "reason": "CONVERGED", "iterations": 24, "solve_seconds": 0.1, "cut": False}
    (row,) = bench.rows([gpu, cpu])
    assert len(row) == len(bench.SOLVES + bench.BESIDE) and row[3:6] == ("CONVERGED", 24, 24)
    assert row[-3:] == ("≈1.200", "0.1000", "12.00")
    (row,) = bench.rows([gpu, {**cpu, "cut": False, "reason": "CONVERGED", "iterations": 25}])
    assert row[-3:] == ("0.600", "0.1000", "6.00")
    refused = {"on": "cpu", "reason": "REFUSED", "failure": "no memory"}
    (row,) = bench.rows([gpu, {**shared, **refused}])
    assert len(row) == len(bench.SOLVES + bench.BESIDE) and row[-3:] == ("", "0.1000", "")
    (row,) = bench.rows([{**gpu, **refused, "on": "cuda"}, cpu])
    assert len(row) == len(bench.SOLVES + bench.BESIDE) and row[3] == "REFUSED: no memory"
    record = {**gpu, "history": np.geomspace(1, 1e-10, 25)}
    assert len(bench.figures([record, {**cpu, "history": np.geomspace(1, 1e-5, 13)}], 1e-9)) == 3


@pytest.mark.parametrize("option, value, words", [
    ("--meshes", "Audi3D-9", "did you mean 'Audi3D-"), ("--meshes", "cabin:x", "expected a size in m"),
    ("--meshes", "", "no system to solve"), ("--files", "/nowhere/x.msh", "does not exist"),
    ("--methods", "bicgstob", "did you mean"), ("--preconds", "ilu00", "did you mean"), ("--frequencies", "-5", "frequency of -5 Hz"), ("--rtol", "0", "--rtol 0"),
    ("--frequencies", "0", "expected a positive number in Hz"),
    ("--maxiter", "0", "positive"), ("--csv", "/nowhere/x.csv", "no folder"), ("--csv", "x.txt", "expected .csv")])
def test_bad_arguments(option, value, words, capsys):
    assert bench_own("--meshes", "Audi3D-1", "--methods", "cocg", "--preconds", "none", "--scale", 0.1, option, value) == 2
    assert words in capsys.readouterr().err


def test_K_alone_is_no_system(own, capsys):
    assert bench_own("--files", own[1], "--frequencies", "0,90") == 2
    assert "frequency 0" in capsys.readouterr().err


def test_words_of_a_refusal_are_whole():
    record = {"problem": "room", "method": "cocg", "precond": "ilu(drop=0.001)", "on": "cpu", "paper_iterations": None,
              "failure": "cocg needs a preconditioner that is its own transpose, and this one, ILUT(), is not"}
    words = bench.rows([record])[0][3].removeprefix("REFUSED: ").removesuffix(" …")
    assert len(words) > 40 and record["failure"].startswith(words + " ")


def test_a_folder_without_matrices(tmp_path, capsys):
    sp.save_npz(tmp_path / "K.npz", sp.identity(3, format="csr"))
    assert bench_own("--files", tmp_path) == 2
    assert "M.npz, B.npz missing" in capsys.readouterr().err


@pytest.mark.data
def test_the_real_cabin(data, tmp_path):
    """At 300 Hz COCG with ILU(0) within 300 products, Jacobi-BiCGSTAB not in 1000 iterations; true residuals."""
    arguments = ["--files", data / "car_cabin", "--out", tmp_path / "r.jsonl", "--methods"]
    assert bench_own(*arguments, "cocg", "--preconds", "ilu0") == 0
    assert bench_own(*arguments, "bicgstab", "--preconds", "jacobi") == 0
    good, bad = read(tmp_path / "r.jsonl")
    assert good["n"] == 34306 and good["frequency"] == 300 and good["reason"] == "CONVERGED" and good["products"] <= 300
    assert bad["reason"] == "MAXITER" and bad["iterations"] == 1000 and bad["residual"] > 1e-4
