"""The benchmark engine, on small stand-ins of its matrices."""
import json
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from swell import gallery
from swell.bench import copy_share, engine
from swell.cli import main
from swell.core.cpu import CpuSpace


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_spmv(tmp_path, capsys):
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert main(["bench", "spmv", "--scale", "0.001", "--repeat", "3", "--out", str(out), "--report", str(report),
                 "--matrices", "ecology2~,atmosmodd~"]) == 0
    found = records(out)
    assert [(r["matrix"], r["format"]) for r in found] == [("ecology2~", "csr"), ("ecology2~", "sell"),
                                                          ("atmosmodd~", "csr"), ("atmosmodd~", "sell")]
    for r in found:
        assert r["relative_error"] < 1e-14 and r["seconds"] > 0 and r["peer"] == "SciPy" and r["versions"]
        assert r["bytes_per_second"] == pytest.approx(r["bytes"] / r["seconds"])
    assert "ecology2~" in capsys.readouterr().out
    assert "data:image/png" in report.read_text("utf-8")


def test_spgemm(tmp_path, capsys):
    out, report, file = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "own.npz"
    sp.save_npz(file, sp.csr_matrix(gallery.helmholtz((20, 20), 0.3, 0.2)))
    assert main(["bench", "spgemm", "--scale", "0.001", "--repeat", "2", "--out", str(out), "--report", str(report),
                 "--matrices", "atmosmodd~", "--files", str(file)]) == 0
    found = records(out)
    assert [(r["matrix"], r["product"], r["dtype"]) for r in found] == [
        (name, product, dtype) for name, dtype in (("atmosmodd~", "float64"), ("own", "complex128"))
        for product in ("A A", "Pᵀ A P")]
    for r in found:
        assert r["relative_error"] < 1e-14 and r["seconds"] > 0 and r["numeric_seconds"] > 0 and r["peer"] == "SciPy"
        assert r["products"] >= r["entries"] > 0 and r["ratio"] == pytest.approx(r["peer_seconds"] / r["seconds"])
    A = gallery.helmholtz((20, 20), 0.3, 0.2)
    ones = A.copy()
    ones.data = np.ones(A.nnz)
    assert found[2]["products"] == (ones @ ones).sum() and found[2]["entries"] == (ones @ ones).nnz
    assert "products/s" in capsys.readouterr().out and "data:image/png" in report.read_text("utf-8")


