"""The interface: dofs that two or more subdomains have, their classes (faces, edges, corners), and their weights.

Two dofs are in one class if the same subdomains have them and entries of A connect them within the class (Klawonn and
Widlund 2006, section 2). A class of one dof is a corner. Larger classes are faces if two subdomains meet, edges if more
do.

Weights combine the copies of a dof into one value; the weights of its copies sum to 1. "cardinality": one over the
number of copies. "stiffness": the copy's share of the sum of diagonal entries, which follows coefficients that jump
between subdomains.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.bddc.renumbering import renumbered

KINDS = ("corner", "edge", "face")


class Interface:
    """The interface of subdomains.

    If ranks share the subdomains, every rank knows the whole interface; ``local`` and ``copies`` describe its own
    subdomains.

    Parameters
    ----------
    A : CSRMatrix
    subdomains : Subdomains

    Attributes
    ----------
    dofs : int array
        Rows of A on the interface, ascending. The other attributes number them by their place in ``dofs``.
    number : int array
        The place in ``dofs`` of each local row; -1 for a row that is not on the interface.
    classes : int array, shape of ``dofs``
        The class of each interface dof.
    kinds : int array, one entry a class
        Index into KINDS.
    local : list of int arrays
        For each subdomain, the indices of its own dofs that are on the interface.
    copies : list of int arrays
        For each subdomain, the places in ``dofs`` of these.
    """

    def __init__(self, A, subdomains):
        self.dofs, self.number = subdomains.shared()
        places = [self.number[dofs] for dofs in subdomains.dofs]
        self.local = [np.flatnonzero(place >= 0) for place in places]
        self.copies = [place[own] for place, own in zip(places, self.local, strict=True)]
        copies = subdomains.from_all_ranks(self.copies)
        counts = np.bincount(np.concatenate(copies), minlength=self.dofs.size)
        self.classes = self._connected(A, subdomains, _sets(copies, counts))
        size = np.bincount(self.classes)
        shared = np.zeros(size.size, np.int64)
        shared[self.classes] = counts
        self.kinds = np.where(size == 1, 0, np.where(shared > 2, 1, 2))

    def _connected(self, A, subdomains, sets):
        """Return the class of each interface dof, an int array. A class is a connected part of a set in the graph of A.

        ``sets``: the number of the set of each dof, from `_sets`. Classes are numbered by their first dof."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        if not sets.size:
            return sets
        place = A.space.from_host(self.number)
        links = renumbered(A, place, place, (self.dofs.size,) * 2).to_scipy().tocoo()
        within = sets[links.row] == sets[links.col]
        ends = np.concatenate(subdomains.from_all_ranks([np.stack((links.row[within], links.col[within]))]), axis=1)
        graph = sp.coo_array((np.ones(ends.shape[1], bool), tuple(ends)), shape=links.shape)
        return connected_components(graph, directed=False)[1]

    def weights(self, subdomains, kind):
        """Return the weights of each subdomain's copies, a list of arrays. ``kind`` is "cardinality" or "stiffness";
        see the top of this file."""
        if kind == "cardinality":
            own = [np.ones(c.size) for c in self.copies]
        else:
            own = [matrix.diagonal()[at] for matrix, at in zip(subdomains.matrices, self.local, strict=True)]
        total = np.zeros(self.dofs.size)
        for copies, share in zip(self.copies, own, strict=True):
            total[copies] += share
        total = sum(subdomains.from_all_ranks([total]))
        return [share / total[copies] for copies, share in zip(self.copies, own, strict=True)]

    def describe(self):
        """Return the number of classes of each kind in words, such as "8 corners, 12 edges, 6 faces"."""
        counts = np.bincount(self.kinds, minlength=3)
        return ", ".join(f"{count} {kind}s" for kind, count in zip(KINDS, counts, strict=True))


def _sets(copies, counts):
    """Return a number for each interface dof, an int array; two dofs have equal numbers if the same subdomains have
    them.

    Parameters
    ----------
    copies : list of int arrays
        The interface dofs of every subdomain, of all ranks.
    counts : int array
        The number of subdomains that have each dof.
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
