"""The judge on a CPU; ``judge.cuh`` is the GPU version.

The state of a loop is a tuple of three arrays: flags (int64), limits (float64), and the residual norm after each
iteration. ``core/slots.py`` names the indices of flags and limits. A state belongs to one right-hand side.
"""
from __future__ import annotations

import math

from swell.core.compiled import helper
from swell.core.slots import Code, Flag, Limit

PROGRESS2 = 0.98    # a norm² below this fraction of the smallest one so far is progress


@helper
def stopped(state):
    """True once a judgement, `pause` or `halt` has stopped the loop. ``state``: its (flags, limits, history)."""
    flags, _, _ = state
    return flags[Flag.STOP] != 0


@helper
def iterations(state):
    """Return the number of iterations judged so far. ``state``: the loop's (flags, limits, history)."""
    flags, _, _ = state
    return flags[Flag.ITERATION]


@helper
def verdict(state, norm2):
    """Return the verdict, a Code, on norm2, the squared residual norm after the last counted iteration.

    ``state``: the loop's (flags, limits, history); the smallest norm² so far in limits is updated."""
    flags, limits, _ = state
    if not math.isfinite(norm2):
        return Code.NONFINITE
    if norm2 <= limits[Limit.THRESHOLD2]:
        return Code.CONVERGED
    if flags[Flag.ITERATION] >= flags[Flag.MAXITER]:
        return Code.MAXITER_REACHED
    if norm2 > limits[Limit.GROWTH2]:
        return Code.DIVERGED
    if norm2 < PROGRESS2 * limits[Limit.BEST2]:
        limits[Limit.BEST2] = norm2
        flags[Flag.BEST_ITERATION] = flags[Flag.ITERATION]
    elif flags[Flag.WINDOW] > 0 and flags[Flag.ITERATION] - flags[Flag.BEST_ITERATION] >= flags[Flag.WINDOW]:
        return Code.STAGNATED
    return Code.RUNNING


@helper
def pause(state, code):
    """Set the stop flag and the verdict ``code`` in ``state``, the loop's (flags, limits, history).

    `resume` at the end of the cycle may lift the stop."""
    flags, _, _ = state
    flags[Flag.VERDICT] = code
    flags[Flag.STOP] = 1


@helper
def halt(state, code):
    """Set the stop flag and the verdict ``code`` in ``state``, the loop's (flags, limits, history).

    `resume` does not lift this stop."""
    flags, _, _ = state
    pause(state, code)
    flags[Flag.FINAL] = 1


@helper
def judge_start(state, norm2):
    """Judge the first residual, with squared norm norm2: write history[0], and stop the loop if norm2 decides it.

    ``state``: the loop's (flags, limits, history), updated."""
    _, limits, history = state
    limits[Limit.CYCLE2] = norm2
    history[0] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != Code.RUNNING:
        halt(state, code)


@helper
def due(state):
    """True if the current iteration will be judged; if not, its norm² need not be computed.

    ``state``: the loop's (flags, limits, history)."""
    flags, _, _ = state
    following = flags[Flag.ITERATION] + 1
    return flags[Flag.EVERY] <= 1 or following % flags[Flag.EVERY] == 0 or following >= flags[Flag.MAXITER]


@helper
def advance(state):
    """Count one more iteration in ``state``, the loop's (flags, limits, history); return its index in the history.

    The history has room for MAXITER iterations, and the count is limited to MAXITER. Every method counts here, so no
    method can write past the end."""
    flags, _, _ = state
    flags[Flag.ITERATION] = min(flags[Flag.ITERATION] + 1, flags[Flag.MAXITER])
    return flags[Flag.ITERATION]


@helper
def judge(state, norm2):
    """Count one more iteration and judge its squared residual norm, norm2. Updates ``state``: (flags, limits, history).

    It writes the history, and stops the loop if norm2 decides it. If the iteration is not `due`, norm2 is not read, and
    the history repeats the last norm."""
    _, _, history = state
    now = due(state)
    last = history[iterations(state)]
    k = advance(state)
    if not now:
        history[k] = last
        return
    history[k] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != Code.RUNNING:
        halt(state, code)


