"""Approximate minimum degree: an ordering that keeps the factors of a sparse matrix sparse, and the factors' cost.
Amestoy, Davis and Duff 1996.

It works on the pattern of A + Aᵀ. Each step eliminates the variable p with the smallest bound of its degree, the length
of its row in the factor. In the quotient graph eliminated variables are elements e with lists ℒ_e, and the bound is

    d_i = min(n − k, d_i + |ℒ_p \\ i|, |𝒜_i \\ i| + |ℒ_p \\ i| + Σ |ℒ_e \\ ℒ_p|, e ∈ ℰ_i).

As in the paper: mass elimination, indistinguishable variables (found by a hash of their lists), aggressive absorption,
and rows with more than max(16, 10 √n) neighbours put last, without a part in the elimination. Differences: a row is
put last only if it also has more than twice the mean number of neighbours, so a dense matrix has no such rows. New
lists are never made in place; so memory stays in order, and one pass closes its gaps.

The elimination counts the entries of the factors. `factorisation_cost(A, entries, flops)` returns this count and the
flops. It gives up as soon as either exceeds its limit, so that a hopeless matrix costs little. The counts are exact for
the returned order, on the pattern of A + Aᵀ, with pivots on the diagonal; if rows were put last, they are upper bounds.
Factors of an unsymmetric pattern have no more entries, unless rows are exchanged.

Cost: 50 to 300 ns an entry of A by one thread of the host, about a tenth of a factorisation
(benchmarks/notes/direct.md). Storage: about 2 nnz + 16 n integers. A matrix on a GPU is ordered on the host.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from swell.core.library import native_kernels
from swell.formats.matrix import index_type
from swell.orderings.ordering import Ordering

DENSE = 16, 10.0, 2.0   # a row is put last if it has more neighbours than a, than b √n and than c times the mean


@dataclass(frozen=True)
class MinimumDegree(Ordering):
    """Approximate minimum degree: low fill in complete factors."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        return A.space.from_host(eliminate(A).order().astype(A.indices.dtype))


@dataclass(frozen=True)
class FactorisationCost:
    """The cost of LU factors of a matrix with a symmetric pattern, without row exchanges.

    Attributes
    ----------
    entries : float
        Entries of L and U together, the diagonal counted once. Cholesky's factor has (entries + n) / 2.
    flops : float
        Multiplications, additions and divisions in A's type. Cholesky takes half of them.
    complete : bool
        False if the analysis gave up at a limit; ``entries`` and ``flops`` are then lower bounds.
    """

    entries: float
    flops: float
    complete: bool = True


@dataclass(frozen=True)
class Elimination:
    """The result of an elimination on the graph of A + Aᵀ.

    Attributes
    ----------
    cost : FactorisationCost
    pivots : int array
        The pivots in order: one variable of each group of variables eliminated together.
    group : int array, shape (n,)
        The pivot of each variable's group; −1 for rows put last. If the cost is not complete, each variable that was
        not reached is its own group.
    """

    cost: FactorisationCost
    pivots: np.ndarray
    group: np.ndarray

    def order(self):
        """The variables in the order of their elimination, an int array of the host, shape (n,)."""
        n = self.group.size
        turn = np.full(n + 1, n)                                 # the last element belongs to group −1
        turn[self.pivots] = np.arange(self.pivots.size)
        later = self.group != np.arange(n)                       # a group begins with its pivot
        return np.argsort(2 * turn[self.group] + later, kind="stable")


def factorisation_cost(A, entries=math.inf, flops=math.inf, visits=math.inf) -> FactorisationCost:
    """The cost of factoring a square CSRMatrix in minimum-degree order.

    Parameters
    ----------
    A : CSRMatrix, n × n
        In any space.
    entries, flops : float
        Limits: give up as soon as the factors would have more entries, or take more operations.
    visits : float
        Give up after this number of looks at elements of lists, each some 20 ns.

    Examples
    --------
    >>> from swell import gallery
    >>> from swell.core.devices import make_space
    >>> from swell.formats.csr import CSRMatrix
    >>> A = CSRMatrix.from_scipy(gallery.poisson1d(100), make_space("cpu"))
    >>> factorisation_cost(A)
    FactorisationCost(entries=298.0, flops=297.0, complete=True)
    """
    return eliminate(A, entries, flops, visits=visits).cost


