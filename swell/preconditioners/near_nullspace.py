"""Near null vectors that users give: vectors that a smoother hardly changes, such as the rigid motions of a body; and
the nodes of unknowns, where a node is a point of the mesh with its unknowns."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import InputError

MAX_MODES = 32          # most near null vectors
DEPENDENT = 1e-7        # a singular value below this share of the largest may be rounding
MIN_LENGTH = 1e-300


def check_word(modes, name: str):
    """Raise InputError if ``modes`` is a text other than "constants"; ``name``: the settings' class, for messages."""
    if isinstance(modes, str) and modes != "constants":
        raise InputError(f"{name}(near_nullspace={modes!r}): expected 'constants' or an array of shape (n,) or (n, k), "
                         "as swell.rigid_body_modes(points) gives")


def checked(vectors, A, name: str) -> np.ndarray:
    """Return the array ``vectors`` in this rank's rows of A, a float64 host array of shape (rows, k).

    Parameters
    ----------
    given : array, shape (n,) or (n, k)
        Across ranks it has all rows of A, on every rank, or each rank's own.
    A : CSRMatrix or DistributedMatrix
    name : str
        The settings' class, for messages.

    Raises
    ------
    InputError
        On every rank, if the array has another length, is not real and finite, or has dependent columns.
    """
    space, n = A.space, A.shape[0]
    with space.ranks.agreed():
        modes = _columns(vectors, name)
        local = "" if space.ranks.single else f", or this rank's ({space.ranks.local_rows(n)}, k) on every rank,"
        refusal = (f"{name}(near_nullspace) has shape {modes.shape}: expected ({n}, k){local} with k from 1 to "
                   f"{MAX_MODES}")
        if modes.ndim != 2 or not 1 <= modes.shape[1] <= MAX_MODES:
            raise InputError(refusal)
    in_parts = bool(space.ranks.max(float(modes.shape[0] != n)))
    with space.ranks.agreed():
        if modes.shape[0] != (space.ranks.local_rows(n) if in_parts else n):
            raise InputError(refusal)
        modes = _real(modes, name)
    space.ranks.require_equal(modes.shape[1], f"the number of vectors of {name}(near_nullspace)")
    scaled = modes / max(space.ranks.max(float(abs(modes).max(initial=0))), MIN_LENGTH)
    products = scaled.T @ scaled
    if in_parts:
        products = summed(space, products)
    lengths = np.sqrt(np.maximum(products.diagonal(), MIN_LENGTH))
    _require_rank(int((np.linalg.eigvalsh(products / lengths / lengths[:, None]) > DEPENDENT**2).sum()), modes, name)
    return modes if in_parts else modes[rows_here(A)]


def rows_here(A):
    """Return this rank's rows of A in the user's numbering, a slice or an array; all of them on one device."""
    return slice(None) if A.space.ranks.single else A.rows


def checked_points(coordinates, A, name: str):
    """Return (the positions of the nodes of this rank's rows of A, a host array of shape (nodes, 2 or 3); the centre of
    all nodes). Row ``dimensions`` · i + a of A is the displacement of node i along axis a.

    Parameters
    ----------
    coordinates : array, shape (m, 2) or (m, 3)
        Of all nodes, on every rank; or of each rank's own nodes.
    A : CSRMatrix or DistributedMatrix
    name : str
        The settings' class, for messages.

    Raises
    ------
    InputError
        On every rank, if the array has another shape, is not real and finite, or a node has rows on two ranks.
    """
    space, n = A.space, A.shape[0]
    with space.ranks.agreed():
        points = host_array(coordinates, f"{name}(coordinates)")
        local = "" if space.ranks.single else ", or on every rank as many as this rank has"
        refusal = (f"{name}(coordinates) has shape {points.shape}: expected (m, 2) or (m, 3) with as many numbers as A "
                   f"has rows, {n}{local}; give the points of the nodes that A has, without fixed ones; if a node has "
                   "lost only some of its unknowns, give nodes and near_nullspace")
        if points.ndim != 2 or points.shape[1] not in (2, 3):
            raise InputError(refusal)
    space.ranks.require_equal(points.shape[1], f"the number of columns of {name}(coordinates)")
    in_parts = bool(space.ranks.max(float(points.size != n)))
    with space.ranks.agreed():
        if points.size != (space.ranks.local_rows(n) if in_parts else n):
            raise InputError(refusal)
        if points.dtype.kind not in "iuf" or not np.isfinite(points).all():
            raise InputError(f"{name}(coordinates) has complex or non-finite entries: expected real ones")
        own = points if in_parts else points[_nodes_here(A, points.shape[1], name)]
    if not in_parts:
        return own, points.mean(axis=0)
    return own, summed(space, points.sum(axis=0, dtype=np.float64)) * (points.shape[1] / n)


