"""The coarse problem, S_c = Σ Rᵢᵀ Σᵢ Rᵢ over subdomains, and what solves it: a dense inverse, a sparse direct solver,
or, with more than two levels, BDDC again (Mandel, Sousedík and Dohrmann 2008): subdomains are put together into larger
ones, the coarse unknowns are their dofs, and each Σᵢ is what an element's matrix was.
"""
from __future__ import annotations

import heapq

import numpy as np

from swell.core.errors import FactorisationError
from swell.core.operator import LinearOperator
from swell.preconditioners.bddc.local import bordered, invert
from swell.preconditioners.bddc.subdomains import Subdomains
from swell.preconditioners.direct import Direct

DENSE = 2000            # coarse unknowns up to which the inverse is stored
TOGETHER = 8            # subdomains of a subdomain on the next level


def next_level(coarse, count, matrices, groups):
    """The subdomains of the next level.

    Parameters
    ----------
    coarse : list of int arrays
        For every subdomain, of all ranks, its coarse unknowns.
    count : int
        Of these.
    matrices : list of arrays
        Σᵢ of every subdomain.
    groups : sequence of int arrays
        As of ``Subdomains``; may be empty.
    """
    group = groups[0] if len(groups) else together(coarse, count)
    parts = []
    for k in range(int(group.max()) + 1):
        members = np.flatnonzero(group == k)
        dofs = np.unique(np.concatenate([coarse[i] for i in members]))
        total = np.zeros((dofs.size, dofs.size))
        for i in members:
            at = np.searchsorted(dofs, coarse[i])
            total[np.ix_(at, at)] += matrices[i]
        np.fill_diagonal(total, np.maximum(total.diagonal(), 0))               # zero, where one constraint holds all
        parts.append((total, dofs))
    there = np.array([dofs.size > 0 for _, dofs in parts])       # others share nothing with any
    above = [np.unique(g, return_inverse=True)[1] for g in (groups[1][there], *groups[2:])] if len(groups) > 1 else []
    return Subdomains([part for part, kept in zip(parts, there, strict=True) if kept], above)


def together(coarse, count):
    """Neighbours put together, about ``TOGETHER`` at a time: the number of its group for each subdomain.

    A group grows from the first subdomain that has none, by the one that shares most coarse unknowns with it; what is
    left over, fewer than half a group, joins the neighbour that shares most.
    """
    import scipy.sparse as sp
    owner = np.repeat(np.arange(len(coarse)), [c.size for c in coarse])
    has = sp.csr_array((np.ones(owner.size), (owner, np.concatenate(coarse))), shape=(len(coarse), count))
    shared = (has @ has.T).tocsr()
    group, groups = np.full(len(coarse), -1), 0
    for seed in range(len(coarse)):
        if group[seed] >= 0:
            continue
        members, found, waiting = [], {}, [(0.0, seed)]
        while waiting and len(members) < TOGETHER:
            _, k = heapq.heappop(waiting)
            if group[k] >= 0:
                continue
            group[k] = groups
            members.append(k)
            for j, weight in zip(shared.indices[shared.indptr[k]:shared.indptr[k + 1]],
                                 shared.data[shared.indptr[k]:shared.indptr[k + 1]], strict=True):
                if group[j] < 0:
                    found[j] = found.get(j, 0.0) + weight
                    heapq.heappush(waiting, (-found[j], int(j)))
        if len(members) < TOGETHER // 2 and groups:
            near = shared[members].sum(axis=0)
            near[group < 0], near[members] = 0, 0
            if near.max() > 0:
                group[members] = group[near.argmax()]
                continue
        groups += 1
    return group


class DenseCoarse(LinearOperator):
    """S_c⁻¹, stored.

    Raises
    ------
    FactorisationError
        If S_c is singular, and so A.
    """

    spd = True

    def __init__(self, space, matrix, decomposer, dtype):
        super().__init__(matrix.shape, dtype, space)
        S = space.from_host(matrix)
        B, scale, _ = bordered(space, S, np.zeros((0, S.shape[0])), np.zeros(0))
        try:
            (X,), (condition,), self.notes = invert(space, decomposer, B[None])
        except FactorisationError as error:
            raise _singular(str(error)) if error.singular else error from None
        if not condition * np.finfo(float).eps * len(B) < 1:
            raise _singular(f"its condition is {condition:.0e}")
        self.inverse = space.xp.ascontiguousarray((0.5 / scale * (X + X.T)).astype(dtype))

    def apply(self, x, out, alpha=1, beta=0):
        y = self.inverse @ x
        out[...] = alpha * y if beta == 0 else alpha * y + beta * out

    @property
    def nbytes(self):
        return self.inverse.nbytes

    def describe(self):
        return f"{self.shape[0]} coarse unknowns, the inverse stored"


def _singular(why):
    return FactorisationError(f"BDDC: the coarse problem is singular ({why}), and so is A: no value is given anywhere. "
                              "Fix one, or give nullspace='constants' with another preconditioner", singular=True)


class SparseCoarse(LinearOperator):
    """S_c⁻¹ by the sparse direct solver."""

    spd = True

    def __init__(self, matrix):
        super().__init__(matrix.shape, matrix.dtype, matrix.space)
        self.solver = Direct().build(matrix)

    def apply(self, x, out, alpha=1, beta=0):
        self.solver.apply(x, out, alpha, beta)

    @property
    def nbytes(self):
        return self.solver.nbytes

    def describe(self):
        return f"{self.shape[0]} coarse unknowns by {self.solver.describe()}"