@helper
def iteration_code(finite, lost):
    """Return the Code with which an iteration ends, apart from the verdict on its norm².

    ``finite``: False after NaN or Inf. ``lost``: True after a breakdown."""
    return Code.NONFINITE if not finite else Code.BREAKDOWN if lost else Code.RUNNING


@helper
def judge_once(state, s, norm2, ended):
    """Judge an iteration with norm² s[norm2] that ended with the Code s[ended]; ``norm2``, ``ended``: indices in s.

    Then s[ended] is set to JUDGED, and a second call does nothing.

    Across ranks, the parts of the norm are summed together with the first sums of the next iteration. The judgement
    then takes place in that iteration."""
    code = int(s[ended].real)
    s[ended] = Code.JUDGED
    if code == Code.JUDGED:
        return
    judge(state, s[norm2].real)
    if not stopped(state) and code != Code.RUNNING:
        halt(state, code)


@helper
def set_ratio(state, judged2, own2):
    """Set the limit RATIO2 = judged2 / own2 in ``state``, (flags, limits, history), at the start of a cycle.

    ``own2``: (r, r) as the method's recursion computes it. ``judged2``: the norm² that stopping uses; it differs if the
    system is scaled."""
    _, limits, _ = state
    limits[Limit.RATIO2] = judged2 / own2 if own2 > 0 else 1.0


@helper
def judge_inner(state, norm2):
    """Count one more iteration inside a cycle and judge norm2, (r, r) of the method's recursion.

    Updates ``state``, (flags, limits, history). A verdict only pauses the loop: it ends the cycle, whose true residual
    then decides (`judge_cycle`)."""
    _, limits, history = state
    norm2 *= limits[Limit.RATIO2]
    history[advance(state)] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != Code.RUNNING:
        pause(state, code)


@helper
def resume(state):
    """Lift the stop of `judge_inner` at the end of a cycle, so that x and the true residual can be computed.

    Updates ``state``, (flags, limits, history). A stop by `halt` stays."""
    flags, _, _ = state
    if flags[Flag.FINAL] == 0:
        flags[Flag.STOP] = 0


@helper
def slow(state, norm2):
    """True if, at the rate of this cycle (from CYCLE2 to norm2), the iteration limit will come before convergence.

    ``state``: the loop's (flags, limits, history); core/slots.py names its elements."""
    flags, limits, _ = state
    if limits[Limit.THRESHOLD2] == 0:
        return False
    left = flags[Flag.MAXITER] - flags[Flag.ITERATION]
    fall, needed = math.log(limits[Limit.CYCLE2] / norm2), math.log(norm2 / limits[Limit.THRESHOLD2])
    return needed * flags[Flag.CYCLE] > fall * left


@helper
def judge_cycle(state, norm2):
    """Judge norm2, of the true residual, at the end of a cycle. Updates ``state``: (flags, limits, history).

    If it contradicts a recursive verdict of convergence, the loop continues. There are two exceptions: the whole cycle
    reduced the norm by less than a tenth, or no iteration is left. SLOW_CYCLES slow cycles are a stagnation."""
    flags, limits, history = state
    history[flags[Flag.ITERATION]] = math.sqrt(norm2)
    code = flags[Flag.VERDICT]
    if not math.isfinite(norm2):
        code = Code.NONFINITE
    elif norm2 <= limits[Limit.THRESHOLD2]:
        code = Code.CONVERGED
    elif code == Code.CONVERGED:
        code = Code.RUNNING if norm2 < 0.81 * limits[Limit.CYCLE2] else Code.STAGNATED
    if code == Code.RUNNING and flags[Flag.ITERATION] >= flags[Flag.MAXITER]:
        code = Code.MAXITER_REACHED
    if code == Code.RUNNING and flags[Flag.SLOW_CYCLES] > 0 and slow(state, norm2):
        flags[Flag.SLOW_CYCLES] -= 1
        if flags[Flag.SLOW_CYCLES] == 0:
            code = Code.STAGNATED
    if code != Code.RUNNING:
        halt(state, code)
    else:
        flags[Flag.VERDICT] = Code.RUNNING
        limits[Limit.CYCLE2] = norm2
