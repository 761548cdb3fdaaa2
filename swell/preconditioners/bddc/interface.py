"""The interface: dofs that two or more subdomains have, their classes (faces, edges, corners), and their weights.

Two nodes are in one class if the same subdomains have them and entries of A connect them within the class (Klawonn and
Widlund 2006, section 2). A class of one node is a corner. Larger classes are faces if two subdomains meet, edges if
more do. A node that is chosen as a corner becomes a class of its own.

Weights combine the copies of a dof into one value; the weights of its copies sum to 1. "cardinality": one over the
number of copies. "stiffness": the copy's share of the sum of the moduli of diagonal entries, which follows coefficients
that jump between subdomains; copies whose diagonal entries are all zero have equal weights.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
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
    unknowns : Unknowns

    Attributes
    ----------
    dofs : int array
        Rows of A on the interface, ascending. The other attributes number them by their place in ``dofs``.
    number : int array
        The place in ``dofs`` of each local row; -1 for a row that is not on the interface.
    nodes : int array, shape of ``dofs``
        The node of each interface dof, numbered from 0.
    modes : array, shape (dofs.size, k)
        Near null vectors on the interface, scaled to the largest entry 1.
    classes : int array, shape of ``dofs``
        The class of each interface dof.
    kinds : int array, one entry a class
        Index into KINDS.
    sharing : list of int arrays, one entry a class
        The subdomains that have the class, of all ranks, ascending.
    members : list of int arrays, one entry a class
        The dofs of the class, ascending.
    notes : tuple of str
    local : list of int arrays
        For each subdomain, the indices of its own dofs that are on the interface.
    copies : list of int arrays
        For each subdomain, the places in ``dofs`` of these.
    """

    def __init__(self, A, subdomains, unknowns):
        self.dofs, self.number = subdomains.shared()
        places = [self.number[dofs] for dofs in subdomains.dofs]
        self.local = [np.flatnonzero(place >= 0) for place in places]
        self.copies = [place[rows] for place, rows in zip(places, self.local, strict=True)]
        copies = subdomains.from_all_ranks(self.copies)
        counts = np.bincount(np.concatenate(copies), minlength=self.dofs.size)
        owner, first = _owners(copies, counts)
        sets, names = _sets(owner, first, counts), subdomains.names(self.dofs)
        node, size, modes = unknowns.at(names)
        self.modes = modes / np.maximum(abs(modes).max(axis=0, initial=0), 1e-300)
        self.notes, self.nodes = (), np.unique(node, return_inverse=True)[1].reshape(-1)
        cut = _cut(self.nodes, sets, size)
        if cut is not None:
            self._cut_nodes(unknowns, names, cut, int(size[cut]))
        self.classes = self._connected(A, subdomains, sets)
        self.sharing = [owner[first[dof]:first[dof] + counts[dof]] for dof in self._first_dofs()]
        self._settle()
        self.make_corners(self._wanted(unknowns.corners, names))

    def _cut_nodes(self, unknowns, names, dof, size):
        """Make each dof a node of its own, with a note; if the user gave the nodes, raise InputError. ``dof`` is in a
        node of ``size`` rows, of which not all belong to the same subdomains; ``names``: the user's row numbers."""
        what = f"row {names[dof]} belongs to a node of {size} rows, and not all of them to the same subdomains"
        if unknowns.known:
            raise InputError(f"BDDC(nodes=...): {what}: expected subdomains of whole nodes")
        self.notes = (f"{what}: BDDC takes each row as a node; nodes=, the node of each row, says which rows belong "
                      "together",)
        self.nodes = np.arange(self.dofs.size)

    def _wanted(self, corners, names):
        """Return the nodes of the user's corners, rows of A. Raises InputError for a row that is not on the interface.
        """
        order = np.argsort(names)
        at = np.minimum(np.searchsorted(names[order], corners), max(names.size - 1, 0))
        strange = corners if not names.size else corners[names[order][at] != corners]
        if strange.size:
            more = f", and {strange.size - 1} more are not" if strange.size > 1 else ""
            raise InputError(f"BDDC(corners=...): row {strange[0]} is not on the interface{more}: expected rows that "
                             "two or more subdomains have")
        return self.nodes[order[at]]

    def make_corners(self, nodes):
        """Make each of ``nodes``, an int array, a class of its own: a corner."""
        nodes = np.setdiff1d(nodes, self.nodes[self.kinds[self.classes] == 0])
        if nodes.size:
            chosen = np.isin(self.nodes, nodes)
            shared = [self.sharing[number] for number in self.classes]
            self.classes[chosen] = self.classes.max() + 1 + self.nodes[chosen]
            self.classes = np.unique(self.classes, return_inverse=True)[1].reshape(-1)
            self.sharing = [shared[dof] for dof in self._first_dofs()]
            self._settle()

    def _first_dofs(self):
        """Return the first dof of each class, an int array."""
        return np.unique(self.classes, return_index=True)[1]

    def _settle(self):
        """Set ``members`` and ``kinds`` for new ``classes``."""
        order = np.argsort(self.classes, kind="stable")
        self.members = np.split(order, np.cumsum(np.bincount(self.classes))[:-1]) if order.size else []
        alone = np.array([(self.nodes[dofs] == self.nodes[dofs[0]]).all() for dofs in self.members], bool)
        many = np.array([of.size > 2 for of in self.sharing], bool)
        self.kinds = np.where(alone, 0, np.where(many, 1, 2))

    def _connected(self, A, subdomains, sets):
        """Return the class of each interface dof, an int array. A class is a connected part of a set in the graph of A,
        in which the dofs of a node are connected.

        ``sets``: the number of the set of each dof, from `_sets`. Classes are numbered by their first dof."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import connected_components
        if not sets.size:
            return sets
        place = A.space.from_host(self.number)
        links = renumbered(A, place, place, (self.dofs.size,) * 2).to_scipy().tocoo()
        within = sets[links.row] == sets[links.col]
        order = np.argsort(self.nodes, kind="stable")
        same = np.flatnonzero(self.nodes[order[1:]] == self.nodes[order[:-1]])
        ends = np.concatenate([*subdomains.from_all_ranks([np.stack((links.row[within], links.col[within]))]),
                               np.stack((order[same], order[same + 1]))], axis=1)
        graph = sp.coo_array((np.ones(ends.shape[1], bool), tuple(ends)), shape=links.shape)
        return connected_components(graph, directed=False)[1]

    def weights(self, subdomains, kind):
        """Return the weights of each subdomain's copies, a list of arrays; ``kind``: "cardinality" or "stiffness"."""
        def total(shares):
            sums = np.zeros(self.dofs.size)
            for copies, share in zip(self.copies, shares, strict=True):
                sums[copies] += share
            return sum(subdomains.from_all_ranks([sums]))

        shares = [np.ones(copies.size) for copies in self.copies]
        if kind == "stiffness":
            stiff = [abs(matrix.diagonal()[at]) for matrix, at in zip(subdomains.matrices, self.local, strict=True)]
            nothing = total(stiff) == 0
            shares = [np.where(nothing[copies], 1, share) for copies, share in zip(self.copies, stiff, strict=True)]
        sums = total(shares)
        return [share / sums[copies] for copies, share in zip(self.copies, shares, strict=True)]

    def describe(self):
        """Return the number of classes of each kind in words, such as "8 corners, 12 edges, 6 faces"."""
        counts = np.bincount(self.kinds, minlength=3)
        return ", ".join(f"{count} {kind}s" for kind, count in zip(KINDS, counts, strict=True))


