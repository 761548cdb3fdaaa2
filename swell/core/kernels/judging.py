"""The judge as separate kernels, for methods without a kernel that could call it. `Norms` names the entries of norm2.
"""
from __future__ import annotations


from swell.core.compiled import njit
from swell.core.kernels.judge import judge, judge_cycle, judge_start
from swell.core.slots import Norms

KERNELS = ("start", "iteration", "cycle")


@njit(cache=True)
def start(state, norm2):
    """Judge the first residual. Updates ``state``, the loop's (flags, limits, history).

    ``norm2``: array of squared norms, indexed by ``Norms``."""
    judge_start(state, norm2[Norms.JUDGED2].real)


@njit(cache=True)
def iteration(state, norm2):
    """Count one more iteration and judge its residual. Updates ``state``, the loop's (flags, limits, history).

    ``norm2``: array of squared norms, indexed by ``Norms``."""
    judge(state, norm2[Norms.JUDGED2].real)


@njit(cache=True)
def cycle(state, norm2):
    """Judge the true residual at the end of a cycle. Updates ``state``, the loop's (flags, limits, history).

    ``norm2``: array of squared norms, indexed by ``Norms``."""
    judge_cycle(state, norm2[Norms.JUDGED2].real)
