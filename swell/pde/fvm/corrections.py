"""Outer corrections: linear solves, each with the explicit terms of the last solution, of one field or several in step.

Several fields on one matrix share each linear solve, which has a right-hand side for each of them.
"""
from __future__ import annotations

from swell.core.loop import interruptible
from swell.pde.fvm.solution import Solution

INNER = 0.05            # relative tolerance of a linear solve between two corrections
TIGHTER = 10            # maximum of linear solves without corrections, until the cells' imbalances meet the tolerance
DIVERGED = 1e3          # ratio of the residual to the first one above which the corrections have diverged


def run(solver, fields, monitor=None) -> list:
    """Drive the corrections of one field or several, in step; return their Solutions.

    Parameters
    ----------
    solver : Solver
        Of the matrix that all share.
    fields : list of generators
        See `corrections`.
    monitor : callable, optional
        See ``swell.solve``.
    """
    solutions, interrupts = [None] * len(fields), []
    with interruptible(lambda: interrupts.append(True)):         # during a solve, the solver itself handles Ctrl-C
        waiting = {k: next(field) for k, field in enumerate(fields)}
        while waiting:
            results = _solved(solver, list(waiting.values()), monitor)
            for k, result in zip([*waiting], results, strict=True):
                try:
                    waiting[k] = fields[k].send((result, interrupts))
                except StopIteration as end:
                    solutions[k] = end.value
                    del waiting[k]
    return solutions


def _solved(solver, asked, monitor) -> list:
    """Solve for all (b, x0, Stopping) in the list ``asked``, to the least of their tolerances; return the Results."""
    solver.stop_by(min((stopping for *_, stopping in asked), key=lambda stopping: stopping.rtol))
    if len(asked) == 1:
        b, x0, _ = asked[0]
        return [solver.solve(b, x0=x0, monitor=monitor)]
    stack = solver.space.xp.stack
    x0 = None if asked[0][1] is None else stack([x0 for _, x0, _ in asked], axis=1)
    results = solver.solve(stack([b for b, *_ in asked], axis=1), x0=x0, monitor=monitor)
    if len(results) < len(asked):                # Ctrl-C came before the last of them was begun
        raise KeyboardInterrupt
    return results.columns


def corrections(problem, system, solvers, shift, p, mean, notes, diagonal=None, past=None):
    """Repeat linear solves, each with the explicit terms of the last solution, until the solution converges; return a
    Solution.

    A generator, which `run` drives: it yields (b, x0, Stopping) of a linear solve, gets (its Result, a list that
    Ctrl-C makes longer), and so on.

    Two measures must meet the tolerance: the residual relative to ‖b‖, and the cells' imbalances relative to the flow.
    ‖b‖ alone says little where Dirichlet faces of tiny cells make it large. ``system``: a System or RankSystem.
    ``shift``: added to the right-hand side, so that it adds up to zero; ``p``: the starting values, or None; ``mean``:
    of p in a floating system. ``diagonal`` and ``past`` are the time terms; None: the problem is steady.
    """
    flux, rtol, steady = system.flux if p is None else system.flux_at(p), solvers.rtol, diagonal is None
    least = INNER if system.deferred and steady else 0.0
    known = shift if steady else shift + past
    stopping = solvers.first(least or (rtol if steady else 0.1 * rtol))
    results, first = [], None
    for count in range(problem.corrections + 1 if system.deferred else TIGHTER):
        b = system.rhs(flux) + known
        result, interrupts = yield b, p, stopping
        results.append(result)
        p = result.x
        flux = system.flux_at(p)
        defect = system.rhs(flux) + known - system.implicit(flux, p)
        if not steady:
            defect -= diagonal * p
        residual = system.norm(defect) / (system.norm(b) or 1.0)         # includes the explicit terms
        imbalance = _imbalance(system, flux, p, defect, known, rtol)
        measured = max(residual, imbalance)
        first = measured if first is None else first
        if measured <= rtol or not measured <= DIVERGED * max(first, rtol):
            break
        if not result.converged:                 # another solve would not help
            break
        stopping = solvers.following(measured, least)
        if system.any(interrupts):
            break
    if system.floating and steady:
        p = system.levelled(p, mean)
    p, fluxes, source = system.on_mesh(p, flux, system.source + shift)
    return Solution(p, problem.mesh, results, fluxes, source, residual, imbalance, rtol,
                    count if system.deferred else 0, notes, system.any(interrupts))


def _imbalance(system, flux, p, defect, known, rtol) -> float:
    """Return Σ |defect| over all cells, divided by the flow: boundary fluxes, sources and the storage in time.
    ``defect``: the residual of each cell; ``known``: terms added to each cell's source (shift and time terms).

    A constant p without sources has no flux to compare with. It counts as balanced once it is constant to the
    tolerance, at the boundary too.
    """
    lost, through, arising = system.totals(abs(defect), system.through(flux, p), abs(system.source + known))
    least, largest = system.span(p)
    if arising == 0 and largest - least <= rtol * max(abs(least), abs(largest)):
        return 0.0
    return lost / (through + arising) if through + arising else float("inf")
