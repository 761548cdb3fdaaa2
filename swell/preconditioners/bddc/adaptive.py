"""Adaptive constraints: more constraints than averages, for coefficients that jump within subdomains or across a face.

For the face F of subdomains i and j the eigenvalues of

    (Dⱼ Sᵢ Dⱼ + Dᵢ Sⱼ Dᵢ) v = λ (S̃ᵢ : S̃ⱼ) v,        A : B = A (A + B)⁻¹ B

on functions on F that vanish in the face's other constraints bound the energy that averaging over copies adds. S is the
block of F of a Schur complement. S̃ is the Schur complement of this block: the rest of the interface takes the values of
least energy. D are the weights. Every λ above the threshold makes a constraint, (Dⱼ Sᵢ Dⱼ + Dᵢ Sⱼ Dᵢ) v. For all coefficients, the
condition number is then at most the threshold times a factor. This factor depends on the number of faces and edges of a
subdomain (Mandel and Sousedík 2007; in this form Klawonn, Radtke and Rheinbach 2016). Only faces are treated: a channel
along an edge of subdomains is not found.

Cost: a factorisation of the rest of the interface and an eigenvalue problem for every face and side, on the host.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError


def face_constraints(subdomains, interface, constraints, complements, weights, threshold):
    """Return the additional constraints of faces; the top of this file derives them. Changes no argument.

    Parameters
    ----------
    subdomains : Subdomains
    interface : Interface
        The interface of these subdomains.
    constraints : Constraints
        The constraints that are there.
    complements : list of numpy.ndarray
        The Schur complement of every subdomain.
    weights : list of arrays
        The weights of the copies in every subdomain.
    threshold : float
        Each eigenvalue above it makes a constraint.

    Returns
    -------
    dict
        Key: a face's class number in ``interface``. Value: an array with a constraint a row, of norm 1, and a column
        for each dof of the face, ascending. Faces without constraints are left out.

    Raises
    ------
    FactorisationError
        If an eigenvalue problem is not definite: the coefficients differ too much for double precision.
    """
    faces = {}
    for k, copies in enumerate(interface.copies):
        for number in np.unique(interface.classes[copies]):
            if interface.kinds[number] == 2:
                faces.setdefault(int(number), []).append(k)
    sides = {number: [side(interface, number, k, complements[k], weights[k]) for k in of]
             for number, of in faces.items()}
    halves = {number: of for number, of in sides.items() if len(of) == 1}      # another rank has the other side
    for number, both in joined(subdomains, halves).items():
        if number in sides:
            sides[number] = both
    found = {number: [bad_functions(both, constraints.of_class(number), threshold, faces[number])]
             for number, both in sides.items()}
    every = joined(subdomains, found)            # if two ranks found a face, all take the bits of the first
    return {number: every[number][0] for number in sorted(every) if len(every[number][0])}


def joined(subdomains, lists):
    """Return a new dict: for each key the concatenated lists of all ranks. ``lists`` is this rank's dict of lists."""
    result = {}
    for part in subdomains.from_all_ranks([lists]):
        for key, values in part.items():
            result.setdefault(key, []).extend(values)
    return result


def places(interface, number, k):
    """Return the places of the dofs of class ``number`` among the interface copies of subdomain k, in ascending order
    of the dofs. ``interface`` is an `Interface`."""
    at = np.flatnonzero(interface.classes[interface.copies[k]] == number)
    return at[np.argsort(interface.copies[k][at])]


def side(interface, number, k, S, weights):
    """Return (S on the face, S̃, weights on the face) for subdomain k and the face ``number``, a class of the
    `Interface`.

    S and ``weights`` are the subdomain's Schur complement and weights on all its interface copies, host arrays. S̃ is
    the Schur complement of S on the face."""
    at = places(interface, number, k)
    rest = np.setdiff1d(np.arange(len(S)), at)
    own = S[np.ix_(at, at)]
    if not rest.size:
        return own, own, weights[at]
    try:
        follow = np.linalg.solve(S[np.ix_(rest, rest)], S[np.ix_(rest, at)])
    except np.linalg.LinAlgError:
        raise FactorisationError(f"BDDC(adaptive=...): beside a face, subdomain {k} is not positive definite") from None
    least = own - S[np.ix_(at, rest)] @ follow
    return own, 0.5 * (least + least.T), weights[at]


def bad_functions(sides, held, threshold, of):
    """Return the adaptive constraints of one face, an array with a constraint a row, largest eigenvalue first.

    ``held`` has the face's other constraints as rows. ``sides`` has the results of `side` for the two subdomains of the face. ``of`` has their numbers, for the message.

    Raises FactorisationError if the eigenvalue problem is not positive definite."""
    from scipy.linalg import eigh
    (Si, Ti, Di), (Sj, Tj, Dj) = sides
    averaged = Dj[:, None] * Si * Dj + Di[:, None] * Sj * Di
    basis = np.linalg.svd(held)[2][len(held):].T                 # functions that vanish in them
    Ti, Tj = (basis.T @ T @ basis for T in (Ti, Tj))
    averaged_there = basis.T @ averaged @ basis
    try:
        parallel = Ti @ np.linalg.solve(Ti + Tj, Tj)
        if not (np.isfinite(parallel).all() and np.isfinite(averaged_there).all()):
            raise np.linalg.LinAlgError("it overflows")
        values, vectors = eigh(averaged_there, 0.5 * (parallel + parallel.T))
    except np.linalg.LinAlgError as error:
        who = f"subdomain{'s' * (len(of) > 1)} {' and '.join(map(str, of))}"
        raise FactorisationError(f"BDDC(adaptive={threshold:g}): the eigenvalue problem of a face of {who} is not "
                                 f"positive definite in double precision ({error}), where coefficients are too far "
                                 "apart or a subdomain floats beside the face: scale the coefficients, or leave "
                                 "adaptive out") from None
    rows = (averaged @ basis @ vectors[:, values > threshold][:, ::-1]).T
    return rows / np.linalg.norm(rows, axis=1)[:, None]
