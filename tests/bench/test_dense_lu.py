"""swell bench dense-lu, on small matrices."""
import csv
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from swell import dense
from swell.bench import dense_figures, dense_matrices
from swell.cli import main


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_generated(tmp_path, capsys):
    out, report, table = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "r.csv"
    assert main(["bench", "dense-lu", "--generated", "random", "border", "--sizes", "24", "--repeat", "2", "--types",
                 "float64", "--out", str(out), "--report", str(report), "--csv", str(table), "--decomposers", "getrf",
                 "icm(x=8, section=16)", "--solvers", "trsm", "is(x=8)"]) == 0
    found = records(out)
    made = [r for r in found if r["benchmark"] == "dense-lu decomposition"]
    solved = [r for r in found if r["benchmark"] == "dense-lu solution"]
    assert [(r["matrix"], r["decomposer"].split("(")[0]) for r in made] == [
        (m, d) for m in ("random24", "border24") for d in ("Getrf", "ICM")]
    for r in made:
        assert r["seconds"] >= r["best"] > 0 and r["runs"] == 2 and r["backward_error"] < 1e-10 and r["growth"] > 0
        assert (r["iterations"] is None) == (r["decomposer"] == "Getrf()")
        assert r["speedup"] == pytest.approx(made[made.index(r) // 2 * 2]["seconds"] / r["seconds"])
    assert len(solved) == 4 and all(r["backward_error"] < 1e-10 for r in solved)
    assert "All matrices together" in capsys.readouterr().out
    assert report.read_text("utf-8").count("data:image/png") == 8   # speed-ups, times; sections, nonzeros of A and of ICM's L U
    with table.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found)


def test_long_calls_are_not_repeated(monkeypatch):
    from swell.bench import dense_lu
    from swell.core.devices import make_space
    space, calls = make_space("cpu"), []
    assert len(dense_lu._timed(space, lambda: calls.append(1), None)[1]) == dense_lu.RUNS == len(calls) - 1
    assert len(dense_lu._timed(space, lambda: calls.append(1), 3)[1]) == 3
    monkeypatch.setattr(dense_lu, "MAX_SECONDS", 0.0)
    calls.clear()
    assert len(dense_lu._timed(space, lambda: calls.append(1), 3)[1]) == 3 and len(calls) == 4
    monkeypatch.setattr(dense_lu, "MAX_SECONDS", 1e-12)
    calls.clear()
    assert len(dense_lu._timed(space, lambda: calls.append(1), None)[1]) == 1 == len(calls)


def test_files_and_what_fails(tmp_path, capsys):
    folder, out = tmp_path / "matrices", tmp_path / "r.jsonl"
    folder.mkdir()
    scipy.io.mmwrite(folder / "good.mtx", sp.csr_array(dense_matrices.random_dense(12)))
    scipy.io.mmwrite(folder / "singular.mtx", sp.csr_array(np.diag([1.0, 2, 0, 3])))
    scipy.io.mmwrite(folder / "complex.mtx", sp.csr_array(1j * np.eye(3)))
    scipy.io.mmwrite(folder / "wide.mtx", sp.csr_array(np.ones((3, 4))))
    (folder / "no_matrix.mtx").write_text("hello")
    rows = "".join(f"{i} {i} 1\n" for i in range(1, 500_001))             # 8 TB where it is dense
    (folder / "huge.mtx").write_text("%%MatrixMarket matrix coordinate real general\n500000 500000 500000\n" + rows)
    (folder / "nan.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 nan\n2 2 1\n")
    arguments = ["bench", "dense-lu", str(folder), "--repeat", "1", "--out", str(out),
                 "--decomposers", "getrf", "--solvers", "trsm"]
    assert main(arguments) == 0
    failed, shown = [r for r in records(out) if "failure" in r], capsys.readouterr().out
    why = {r["matrix"]: r["failure"] for r in failed}
    assert set(why) == {"singular", "wide", "no_matrix", "huge", "nan", "complex"}
    assert {r["dtype"] for r in failed if r["matrix"] == "singular"} == {"float32", "float64"}
    for name, words in (("singular", "column 2 is zero"), ("wide", "(3, 4)"), ("huge", "500000 rows"), ("nan", "nan"),
                        ("complex", "--types complex128")):
        assert words in why[name], why[name]
    assert "column 2 is zero" in shown and "Left out" in shown
    assert {r["matrix"] for r in records(out) if "failure" not in r} == {"good"}


def test_bordered_matrices_of_bddc_and_batches(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "dense-lu", "--generated", "bordered", "random", "--sizes", "80", "--repeat", "2", "--types",
                 "float64", "--batch", "3", "--out", str(out), "--decomposers", "getrf", "pcm(x=8)", "icm(x=8)",
                 "pcm(form=plain)", "--solvers", "trsm"]) == 0
    made = [r for r in records(out) if r["benchmark"] == "dense-lu decomposition"]
    assert {r["matrix"] for r in made} == {"bordered82", "random80"}
    assert all(r["backward_error"] < 1e-9 for r in made)
    together = [r for r in records(out) if r["benchmark"] == "dense-lu batch"]
    assert [(r["matrix"], r["decomposer"].split("(")[0]) for r in together] == [
        (m, d) for m in ("bordered82", "random80") for d in ("PCM", "ICM")]                  # the others: one by one
    for r in together:
        assert r["matrices"] == 3 and r["speedup"] == pytest.approx(r["alone_best"] / r["best"])
    assert "one after the other and together" in capsys.readouterr().out


