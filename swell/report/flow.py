"""The HTML report of a flow: its fields, how the residuals fell, the forces on its walls."""
from datetime import datetime

import numpy as np

import swell
from swell.display import page
from swell.display.figure import GRID, INK, colour_of, finish, new_figure, png
from swell.report import section
from swell.report.files import write


def residuals(solution):
    """Return a figure of both residuals over the iterations, or over the steps in time."""
    figure, axes = new_figure()
    count = np.arange(1, solution.iterations + 1)
    for k, name in enumerate(("momentum", "continuity")):
        axes.semilogy(count, np.maximum(solution.residuals[:, k], 1e-16), lw=1.4, color=colour_of(k), label=name)
    axes.set_xlabel("outer iteration" if solution.time is None else "step", color=INK)
    axes.set_ylabel("relative residual", color=INK)
    axes.grid(True, color=GRID, lw=0.6)
    axes.legend(fontsize=8, frameon=False)
    return figure


def forces(solution, label):
    """Return a figure of the recorded forces, pressure and friction together, over the iterations or the time.

    The vertical axis spans the values after the first tenth of the run."""
    figure, axes = new_figure()
    along = np.arange(1, solution.iterations + 1) if solution.times is None else solution.times[:, 0]
    shown = []
    for name, history in solution.forces.items():
        total = history.sum(axis=1)
        for axis in np.flatnonzero(total.any(axis=0)):
            axes.plot(along, total[:, axis], lw=1.4, color=colour_of(len(shown)), label=f"{name}, {'xyz'[axis]}")
            shown.append(total[len(total) // 10:, axis])
    if shown and np.isfinite(shown).all():
        low, high = np.min(shown), np.max(shown)
        if low < high:
            axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    return finish(figure, axes, "outer iteration" if solution.times is None else "time", label)


def fields(solution, cut=None):
    """Return a figure of the speed and the pressure in a cut, as `section` returns it; default: through the middle."""
    return section.figure(solution.mesh, {"speed |u|": np.linalg.norm(solution.velocity, axis=1),
                                          "kinematic pressure p": solution.p},
                          cut)


def html(solution, path, title, facts=(), walls=None, label="force", cut=None):
    """Write the report of a flow as one self-contained HTML file. Of a rank's part: rank 0 writes the file, with all
    parts in the pictures; all ranks call it together.

    Parameters
    ----------
    solution : FlowSolution
    path : str or path-like
    title : str
    facts : list of (name, value)
        Further lines of the first table.
    walls : dict, optional
        As `Flow.forces` returns them.
    label : str
        The name of the forces.
    cut : tuple, optional
        The plane of the picture, as `section` returns it; default: through the middle.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    body = [f"<h1>{page.escape(title)}</h1>",
            page.paragraph(f"swell {swell.__version__}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}", soft=True),
            f"<p>{page.badge('converged' if solution.converged else 'NOT converged', solution.converged)} "
            f"{page.escape(str(solution).splitlines()[0])}</p>",
            page.image(png(fields(solution, cut)), "speed and pressure in the cut"),
            page.table(list(facts)), page.bullets(solution.notes), page.heading("Residuals"),
            page.image(png(residuals(solution)), "residuals, as SIMPLE.rtol or PISO measure them")]
    if solution.forces:
        body += [page.heading(f"{label.capitalize()}, in each {'iteration' if solution.times is None else 'step'}"),
                 page.image(png(forces(solution, label)), "pressure and friction together, by axis")]
    if walls:
        rows = [(name, " ".join(f"{v:+.6g}" for v in p), " ".join(f"{v:+.6g}" for v in w))
                for name, (p, w) in walls.items()]
        body += [page.heading(f"{label.capitalize()}, at the end"),
                 page.table([(name, f"pressure ({p}), viscous ({w})") for name, p, w in rows])]
    if solution.mesh.ranks is None or solution.mesh.ranks.rank == 0:
        write(path, page.page(title, body))
