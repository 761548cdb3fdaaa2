"""One solve's attempts: the plan's choices, one after the other, until one converges."""
from __future__ import annotations

import numpy as np

from swell import inputs
from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.log import LOG
from swell.core.monitor import SolutionMonitor
from swell.core.stopping import Reason
from swell.solving.considered import paired
from swell.solving.result import FINAL, Result


def follow(plan, chain, prepared, prepare, b, x0, monitor, original) -> Result:
    """Try choices until a result is final (`Result.final`) and return it; if none is, return the best result.

    Parameters
    ----------
    plan : Plan
    chain : list of Configuration
    prepared : dict
        The choices whose setup is done.
    prepare : callable
        ``prepare(k)`` sets choice k up and returns it as a Prepared.
    b, x0, monitor
        As `Prepared.run` takes them.
    original : array
        x is given back in its kind.
    """
    attempts, notes, memory = [], [], False
    route = plan.route(chain, prepared)
    while (k := route.next()) is not None:
        try:
            try:
                ready = prepare(k)
            except KeyboardInterrupt:            # during a setup: there is an iterate if this is not the first
                if not attempts:
                    raise
                attempts[-1].reason = Reason.INTERRUPTED
                break
            start = route.start(x0)              # the x of an attempt is an array of the user's library
            start = None if start is None else guest_of(start).read_vector(start, "x0")
            with ready.space.ranks.agreed():     # all ranks go on to the next choice, or none
                result = ready.run(b, start, _converting(monitor, ready.space, original), route.watch(k))
        except (InputError, MemoryError) as error:               # of this choice: others have run, or may
            if not attempts:
                inputs.check_finite("b", b)      # `Solver.solve` leaves that to what refuses b
                raise
            route.failed(k, str(error))
            LOG.info("left out %s: %s", paired(chain[k].name("method"), chain[k].part), error)
            memory |= isinstance(error, MemoryError)
            notes.append(f"{chain[k].name('method')} was to be tried next and was left out: {error}")
            continue
        result.x = inputs.returned(result.x, ready.space, original)
        result.choice = k
        attempts.append(result)
        LOG.info("tried: %r", result)
        if result.final:
            break
        route.ended(k, result)
    final = _final(attempts, memory)
    final.attempts = [r for r in attempts if r is not final]
    final.considered = route.finished(attempts)
    final.notes += notes
    if final.reason not in FINAL:
        LOG.warning("%r: %s", final, final.message)
    return final


def _converting(monitor, space, original):
    """The monitor; a `SolutionMonitor` gets a copy of x, in the kind of ``original``. InputError across ranks."""
    if not isinstance(monitor, SolutionMonitor):
        return monitor
    if not space.ranks.single:
        raise InputError("a SolutionMonitor needs all of x, and each rank has a part: use a function of (iteration, "
                         "relative_residual)")
    return monitor.converting(lambda x: inputs.returned(x, space, original))


def _final(attempts, memory) -> Result:
    """Return the Result to report: the last of ``attempts`` if it is final, else the best one that converged, else the
    one of least residual.

    Its reason may be replaced by a more telling one of another attempt. ``memory``: some choice ran out of memory."""
    final = attempts[-1]
    if final.final:
        return final
    converged = [r for r in attempts if r.converged]
    if converged:                                # each leaves small rows unsolved
        return min(converged, key=lambda r: r.componentwise_error)
    final = min(attempts, key=lambda r: np.fmin(r.residual, np.inf))             # NaN last
    if final.reason is Reason.OVERTAKEN:         # every other choice has failed since, and this one when it was resumed
        final.reason = attempts[-1].reason
    if any(r.reason is Reason.SINGULAR for r in attempts):
        final.reason = Reason.SINGULAR           # what one of them found out about A explains the others' failure
    elif memory:
        final.reason = Reason.OUT_OF_MEMORY
    return final
