"""Adaptive constraints: more than averages, for coefficients that jump within subdomains or along the interface.

For a face or edge E, and each pair of subdomains i and j that have it, the eigenvalues of

    (Dⱼ Sᵢ Dⱼ + Dᵢ Sⱼ Dᵢ) v = λ (S̃ᵢ : S̃ⱼ) v,        A : B = A (A + B)⁻¹ B

on functions on E that vanish in its other constraints bound the energy that averaging over copies adds. S is the block
of E of a Schur complement. S̃ is the Schur complement of this block: the rest of the interface takes the values of
least energy. D are the weights. Every λ above the threshold makes a constraint, (Dⱼ Sᵢ Dⱼ + Dᵢ Sⱼ Dᵢ) v. For all
coefficients, the condition number is then at most the threshold times a factor. This factor depends on the number of
faces and edges of a subdomain (Mandel and Sousedík 2007; in this form, with all pairs at an edge, Klawonn, Kühn and
Rheinbach 2016). On further levels the coarse matrices have the role of S, and the bound of each level multiplies.

All eigenvalue problems of one size are solved together, on the device, as λ⁻¹: a function without energy on both sides
has λ⁻¹ = 0. The functions of an edge's pairs are joined by a singular value decomposition.

Cost: a Cholesky factorisation of the rest of the interface for every subdomain and class; two eigenvalue decompositions
of the size of the class for every pair. Equal subdomains with equal weights are treated once.
"""
from __future__ import annotations

from itertools import combinations

import numpy as np

from swell.core.errors import FactorisationError
from swell.preconditioners.bddc.elimination import Cholesky

SHIFT = 1e-12           # of the diagonal of the rest: motions about an edge leave the rest singular, at no energy here
DEPENDENT = 1e-4        # singular values below this times the largest: one function, found by several pairs of an edge
BATCH_BYTES = 64 << 20  # most bytes of eigenvalue problems solved together; about ten arrays of this size exist


def adaptive_constraints(space, subdomains, interface, constraints, complements, weights, chosen, threshold):
    """Return the additional constraints of edges and faces. Changes no argument.

    Parameters
    ----------
    space : Space
    subdomains : Subdomains
    interface : Interface
        The interface of these subdomains.
    constraints : Constraints
        The constraints that are there.
    complements : list of device arrays
        The real Schur complement of every subdomain.
    weights : list of host arrays
        The weights of the copies in every subdomain.
    chosen : str
        "e" for edges, "f" for faces.
    threshold : float
        Each eigenvalue above it makes a constraint.

    Returns
    -------
    dict
        Key: a class number in ``interface``. Value: a host array with a constraint a row, of norm 1, and a column for
        each dof of the class, ascending. Classes without constraints are left out.

    Raises
    ------
    FactorisationError
        If an eigenvalue problem is not definite: the coefficients differ too much for double precision.
    """
    kinds = [kind for kind, letter in ((1, "e"), (2, "f")) if letter in chosen]
    sides, made = {}, {}
    for k, copies in enumerate(interface.copies):
        for number in np.unique(interface.classes[copies]).tolist():
            if interface.kinds[number] in kinds and len(constraints.of_class(number)) < interface.members[number].size:
                sides.setdefault(number, []).append(_side(space, interface, number, k, complements[k], weights[k], made,
                                                          threshold))
    parts = {number: [tuple(map(space.to_host, one[:3])) + one[3:] for one in of] for number, of in sides.items()
             if len(of) < len(interface.sharing[number])}        # other ranks have the other sides
    for number, every in joined(subdomains, parts).items():
        if number in sides:
            sides[number] = [tuple(map(space.from_host, one[:3])) + one[3:] for one in every]
    pairs = [(number, one, other) for number, of in sides.items() for one, other in combinations(of, 2)]
    functions = {}
    for some in _batches(pairs, interface):
        for (number, *_), rows in zip(some, _bad_functions(space, some, constraints, threshold), strict=True):
            functions.setdefault(number, []).append(rows)
    every = joined(subdomains, {number: [_independent(rows)] for number, rows in functions.items()})
    # If several ranks found a class, all take the bits of the first.
    return {number: every[number][0] for number in sorted(every) if len(every[number][0])}


def joined(subdomains, lists):
    """Return a new dict: for each key the concatenated lists of all ranks. ``lists`` is this rank's dict of lists."""
    result = {}
    for part in subdomains.from_all_ranks([lists]):
        for key, values in part.items():
            result.setdefault(key, []).extend(values)
    return result


def _places(interface, number, k):
    """Return the places of the dofs of class ``number`` among the interface copies of subdomain k, in ascending order
    of the dofs. ``interface`` is an `Interface`."""
    at = np.flatnonzero(interface.classes[interface.copies[k]] == number)
    return at[np.argsort(interface.copies[k][at])]


