"""Twisted ordering: elimination from both ends towards the middle. Van der Vorst 1987, for incomplete factorisations.

The first half in its order, then the second half backwards. In a banded matrix the halves are coupled where they meet
only, which is now at the end of both: a factor and its solves have two independent halves, for two threads of a CPU,
and about half as many levels for a GPU. n entries of storage.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.orderings.ordering import Ordering


@dataclass(frozen=True)
class Twisted(Ordering):
    """The first half, then the second half backwards: two halves that meet at the end."""

    problem = "a banded matrix that is to be factored incompletely"
    cost = "none an iteration"

    def order(self, A):
        xp, n = A.space.xp, A.shape[0]
        index = A.indptr.dtype
        return xp.concatenate([xp.arange(n // 2, dtype=index), xp.arange(n - 1, n // 2 - 1, -1, dtype=index)])
