"""Constraints: what the local spaces share, and the unknowns of the coarse problem.

One for each corner (its value), edge and face (the average over it) that ``constraints`` names by "c", "e", "f". In
three dimensions corners alone lose the bound of the condition by logarithms: edge averages are needed (Klawonn,
Widlund and Dryja 2002). Averages have weights that sum to one, so that the coarse unknowns of a constant are all that
constant.
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
        Coarse unknowns.
    coarse : list of int arrays
        For each subdomain, its coarse unknowns.
    rows : list of int arrays
        For each subdomain and each of its copies of the interface, which of ``coarse`` it belongs to; -1: to none.
    more : int
        How many of the coarse unknowns are adaptive ones, after all others.
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
            none = int(coarse.size > 0 and coarse[0] < 0)        # what belongs to no constraint comes first
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
        """(C, sizes): the constraints of subdomain k as rows, each of norm one over the root of its size.

        Of an average the size is the number of its dofs; of an adaptive constraint, 1.
        """
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
