"""Constraints: what the local spaces share, and the unknowns of the coarse problem.

One for each corner (its value), edge and face (the average over it) that ``constraints`` names by "c", "e", "f". In
three dimensions corners alone lose the bound of the condition by logarithms: edge averages are needed (Klawonn,
Widlund and Dryja 2002). Averages have weights that sum to one, so that the coarse unknowns of a constant are all that
constant.
"""
from __future__ import annotations

import numpy as np

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
    notes : tuple of str
    """

    def __init__(self, interface, chosen):
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
        self.notes = ()
        if interface.dofs.size and "c" in chosen and not (interface.kinds == 0).any():
            self.notes = ("the interface has no corners: " + ("averages alone are the constraints" if self.count else
                          "there are no constraints"),)

    def matrix(self, k):
        """(C, sizes): the averages of subdomain k as rows, and how many dofs each is over."""
        rows = self.rows[k]
        C = np.zeros((self.coarse[k].size, rows.size))
        taken = np.flatnonzero(rows >= 0)
        C[rows[taken], taken] = 1
        sizes = C.sum(axis=1)
        return C / sizes[:, None], sizes