def _side(space, interface, number, k, S, weights, made, threshold):
    """Return (S on the class, S̃, weights on the class, k) for subdomain k and the class ``number`` of the `Interface`.

    S and ``weights`` are the subdomain's Schur complement, a device array, and weights on all its interface copies. S̃
    is the Schur complement of S on the class. ``made``: a dict of results for equal S, which gets this one."""
    at = _places(interface, number, k)
    key = id(S), at.tobytes()
    if key not in made:
        here, rest = space.from_host(at), space.from_host(np.setdiff1d(np.arange(len(S)), at))
        S_class = least = S[here][:, here]
        if rest.size:
            beside = S[rest][:, rest]
            diagonal = space.xp.arange(len(beside))
            beside[diagonal, diagonal] *= 1 + SHIFT
            try:
                follow = Cholesky(space, beside).left(space.xp.asfortranarray(S[rest][:, here]))
            except FactorisationError:
                raise FactorisationError(_told(threshold, [k], "the rest of the interface is not positive definite")) \
                    from None
            least = S_class - follow.T @ follow
        made[key] = S_class, 0.5 * (least + least.T)
    return *made[key], space.from_host(weights[at]), k


def _batches(pairs, interface):
    """Yield lists of ``pairs``, tuples that begin with a class number, of classes with equally many dofs."""
    of_size = {}
    for pair in pairs:
        of_size.setdefault(interface.members[pair[0]].size, []).append(pair)
    for n, some in of_size.items():
        step = max(1, BATCH_BYTES // (8 * n * n))
        yield from (some[a:a + step] for a in range(0, len(some), step))


def _bad_functions(space, pairs, constraints, threshold):
    """Return the adaptive constraints of each pair: host arrays with a constraint a row, largest eigenvalue first.

    ``pairs``: tuples (class, result of `_side`, another one), all classes of one size.

    Raises FactorisationError if an eigenvalue problem is not positive definite."""
    xp = space.xp
    S, T, D = ([xp.stack([pair[which][part] for pair in pairs]) for which in (1, 2)] for part in range(3))
    n = D[0].shape[1]
    averaged = sum(other[:, :, None] * one * other[:, None, :] for one, other in zip(S, D[::-1], strict=True))
    # Q holds the other constraints. Functions in its span are given λ⁻¹ = 1, so that they are never chosen.
    most = max(len(constraints.of_class(number)) for number, *_ in pairs)
    Q = np.zeros((len(pairs), n, most))
    for k, (number, *_) in enumerate(pairs):
        held = constraints.of_class(number)
        Q[k, :, :len(held)] = np.linalg.qr(held.T)[0]
    Q = space.from_host(Q)
    within = Q @ Q.swapaxes(1, 2)
    outside = xp.eye(n) - within

    def projected(X, scale):
        X = outside @ X @ outside + scale[:, None, None] * within
        return 0.5 * (X + X.swapaxes(1, 2))

    scale = averaged.diagonal(axis1=1, axis2=2).mean(axis=1)
    averaged, (Ti, Tj) = projected(averaged, scale), (projected(one, 2 * scale) for one in T)
    small = 1e-14 * xp.eye(n) * (Ti + Tj).diagonal(axis1=1, axis2=2).max(axis=1)[:, None, None]
    finite = space.to_host(xp.isfinite(averaged + Ti + Tj).all(axis=1).all(axis=1))  # sync
    _refuse(~finite, pairs, threshold, "it overflows")
    sizes, vectors = xp.linalg.eigh(averaged)
    smallest, largest = (space.to_host(sizes[:, at]) for at in (0, -1))  # sync
    _refuse(~(smallest > 4 * n * np.finfo(float).eps * largest), pairs, threshold,
            "eigenvalues are no more than rounding")
    root = xp.sqrt(sizes)[:, None, :]
    parallel = Ti @ xp.linalg.solve(Ti + Tj + small, Tj)
    whole = (vectors / root).swapaxes(1, 2) @ (0.5 * (parallel + parallel.swapaxes(1, 2))) @ (vectors / root)
    inverse, functions = xp.linalg.eigh(0.5 * (whole + whole.swapaxes(1, 2)))
    inverse, rows = space.to_host(inverse), space.to_host(((vectors * root) @ functions).swapaxes(1, 2))  # sync
    chosen = [one[values < 1 / threshold] for one, values in zip(rows, inverse, strict=True)]
    return [one / np.linalg.norm(one, axis=1)[:, None] for one in chosen]


def _independent(every):
    """Return the functions of an edge's pairs, a list of arrays with a function a row, as one array of independent rows
    of norm 1; functions of one pair are independent."""
    some = [rows for rows in every if len(rows)]
    if len(some) < 2:
        return some[0] if some else every[0]
    _, values, rows = np.linalg.svd(np.concatenate(some), full_matrices=False)
    return rows[values > DEPENDENT * values[0]]


def _refuse(bad, pairs, threshold, why):
    """Raise FactorisationError if an entry of ``bad``, one for each pair, is True."""
    if bad.any():
        _, (*_, i), (*_, j) = pairs[int(bad.argmax())]
        raise FactorisationError(_told(threshold, [i, j], f"the eigenvalue problem of a face or edge is not positive "
                                                          f"definite in double precision ({why})"))


def _told(threshold, of, why):
    """Return the text of an error that concerns the subdomains ``of``."""
    who = f"subdomain{'s' * (len(of) > 1)} {' and '.join(map(str, of))}"
    return (f"BDDC(adaptive={threshold:g}): {who}: {why}, where A is not positive definite, or coefficients are too "
            "far apart: scale the coefficients, or leave adaptive out")
