"""Words for singular local and coarse problems: the motions without energy that the constraints do not hold, and the
settings that would hold them.

The motions are the null space of S among the functions that vanish in the constraints. Their values at nodes tell
translations from rotations without coordinates: a translation is equal at all nodes, and a rotation in space moves no
node along its axis.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError

LETTERS = {"c": "corners", "e": "edges", "f": "faces"}
NULL = 1e-8             # eigenvalues of S below this, relative to the largest, are zero
EQUAL = 1e-4            # parts of a motion below this, relative to all of it, are rounding
MAX_DESCRIBED = 3       # motions that a message describes


def advice(interface, settings, k, S, C):
    """Return sentences for a message: which motions of subdomain k have no energy, and which settings would hold them.

    Parameters
    ----------
    interface : Interface
    settings : BDDC
    k : int
        The subdomain.
    S, C : numpy.ndarray, shapes (n, n) and (c, n)
        Its Schur complement and constraints.
    """
    there = np.bincount(interface.kinds[np.unique(interface.classes[interface.copies[k]])], minlength=3)
    has = ", ".join(f"{count} {name}" for count, name in zip(there, LETTERS.values(), strict=True))
    nodes = interface.nodes[interface.copies[k]]
    more = remedies(settings, [letter for letter, count in zip(LETTERS, there, strict=True) if count], _size(nodes))
    return (f"{_described(free_motions(S, C), nodes, _size(nodes))}Its interface has {has}"
            f"{'' if more.startswith('add') else ', all of them constraints'}: "
            + (more or "take fewer subdomains or other ones, or give the problem values that hold it"))


def remedies(settings, letters, size):
    """Return words for additions to the settings of a `BDDC`; "" without any.

    ``letters``: the kinds of classes that there are, letters of ``constraints``. ``size``: unknowns of a node."""
    chosen, words = settings.constraints, []
    add = [letter for letter in letters if letter not in chosen]
    if add:
        words.append(f"add {' or '.join(LETTERS[a] for a in add)}, constraints={''.join(sorted({*chosen, *add}))!r}")
    if size > 1 and isinstance(settings.near_nullspace, str):
        words.append("for an elastic body let constraints hold rotations, "
                     "near_nullspace=swell.rigid_body_modes(points)")
    return "; or ".join(words)


def is_mechanism(matrix, modes):
    """True if the null space of a singular coarse matrix has other vectors than the near null vectors. Then subdomains
    may move against each other, and A need not be singular.

    Parameters
    ----------
    matrix : numpy.ndarray, shape (n, n)
    modes : numpy.ndarray, shape (n, k)
        The near null vectors of the coarse problem.
    """
    values, vectors = np.linalg.eigh(matrix)
    free = vectors[:, values <= NULL * values[-1]]
    rest = free - modes @ np.linalg.lstsq(modes, free, rcond=None)[0]
    return bool(abs(rest).max(initial=0) > EQUAL)


def loose(interface, settings, count):
    """Return (not raise) the InputError for ``count`` constraints that let subdomains move against each other."""
    letters = [letter for kind, letter in enumerate(LETTERS) if (interface.kinds == kind).any()]
    more = remedies(settings, letters, np.bincount(interface.nodes).max(initial=1))
    return InputError(f"BDDC: subdomains can move against each other without energy: {count} constraints on "
                      f"{interface.describe()} do not hold them together: "
                      + (more or "give corners=, rows of more nodes to hold"))


def free_motions(S, C):
    """Return an orthonormal basis, as columns, of the functions without energy that vanish in the constraints C. ``S``
    and ``C`` are as in `advice`."""
    n, c = len(S), len(C)
    Z = np.linalg.qr(C.T, mode="complete")[0][:, c:] if c else np.eye(n)
    if not Z.shape[1]:
        return Z
    _, values, vectors = np.linalg.svd(Z.T @ S @ Z)
    return Z @ vectors[values <= NULL * max(values[0], 1e-300)].conj().T


def _size(nodes):
    """Return the number of unknowns of every node; 0 if nodes differ. ``nodes``: the node of each dof."""
    counts = np.unique(np.unique(nodes, return_counts=True)[1])
    return int(counts[0]) if counts.size == 1 else 0


def _described(motions, nodes, size):
    """Return a sentence on motions, columns of an array with a row for each dof; "" if there are none."""
    count = motions.shape[1]
    if not count:
        return ""
    order = np.argsort(nodes, kind="stable")
    words = [] if size < 2 or motions.dtype.kind == "c" else list(_each(motions[order].reshape(-1, size, count)))
    more = [f"{count - MAX_DESCRIBED} more"] * (count > MAX_DESCRIBED)
    listed = f" ({'; '.join(words[:MAX_DESCRIBED] + more)})" if words else ""
    return f"{count} motion{'s' * (count > 1)} without energy remain{'s' * (count == 1)}{listed}. "


def _each(motions):
    """Yield a description of each of the motions, an array of shape (nodes, size, count). They are combined so that as
    many as possible are translations."""
    nodes, size, count = motions.shape
    deviations = (motions - motions.mean(axis=0)).reshape(-1, count)
    _, values, right = np.linalg.svd(deviations, full_matrices=True)
    values = np.concatenate((values, np.zeros(count - values.size)))
    for value, combined in zip(values[::-1], right[::-1], strict=True):
        motion = motions @ combined
        if value < EQUAL:
            yield f"a translation along {_direction(motion.mean(axis=0))}"
        elif size == 2:
            yield "a rotation"
        else:
            _, along, axes = np.linalg.svd(motion - motion.mean(axis=0), full_matrices=False)
            turns = size == 3 and along[-1] < EQUAL * along[0]
            yield f"a rotation about {_direction(axes[-1])}" if turns else "a motion that is not rigid"


def _direction(vector):
    """Return a direction in words: "axis 0", or components such as "(0.71, 0.71, 0.00)"."""
    vector = vector / np.linalg.norm(vector)
    axis = int(abs(vector).argmax())
    if abs(vector[axis]) > 1 - EQUAL:
        return f"axis {axis}"
    return f"({', '.join(f'{value:.2f}' for value in vector * np.sign(vector[axis]))})"
