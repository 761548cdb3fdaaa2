"""The coarse problem, S_c = Σ Rᵢᵀ Σᵢ Rᵢ over subdomains, and its solvers: a dense inverse, a sparse direct solver, or,
with more than two levels, BDDC again (Mandel, Sousedík and Dohrmann 2008). Subdomains are then grouped into larger
ones, whose dofs are the coarse unknowns, and each Σᵢ has the role of an element matrix. Or any preconditioner B that is
symmetric positive definite: if the eigenvalues of B S_c lie in [a, b], the condition number grows at most by the factor
max(b, 1) / min(a, 1) (Dohrmann 2007).
"""
from __future__ import annotations

import heapq

import numpy as np

from swell.core.columns import plain
from swell.core.errors import FactorisationError, InputError
from swell.core.operator import LinearOperator, Wrapper
from swell.core.registry import resolve
from swell.preconditioners.bddc.inverse import decomposer_of, earlier_factors, invert, solver_of
from swell.preconditioners.bddc.local import bordered
from swell.preconditioners.bddc.subdomains import Subdomains
from swell.preconditioners.bddc.symmetry import HERMITIAN
from swell.preconditioners.direct import Direct

DENSE = 2000            # most coarse unknowns for a dense inverse
GROUP = 8               # subdomains that form one subdomain of the next level


def assembled(coarse, count, matrices):
    """Return the coarse matrix S_c, a scipy.sparse.csr_array; the arguments are as for `next_level`."""
    import scipy.sparse as sp
    rows, columns = (np.concatenate([of(c, c.size) for c in coarse]) for of in (np.repeat, np.tile))
    return sp.coo_array((np.concatenate([matrix.ravel() for matrix in matrices]), (rows, columns)),
                        shape=(count, count)).tocsr()


def next_level(coarse, count, matrices, groups):
    """Return the `Subdomains` of the next level: groups of this level's subdomains, with their matrices summed.

    Parameters
    ----------
    coarse : list of int arrays
        The coarse unknowns of every subdomain, of all ranks.
    count : int
        Number of coarse unknowns.
    matrices : list of arrays
        Σᵢ of every subdomain.
    groups : sequence of int arrays
        As in ``Subdomains``; may be empty.
    """
    group = groups[0] if len(groups) else group_neighbours(coarse, count)
    parts = []
    for k in range(int(group.max()) + 1):
        members = np.flatnonzero(group == k)
        dofs = np.unique(np.concatenate([coarse[i] for i in members]))
        total = np.zeros((dofs.size, dofs.size), np.result_type(*(matrices[i].dtype for i in members)))
        for i in members:
            at = np.searchsorted(dofs, coarse[i])
            total[np.ix_(at, at)] += matrices[i]
        parts.append((total, dofs))
    there = np.array([dofs.size > 0 for _, dofs in parts])       # drop groups without coarse unknowns
    above = [np.unique(g, return_inverse=True)[1] for g in (groups[1][there], *groups[2:])] if len(groups) > 1 else []
    return Subdomains([part for part, kept in zip(parts, there, strict=True) if kept], above)


def group_neighbours(coarse, count):
    """Group neighbouring subdomains, about `GROUP` in each; return the group number of each subdomain, an int array.

    ``coarse`` has the coarse unknowns of each subdomain, int arrays; ``count`` is the number of coarse unknowns. A
    group grows from the first subdomain without a group. It takes in the subdomain that shares most coarse unknowns
    with it. A group of fewer than ``GROUP // 2`` joins the neighbouring group that shares most."""
    import scipy.sparse as sp
    owner = np.repeat(np.arange(len(coarse)), [c.size for c in coarse])
    has = sp.csr_array((np.ones(owner.size), (owner, np.concatenate(coarse))), shape=(len(coarse), count))
    shared = (has @ has.T).tocsr()
    group, groups = np.full(len(coarse), -1), 0
    for seed in range(len(coarse)):
        if group[seed] >= 0:
            continue
        members, weights, waiting = [], {}, [(0.0, seed)]
        while waiting and len(members) < GROUP:
            _, k = heapq.heappop(waiting)
            if group[k] >= 0:
                continue
            group[k] = groups
            members.append(k)
            for j, weight in zip(shared.indices[shared.indptr[k]:shared.indptr[k + 1]],
                                 shared.data[shared.indptr[k]:shared.indptr[k + 1]], strict=True):
                if group[j] < 0:
                    weights[j] = weights.get(j, 0.0) + weight
                    heapq.heappush(waiting, (-weights[j], int(j)))
        if len(members) < GROUP // 2 and groups:
            near = shared[members].sum(axis=0)
            near[group < 0], near[members] = 0, 0
            if near.max() > 0:
                group[members] = group[near.argmax()]
                continue
        groups += 1
    return group


