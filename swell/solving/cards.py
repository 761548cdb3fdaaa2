"""Results and Solvers as HTML: the cards that a notebook shows, and the pieces that reports share with them."""
from __future__ import annotations

from swell.display import page
from swell.display.convergence import Line, figure
from swell.display.figure import svg
from swell.preconditioners.amg import report as levels
from swell.preconditioners.amg.operator import AMGOperator
from swell.solving.choice_cost import HEADER, count, paired, seconds

# Names for readers of the timed parts of a solve.
PARTS = {"transform": "scaling and ordering", "preconditioner": "preconditioner or factorisation",
         "format": "matrix format", "workspace": "buffers", "setup": "setup, total", "solve": "solve",
         "compile": "compiling kernels, at their first use"}
CAPTION = "relative residual after each iteration, as the method follows it; the mark at the end is the true residual"
RAN, CHOICES = "What ran, and why", "The choices"                   # titles of sections
WIDTH, HEIGHT, POINTS = 6.4, 3.0, 400            # inches of a plot in a notebook, and points of its lines


def of_result(result) -> list[str]:
    """Return the HTML pieces that a notebook shows of a Result."""
    words = (f"{count(result.iterations, 'iteration')}, true relative residual {result.residual:.2e} (asked for: "
             f"{result.tolerance:.3g}), {seconds(result.timings)}, {label(result)} on {result.device}")
    return [*state(result, words), convergence(lines(result)), page.bullets(result.notes),
            *(page.details(title, piece) for title, piece in sections(result) if title != "Notes"),
            page.details("Cost and accuracy", cost(result))]


def of_solver(solver, failure) -> list[str]:
    """Return the HTML pieces that a notebook shows of a Solver; ``failure``: the error of its last update, or None."""
    A = solver.A
    entries = f"{A.nnz} entries" if A.has_entries else "matrix-free"
    said = page.badge("prepared" if failure is None else "the last update failed", failure is None)
    body = [f"<p>{said} {page.escape(f'{A.shape[0]} unknowns, {entries}, {A.dtype.name}, {solver.space.device_name}')}"
            "</p>"]
    if failure is not None:
        return [*body, page.paragraph(failure)]
    body.append(page.preformatted(solver.describe()))
    if len(solver.choices) > 1:
        choices = [(k, paired(choice.name("method"), choice.part), "; ".join(choice.why))
                   for k, choice in enumerate(solver.choices)]
        body.append(page.details("Choices, in their order", page.table(choices, ("", "choice", "why"))))
    body.append(page.bullets(solver.notes))
    M = None if solver.M is None else solver.M.operator
    if isinstance(M, AMGOperator):
        body.append(page.details("Levels of algebraic multigrid", *levels.pieces(M)))
    return body


def state(result, words="", say=str) -> list[str]:
    """Return the HTML pieces for a Result or an equation's Solution: a badge beside ``words``, and the reason.

    ``say``: as in `sections`."""
    said = "converged" if result.converged else f"not converged: {result.reason.name}"
    return [f"<p>{page.badge(said, result.converged)} {page.escape(words)}</p>",
            page.paragraph(say(result.message[:1].upper() + result.message[1:] + "."), soft=result.converged)]


def cost(result) -> str:
    """Return the HTML table of iterations, residuals and cost of one Result."""
    return page.table([
        ("iterations", result.iterations),
        ("true relative residual", f"{result.residual:.3e} (asked for: {result.tolerance:.3g})"),
        ("backward error", f"{result.backward_error:.2e}"),
        ("products with A", result.products), ("reductions", result.reductions),
        ("preconditioner applications", result.preconditioner_applications)])


def sections(result, say=str):
    """Yield (title, HTML) of a Result's configuration, choices, earlier attempts, notes, time and memory.

    ``say`` spells the advice in a sentence as the caller writes it: Python's spelling as it is, or a shell's."""
    yield RAN, page.preformatted(result.configuration)
    if result.choices:
        yield CHOICES, page.table([choice.cells() for choice in result.choices], HEADER)
    if result.attempts:
        yield "Earlier attempts", page.table(
            [(a.method, a.precond, a.iterations, f"{a.residual:.2e}", a.reason.name, say(a.message))
             for a in result.attempts],
            ("method", "preconditioner", "iterations", "true residual", "reason", "in words"))
    if result.notes:
        yield "Notes", page.bullets([say(note) for note in result.notes])
    yield "Time and memory", page.table(
        [(PARTS.get(part, part), f"{spent:.4g} s") for part, spent in result.timings.items()]
        + [(f"memory: {part}", f"{size / 2**20:.1f} MiB") for part, size in result.memory.items()])


def convergence(lines, ylabel="relative residual") -> str:
    """Return the HTML of the convergence plot for a notebook; ``lines``: a list of Line."""
    return page.drawing(svg(figure(lines, ylabel, POINTS, WIDTH, HEIGHT)), CAPTION)


def lines(result) -> list[Line]:
    """Return the lines of a Result in a convergence plot: its own, and a dashed one for each earlier attempt."""
    return [*(line(f"{label(attempt)} (first: {attempt.reason.name})", attempt, earlier=True)
              for attempt in result.attempts), line(label(result), result)]


def line(name, result, earlier=False) -> Line:
    """Return the line of one Result in a convergence plot, with the name ``name``."""
    return Line(name, result.history, result.iterations, result.residual, result.converged, result.tolerance, earlier)


def label(result) -> str:
    """Return method, preconditioner, scaling and ordering of a Result in a few words."""
    parts = [result.method]
    parts += [f"{kind} {value}" for kind, value in (("precond", result.precond), ("scaling", result.scaling),
                                                    ("ordering", result.ordering)) if value != "none"]
    return ", ".join(parts)
