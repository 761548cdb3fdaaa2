"""Plots, pattern pictures and HTML reports."""
import re

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell.core.errors import InputError
from swell.display.convergence import thinned
from swell.report import convergence, html, pattern, picture, plot

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def result():
    A = swell.gallery.poisson2d(15)
    return swell.solve(A, np.ones(225), method="cg")


def test_plot_of_one_several_and_named_results(result, tmp_path):
    A = swell.gallery.poisson2d(15)
    several = swell.solve(A, np.ones((225, 2)), method="cg")
    for k, what in enumerate((result, [result, result], several, {"first": result, "second": result})):
        plot(what, tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").read_bytes().startswith(PNG)


def test_every_line_has_its_own_colour(result):
    lines = [line for line in convergence.figure([result] * 13).axes[0].lines if len(line.get_xdata()) > 2]
    assert len({line.get_color() for line in lines}) == 13


def test_plot_of_a_solve_of_nothing(tmp_path):
    plot(swell.solve(swell.gallery.poisson1d(5), np.zeros(5)), tmp_path / "p.png")
    assert (tmp_path / "p.png").exists()


def test_a_history_is_thinned_and_freed_of_what_a_logarithm_cannot_show():
    iterations, history = thinned([1.0, 0.0, np.nan, np.inf, 0.5])
    assert iterations.tolist() == [0, 4] and history.tolist() == [1.0, 0.5]
    iterations, history = thinned(np.linspace(1, 0.1, 100_000))
    assert len(history) <= 4000 and iterations[0] == 0 and iterations[-1] == 99_999


def test_the_page_is_self_contained_and_escaped(result, tmp_path):
    path = tmp_path / "r.html"
    html(result, path, title="<b>&", pictures={"a 'caption'": PNG}, matrix=swell.gallery.poisson2d(15))
    text = path.read_text("utf-8")
    assert "<b>&<" not in text and "&lt;b&gt;&amp;" in text
    assert not re.search(r"(?:src|href)=.(?!data:|#)|(?<!xmlns=.)(?<!xmlns:xlink=.)http", text) and "@import" not in text
    assert text.count("data:image/png;base64,") == 2 and text.count("<svg") == 1
    assert "prefers-color-scheme: dark" in text
    for words in ("CONVERGED", "converged", "CG()", "true relative residual", "setup", "memory"):
        assert words in text or words == "CONVERGED"


def test_a_report_tells_of_earlier_attempts(tmp_path):
    A = swell.gallery.get("saddle_point", 300)
    result = swell.solve(A, np.ones(A.shape[0]), maxiter=3)
    html(result, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    for attempt in result.attempts:
        assert attempt.reason.name in text


def test_a_report_of_several(tmp_path):
    several = swell.solve(swell.gallery.poisson2d(15), np.ones((225, 2)), method="cg")
    html(several, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "2 of 2 converged" in text and "Right-hand side 1" in text


def test_nothing_is_left_where_the_folder_is_missing(result, tmp_path):
    A = sp.identity(3, format="csr")
    for write in (lambda p: plot(result, p), lambda p: html(result, p), lambda p: picture(A, p)):
        with pytest.raises(InputError, match="folder"):
            write(tmp_path / "nowhere" / "file.png")


def test_counts_are_those_of_the_patches(monkeypatch):
    monkeypatch.setattr(pattern, "CHUNK", 7)
    A = sp.random(23, 23, 0.2, format="csr", random_state=3)
    found = pattern.counts(A, 5, 4)
    rows, columns = A.nonzero()
    expected = np.zeros((5, 4), int)
    np.add.at(expected, (rows * 5 // 23, columns * 4 // 23), 1)
    assert (found == expected).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 1000])
def test_text_and_picture_at_every_size(n, tmp_path):
    A = sp.identity(n, format="csr")
    lines = pattern.text(A, 10)
    assert lines and len({len(line) for line in lines}) == 1 and len(lines[0]) <= 10 and len(lines) <= 5
    assert all(any(character != "⠀" for character in line) for line in lines)
    picture(A, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(PNG)


def test_an_empty_matrix(tmp_path):
    A = sp.csr_matrix((4, 4))
    assert pattern.text(A, 4) == ["⠀⠀"]
    picture(A, tmp_path / "p.png")
    assert pattern.text(sp.csr_matrix((0, 0))) == []


def test_the_levels_of_algebraic_multigrid(tmp_path):
    """A table and a picture in the report; the picture has two bars a level, and the rows of one more table."""
    from swell.display.levels import short
    from swell.preconditioners.amg.report import facts
    from swell.report import levels
    A = swell.gallery.poisson2d(40)
    solver = swell.prepare(A, method="cg", precond="amg")
    count = len(facts(solver.M)["levels"])
    sizes, lengths = levels.figure(facts(solver.M)).axes
    assert len(sizes.patches) == 2 * count and len(lengths.patches) == count > 1
    levels.plot(solver.M, tmp_path / "levels.png")
    assert (tmp_path / "levels.png").read_bytes().startswith(PNG)
    html(solver.solve(np.ones(1600)), tmp_path / "r.html", levels=solver.M)
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "Levels of algebraic multigrid" in text and text.count("<svg") == 2
    assert [short(k) for k in (0, 999, 1000, 45_678, 1_234_567, 2e9)] == ["0", "999", "1k", "45.7k", "1.23M", "2G"]


def test_the_table_of_levels_adds_up():
    """Complexities and shares follow from the rows and entries that are shown."""
    from swell.preconditioners.amg.report import facts, rows, sentences, text
    M = swell.prepare(swell.gallery.poisson3d(14), method="cg", precond="amg").M.operator
    found = facts(M)
    cells, shown = rows(found), text(M)
    assert [row[1] for row in cells] == [A.shape[0] for A in M.hierarchy.matrices] and cells[0][4] == ""
    assert float(cells[1][4]) == pytest.approx(cells[1][1] / cells[0][1], abs=5e-4)
    assert found["operator_complexity"] == pytest.approx(sum(row[2] for row in cells) / cells[0][2])
    assert found["grid_complexity"] == pytest.approx(sum(row[1] for row in cells) / cells[0][1])
    assert 0 < found["setup_bytes"] < found["bytes"]
    assert all(line in shown for line in sentences(found)) and str(cells[-1][2]) in shown
    alone = swell.prepare(sp.identity(5000, format="csr"), method="cg", precond="amg").M.operator
    assert "smoothed alone, since" in text(alone) and "1 level;" in text(alone)
