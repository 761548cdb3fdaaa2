"""The HTML report of a solve in one file: configuration with reasons, outcome, cost, and pictures."""
from __future__ import annotations

from datetime import datetime

import swell
from swell.solving.result import Result
from swell.report import page
from swell.report.convergence import figure as convergence_figure
from swell.report.figure import png
from swell.report.pattern import figure as pattern_figure

# Names for readers of the timed parts of a solve.
_PARTS = {"transform": "scaling and ordering", "preconditioner": "preconditioner or factorisation",
          "format": "matrix format", "workspace": "buffers", "setup": "setup, total", "solve": "solve",
          "compile": "compiling kernels, at their first use"}


def html(result, path, title="swell: report of a solve", pictures=None, matrix=None, equation=None,
         levels=None):
    """Write the report of a solve as one self-contained HTML file.

    Parameters
    ----------
    result : Result or Results
    path : str or path-like
    title : str
    pictures : dict of str to bytes, optional
        Further PNG pictures, by their captions.
    matrix : scipy.sparse.csr_matrix, optional
        The matrix, for a picture of its pattern.
    equation : swell.pde.fvm.Solution, optional
        The solution of an equation, with ``result`` as its longest linear solve. The badge and the first table then
        describe the equation.
    levels : AMGOperator, optional
        The algebraic multigrid that the solve used, for a table and a picture of its levels.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    body = [f"<h1>{page.escape(title)}</h1>",
            page.paragraph(f"swell {swell.__version__}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}", soft=True)]
    single = isinstance(result, Result)
    if equation is not None:
        body += [*_state(equation), page.table(equation.facts()), page.heading("The longest linear solve"),
                 _table(result)]
    else:
        body += _outcome(result) if single else _overview(result)
    body.append(page.heading("Convergence" if equation is None else "Convergence of the longest linear solve"))
    body.append(page.image(png(convergence_figure(result)), "relative residual after each iteration, as the method "
                           "follows it; the mark at the end is the true residual"))
    if single:
        body += _details(result)
    else:
        for k, column in enumerate(result):
            body += [page.heading(f"Right-hand side {k}"), *_outcome(column), *_details(column)]
    if matrix is not None:
        body.append(page.heading("Pattern of A"))
        body.append(page.image(png(pattern_figure(matrix)), f"{matrix.shape[0]} × {matrix.shape[1]}, "
                               f"{matrix.nnz} entries, darker where they lie densely"))
    if levels is not None:
        body += _levels(levels)
    for caption, picture in (pictures or {}).items():
        body.append(page.image(picture, caption))
    page.write(path, page.page(title, body))


def _levels(M):
    """Yield pieces of HTML: the section on the levels of algebraic multigrid. M: AMGOperator."""
    from swell.preconditioners.amg.report import HEADER, facts, rows, sentences
    from swell.report.levels import figure
    found = facts(M)
    yield page.heading("Levels of algebraic multigrid")
    yield page.table(rows(found), HEADER)
    yield page.paragraph("; ".join(sentences(found)) + ".", soft=True)
    yield page.image(png(figure(found)), "rows and entries of each level, on a logarithmic scale")


def _overview(results):
    """Return pieces of HTML: a badge and a table for several right-hand sides. ``results``: Results."""
    done = sum(r.converged for r in results)
    rows = [(k, r.reason.name, r.iterations, f"{r.residual:.2e}", f"{r.timings.get('solve', 0):.3g}")
            for k, r in enumerate(results)]
    return [f"<p>{page.badge(f'{done} of {len(results)} converged', results.converged)}</p>",
            page.table(rows, ("right-hand side", "reason", "iterations", "true residual", "solve, s"))]


def _outcome(result):
    """Return pieces of HTML: the badge, the reason and the table of ``result``, a Result."""
    return [*_state(result), _table(result)]


def _state(result):
    """Yield pieces of HTML: the badge and the reason in words, of a Result or of an equation's Solution."""
    state = "converged" if result.converged else f"not converged: {result.reason.name}"
    yield f"<p>{page.badge(state, result.converged)}</p>"
    yield page.paragraph(result.message[:1].upper() + result.message[1:] + ".")


def _table(result):
    """Return the HTML table of iterations, residuals and cost of one Result."""
    return page.table([
        ("iterations", result.iterations),
        ("true relative residual", f"{result.residual:.3e} (asked for: {result.tolerance:.3g})"),
        ("backward error", f"{result.backward_error:.2e}"),
        ("products with A", result.products), ("reductions", result.reductions),
        ("preconditioner applications", result.preconditioner_applications)])


def _details(result):
    """Yield pieces of HTML: a Result's configuration, earlier attempts, notes, time and memory."""
    yield page.heading("What ran, and why")
    yield page.preformatted(result.configuration)
    if result.attempts:
        yield page.heading("Earlier attempts")
        yield page.table([(a.method, a.precond, a.iterations, f"{a.residual:.2e}", a.reason.name, a.message)
                          for a in result.attempts],
                         ("method", "preconditioner", "iterations", "true residual", "reason", "in words"))
    if result.notes:
        yield page.heading("Notes")
        yield page.bullets(result.notes)
    yield page.heading("Time and memory")
    yield page.table([(_PARTS.get(part, part), f"{seconds:.4g} s") for part, seconds in result.timings.items()]
                     + [(f"memory: {part}", f"{size / 2**20:.1f} MiB") for part, size in result.memory.items()])
