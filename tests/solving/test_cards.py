"""What a notebook shows: HTML that is whole, escaped and without scripts; and a ``repr`` of one line."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.pages import Page

import swell
from swell.display import page

A = swell.gallery.poisson2d(20)
b = np.ones(400)
NASTY = "<script>alert('&')</script>"


def batch():
    values = np.stack([A.data, 0 * A.data])
    return swell.solve_batch(A, values, np.ones((2, 400)), method="cg")


MADE = {
    "result": lambda: swell.solve(A, b),
    "failed": lambda: swell.solve(A, b, method="cg", maxiter=3),
    "nothing": lambda: swell.solve(A, 0 * b),
    "attempts": lambda: swell.solve(swell.gallery.poisson2d(70) @ swell.gallery.poisson2d(70), np.ones(4900)),
    "results": lambda: swell.solve(A, np.random.default_rng(0).random((400, 3)), method="cg"),
    "many": lambda: swell.solve(A, np.random.default_rng(0).random((400, 20)), method="cg", maxiter=3),
    "solver": lambda: swell.prepare(A),
    "multigrid": lambda: swell.prepare(A, method="cg", precond="amg"),
    "levels": lambda: swell.prepare(A, method="cg", precond="amg").M,
    "air": lambda: swell.prepare(A, method="gmres", precond="air").M,
    "least squares": lambda: swell.lstsq(A[:, :100], b),
    "least squares failed": lambda: swell.lstsq(A[:, :100], b, maxiter=2),
    "batch": batch,
    "system": lambda: batch()[1],
}
WORDS = {
    "result": ["converged", "on 400 unknowns", "The choices"],
    "failed": ["not converged: MAXITER", "The iteration limit"],
    "attempts": ["Earlier attempts", "OVERTAKEN"],
    "results": ["3 of 3 converged", "solved together"],
    "many": ["0 of 20 converged", "MAXITER:", "and 4 more, no worse"],
    "solver": ["400 unknowns", "Choices, in their order"],
    "multigrid": ["Levels of algebraic multigrid", "operator complexity"],
    "levels": ["algebraic multigrid,", "chebyshev"],
    "air": ["approximate ideal restriction"],
    "least squares": ["converged (least squares)"],
    "least squares failed": ["not converged: MAXITER"],
    "batch": ["1 of 2 converged", "[1]"],
}
DRAWN = {"result", "failed", "nothing", "attempts", "results", "many", "multigrid", "levels", "air", "least squares",
         "least squares failed"}


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_and_a_line(name):
    made = MADE[name]()
    line = repr(made)
    assert "\n" not in line and line.startswith(type(made).__name__ + "(") and len(line) <= 160, line
    assert isinstance(made, swell.Solver) or line not in str(made), "print shows the whole text"
    if name == "system":
        return
    shown = Page(made._repr_html_())
    assert all(words in shown.text for words in WORDS.get(name, [])), shown.text
    assert ("svg" in shown.tags) == (name in DRAWN)
    assert len(made._repr_html_()) < 200_000


def test_the_line_of_a_result():
    r = swell.solve(A, b, method="cg", precond="ic0")
    assert repr(r) == (f"Result(converged, {r.iterations} iterations, residual {r.residual:.2e}, "
                       f"{r.timings['solve']:.3g} s, cg with ic on cpu)")
    assert repr(swell.solve(A, b, method="cg", scaling="none", maxiter=1)).startswith("Result(NOT converged (MAXITER), 1 it")
    assert repr(swell.prepare(A, method="cg")) == "Solver(400 unknowns, float64, cpu: cg)"


def test_an_array_does_not_flood_a_line():
    r = swell.solve(swell.gallery.poisson1d(30_000), np.ones(30_000))
    assert len(repr(r)) < 120 and len(repr([r, r])) < 240


def test_text_is_escaped():
    r = swell.solve(A, b, method="cg")
    r.notes.append(NASTY)
    r.configuration[0] += NASTY
    several = swell.Results(np.ones((400, 1)), [r], [NASTY])
    s = swell.prepare(A)
    s.notes.append(NASTY)
    least = swell.lstsq(A, b)
    least.notes.append(NASTY)
    many = batch()
    many.notes.append(NASTY)
    for made in (r, several, s, least, many):
        assert NASTY in Page(made._repr_html_()).text


def test_a_solver_whose_update_failed_says_so():
    s = swell.prepare(A, method="cg", precond="amg")
    with pytest.raises(swell.SwellError):
        s.update(sp.csr_matrix((np.full(A.nnz, np.nan), A.indices, A.indptr), A.shape))
    Page(s._repr_html_())
    s._failure = "NaN in A"
    shown = Page(s._repr_html_()).text
    assert shown.startswith("the last update failed") and shown.endswith("NaN in A")


@pytest.mark.parametrize("history, residual", [([np.nan] * 5, np.nan), ([0.0], 0.0), ([np.inf, 1], np.inf), ([], np.nan)])
def test_histories_that_a_logarithm_cannot_show(history, residual):
    r = replace(swell.solve(A, b, method="cg"), history=np.array(history), residual=residual, tolerance=0.0,
                reason=swell.Reason.NONFINITE)
    assert "not converged: NONFINITE" in Page(r._repr_html_()).text


def test_results_without_columns():
    none = swell.Results(np.ones((400, 0)), [])
    assert repr(none) == "Results(0 of 0 converged, 0 iterations, residual 0.00e+00, 0 s)"
    assert "0 of 0 converged" in Page(none._repr_html_()).text


def test_whole_pages_hold_to_it_too(tmp_path):
    r = swell.solve(A, b)
    swell.report.html(r, tmp_path / "r.html", levels=swell.prepare(A, method="cg", precond="amg").M)
    text = (tmp_path / "r.html").read_text("utf-8")
    body = text[text.index("<main"):text.index("</main>") + 7]
    assert "The choices" in Page(body.replace('src="data:', 'src="#')).text


def test_pieces():
    assert page.bullets([]) == page.paragraph("") == ""
    shown = Page(page.fragment([page.details("<a>", page.paragraph("<b>"), page.table([("<c>", 1)], ("<d>", "e")))]))
    assert "<a> <b> <d> e <c> 1" in shown.text
