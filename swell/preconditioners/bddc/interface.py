"""The interface: dofs that two or more subdomains have, their classes (faces, edges, corners), and their weights.

Two dofs are of one class if the same subdomains have them and entries of A connect them within the class (Klawonn and
Widlund 2006, section 2). A class of one dof is a corner; others are faces where two subdomains meet, edges where more
do.

Weights make copies one value again, with Σ over the copies of a dof = 1: by "cardinality", one over the number of
copies; by "stiffness", the share of the copy's diagonal entry, which follows coefficients that jump between
subdomains.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.bddc.renumbering import numbers, renumbered

KINDS = ("corner", "edge", "face")


class Interface:
    """The interface of subdomains.

    Parameters
    ----------
    A : CSRMatrix
    subdomains : Subdomains

    Attributes
    ----------
    dofs : int array
        Rows of A on the interface, ascending. What follows counts them from 0.
    classes : int array, like dofs
        The class of each.
    kinds : int array, one a class
        Index into KINDS.
    local : list of int arrays
        For each subdomain, which of its own dofs are on the interface.
    copies : list of int arrays
        For each subdomain, which dofs of the interface these are.
    """

    def __init__(self, A, subdomains):
        counts = np.bincount(np.concatenate(subdomains.dofs), minlength=subdomains.n)
        self.dofs = np.flatnonzero(counts > 1)
        self.local = [np.flatnonzero(counts[dofs] > 1) for dofs in subdomains.dofs]
        self.copies = [np.searchsorted(self.dofs, dofs[own])
                       for dofs, own in zip(subdomains.dofs, self.local, strict=True)]
        self.classes = self._connected(A, self._sets(counts[self.dofs]))
        size = np.bincount(self.classes)
        shared = np.zeros(size.size, np.int64)
        shared[self.classes] = counts[self.dofs]
        self.kinds = np.where(size == 1, 0, np.where(shared > 2, 1, 2))

    def _sets(self, counts):
        """A number for each dof of the interface, the same where the same subdomains have it."""
        owner = np.repeat(np.arange(len(self.copies)), [c.size for c in self.copies])
        copy = np.concatenate(self.copies)
        owner = owner[np.lexsort((owner, copy))]                 # the subdomains of each dof, ascending
        first, found, numbers = np.concatenate(([0], np.cumsum(counts))), np.empty(counts.size, np.int64), 0
        for many in np.unique(counts):
            rows = np.flatnonzero(counts == many)
            _, number = np.unique(owner[first[rows, None] + np.arange(many)], axis=0, return_inverse=True)
            found[rows] = numbers + number.reshape(-1)
            numbers = found[rows].max() + 1
        return found

    def _connected(self, A, sets):
        """Classes: sets, each in its connected pieces, numbered by their first dof."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        if not sets.size:
            return sets
        place = numbers(A.space, self.dofs, A.shape[0])
        links = renumbered(A, place, place, (self.dofs.size,) * 2).to_scipy().tocoo()
        within = sets[links.row] == sets[links.col]
        graph = sp.coo_array((np.ones(within.sum(), bool), (links.row[within], links.col[within])), shape=links.shape)
        return connected_components(graph, directed=False)[1]

    def weights(self, subdomains, kind):
        """For each subdomain the weights of its copies."""
        if kind == "cardinality":
            own = [np.ones(c.size) for c in self.copies]
        else:
            own = [matrix.diagonal()[at] for matrix, at in zip(subdomains.matrices, self.local, strict=True)]
        total = np.zeros(self.dofs.size)
        for copies, share in zip(self.copies, own, strict=True):
            total[copies] += share
        return [share / total[copies] for copies, share in zip(self.copies, own, strict=True)]

    def describe(self):
        """How many classes of each kind there are."""
        counts = np.bincount(self.kinds, minlength=3)
        return ", ".join(f"{count} {kind}s" for kind, count in zip(KINDS, counts, strict=True))