def _nodes_here(A, dimensions, name):
    """Return the nodes of this rank's rows of A: a slice, or an int array if a partition has reordered the rows."""
    rows = rows_here(A)
    if A.space.ranks.single:
        return rows
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    nodes = numbers[::dimensions] // dimensions
    if not np.array_equal(numbers, (nodes[:, None] * dimensions + np.arange(dimensions)).ravel()):
        raise InputError(f"{name}(coordinates): some node has rows on two ranks: distribute A with block={dimensions}")
    return nodes


def checked_whole(vectors, n: int, name: str) -> np.ndarray:
    """Return the array ``vectors``, with all n rows of A in the user's order, as a float64 host array of shape (n, k).

    ``name`` and the errors: as for `checked`."""
    modes = _columns(vectors, name)
    if modes.ndim != 2 or modes.shape[0] != n or not 1 <= modes.shape[1] <= MAX_MODES:
        raise InputError(f"{name}(near_nullspace) has shape {modes.shape}: expected ({n}, k) with k from 1 to "
                         f"{MAX_MODES}")
    modes = _real(modes, name)
    scaled = modes / np.maximum(np.abs(modes).max(axis=0, initial=0), MIN_LENGTH)
    _require_rank(int(np.linalg.matrix_rank(scaled, DEPENDENT * np.sqrt(n))), modes, name)
    return modes


def _columns(vectors, name):
    """Return the array ``vectors`` on the host; a vector as one column."""
    modes = host_array(vectors, f"{name}(near_nullspace)")
    return modes[:, None] if modes.ndim == 1 else modes


def _real(modes, name):
    """Return ``modes`` as a contiguous float64 array; raise InputError for complex or non-finite entries."""
    if modes.dtype.kind not in "iuf" or not np.isfinite(modes).all():
        raise InputError(f"{name}(near_nullspace) has complex or non-finite entries: expected real ones")
    return np.ascontiguousarray(modes, np.float64)


def _require_rank(rank, modes, name):
    """Raise InputError unless ``rank`` is the number of vectors."""
    if rank < modes.shape[1]:
        raise InputError(f"{name}(near_nullspace) has {modes.shape[1]} columns of rank {rank}: expected linearly "
                         "independent vectors")


def summed(space, numbers):
    """Return the sum of the float64 host arrays ``numbers`` of all ranks."""
    there = space.from_host(numbers)
    space.ranks.allreduce(there)
    return space.to_host(there)


def independent(modes):
    """Return an orthonormal basis of the columns of ``modes``, (rows, k) with k possibly smaller: the rows of a part
    may have dependent vectors, as a single node has with six rigid motions."""
    vectors, values, _ = np.linalg.svd(modes, full_matrices=False)
    return np.ascontiguousarray(vectors[:, values > DEPENDENT * values.max(initial=0)])


def checked_nodes(numbers, n: int, name: str):
    """Return (the node of each row, an int array of shape (n,); the place of each row in its node, an int array of
    shape (n,); the number of nodes).

    ``numbers``: the user's array; ``name``: the settings' class, for messages.

    Raises
    ------
    InputError
        If the array has another length or type, or its numbers are negative or have holes.
    """
    nodes = host_array(numbers, f"{name}(nodes)")
    if nodes.shape != (n,) or nodes.dtype.kind not in "iu":
        raise InputError(f"{name}(nodes) has shape {nodes.shape} and type {nodes.dtype}: expected integers of shape "
                         f"({n},), the node of each row of A")
    nodes = nodes.astype(np.int64)
    count = int(nodes.max(initial=-1)) + 1
    missing = np.flatnonzero(np.bincount(nodes[nodes >= 0], minlength=count) == 0)
    if (nodes < 0).any() or missing.size:
        row = int(np.argmax(nodes < 0))
        problem = f"node {missing[0]} has no row" if missing.size else f"row {row} has node {nodes[row]}"
        raise InputError(f"{name}(nodes): {problem}: expected the numbers 0 to {count - 1} without holes")
    return nodes, places(nodes), count


def places(nodes) -> np.ndarray:
    """Return the place of each row among the rows of its node, an int array: 0 for the first one. ``nodes``: the node
    of each row, an int array."""
    order = np.argsort(nodes, kind="stable")
    place = np.empty(nodes.size, np.int64)
    place[order] = np.arange(nodes.size) - np.searchsorted(nodes[order], nodes[order])
    return place
