"""Near null vectors that users give: vectors that a smoother hardly changes, such as the rigid motions of a body; and
the nodes of unknowns, where a node is a point of the mesh with its unknowns."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import InputError

MOST = 32               # most near null vectors


def check_word(given, name: str):
    """Raise InputError if ``given`` is a text other than "constants"; ``name``: the settings' class, for the message.
    """
    if isinstance(given, str) and given != "constants":
        raise InputError(f"{name}(near_nullspace={given!r}): expected 'constants' or an array of shape (n,) or (n, k), "
                         "as swell.rigid_body_modes(points) gives")


def checked(given, n: int, name: str) -> np.ndarray:
    """Return the array ``given`` as a float64 host array of shape (n, k).

    ``name``: the settings' class, for messages.

    Raises
    ------
    InputError
        If it has another length, is not real and finite, or has dependent columns.
    """
    modes = host_array(given, f"{name}(near_nullspace)")
    modes = modes[:, None] if modes.ndim == 1 else modes
    if modes.ndim != 2 or modes.shape[0] != n or not 1 <= modes.shape[1] <= MOST:
        raise InputError(f"{name}(near_nullspace) has shape {modes.shape}: expected ({n}, k) with k from 1 to {MOST}")
    if modes.dtype.kind not in "iuf" or not np.isfinite(modes).all():
        raise InputError(f"{name}(near_nullspace) has complex or non-finite entries: expected real ones")
    modes = np.ascontiguousarray(modes, np.float64)
    rank = int(np.linalg.matrix_rank(modes / np.maximum(np.abs(modes).max(axis=0, initial=0), 1e-300)))
    if rank < modes.shape[1]:
        raise InputError(f"{name}(near_nullspace) has {modes.shape[1]} columns of rank {rank}: expected linearly "
                         "independent vectors")
    return modes


def checked_nodes(given, n: int, name: str):
    """Return (the node of each row, an int array of shape (n,); the place of each row in its node, an int array of
    shape (n,); the number of nodes).

    ``given``: the user's array; ``name``: the settings' class, for messages.

    Raises
    ------
    InputError
        If the array has another length or type, or its numbers are negative or have holes.
    """
    nodes = host_array(given, f"{name}(nodes)")
    if nodes.shape != (n,) or nodes.dtype.kind not in "iu":
        raise InputError(f"{name}(nodes) has shape {nodes.shape} and type {nodes.dtype}: expected integers of shape "
                         f"({n},), the node of each row of A")
    count = int(nodes.max(initial=-1)) + 1
    missing = np.flatnonzero(np.bincount(nodes[nodes >= 0], minlength=count) == 0)
    if (nodes < 0).any() or missing.size:
        row = int(np.argmax(nodes < 0))
        what = f"node {missing[0]} has no row" if missing.size else f"row {row} has node {nodes[row]}"
        raise InputError(f"{name}(nodes): {what}: expected the numbers 0 to {count - 1} without holes")
    return nodes, places(nodes), count


def places(nodes) -> np.ndarray:
    """Return the place of each row among the rows of its node, an int array: 0 for the first one. ``nodes``: the node
    of each row, an int array."""
    order = np.argsort(nodes, kind="stable")
    place = np.empty(nodes.size, np.int64)
    place[order] = np.arange(nodes.size) - np.searchsorted(nodes[order], nodes[order])
    return place
