"""Corners that leave no mechanism: nodes to hold in addition, where two neighbours could still move against each other.

Two subdomains that share a face are locked if every near null vector that vanishes in their common constraints vanishes
on their whole common interface. Then subdomains that are connected by faces move together, and the partially assembled
matrix is nonsingular wherever A is. For an elastic body and corners alone these are three nodes a face that do not lie
in a line (Šístek, Čertíková, Burda and Novotný 2012). The nodes are found from the near null vectors, without
coordinates: each next node is the one that the remaining motions move most.
"""
from __future__ import annotations

import numpy as np

from swell.preconditioners.bddc.constraints import functionals, orthonormal
from swell.preconditioners.bddc.interface import KINDS

LOOSE = 0.4             # constraints hold a motion of mean size 1 if they see more of it; with 0.05 the short edges of
                        # real meshes count as holding, and λ max grows up to seven times
DIGITS = 6              # digits by which nodes are compared: the first of equals is taken, on every rank


def missing_corners(interface, chosen):
    """Return the nodes that must become corners, an int array. ``interface`` is an `Interface`; ``chosen``: the letters
    of its constraints, with "c"."""
    of_pair, faces = {}, set()
    for number, subdomains in enumerate(interface.sharing):
        for a, i in enumerate(subdomains):
            for j in subdomains[a + 1:]:
                of_pair.setdefault((int(i), int(j)), []).append(number)
        if interface.kinds[number] == 2:
            faces.add(tuple(map(int, subdomains)))
    values = {number: functionals(interface, number) for number, kind in enumerate(interface.kinds)
              if KINDS[kind][0] in chosen}
    with_face = {k for pair in faces for k in pair}
    pairs = sorted(faces | {pair for pair in of_pair if not with_face.issuperset(pair)})
    corners = set()
    for pair in pairs:
        corners.update(_lock(interface, values, of_pair[pair], corners))
    return np.array(sorted(corners), np.int64)


def _lock(interface, values, classes, corners):
    """Return a list of nodes whose values lock two subdomains that share ``classes``. ``values``: the constraints of
    classes, a dict; the values of nodes in the set ``corners`` are constraints, too."""
    dofs = np.concatenate([interface.members[number] for number in classes])
    nodes, node = np.unique(interface.nodes[dofs], return_inverse=True)
    motions = orthonormal(interface.modes[dofs]) * np.sqrt(nodes.size)         # of mean size 1
    held, first = [motions[np.isin(interface.nodes[dofs], list(corners))]], 0
    for number in classes:
        size = interface.members[number].size
        if number in values:
            held.append(values[number] @ motions[first:first + size])
        first += size
    held, more = np.concatenate(held), []
    while True:
        _, sizes, right = np.linalg.svd(held)
        free = right[int((sizes > LOOSE).sum()):].conj().T
        if not free.shape[1]:
            return more
        moved = np.bincount(node.reshape(-1), (abs(motions @ free) ** 2).sum(axis=1))
        moved[np.isin(nodes, more)] = 0
        if not moved.max(initial=0) > 0:
            return more
        best = int(np.argmax(np.round(moved / moved.max(), DIGITS)))
        more.append(nodes[best])
        held = np.concatenate((held, motions[node.reshape(-1) == best]))
