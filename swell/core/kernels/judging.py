"""The judge as kernels of their own, for methods that have no kernel to end with it. norm2 has ``Norms``' places."""
from __future__ import annotations

from numba import njit

from swell.core.kernels.judge import judge, judge_cycle, judge_start
from swell.core.slots import Norms

KERNELS = ("start", "iteration", "cycle")


@njit(cache=True)
def start(state, norm2):
    """The first residual."""
    judge_start(state, norm2[Norms.JUDGED2].real)


@njit(cache=True)
def iteration(state, norm2):
    """The residual after one more iteration."""
    judge(state, norm2[Norms.JUDGED2].real)


@njit(cache=True)
def cycle(state, norm2):
    """The true residual at the end of a cycle."""
    judge_cycle(state, norm2[Norms.JUDGED2].real)
