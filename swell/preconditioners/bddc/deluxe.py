"""Deluxe scaling: weights that are matrices, from the Schur complements of the subdomains (Dohrmann and Widlund 2013).

    Dᵢ = (Σⱼ Sⱼ)⁻¹ Sᵢ     for each class, over the subdomains j that have it; Sⱼ: its rows and columns of their S

Scalar weights know a dof's diagonal entry only. Deluxe weights know how each subdomain resists every displacement of
the class, so they follow the subdomains' shapes as well as their coefficients. Σⱼ Sⱼ is a block of the assembled Schur
complement: positive definite if A is.

Cost: a Cholesky factorisation of each class, on the host. Storage: s² entries for each class of s dofs and each
subdomain that has it, and as many operations an application, instead of s.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError

INDEFINITE = ("BDDC(weights='deluxe'): the Schur complements of class {number} of the interface do not add up to a "
              "positive definite matrix, so A is not positive definite: take weights='stiffness'")


def diagonal(interface, weights):
    """Return the matrix that gathers weighted copies, a scipy.sparse.csr_array with a row for each copy, subdomain by
    subdomain, and a column for each interface dof. ``weights``: the result of ``Interface.weights``."""
    import scipy.sparse as sp
    copies = np.concatenate(interface.copies)
    return sp.csr_array((np.concatenate(weights), copies, np.arange(copies.size + 1)),
                        shape=(copies.size, interface.dofs.size))


def deluxe(space, subdomains, interface, complements):
    """Return the matrix that gathers copies by deluxe weights, in the form of `diagonal`: Dᵢᴴ for each subdomain i.

    Parameters
    ----------
    space : Space
    subdomains : Subdomains
    interface : Interface
    complements : list of device arrays
        The Schur complement of each subdomain, positive semidefinite.

    Raises
    ------
    FactorisationError
        If A is not positive definite.
    """
    import scipy.sparse as sp
    from scipy.linalg import cho_factor, cho_solve
    parts, first = [], 0
    for copies, S in zip(interface.copies, complements, strict=True):
        classes = interface.classes[copies]
        for number in np.unique(classes):
            at = np.flatnonzero(classes == number)
            at = at[np.argsort(copies[at])]
            where = space.from_host(at)
            parts.append((number, first + at, space.to_host(S[where][:, where])))  # sync
        first += copies.size
    totals, factors = {}, {}
    for number, block in subdomains.from_all_ranks([(number, block) for number, _, block in parts]):
        totals[number] = totals[number] + block if number in totals else block
    failed = []
    for number in {number for number, _, _ in parts}:
        try:
            factors[number] = cho_factor(totals[number], lower=True)
        except np.linalg.LinAlgError:
            failed.append(number)
    failed = subdomains.from_all_ranks(failed)                       # all ranks raise the same error
    if failed:
        raise FactorisationError(INDEFINITE.format(number=min(failed)))
    rows, columns, values = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)]
    for number, at, block in parts:
        rows.append(np.repeat(at, at.size))
        columns.append(np.tile(interface.members[number], at.size))
        values.append(cho_solve(factors[number], block).conj().T.ravel())
    return sp.csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
                        shape=(first, interface.dofs.size))