def test_bordered_matrices():
    """Indefinite, a zero block of 26 constraints, and of a floating subdomain: S times a constant is zero."""
    B = dense_matrices.bordered(82)
    assert B.shape == (82, 82) and np.array_equal(B, B.T) and not B[-26:, -26:].any()
    assert abs(B[:56, :56] @ np.ones(56)).max() < 1e-12 and np.allclose(np.diag(B[:56, :56]).mean(), 1)
    values = np.linalg.eigvalsh(B)
    assert (values < 0).sum() == 26 and abs(values).min() > 1e-3
    assert not np.array_equal(B, dense_matrices.bordered(82, 1))


@pytest.mark.parametrize("option, value, words", [
    ("--sizes", "ten", "rows"), ("--types", "float16", "expected some of"),
    ("--decomposers", "lu", "unknown decomposer"), ("--csv", "/nowhere/x.csv", "no folder"),
    ("--batch", "0", "positive"), ("--tolerances", "0,x", "x: expected numbers"), ("--tolerances", "-1", "at least 0"),
    ("--changes", "x", "--changes x: expected numbers")])
def test_bad_arguments(option, value, words, capsys):
    usual = ["bench", "dense-lu", "--sizes", "4", "--repeat", "1", "--decomposers", "getrf", "--solvers", "trsm"]
    assert main([*usual, option, value]) == 2
    assert words in capsys.readouterr().err


def test_folders_and_batches_that_are_not(tmp_path, capsys):
    assert main(["bench", "dense-lu", str(tmp_path)]) == 2 and "without a .mtx" in capsys.readouterr().err
    assert main(["bench", "dense-lu", str(tmp_path), "--batch", "2"]) == 2
    assert "--batch is for generated matrices" in capsys.readouterr().err
    assert main(["bench", "dense-lu", str(tmp_path / "none.mtx"), "--repeat", "1"]) == 2
    assert "none.mtx does not exist" in capsys.readouterr().err
    (tmp_path / "no_matrix.mtx").write_text("hello")
    assert main(["bench", "dense-lu", str(tmp_path), "--repeat", "1"]) == 1          # nothing was measured


