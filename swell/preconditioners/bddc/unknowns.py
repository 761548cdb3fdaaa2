"""The unknowns of one level of BDDC: their nodes, and the near null vectors that its constraints represent.

A node is a point of the mesh with its unknowns, such as three displacements. Classes of the interface are made of whole
nodes. On the next level a node is a class of this level, with its constraints as unknowns; the near null vectors there
are the values of these constraints.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.preconditioners.amg.nodes import unknowns
from swell.preconditioners.near_nullspace import checked_nodes, checked_whole, places


class Unknowns:
    """Nodes, near null vectors and the user's corners.

    Parameters
    ----------
    nodes : int or int array, shape (n,)
        The number of consecutive rows of a node; or the node of each row, numbers 0 to m − 1.
    modes : array, shape (n, k), or None
        Near null vectors. None: for each unknown of a node the vector that is 1 there and 0 elsewhere.
    corners : int array
        Rows whose nodes the user wants as corners.
    known : bool
        False if ``nodes`` is a guess, from the pattern of A.
    """

    def __init__(self, nodes, modes=None, corners=(), known=True):
        self._nodes, self._modes, self.known = nodes, modes, known
        self.corners = np.asarray(corners, np.int64)
        if not isinstance(nodes, int):
            self._size = np.bincount(nodes)
            self._place = places(nodes) if modes is None else None

    @classmethod
    def of(cls, A, settings):
        """Return the unknowns of A by the settings ``near_nullspace``, ``nodes`` and ``corners`` of a `BDDC`; arrays
        are numbered as the user's rows. Raises InputError for an array that does not fit A."""
        n = A.shape[0]
        modes = None if isinstance(settings.near_nullspace, str) else checked_whole(settings.near_nullspace, n, "BDDC")
        corners = np.zeros(0, np.int64) if settings.corners is None else _checked_corners(settings.corners, n)
        if settings.nodes is not None:
            return cls(checked_nodes(settings.nodes, n, "BDDC")[0], modes, corners)
        size = unknowns(A) if A.space.ranks.single else A.block_size
        return cls(size, modes, corners, known=False)

    def at(self, rows):
        """Return (node of each row, number of rows of this node in all, near null vectors with a row for each row).

        ``rows``: the user's row numbers, an int array."""
        if isinstance(self._nodes, int):
            size = np.full(rows.size, self._nodes)
            node, place, width = rows // self._nodes, rows % self._nodes, self._nodes
        else:
            node, place = self._nodes[rows], None if self._place is None else self._place[rows]
            size, width = self._size[node], int(self._size.max(initial=1))
        return node, size, np.eye(width)[place] if self._modes is None else self._modes[rows]


def _checked_corners(corners, n):
    """Return the user's corners, rows of A, as an int array; InputError unless they are row numbers below n."""
    corners = np.asarray(corners)
    if corners.ndim != 1 or corners.dtype.kind not in "iu" and corners.size or corners.min(initial=0) < 0 or \
            corners.max(initial=0) >= n:
        raise InputError(f"BDDC(corners=...) has shape {corners.shape} and type {corners.dtype}: expected a list of "
                         f"rows of A, numbers from 0 to {n - 1}")
    return corners.astype(np.int64)
