"""One solve's attempts: the choices run, one after the other, until one converges."""
from __future__ import annotations

import numpy as np

from swell import inputs
from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.log import LOG
from swell.core.monitor import SolutionMonitor
from swell.core.stopping import Reason
from swell.solving.choice_cost import paired
from swell.solving.result import FINAL, Result


def try_choices(choices, prepared, prepare, b, x0, monitor, original, compatible_part) -> Result:
    """Try choices until a result is final (`Result.final`) and return it; if none is, return the best result.

    If no x can meet the tolerance, since b is not in the range of A, the search goes on, from the first failure on, for
    the part of b that may have a solution. The reason is then SINGULAR.

    Parameters
    ----------
    choices : Choices
    prepared : dict
        Number of a choice whose setup is done → Prepared.
    prepare : callable
        ``prepare(k)`` sets choice k up and returns its Prepared.
    b, x0, monitor
        As `Prepared.run` takes them.
    original : array
        The result's x is an array of the same kind.
    compatible_part : callable
        `compatible_part()` of A and b, called after a failure: (a part of b, a lower bound of ‖b − A x‖/‖b‖).
    """
    attempts, notes, memory, part, bound, again, vain = [], [], False, None, 0.0, None, None
    order = choices.order(prepared)
    while (k := order.next() if again is None else again) is not None:
        again = None
        configuration = choices.configurations[k]
        try:
            try:
                ready = prepare(k)
            except KeyboardInterrupt:            # during a setup: an earlier attempt may have an x
                if not attempts:
                    raise
                attempts[-1].reason = Reason.INTERRUPTED
                break
            start = order.start(x0)              # an attempt's x is an array of the user's library
            start = None if start is None else guest_of(start).read_vector(start, "x0")
            with ready.space.ranks.agreed():           # all ranks go on to the next choice, or no rank does
                result = ready.run(b, start, _converting(monitor, ready.space, original), order.watch(k))
        except (InputError, MemoryError) as error:               # of this choice; another one may still run
            if not attempts:
                inputs.check_finite("b", b)      # `Solver.solve` has not checked that yet; it explains the error better
                raise
            order.failed(k, str(error))
            LOG.info("left out %s: %s", paired(configuration.name("method"), configuration.part), error)
            memory |= isinstance(error, MemoryError)
            notes.append(f"{configuration.name('method')} was to be tried next and was left out: {error}")
            continue
        result.x = inputs.returned(result.x, ready.space, original)
        result.choice = k
        attempts.append(result)
        LOG.info("tried: %r", result)
        if bound > result.tolerance:
            result.residual = float(np.hypot(result.residual * _norm(b, ready) / norm_b, bound))
        # A method that the user named keeps its reason, unless that reason says to accept x.
        elif part is None and (result.reason is Reason.ATTAINABLE_ACCURACY or len(choices.configurations) > 1 and not (
                result.final or result.reason is Reason.OVERTAKEN)):
            part, bound = compatible_part()
            if bound > result.tolerance:
                b, norm_b = part, _norm(b, ready)
                result.reason, result.exact_to_rounding = Reason.SINGULAR, False
                if ready.setup.failure is None:
                    again, vain = k, result      # b was at fault, and not the choice
                    continue
        if result.final:
            break
        order.ended(k, result)
    final = _final(attempts, memory)
    final.attempts = [r for r in attempts if r is not final]
    final.choices = order.finished([r for r in attempts if r is not vain])
    if bound > final.tolerance and final.reason not in (Reason.INTERRUPTED, Reason.STOPPED):
        final.reason, final.exact_to_rounding = Reason.SINGULAR, False
        final.notes.append("x is for the part of b that may have a solution")
    final.notes += order.notes + notes
    if final.reason not in FINAL:
        LOG.warning("%r: %s", final, final.message)
    return final


def _norm(b, ready):
    """‖b‖₂, of an array of the host or of ``ready.space``."""
    return np.linalg.norm(ready.space.to_host(b))


def _converting(monitor, space, original):
    """The monitor; a `SolutionMonitor` gets a copy of x, in the kind of ``original``.

    InputError across ranks."""
    if not isinstance(monitor, SolutionMonitor):
        return monitor
    if not space.ranks.single:
        raise InputError("a SolutionMonitor needs all of x, and each rank has a part: use a function of (iteration, "
                         "relative_residual)")
    return monitor.converting(lambda x: inputs.returned(x, space, original))


def _final(attempts, memory) -> Result:
    """Return the Result to report: the last attempt if it is final; else the best one that converged; else the one of
    least residual.

    The reason of another attempt may replace its own. ``memory``: True if some choice ran out of memory."""
    final = attempts[-1]
    if final.final:
        return final
    converged = [r for r in attempts if r.converged]
    if converged:                                # none is final: each leaves small rows unsolved
        return min(converged, key=lambda r: r.componentwise_error)
    final = min(attempts, key=lambda r: np.fmin(r.residual, np.inf))             # NaN last
    if final.reason is Reason.OVERTAKEN:         # it was resumed, and failed like every other choice
        final.reason = attempts[-1].reason
    if any(r.reason is Reason.SINGULAR for r in attempts):
        final.reason = Reason.SINGULAR           # a singular A explains the other failures, too
    elif memory:
        final.reason = Reason.OUT_OF_MEMORY
    return final