def _owners(copies, counts):
    """Return (the subdomains of each interface dof, ascending, dof after dof; the place of each dof's first one).

    Parameters
    ----------
    copies : list of int arrays
        The interface dofs of every subdomain, of all ranks.
    counts : int array
        The number of subdomains that have each dof.
    """
    owner = np.repeat(np.arange(len(copies)), [c.size for c in copies])
    return owner[np.lexsort((owner, np.concatenate(copies)))], np.concatenate(([0], np.cumsum(counts)))


def _sets(owner, first, counts):
    """Return a number for each interface dof, an int array; two dofs have equal numbers if the same subdomains have
    them. ``owner`` and ``first`` are from `_owners`."""
    set_of, numbers = np.empty(counts.size, np.int64), 0
    for many in np.unique(counts):
        rows = np.flatnonzero(counts == many)
        _, number = np.unique(owner[first[rows, None] + np.arange(many)], axis=0, return_inverse=True)
        set_of[rows] = numbers + number.reshape(-1)
        numbers = set_of[rows].max() + 1
    return set_of


def _cut(nodes, sets, size):
    """Return a dof whose node is not whole: some of its rows belong to other subdomains; None if there is none.

    ``nodes``, ``sets`` and ``size`` are int arrays: the node of each interface dof, its set from `_sets`, and the
    number of rows of its node."""
    first = np.unique(nodes, return_index=True)[1]
    bad = (sets != sets[first][nodes]) | (np.bincount(nodes)[nodes] != size)
    return int(bad.argmax()) if bad.any() else None
