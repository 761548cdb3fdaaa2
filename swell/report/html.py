"""The HTML report of a solve in one file: configuration with reasons, outcome, cost, and pictures."""
from datetime import datetime

import swell
from swell.display import page
from swell.display.figure import png, svg
from swell.preconditioners.amg.report import pieces
from swell.report.convergence import figure as convergence_figure
from swell.report.files import write
from swell.report.pattern import figure as pattern_figure
from swell.solving import cards
from swell.solving.result import Result


def html(result, path, title="swell: report of a solve", pictures=None, matrix=None, equation=None,
         levels=None, fields=None, say=str):
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
    levels : Preconditioning, optional
        The algebraic multigrid that the solve used, for a table and a picture of its levels.
    fields : matplotlib Figure, optional
        A picture of the solution, which comes first.
    say : callable
        Spells the advice in a sentence as the caller writes it. Default: as Python does.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    body = [f"<h1>{page.escape(title)}</h1>",
            page.paragraph(f"swell {swell.__version__}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}", soft=True)]
    body += [] if fields is None else [page.image(png(fields), "the solution in the middle of the mesh")]
    single = isinstance(result, Result)
    if equation is not None:
        body += [*cards.state(equation, say=say), page.table(equation.facts()),
                 page.heading("The longest linear solve"), cards.cost(result)]
    else:
        body += _outcome(result, say) if single else _overview(result)
    body.append(page.heading("Convergence" if equation is None else "Convergence of the longest linear solve"))
    body.append(page.drawing(svg(convergence_figure(result)), cards.CAPTION, shown=True))
    if single:
        body += _details(result, say)
    else:
        for k, column in enumerate(result):
            body += [page.heading(f"Right-hand side {k}"), *_outcome(column, say), *_details(column, say)]
    if matrix is not None:
        body.append(page.heading("Pattern of A"))
        body.append(page.image(png(pattern_figure(matrix)), "the entries, darker where they lie densely"))
    if levels is not None:
        body += [page.heading("Levels of algebraic multigrid"), *pieces(levels)]
    for caption, picture in (pictures or {}).items():
        body.append(page.image(picture, caption))
    write(path, page.page(title, body))


def _overview(results):
    """Return pieces of HTML: a badge and a table for several right-hand sides. ``results``: Results."""
    done = sum(r.converged for r in results)
    rows = [(k, r.reason.name, r.iterations, f"{r.residual:.2e}", f"{r.timings.get('solve', 0):.3g}")
            for k, r in enumerate(results)]
    return [f"<p>{page.badge(f'{done} of {len(results)} converged', results.converged)}</p>",
            page.table(rows, ("right-hand side", "reason", "iterations", "true residual", "solve, s"))]


def _outcome(result, say):
    """Return pieces of HTML: the badge, the reason and the table of ``result``, a Result."""
    return [*cards.state(result, say=say), cards.cost(result)]


def _details(result, say):
    """Yield pieces of HTML: a Result's sections, each with its heading."""
    for title, piece in cards.sections(result, say):
        yield page.heading(title)
        yield piece
