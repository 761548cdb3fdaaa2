"""The benchmark of algebraic multigrid, on small systems."""
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from swell import gallery
from swell.bench import amg, engine
from swell.cli import main


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_solves(tmp_path, capsys):
    """Every solver reaches the true tolerance, PyAMG's too where it is installed; what cannot be solved is said."""
    out, report, file = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "own.npz"
    sp.save_npz(file, sp.csr_matrix(gallery.jumping_diffusion((9, 9, 9))))
    assert main(["bench", "amg", "--scale", "0.01", "--repeat", "2", "--matrices", "poisson3d:64000,ecology2~,upwind2d",
                 "--files", str(file), "--out", str(out), "--report", str(report)]) == 0
    found, shown = records(out), capsys.readouterr()
    matrices = dict.fromkeys(r["matrix"] for r in found if r["matrix"] != "upwind2d")       # which is not symmetric
    assert [r["solver"] for r in found if r["matrix"] == "upwind2d"] == list(amg.UNSYMMETRIC)
    assert list(matrices) == ["poisson3d", "ecology2~", "own"]
    ours = [r for r in found if r["solver"] in amg.SOLVERS and r["matrix"] != "upwind2d"]
    assert [r["solver"] for r in ours] == 3 * list(amg.SOLVERS)
    for r in ours:
        assert r["residual"] <= 1e-8 and min(r["setup_seconds"], r["update_seconds"], r["solve_seconds"]) > 0
        assert (r["operator_complexity"] is not None) == (r["solver"] == "AMG")
    by_name = {(r["matrix"], r["solver"]): r["iterations"] for r in ours}
    assert by_name["ecology2~", "AMG"] < by_name["ecology2~", "IC(0)"] < by_name["ecology2~", "Jacobi"]
    assert all(r["residual"] <= 1e-8 for r in found if r["matrix"] == "upwind2d")
    assert "choice beside its best named one" in shown.out and "geometric mean" in shown.out
    assert "its time / AMG's" in shown.out and "data:image/png" in report.read_text("utf-8")
    assert main(["bench", "amg", "--matrices", "poisson3d:many"]) == 2


def test_peers(monkeypatch, capsys):
    """PyAMG is used where it is there, said to be missing where it is not, and imported by nothing else."""
    A = gallery.poisson2d(30)
    space = amg.make_space("cpu")
    monkeypatch.setattr(amg.importlib.util, "find_spec", lambda name: None)
    assert [r["solver"] for r in amg.measure(space, "A", A, 1)] == list(amg.SOLVERS)
    assert "pip install pyamg" in capsys.readouterr().err
    monkeypatch.undo()
    pytest.importorskip("pyamg", reason="needs PyAMG: pip install pyamg")
    found = [r for r in amg.measure(space, "A", A, 1) if r["solver"] in amg.PEERS]
    assert [r["solver"] for r in found] == list(amg.PEERS) and all(r["residual"] <= 1e-8 for r in found)
    code = ("import sys, swell; swell.solve(swell.gallery.poisson2d(30), [1.0] * 900, method='cg', precond='amg'); "
            "print('pyamg' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


DRIVER = """#!/bin/sh
test $(wc -c < $1/indptr) -eq 1604 && test $(wc -c < $1/b) -eq 3200 || exit 3
shift 2
for s; do for k in 0 1; do echo "x n 400 [$s] rep $k: setup $k.5 ms solve 2.0 ms its 7 true $RESIDUAL"; done; done
"""


def test_hypre_runs_beside(tmp_path, monkeypatch, capsys):
    """A driver gets the system as raw files, and its fastest run that met the tolerance counts."""
    driver = tmp_path / "driver"
    driver.write_text(DRIVER)
    driver.chmod(0o700)
    monkeypatch.setenv("RESIDUAL", "5e-9")
    command = ["bench", "amg", "--matrices", "poisson2d:400", "--repeat", "1", "--solvers", "AMG", "by itself", "--hypre"]
    assert main([*command, str(driver), "--out", str(tmp_path / "r.jsonl")]) == 0
    found = records(tmp_path / "r.jsonl")
    assert [r["hypre"]["setup_ms"] for r in found] == [1.5, 1.5] and found[0]["hypre"]["iterations"] == 7
    assert found[0]["hypre"]["settings"] == "17,0,4,0.25,18,1,cg"
    monkeypatch.setenv("RESIDUAL", "5e-7")
    assert main([*command, str(driver)]) == 0 and "did not reach 1e-08" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "none")]) == 0 and "expected the path of a driver" in capsys.readouterr().err


ELASTIC = """#!/bin/sh
shift 2
for s; do case $s in *,2,cg) r=9e-9;; *) r=1e-2;; esac; echo "[$s] rep 1: setup 1.5 ms solve 2.0 ms its 7 true $r"; done
"""


def test_hypre_is_told_the_unknowns_of_a_point(tmp_path):
    """hypre runs an elastic body with one and with two unknowns a point, and a scalar system with one."""
    driver, space = tmp_path / "driver", amg.make_space("cpu")
    driver.write_text(ELASTIC)
    driver.chmod(0o700)
    for A, settings in ((gallery.elasticity2d(8), "17,0,4,0.25,18,2,cg"), (gallery.poisson2d(12), None)):
        record, = amg.measure(space, "A", sp.csr_matrix(A), 1, ["Jacobi"], str(driver))
        assert record["hypre"].get("settings") == settings


def test_scaling(tmp_path, capsys):
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert main(["bench", "amg", "--scaling", "--scale", "0.01", "--most", "20000", "--out", str(out), "--report",
                 str(report)]) == 0
    found, shown = records(out), capsys.readouterr().out
    assert list(dict.fromkeys(r["family"] for r in found)) == list(amg.families(0.01, 20_000))
    assert all(r["reason"] == "CONVERGED" and r["residual"] <= 1e-8 and r["n"] <= 20_000 for r in found)
    assert all(family in shown for family in amg.families(0.01, 20_000)) and "history" not in found[0]
    assert "data:image/png" in report.read_text("utf-8")


def test_stretched_cells_are_finite_volumes():
    """Symmetric and definite; inside, rows sum to zero. Anisotropy is the ratio of the couplings."""
    A = amg.stretched(12, 100.0)
    assert abs(A - A.T).max() < 1e-12 * abs(A).max() and np.linalg.eigvalsh(A.toarray())[0] > 0
    assert (np.delete(np.asarray(A.sum(1)).ravel().reshape(12, 12), (0, 11), 0)[:, 1:-1] < 1e-9 * abs(A).max()).all()
    along = amg._along(10, 0.01)
    assert along[5, 6] / along[5, 15] == pytest.approx(100)


def test_hypres_figures_belong_to_one_size():
    assert amg.stored("ecology2~", 999_999)["iterations"] == 12 and amg.stored("ecology2~", 10_000) == {}
