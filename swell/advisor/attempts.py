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

EXACT = 1e-14           # least relative residual that a failure is looked into for; below it b has a solution


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
        `CompatiblePart` of A and b, called after a failure: (a part of b, a lower bound of ‖b − A x‖/‖b‖).
    """
    attempts, notes, memory, in_vain = [], [], False, None       # in_vain: what ran for a b without a solution
    order, right = choices.order(prepared), RightSide(b, compatible_part)
    k = order.next()
    while k is not None:
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
                result = ready.run(right.b, start, _converting(monitor, ready.space, original), order.watch(k))
        except (InputError, MemoryError) as error:               # of this choice; another one may still run
            if not attempts:
                inputs.check_finite("b", b)      # `Solver.solve` has not checked that yet; it explains the error better
                raise
            order.failed(k, str(error))
            LOG.info("left out %s: %s", paired(configuration.name("method"), configuration.part), error)
            memory |= isinstance(error, MemoryError)
            notes.append(f"{configuration.name('method')} was to be tried next and was left out: {error}")
            k = order.next()
            continue
        result.x = inputs.returned(result.x, ready.space, original)
        result.choice = k
        attempts.append(result)
        LOG.info("tried: %r", result)
        # A method that the user named keeps its reason, unless that reason says to accept x.
        failed = not result.residual <= EXACT and (
            result.reason is Reason.ATTAINABLE_ACCURACY or len(choices.configurations) > 1 and not (
                result.final or result.reason is Reason.OVERTAKEN))
        if right.bound > result.tolerance:
            result.residual = right.residual(result.residual)
        elif failed and right.reduced(result, ready.space) and ready.setup.failure is None:
            in_vain = result                     # b was at fault: the same choice runs again for its compatible part
            continue
        if result.final:
            break
        order.ended(k, result)
        k = order.next()
    final = _final(attempts, memory)
    final.attempts = [r for r in attempts if r is not final]
    final.choices = order.finished([r for r in attempts if r is not in_vain])
    if right.bound > final.tolerance and final.reason not in (Reason.INTERRUPTED, Reason.STOPPED):
        right.blame(final)
        final.notes.append("x is for the part of b that may have a solution")
    final.notes += order.notes + notes
    if final.reason not in FINAL:
        LOG.warning("%r: %s", final, final.message)
    return final


class RightSide:
    """The right-hand side of the attempts: the user's b; after a failure the part of b that may have a solution, if no
    x meets the tolerance for b.

    Parameters
    ----------
    b : array, shape (n,)
    compatible_part : callable
        As for `try_choices`.

    Attributes
    ----------
    b : array, shape (n,)
    bound : float
        Lower bound of ‖b − A x‖/‖b‖ of the user's b; 0 if none is known.
    """

    def __init__(self, b, compatible_part):
        self.b, self.bound, self._compatible_part, self._share = b, 0.0, compatible_part, 1.0

    def reduced(self, result, space) -> bool:
        """Take the compatible part of b if ``result`` failed for want of one; else, or at a later call, return False.
        """
        if self._compatible_part is None:
            return False
        (part, self.bound), self._compatible_part = self._compatible_part(), None
        if self.bound <= result.tolerance:
            return False
        self._share, self.b = _norm(part, space) / _norm(self.b, space), part
        self.blame(result)
        return True

    def residual(self, residual) -> float:
        """Return ‖b − A x‖/‖b‖ of the user's b for this relative ``residual`` of the compatible part."""
        return float(np.hypot(residual * self._share, self.bound))

    @staticmethod
    def blame(result):
        """Say in ``result`` that A is singular, and that x is not to be accepted."""
        result.reason, result.exact_to_rounding = Reason.SINGULAR, False


def _norm(b, space):
    """‖b‖₂, of an array of the host or of ``space``."""
    return np.linalg.norm(space.to_host(b))


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
