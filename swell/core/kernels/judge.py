"""The judge on the CPU; ``judge.cuh`` is the same on a GPU.

The state of a loop is three arrays: ``flags`` (int64), ``limits`` (float64) and ``history`` (float64, the residual
norm after each iteration), at the places named below.
"""
from __future__ import annotations

import math

from numba import njit

# flags
STOP = 0            # not zero: every kernel of the iteration becomes a no-op
VERDICT = 1         # code of the Reason
ITERATION = 2
MAXITER = 3
BEST_ITERATION = 4
WINDOW = 5          # iterations without progress that count as stagnation; 0: never
FINAL = 6           # not zero: the stop may not be lifted at the end of a cycle
EVERY = 7           # judge each so-many-th iteration only; 0 or 1: each
FLAGS = 8
# limits, squared norms
THRESHOLD2 = 0      # converged at or below
GROWTH2 = 1         # diverged above
BEST2 = 2           # least so far
CYCLE2 = 3          # true residual at the start of this cycle
RATIO2 = 4          # judged norm² over the norm² that a cycle's recursion follows (1 unless the system is scaled)
LIMITS = 8

RUNNING, CONVERGED, MAXITER_REACHED, STAGNATED, DIVERGED, NONFINITE, BREAKDOWN, INDEFINITE = range(8)
JUDGED = -1         # in place of a code: nothing is left to be judged
PROGRESS2 = 0.98    # a new least norm² counts as progress below this share of the old one


@njit(cache=True)
def verdict(state, norm2):
    """The code for the residual norm² after iteration ``flags[ITERATION]``."""
    flags, limits, _ = state
    if not math.isfinite(norm2):
        return NONFINITE
    if norm2 <= limits[THRESHOLD2]:
        return CONVERGED
    if flags[ITERATION] >= flags[MAXITER]:
        return MAXITER_REACHED
    if norm2 > limits[GROWTH2]:
        return DIVERGED
    if norm2 < PROGRESS2 * limits[BEST2]:
        limits[BEST2] = norm2
        flags[BEST_ITERATION] = flags[ITERATION]
    elif flags[WINDOW] > 0 and flags[ITERATION] - flags[BEST_ITERATION] >= flags[WINDOW]:
        return STAGNATED
    return RUNNING


@njit(cache=True)
def halt(state, code):
    """Stop with this verdict; it stands."""
    flags = state[0]
    flags[VERDICT] = code
    flags[STOP] = 1
    flags[FINAL] = 1


@njit(cache=True)
def judge_start(state, norm2):
    """Judge the first residual: iteration 0."""
    flags, limits, history = state
    limits[CYCLE2] = norm2
    history[0] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != RUNNING:
        halt(state, code)


@njit(cache=True)
def due(state):
    """Will the iteration under way be judged? If not, its norm² need not be computed."""
    flags = state[0]
    following = flags[ITERATION] + 1
    return flags[EVERY] <= 1 or following % flags[EVERY] == 0 or following >= flags[MAXITER]


@njit(cache=True)
def advance(state):
    """Count one more iteration; returns its place in the history. The history has room for MAXITER iterations, and
    the count never exceeds that: every method counts here, so no method can write past the end."""
    flags = state[0]
    flags[ITERATION] = min(flags[ITERATION] + 1, flags[MAXITER])
    return flags[ITERATION]


@njit(cache=True)
def judge(state, norm2):
    """Judge the residual after one more iteration; where it is not due, the history repeats the last norm."""
    flags, _, history = state
    now = due(state)
    last = history[flags[ITERATION]]
    k = advance(state)
    if not now:
        history[k] = last
        return
    history[k] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != RUNNING:
        halt(state, code)


@njit(cache=True)
def judge_ended(state, s, norm2, ended):
    """Judge an iteration of norm² s[norm2] that ended with the code s[ended]. Where ranks have parts of the norm, they
    are added up with the first sums of the next iteration, in which the judge then speaks."""
    code = int(s[ended].real)
    s[ended] = JUDGED
    if code == JUDGED:
        return
    judge(state, s[norm2].real)
    if state[0][STOP] == 0 and code != RUNNING:
        halt(state, code)


@njit(cache=True)
def judge_inner(state, norm2):
    """Judge a recursive residual inside a cycle: a verdict ends the cycle, whose true residual then decides."""
    flags, limits, history = state
    norm2 *= limits[RATIO2]
    history[advance(state)] = math.sqrt(norm2)
    code = verdict(state, norm2)
    if code != RUNNING:
        flags[VERDICT] = code
        flags[STOP] = 1


@njit(cache=True)
def resume(state):
    """At the end of a cycle: lift the stop of ``judge_inner``, so that x and the true residual follow."""
    flags = state[0]
    if flags[FINAL] == 0:
        flags[STOP] = 0


@njit(cache=True)
def judge_cycle(state, norm2):
    """Judge the true residual at the end of a cycle. A recursive 'converged' that it contradicts goes on, unless the
    whole cycle brought less than a tenth or no iteration is left."""
    flags, limits, history = state
    history[flags[ITERATION]] = math.sqrt(norm2)
    code = flags[VERDICT]
    if not math.isfinite(norm2):
        code = NONFINITE
    elif norm2 <= limits[THRESHOLD2]:
        code = CONVERGED
    elif code == CONVERGED:
        code = RUNNING if norm2 < 0.81 * limits[CYCLE2] else STAGNATED
    if code == RUNNING and flags[ITERATION] >= flags[MAXITER]:
        code = MAXITER_REACHED
    if code != RUNNING:
        halt(state, code)
    else:
        flags[VERDICT] = RUNNING
        limits[CYCLE2] = norm2
