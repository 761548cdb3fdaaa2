"""swell bench dense-lu, on small matrices."""
import csv
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell.bench import dense_lu
from swell.cli import main


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_generated(tmp_path, capsys):
    out, report, table = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "r.csv"
    assert main(["bench", "dense-lu", "--sizes", "24", "--repeat", "2", "--types", "float64", "--out", str(out),
                 "--report", str(report), "--csv", str(table), "--decomposers", "getrf",
                 "icm(x=8, section=16)", "--solvers", "trsm", "is(x=8)"]) == 0
    found = records(out)
    made = [r for r in found if r["benchmark"] == "dense-lu decomposition"]
    solved = [r for r in found if r["benchmark"] == "dense-lu solution"]
    assert [(r["matrix"], r["decomposer"].split("(")[0]) for r in made] == [
        (m, d) for m in ("random24", "border24") for d in ("Getrf", "ICM")]
    for r in made:
        assert r["seconds"] > 0 and r["runs"] == 2 and r["backward_error"] < 1e-10 and r["growth"] > 0
        assert (r["iterations"] is None) == (r["decomposer"] == "Getrf()")
        assert r["speedup"] == pytest.approx(made[made.index(r) // 2 * 2]["seconds"] / r["seconds"])
    assert len(solved) == 4 and all(r["backward_error"] < 1e-10 for r in solved)
    assert "All matrices together" in capsys.readouterr().out
    assert report.read_text("utf-8").count("data:image/png") == 3            # speed-ups, sections of two matrices
    with table.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found)


def test_files_and_what_fails(tmp_path, capsys):
    folder, out = tmp_path / "matrices", tmp_path / "r.jsonl"
    folder.mkdir()
    scipy.io.mmwrite(folder / "good.mtx", sp.csr_array(dense_lu.random_dense(12)))
    scipy.io.mmwrite(folder / "singular.mtx", sp.csr_array(np.diag([1.0, 2, 0, 3])))
    arguments = ["bench", "dense-lu", "--repeat", "1", "--files", str(folder), "--out", str(out),
                 "--decomposers", "getrf", "--solvers", "trsm"]
    assert main(arguments) == 0
    failed = [r for r in records(out) if "failure" in r]
    assert {r["matrix"] for r in failed} == {"singular"} and {r["dtype"] for r in failed} == {"float32", "float64"}
    assert all("column 2 is zero" in r["failure"] for r in failed)
    assert "column 2 is zero" in capsys.readouterr().out


@pytest.mark.parametrize("option, value, words", [
    ("--sizes", "ten", "rows"), ("--types", "float16", "expected some of"),
    ("--decomposers", "lu", "unknown decomposer"), ("--csv", "/nowhere/x.csv", "No such")])
def test_bad_arguments(option, value, words, capsys):
    usual = ["bench", "dense-lu", "--sizes", "4", "--repeat", "1", "--decomposers", "getrf", "--solvers", "trsm"]
    assert main([*usual, option, value]) == 2
    assert words in capsys.readouterr().err


def test_generated_matrices_are_what_they_should_be():
    A, B = dense_lu.random_dense(200), dense_lu.diagonal_and_border(200)
    assert abs(A).max() <= 1000 and 60 < (np.diag(A) == 0).sum() < 140 and A[-1, -1] != 0
    inner = B[:180, :180]
    assert np.array_equal(inner, np.diag(np.diag(inner))) and (B != 0).mean() < 0.02