def test_krylov(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    arguments = ["bench", "krylov", "--scale", "0.001", "--iterations", "20", "--repeat", "1", "--out", str(out)]
    assert main([*arguments, "--matrices", "ecology2~,atmosmodd~"]) == 0
    found = records(out)
    iterations = [r for r in found if r["benchmark"] == "krylov iteration"]
    solves = [r for r in found if r["benchmark"] == "krylov solve"]
    assert {r["case"] for r in iterations} == {"cg_jacobi", "gmres30", "bicgstab"}
    assert all(r["iterations"] == 20 for r in iterations)
    for r in solves:
        assert (r["reason"] == "CONVERGED") == (r["residual"] <= 1e-8)
        assert r["ratio"] == pytest.approx(r["peer_seconds"] / r["seconds"])
    assert main([*arguments, "--matrices", "ecology2~", "--no-solves"]) == 0      # appended to the same file
    assert len(records(out)) == len(found) + 1


@pytest.mark.parametrize("differences, expected", [
    ([3.0, 2.0, 100.0], 3.0), ([2.0], 2.0), ([-1.0, -2.0, 50.0], None), ([5.0, -4.0, 0.1], None), ([np.nan, 2.0, 2.5], 2.25),
    ([np.nan], None), ([], None)])
def test_the_median_of_differences_or_nothing(differences, expected):
    found = engine.beyond_noise(differences)
    assert np.isnan(found) if expected is None else found == expected
    assert engine.cell(found, 2) == ("" if expected is None else f"{expected:.2f}")


def test_a_difference_of_solves_may_be_negative_and_is_nothing_where_one_broke_down():
    assert engine.difference((3.0, 5), (1.0, 10)) == -0.4 and np.isnan(engine.difference((1.0, 5), (2.0, 5)))


def test_a_table_of_iterations_blanks_noise():
    r = {"benchmark": "krylov iteration", "matrix": "A", "case": "cg", "n": 1, "iterations": 9, "seconds": np.nan,
         "peer": "SciPy", "peer_seconds": 2e-6, "ratio": np.nan, "published_us": {}}
    from swell.bench import fvm, krylov
    assert krylov._iterations([r])[0][4:8] == ("", "SciPy", "2.0", "")
    solves = [{"benchmark": "fvm solve", "matrix": "A", "device": "cpu", "variant": v, "iteration_seconds": t}
              for v, t in zip(fvm.SCALED, (1e-6, np.nan, 3e-6))]
    assert "" in fvm._iterations(solves)[0] and not any("nan" in str(cell) for cell in fvm._iterations(solves)[0])


def test_a_figure_has_a_colour_for_every_series():
    from matplotlib.colors import to_rgb
    from swell.display.figure import COLOURS, colour_of
    found = [to_rgb(colour_of(k)) for k in range(40)]
    apart = min(np.linalg.norm(np.subtract(a, b)) for k, a in enumerate(found) for b in found[:k])
    assert apart > 0.05 and [colour_of(k) for k in range(len(COLOURS))] == list(COLOURS)
    labels = [f"series {k}" for k in range(14)]
    axes = engine.bars(["A", "B"], labels, {label: [1.0, 2.0] for label in labels}, "s").axes[0]
    assert len({bar.get_facecolor() for bar in axes.patches}) == 14


def test_logarithmic_figures_have_dots():
    """A bar's height would depend on where the axis begins."""
    axes = engine.bars(["A", "B"], ["one", "two"], {"one": [119.97, 1], "two": [121.2, None]}, "ms", log=True).axes[0]
    assert not axes.patches and axes.get_yscale() == "log"
    one, two = (line.get_ydata() for line in axes.lines)
    assert list(one) == [119.97, 1] and two[0] == 121.2 and np.isnan(two[1])
    assert not {*axes.lines[0].get_xdata()} & {*axes.lines[1].get_xdata()}       # equal values do not hide one another


def test_a_share_of_the_copy_speed_that_no_cache_explains_is_nonsense(capsys):
    assert copy_share.of_copy(1.3) == "130%" and copy_share.of_copy(22.51) == "nonsense"
    copy_share.warn_of_nonsense([1.3, 0.5])
    assert not capsys.readouterr().err
    copy_share.warn_of_nonsense([1.3, 22.51])
    assert "busy" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_figures_without_labels_or_values_have_no_legend(tmp_path):
    """A figure without values is left out of the report, which says so."""
    from swell.display.figure import finish, new_figure, with_legend
    assert not finish(*new_figure(), "x", "y").legends and not with_legend(new_figure()[0]).legends
    assert engine.bars(["A"], ["one"], {"one": [None]}, "s") is None and engine.bars([], [], {}, "s") is None
    figure = engine.bars(["A", "B"], ["one"], {"one": [0.0, None]}, "s")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one"]
    engine.Findings("Title", CpuSpace(), SimpleNamespace(report=tmp_path / "r.html")).report(("Solves", None), ("Products", figure))
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count("data:image/png") == 1 and "Solves: none." in page and "Products: none." not in page


def test_the_scaling_report_shows_exact_solves_of_points_and_of_blocks():
    """Their labels differ: Poisson's equation has points."""
    from swell.bench.scaling.figures import _solves
    found = [{"benchmark": "scaling solve", "scaling": "strong", "matrix": name, "ranks": 1, "preconditioner": label,
              "seconds": seconds, "reason": "CONVERGED"} for name, label, seconds in (
                  ("A", "ILU(0), exact", 1e-3), ("A", "ILU(0), 2 sweeps", 2e-3), ("A", "ILU(0), 3 sweeps", 3e-3),
                  ("B", "block ILU(0), exact", 4e-3), ("B", "block ILU(0), 3 sweeps", 5e-3))]
    axes, = _solves(found).axes
    assert [text.get_text() for text in axes.figure.legends[0].get_texts()] == ["exact", "the best number of sweeps"]
    assert [value for line in axes.lines for value in line.get_ydata()] == [1.0, 4.0, 2.0, 5.0]


def test_no_series_of_the_scaling_report_is_dropped():
    """There are more methods than colours of all reports."""
    from swell.bench.scaling.figures import _iterations, _messages
    measured = [{"matrix": "A", "method": f"method {k}", "ranks": p, "seconds": 1e-3 / p} for k in range(9) for p in (1, 2)]
    axes = _iterations(measured, []).axes[0]
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert len({line.get_color() for line in points}) == 9
    links = [{"benchmark": "scaling links", "ranks": k, "messages": [(8, 1e-6), (16, 2e-6)]} for k in range(2, 11)]
    prediction = SimpleNamespace(links=SimpleNamespace(latency=1e-6, bandwidth=1e9))
    assert len({line.get_color() for line in _messages(links, prediction).axes[0].lines}) == 10


def test_stored_figures_belong_to_the_standard_size():
    space = CpuSpace()
    assert engine.published("spmv_us", space, "atmosmodd~", 1.0)["petsc"] > 0
    assert engine.published("spmv_us", space, "atmosmodd~", 0.5) == {}
    assert engine.published("iteration_us", space, "atmosmodd~", 1.0, "gmres30")["scipy"] > 0


def test_a_meter_measures_what_it_is_given():
    meter = engine.Meter(CpuSpace(), size=1 << 20)
    a = np.ones(1 << 16)
    assert meter.copy_speed > 1e8
    assert 0 < meter.seconds(lambda: a.sum(), 5) < 0.1


def test_a_meter_works_in_its_space():
    """On a GPU that is the stream of the events: calls on another one seem to take no time."""
    class Watched(CpuSpace):
        inside = False

        @contextmanager
        def active(self, rows=None):
            outside, self.inside = self.inside, True
            with super().active(rows):
                yield
            self.inside = outside

        def copy(self, x, out):
            assert self.inside
            super().copy(x, out)

    space = Watched()
    seen = []
    engine.Meter(space, size=1 << 16).seconds(lambda: seen.append(space.inside), 2)
    assert seen and all(seen) and not space.inside


def test_no_copy_is_faster_than_memory(space):
    assert 1e8 < engine.Meter(space).copy_speed < 1e13


def test_fvm(tmp_path, capsys):
    """The finite-volume tables on a small matrix and on a mesh; every claim of convergence is NumPy's."""
    from swell.bench import fvm
    out, report, file = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "own.npz"
    sp.save_npz(file, sp.csr_matrix(gallery.jumping_diffusion((9, 9, 9))))
    assert main(["bench", "fvm", "--scale", "0.001", "--matrices", "ecology2~", "--files", str(file), "--iterations", "20",
                 "--outer-iterations", "10", "--out", str(out), "--report", str(report)]) == 0
    found = records(out)
    products = [r for r in found if r["benchmark"] == "fvm products"]
    solves = [r for r in found if r["benchmark"] == "fvm solve"]
    assert [r["matrix"] for r in products] == ["ecology2~", "own"] and all(0 < r["local_share"] <= 1 for r in products)
    assert [r["variant"] for r in solves] == 2 * list(fvm.VARIANTS)
    for r in solves:
        assert (r["reason"] == "CONVERGED") == (r["residual"] <= 1e-8)
        assert ("iteration_seconds" in r) == (r["variant"] in fvm.SCALED)
    by_name = {(r["matrix"], r["variant"]): r["iterations"] for r in solves}
    assert by_name["own", "IC(0)"] < by_name["own", "Jacobi scaling"] < by_name["own", "CG"]
    shown = capsys.readouterr().out
    assert all(title in shown for title in ("Table 3.1", "Table 4.1", "Table 5.1", "Jacobi / CG"))
    assert "data:image/png" in report.read_text("utf-8")


def test_blas1(tmp_path, capsys):
    from swell.bench.blas1 import OPERATIONS, SIZES
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert main(["bench", "blas1", "--scale", "0.0005", "--repeat", "3", "--dtypes", "float32,complex128", "--out", str(out),
                 "--report", str(report)]) == 0
    found = records(out)
    assert [r["dtype"] for r in found] == ["float32"] * 42 + ["complex128"] * 42
    assert {r["table"]: r["operation"] for r in found} == {3: "assign", 4: "scale", 5: "axpy", 6: "multiply", 7: "dot",
                                                           8: "norm", 0: "axpy_dots"}
    assert [r["n"] for r in found[::len(OPERATIONS)]] == 2 * [round(0.0005 * size) for size in SIZES]
    for r in found:
        assert r["relative_error"] < (1e-6 if r["dtype"] == "float32" else 1e-14)
        assert r["mean_seconds"] > 0 and r["median_seconds"] > 0 and set(r["peer_mean_seconds"]) == {"NumPy"}
        assert r["flops_per_second"] == pytest.approx(r["flops"] / r["mean_seconds"])
    complex_ = {r["operation"]: r["flops"] / r["n"] for r in found[42:]}
    assert complex_ == {"assign": 1, "scale": 6, "axpy": 8, "multiply": 6, "dot": 8, "norm": 5, "axpy_dots": 21}
    shown = capsys.readouterr().out
    assert all(f"Table {k}: " in shown for k in range(3, 9)) and "Fused: " in shown and "NumPy ms" in shown
    assert report.read_text("utf-8").count("data:image/png") == 2


def test_blas1_would_see_a_wrong_operation(monkeypatch, tmp_path):
    monkeypatch.setattr(CpuSpace, "axpy", lambda self, alpha, x, y: None)
    out = tmp_path / "r.jsonl"
    assert main(["bench", "blas1", "--scale", "0.0001", "--repeat", "1", "--out", str(out)]) == 0
    assert all((r["relative_error"] > 0.1) == (r["operation"] == "axpy") for r in records(out))


def test_spmv_tuned_and_table_9(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "spmv", "--complex", "--tune", "--scale", "0.05", "--repeat", "2", "--matrices",
                 "audi3d2~,cylinder3d1~", "--out", str(out), "--report", str(tmp_path / "r.html")]) == 0
    found = records(out)
    assert [(r["benchmark"], r["matrix"]) for r in found] == [
        (kind, name) for name in ("audi3d2~", "cylinder3d1~") for kind in ("spmv", "spmv", "spmv tuned")]
    for r in found:
        if r["benchmark"] == "spmv":
            assert r["dtype"] == "complex128" and r["flops"] == 8 * r["nnz"] and r["scipy_mean_seconds"] > 0
        else:
            assert r["gain"] == pytest.approx(r["default_seconds"] / r["tuned_seconds"]) and "tuned: " in r["origin"]
    shown = capsys.readouterr().out
    assert "Table 9" in shown and "Default beside tuned" in shown