def test_sizes_beyond_memory_are_left_out(tmp_path, capsys):
    """And what they need is said; the others are measured."""
    out = tmp_path / "r.jsonl"
    assert main(["bench", "dense-lu", "--generated", "random", "border", "bordered", "--sizes", "9000000,8", "--repeat",
                 "1", "--types", "float64", "--out", str(out), "--decomposers", "getrf", "--solvers", "trsm"]) == 0
    failed = {r["matrix"]: r["failure"] for r in records(out) if "failure" in r}
    assert len(failed) == 3 and all("needs about" in why and "GiB" in why for why in failed.values())
    assert "needs about" in capsys.readouterr().out
    assert {r["n"] for r in records(out) if "failure" not in r} == {8, 52}


def test_a_tolerance_that_leaves_nothing_is_a_record(tmp_path):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "dense-lu", "--generated", "random", "--sizes", "24", "--repeat", "1", "--types", "float64",
                 "--out", str(out), "--decomposers", "getrf", "icm(x=8, tolerance=1e9)", "--solvers",
                 "is(tolerance=1e9)"]) == 0
    failed = [r["failure"] for r in records(out) if "failure" in r]
    assert len(failed) == 2 and all("take less" in why for why in failed)


def test_what_is_to_be_said_of_factors_is_shown(tmp_path, capsys):
    """Nearly singular: which column, which pivot, beside good backward errors."""
    A, out, report = dense_matrices.random_dense(12), tmp_path / "r.jsonl", tmp_path / "r.html"
    A[:, 7] = A[:, 2] + A[:, 3]
    scipy.io.mmwrite(tmp_path / "near.mtx", sp.csr_array(A))
    (tmp_path / "empty.mtx").write_text("%%MatrixMarket matrix coordinate real general\n0 0 0\n")
    assert main(["bench", "dense-lu", str(tmp_path), "--repeat", "1", "--types", "float64", "--out", str(out),
                 "--report", str(report), "--decomposers", "getrf", "pcm(x=8)", "--solvers", "trsm"]) == 0
    said = "singular to working precision"
    good = [r for r in records(out) if r["matrix"] == "near"]
    assert len(good) == 3 and all(said in r["notes"][0] and "column 7" in r["notes"][0] for r in good)
    assert said in " ".join(capsys.readouterr().out.split()) and said in report.read_text("utf-8")
    assert any("of at least one row" in r.get("failure", "") for r in records(out))


def test_sections_of_the_heat_map_are_counted():
    figure = dense_figures.heat_map(dense.ICM(x=8, section=8).factor(dense_matrices.random_dense(24)).metrics)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "3"]
    assert len(axes.get_xticklabels()) == 3
    assert axes.get_ylabel() == "sections of 8 rows"


def test_generated_matrices_are_what_they_should_be():
    A, B = dense_matrices.random_dense(200), dense_matrices.diagonal_and_border(200)
    assert abs(A).max() <= 1000 and 60 < (np.diag(A) == 0).sum() < 140 and A[-1, -1] != 0
    inner = B[:180, :180]
    assert np.array_equal(inner, np.diag(np.diag(inner))) and (B != 0).mean() < 0.02


def test_curves_pivotings_and_tolerances(tmp_path, capsys):
    """Figures 3.1, 3.10 and 3.12 need two sizes and both pivotings, 3.11 needs tolerances."""
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert main(["bench", "dense-lu", "--generated", "border", "random", "--sizes", "40,80", "--repeat", "1",
                 "--types", "float64", "--decomposers", "getrf", "pcm(x=8)", "pcm(x=8, pivoting=conditional)",
                 "--solvers", "trsm", "--tolerances", "0,1e-6,1e-1", "--out", str(out), "--report", str(report)]) == 0
    found = records(out)
    swept = [r for r in found if r["benchmark"] == "dense-lu tolerance" and r["matrix"] == "border80"]
    assert [r["tolerance"] for r in swept] == [0, 1e-6, 1e-1]
    counts = [sum(map(sum, r["iterations"])) for r in swept]
    errors = [r["backward_error"] for r in swept]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1] and errors == sorted(errors)
    assert "ICM with processing tolerances" in capsys.readouterr().out
    page = report.read_text("utf-8")
    for words in ("figure 3.1)", "figure 3.9", "figure 3.10", "3.12 and 3.14", "figure 3.11", "figure 3.15",
                  "figure 3.18", "random80, float64: nonzeros", "nonzeros of L and U"):
        assert words in page, words
    assert "figure 3.6" not in page and page.count("border80, float64: nonzeros") == 2       # alt text, and caption


