"""Constraints: the quantities that local spaces share, which are the unknowns of the coarse problem.

The letters of ``constraints`` choose among corners ("c"), edges ("e") and faces ("f"). A corner's constraints are the
values of its unknowns. An edge or face has a constraint for each near null vector that is independent there. Constants
make averages of each unknown; the rigid motions of a body make averages and first moments (Klawonn and Widlund 2006).
In three dimensions corners alone do not bound the condition number by logarithms: edge averages are needed (Klawonn,
Widlund and Dryja 2002).

For s nodes of a class, Q orthonormal and spanning the near null vectors there, the constraints are Qᵀ u / √s. So the
average of a constant function is this constant.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.bddc.interface import KINDS

DEPENDENT = 1e-8        # a vector's part outside the others below this, for the largest entry 1, is rounding
DIGITS = 10             # decimals of Q √s: equal classes anywhere get equal bits, so that equal subdomains are found


class Constraints:
    """The constraints of every subdomain.

    Parameters
    ----------
    interface : Interface
    chosen : str
        The letters.

    Attributes
    ----------
    count : int
        Number of coarse unknowns.
    coarse : list of int arrays
        The coarse unknowns of each subdomain.
    classes : int array, shape (count,)
        The class of each coarse unknown.
    more : int
        Number of adaptive constraints; they are the last coarse unknowns.
    notes : tuple of str
    """

    def __init__(self, interface, chosen):
        self._interface, self.more = interface, 0
        wanted = np.array([kind[0] in chosen for kind in KINDS])[interface.kinds]
        self._functions = [functionals(interface, number) if wanted[number] else None for number in range(wanted.size)]
        self._adaptive = [None] * wanted.size
        self._classes = [np.unique(interface.classes[copies]) for copies in interface.copies]
        self._number()
        self.notes = ()
        if interface.dofs.size and "c" in chosen and not (interface.kinds == 0).any():
            self.notes = ("the interface has no corners: " + ("averages alone are the constraints" if self.count else
                          "there are no constraints"),)

    def add(self, adaptive):
        """Add adaptive constraints, a dict: for a class an array with a constraint a row, of norm 1, and a column for
        each of its dofs, ascending."""
        for number, rows in adaptive.items():
            self._adaptive[number] = rows
        self.more = sum(len(rows) for rows in adaptive.values())
        self._number()

    def _number(self):
        """Number the coarse unknowns: by class, adaptive ones last. Set ``count``, ``coarse`` and ``classes``."""
        every = [*self._functions, *self._adaptive]
        ends = np.cumsum([0] + [0 if rows is None else len(rows) for rows in every])
        self.count, count = int(ends[-1]), len(self._functions)
        self.classes = np.repeat(np.arange(2 * count) % max(count, 1), np.diff(ends))
        self.coarse = [np.concatenate([np.zeros(0, np.int64)] + [
            np.arange(ends[number], ends[number + 1]) for number in (*classes, *(count + classes))])
            for classes in self._classes]

    def of_class(self, number):
        """Return the constraints of a class that are not adaptive, an array with a constraint a row and a column for
        each of its dofs, ascending."""
        rows = self._functions[number]
        return np.zeros((0, self._interface.members[number].size)) if rows is None else rows

    def modes(self):
        """Return the near null vectors of the coarse problem, shape (count, k): the values of the constraints."""
        interface = self._interface
        every = [rows @ interface.modes[dofs] for of in (self._functions, self._adaptive)
                 for rows, dofs in zip(of, interface.members, strict=True) if rows is not None]
        return np.concatenate([np.zeros((0, interface.modes.shape[1])), *every])

    def matrix(self, k):
        """Return new host arrays (C, sizes): C has the constraints of subdomain k as rows, each of norm 1 / √size, and
        a column for each interface copy.

        The size of an average is the number of its nodes; a corner's and an adaptive constraint have size 1."""
        interface, first = self._interface, 0
        copies, sizes = interface.copies[k], np.ones(self.coarse[k].size)
        C, order = np.zeros((sizes.size, copies.size)), np.argsort(copies)
        for of in (self._functions, self._adaptive):
            for number in self._classes[k]:
                if of[number] is not None:
                    dofs, rows = interface.members[number], slice(first, first + len(of[number]))
                    C[rows, order[np.searchsorted(copies, dofs, sorter=order)]] = of[number]
                    if of is self._functions:
                        sizes[rows] = np.unique(interface.nodes[dofs]).size
                    first = rows.stop
        return C, sizes


def functionals(interface, number):
    """Return the constraints of a class of the `Interface`, an array with a constraint a row and a column for each dof
    of the class, ascending."""
    dofs = interface.members[number]
    if interface.kinds[number] == 0:
        return np.eye(dofs.size)
    count = np.unique(interface.nodes[dofs]).size
    Q = orthonormal(interface.modes[dofs])
    return np.round(Q.conj().T * np.sqrt(count), DIGITS) / count


def orthonormal(modes):
    """Return an orthonormal basis of the columns of ``modes`` as columns, by Gram–Schmidt twice, in their order.
    Columns that depend on earlier ones are left out. The largest entry of each column is near 1 in all of the
    interface, so a part below `DEPENDENT` is rounding."""
    Q, count = np.empty_like(modes), 0
    for v in modes.T:
        for _ in range(2):
            v = v - Q[:, :count] @ (Q[:, :count].conj().T @ v)
        norm = np.linalg.norm(v)
        if norm > DEPENDENT * np.sqrt(len(modes)):
            Q[:, count], count = v / norm, count + 1
    return Q[:, :count]