class DenseCoarse(LinearOperator):
    """S_c⁻¹ as a stored dense inverse, or by a decomposer and a solver of swell.dense.

    ``settings``: of BDDC. ``symmetry`` is the Symmetry of S_c, ``before`` the solver for earlier values, ``definite``
    as for `SparseCoarse`.

    Raises
    ------
    FactorisationError
        If S_c is singular.
    """

    def __init__(self, space, matrix, settings, dtype, symmetry=HERMITIAN, before=None, definite=True):
        super().__init__(matrix.shape, dtype, space)
        self.spd = symmetry is HERMITIAN and _definite(matrix)
        S = space.from_host(matrix)
        B, scale, _ = bordered(space, S, np.zeros((0, S.shape[0])), np.zeros(0))
        decomposer, solver = decomposer_of(settings), solver_of(settings)
        last = {0: one for one in before.inverse.factors} if isinstance(before, DenseCoarse) else {}
        try:
            inverse, (condition,), self.notes = invert(space, decomposer, solver, B[None], symmetry.trans,
                                                       earlier_factors(decomposer, last, [0], len(B)))
        except FactorisationError as error:
            raise _singular(str(error), definite) if error.singular else error from None
        if not condition * np.finfo(float).eps * len(B) < 1:
            raise _singular(f"its condition is {condition:.0e}", definite)
        self.iterations = inverse.iterations
        self.inverse = inverse.leading(len(S), space.xp.full((1, 1, 1), scale), symmetry.mean, dtype)
        self.variable = self.inverse.variable

    def apply(self, x, out, alpha=1, beta=0, adjoint=False):
        x = plain(x)
        X = x.reshape(-1, self.shape[0]).T[None]
        Y = self.space.xp.empty_like(X)
        self.inverse.apply(self.space.xp, X, Y, adjoint)
        self.space.combine(alpha, Y[0].T.reshape(x.shape), beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta, adjoint=True)

    @property
    def nbytes(self):
        return self.inverse.nbytes

    def describe(self):
        return f"{self.shape[0]} coarse unknowns, {self.inverse.describe()}"


def _definite(matrix):
    """True if a Hermitian host array is positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _singular(why, definite):
    """Return (not raise) the FactorisationError for a singular coarse matrix; ``why`` is a part of its message. Only if
    all interiors are positive definite (``definite``), A is known to be singular, too."""
    if not definite:
        return FactorisationError(f"BDDC: the coarse problem is singular ({why}). A is not positive definite, and need "
                                  "not be singular: take other subdomains or constraints")
    return FactorisationError(f"BDDC: the coarse problem is singular ({why}), and so is A: no unknown has a given "
                              "value. Give one, or nullspace='constants' with another preconditioner", singular=True)


class SparseCoarse(Wrapper):
    """S_c⁻¹ by the sparse direct solver. ``definite``: all interiors of subdomains are positive definite."""

    spd = False

    def __init__(self, matrix, definite=True):
        super().__init__(matrix.shape, matrix.dtype, matrix.space)
        try:
            self.inner, self.spd = Direct().build(matrix), definite
        except FactorisationError as error:
            raise _singular(str(error), definite) if error.singular else error from None

    def describe(self):
        return f"{self.shape[0]} coarse unknowns by {self.inner.describe()}"


class InexactCoarse(Wrapper):
    """B ≈ S_c⁻¹ by a preconditioner; ``settings`` are its settings or name, ``symmetry`` is the Symmetry of S_c.

    Raises
    ------
    InputError
        If S_c is Hermitian, and B is not its own adjoint; or the preconditioner is for other matrices.
    """

    def __init__(self, matrix, settings, symmetry=HERMITIAN):
        super().__init__(matrix.shape, matrix.dtype, matrix.space)
        settings = resolve("precond", settings)
        self.inner = settings.build(matrix)
        if self.self_adjoint is False and symmetry is HERMITIAN:
            raise InputError(f"BDDC(coarse={type(settings).__name__}) needs a preconditioner that is its own adjoint, "
                             "and this one is not: take 'smoothed_aggregation', 'amg' or 'ic0'")

    def describe(self):
        return f"{self.shape[0]} coarse unknowns by {self.inner.describe()}"