def test_variants_of_x_are_bars_from_zero_and_equal_curves_show():
    """Figures 3.6, 3.7, 3.16: settings that differ in more than x are no variants. All curves have equal values."""
    names = "ICM(x=8)", "ICM()", "ICM(x=8, form='plain')", "PCM(x=8)", "Getrf()"
    made = [{"matrix": f"random{n}", "n": n, "dtype": "float64", "decomposer": name, "seconds": 1.0,
             "max_difference": 1.0, "backward_error": 1.0} for name in names for n in (40, 80)]
    found = dict(dense_figures.figures(made, []))
    variants = [caption for caption in found if "Variants" in caption]
    assert variants == ["Variants of ICM(), float64 (figure 3.6)"]
    axes = found[variants[0]].axes[0]
    assert len(axes.containers) == 2 and axes.get_ylim()[0] == 0 and axes.get_yscale() == "linear"
    lines = found["Times of decompositions over the rows, float64 (figure 3.9)"].axes[0].lines
    looks = {(line.get_marker(), line.get_markersize(), line.get_linestyle(), line.get_color()) for line in lines}
    assert len(looks) == len(names) and {line.get_markerfacecolor() for line in lines} == {"none"}
    of_two_kinds = [r | {"matrix": f"border{r['n']}"} if r["n"] == 80 else r for r in made]      # one size of each
    assert not any("over the rows" in caption for caption, _ in dense_figures.figures(of_two_kinds, []))


def test_iterations_from_the_factors_of_a_similar_matrix(tmp_path, capsys):
    """Exact factors need one iteration a section to be confirmed; factors of another matrix more, the more it differs."""
    out = tmp_path / "r.jsonl"
    assert main(["bench", "dense-lu", "--generated", "border", "--sizes", "40", "--repeat", "1", "--types", "float64",
                 "--decomposers", "getrf", "icm(x=8, section=16, form=plain, tolerance=1e-9)", "--solvers", "trsm",
                 "--changes", "0,1e-6,1e-1", "--out", str(out)]) == 0
    found = [r for r in records(out) if r["benchmark"] == "dense-lu estimate"]
    counts = [r["from_estimate"] for r in found]
    assert [r["change"] for r in found] == [0, 1e-6, 0.1] and counts == sorted(counts) and counts[0] == 9 < counts[-1]
    assert all(r["decomposer"].startswith("ICM(x=8, tolerance=1e-09") for r in found)
    assert len({r["from_matrix"] for r in found}) == 1
    assert "from the factors of a similar matrix" in " ".join(capsys.readouterr().out.split())


def test_only_pivoting_differs():
    of = [{"decomposer": name} for name in ("PCM(x=8)", "PCM(x=8, pivoting='conditional')", "PCM(x=16)", "CM()",
                                            "CM(pivoting='none')", "ICM(pivoting='full', order='F')")]
    assert [r["decomposer"] for r in dense_figures.both_pivotings(of)] == [of[k]["decomposer"] for k in (0, 1, 3, 4)]


def test_patterns_show_zeros_and_what_is_not_finite():
    A = np.zeros((600, 600))
    A[5, 5], A[300, 10], A[599, 599] = 1, 1e-3, np.nan
    axes = dense_figures.pattern(A).axes[0]
    drawn = axes.images[0].get_array()
    assert drawn.shape == (200, 200) and (~np.ma.getmaskarray(drawn)).sum() == 3     # 3 by 3 entries a pixel
    assert drawn[1, 1] == 1 and drawn[100, 3] == 1e-3 and drawn[199, 199] > axes.images[0].norm.vmax
    assert axes.get_xlabel() == "0.0% nonzero"
    dense_figures.pattern(np.zeros((3, 3)))
