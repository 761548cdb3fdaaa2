"""Constraints: the quantities that local spaces share, which are the unknowns of the coarse problem.

The letters of ``constraints`` choose among corners ("c", the value), edges ("e", the average) and faces ("f", the
average). In three dimensions corners alone do not bound the condition number by logarithms: edge averages are needed
(Klawonn, Widlund and Dryja 2002). The weights of an average sum to one. So a constant function has coarse unknowns that
all equal this constant.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.bddc.adaptive import places
from swell.preconditioners.bddc.interface import KINDS


class Constraints:
    """The chosen constraints of every subdomain.

    Attributes
    ----------
    count : int
        Number of coarse unknowns.
    coarse : list of int arrays
        The coarse unknowns of each subdomain.
    rows : list of int arrays
        For each subdomain and each of its interface copies: the index into ``coarse``; -1 without a constraint.
    more : int
        Number of adaptive constraints; they are the last coarse unknowns.
    notes : tuple of str
    """

    def __init__(self, interface, chosen, adaptive=None):
        wanted = np.array([kind[0] in chosen for kind in KINDS])[interface.kinds]
        number = np.where(wanted, np.cumsum(wanted) - 1, -1)
        self.count = int(wanted.sum())
        self.coarse, self.rows = [], []
        for copies in interface.copies:
            of = number[interface.classes[copies]]
            coarse, row = np.unique(of, return_inverse=True)
            none = int(coarse.size > 0 and coarse[0] < 0)        # -1, for copies without constraint, comes first
            self.coarse.append(coarse[none:])
            self.rows.append(row.reshape(-1) - none)
        self._adaptive, averages = [[] for _ in interface.copies], self.count
        for number, functions in (adaptive or {}).items():
            for k in np.flatnonzero([(interface.classes[copies] == number).any() for copies in interface.copies]):
                at = places(interface, number, k)
                self._adaptive[k].append((at, functions))
                self.coarse[k] = np.concatenate((self.coarse[k], self.count + np.arange(len(functions))))
            self.count += len(functions)
        self.more = self.count - averages
        self.notes = ()
        if interface.dofs.size and "c" in chosen and not (interface.kinds == 0).any():
            self.notes = ("the interface has no corners: " + ("averages alone are the constraints" if self.count else
                          "there are no constraints"),)

    def matrix(self, k):
        """Return new host arrays (C, sizes): C has the constraints of subdomain k as rows, each of norm 1 / √size, and
        a column for each interface copy.

        The size of an average is the number of its dofs; an adaptive constraint has size 1."""
        rows = self.rows[k]
        C, sizes = np.zeros((self.coarse[k].size, rows.size)), np.ones(self.coarse[k].size)
        taken = np.flatnonzero(rows >= 0)
        C[rows[taken], taken] = 1
        first = int(rows.max(initial=-1)) + 1
        sizes[:first] = C[:first].sum(axis=1)
        C[:first] /= sizes[:first, None]
        for at, functions in self._adaptive[k]:
            C[first:first + len(functions), at] = functions
            first += len(functions)
        return C, sizes
