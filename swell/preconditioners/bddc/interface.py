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

from swell.preconditioners.bddc.renumbering import renumbered

KINDS = ("corner", "edge", "face")


class Interface:
    """The interface of subdomains.

    Where subdomains are spread over ranks, every rank knows the whole interface; ``local`` and ``copies`` are those of
    its own subdomains.

    Parameters
    ----------
    A : CSRMatrix
    subdomains : Subdomains

    Attributes
    ----------
    dofs : int array
        Rows of A on the interface, ascending. What follows counts them from 0.
    number : int array
        For each row that is here its place in ``dofs``; -1 where it has none.
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
        self.dofs, self.number = subdomains.shared()
        places = [self.number[dofs] for dofs in subdomains.dofs]
        self.local = [np.flatnonzero(place >= 0) for place in places]
        self.copies = [place[own] for place, own in zip(places, self.local, strict=True)]
        copies = subdomains.everywhere(self.copies)
        counts = np.bincount(np.concatenate(copies), minlength=self.dofs.size)
        self.classes = self._connected(A, subdomains, _sets(copies, counts))
        size = np.bincount(self.classes)
        shared = np.zeros(size.size, np.int64)
        shared[self.classes] = counts
        self.kinds = np.where(size == 1, 0, np.where(shared > 2, 1, 2))

    def _connected(self, A, subdomains, sets):
        """Classes: sets, each in its connected pieces, numbered by their first dof."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        if not sets.size:
            return sets
        place = A.space.from_host(self.number)
        links = renumbered(A, place, place, (self.dofs.size,) * 2).to_scipy().tocoo()
        within = sets[links.row] == sets[links.col]
        ends = np.concatenate(subdomains.everywhere([np.stack((links.row[within], links.col[within]))]), axis=1)
        graph = sp.coo_array((np.ones(ends.shape[1], bool), tuple(ends)), shape=links.shape)
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
        total = sum(subdomains.everywhere([total]))
        return [share / total[copies] for copies, share in zip(self.copies, own, strict=True)]

    def describe(self):
        """How many classes of each kind there are."""
        counts = np.bincount(self.kinds, minlength=3)
        return ", ".join(f"{count} {kind}s" for kind, count in zip(KINDS, counts, strict=True))


def _sets(copies, counts):
    """A number for each dof of the interface, the same where the same subdomains have it.

    Parameters
    ----------
    copies : list of int arrays
        The dofs of every subdomain, of all ranks.
    counts : int array
        How many have each dof.
    """
    owner = np.repeat(np.arange(len(copies)), [c.size for c in copies])
    copy = np.concatenate(copies)
    owner = owner[np.lexsort((owner, copy))]                 # the subdomains of each dof, ascending
    first, found, numbers = np.concatenate(([0], np.cumsum(counts))), np.empty(counts.size, np.int64), 0
    for many in np.unique(counts):
        rows = np.flatnonzero(counts == many)
        _, number = np.unique(owner[first[rows, None] + np.arange(many)], axis=0, return_inverse=True)
        found[rows] = numbers + number.reshape(-1)
        numbers = found[rows].max() + 1
    return found
