"""Twisted ordering: elimination from both ends towards the middle. Van der Vorst 1987, for incomplete factorisations.

The first half of the rows keeps its order; the second half follows, reversed. In a banded matrix the halves are coupled
only where they meet, which is now the end of both. So a factor and its solves have two independent halves, for two
threads of a CPU, and about half as many levels for a GPU. Storage: n integers.
"""
from dataclasses import dataclass

from swell.orderings.ordering import Ordering


@dataclass(frozen=True)
class Twisted(Ordering):
    """The first half of the rows, then the second half reversed: in a banded matrix only their ends are coupled."""

    problem = "a banded matrix that is to be factored incompletely"
    cost = "none an iteration"

    def order(self, A):
        xp, n = A.space.xp, A.shape[0]
        index = A.indptr.dtype
        return xp.concatenate([xp.arange(n // 2, dtype=index), xp.arange(n - 1, n // 2 - 1, -1, dtype=index)])