def unready(A, elimination, weak):
    """Return (the number of ``weak`` pivots that an `Elimination` of A may leave without a value, the number of sets of
    connected weak rows); see ``kernels.count_unready``."""
    kernels = native_kernels("swell.orderings", "minimum_degree")
    start, length, lists, _ = _symmetrised(A)
    return kernels.count_unready(start, length, lists, weak, elimination.order())


def _symmetrised(A):
    """Return the arrays that ``kernels.symmetrise`` writes for a CSRMatrix A, and the first free place in the lists."""
    kernels = native_kernels("swell.orderings", "minimum_degree")
    n, host = A.shape[0], A.space.to_host
    index = index_type(n, n, 2 * A.nnz + n)
    indptr, indices = (host(array).astype(index, copy=False) for array in (A.indptr, A.indices))
    start, length, lists = np.empty(n, index), np.empty(n, index), np.empty(2 * A.nnz + n, index)
    return start, length, lists, kernels.symmetrise(indptr, indices, start, length, lists)


def eliminate(A, entries=math.inf, flops=math.inf, visits=math.inf, weak=None) -> Elimination:
    """Eliminate the variables of a square CSRMatrix; see `factorisation_cost` for A and the limits.

    ``weak``: a bool array of the host, shape (n,), of the rows that wait until a neighbour has been eliminated; None:
    no row waits. Then a complete result is kept in ``A.elimination``, since it depends on the pattern only."""
    kept = A.elimination if weak is None else None
    if kept is not None and kept.cost.entries <= entries and kept.cost.flops <= flops:
        return kept
    kernels = native_kernels("swell.orderings", "minimum_degree")
    n, (start, length, lists, free) = A.shape[0], _symmetrised(A)
    size, degree, pivots, into = (np.empty(n, lists.dtype) for _ in range(4))
    dense = int(max(DENSE[0], DENSE[1] * math.sqrt(n), DENSE[2] * free / max(n, 1)))
    last = np.flatnonzero(length > dense)
    beside = [lists[start[r]:start[r] + length[r]].copy() for r in last]
    waits = np.zeros(n, bool) if weak is None else weak
    steps, *sums, remaining = kernels.eliminate(start, length, lists, free, dense, waits, size, degree, pivots, into,
                                                 float(entries), float(flops), float(visits))
    pivots, group = pivots[:steps], np.append(np.where((size < 0) | (into < 0), np.arange(n), into), -1)
    group[last] = -1
    while (group != group[group]).any():         # follow merges to the group's pivot
        group = group[group]
    if last.size:
        kernels.count_last(np.cumsum([len(b) for b in beside]), np.concatenate(beside), group, into, degree)
        sums = _sums(degree[pivots], -size[pivots], last.size)
    complete = not remaining and sums[0] <= entries and sums[1] <= flops
    elimination = Elimination(FactorisationCost(*sums, complete), pivots, group[:n])
    if complete and weak is None:
        A.elimination = elimination
    return elimination


def _sums(degrees, masses, last):
    """Return (entries, flops) of the factors for groups of columns, and a dense block for the rows put last.

    Group k has masses[k] columns, each with degrees[k] entries below the group's block; ``last`` is the number of rows
    put last."""
    d, m = (np.append(part, end).astype(np.float64) for part, end in ((degrees, 0), (masses, last)))
    squares = m * d**2 + d * m * (m - 1) + (m - 1) * m * (2 * m - 1) / 6                   # Σ (d + j)², j < m
    below = m * d + m * (m - 1) / 2                                                        # Σ (d + j)
    return float((2 * below + m).sum()), float((below + 2 * squares).sum())
