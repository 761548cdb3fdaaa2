"""Local problems: Schur complements on the interface, bordered by constraints, [S Cᵀ; C 0], and inverted.

The inverse of the bordered matrix is all that BDDC needs of a subdomain (Dohrmann 2003, equations 2 to 5):

    [S Cᵀ; C 0]⁻¹ = [K Ψ; Ψᵀ −Σ]

K corrects within the constraints (K = K S K, C K = 0), the columns of Ψ are the coarse basis (C Ψ = I, of least
energy), and Σ = Ψᵀ S Ψ is the subdomain's share of the coarse matrix. S alone is singular where the subdomain floats,
which is the normal case; bordered, it is not, but indefinite, so that it takes an LU with pivoting: any decomposer of
swell.dense.

Differs from the textbook: the matrix is scaled so that the mean diagonal of S and the rows of C are 1, because
pivoting bounds of decomposers are absolute; the inverse is stored, as large as the factors, so that an application is
one product where trsm would be two sequential solves; subdomains that are equal to the bit are treated once.
"""
from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from swell.core.errors import FactorisationError, InputError


@dataclass(frozen=True, eq=False)
class Local:
    """One local problem, and the subdomains whose it is.

    Attributes
    ----------
    members : tuple of int
        Subdomains, all equal.
    K, basis : arrays of the space, shapes (k, k) and (k, c)
    coarse : numpy.ndarray, shape (c, c)
        Σ, in double precision.
    condition : float
        ‖B‖₁ ‖B⁻¹‖₁ of the bordered matrix.
    notes : tuple of str
        Of its factors.
    """

    members: tuple
    K: object
    basis: object
    coarse: np.ndarray
    condition: float
    notes: tuple

    @property
    def rows(self):
        """Rows of the bordered matrix."""
        return sum(self.basis.shape)


def equal(arrays):
    """Lists of those that are equal to the bit, of tuples of arrays."""
    found = {}
    for k, of in enumerate(arrays):
        digest = hashlib.blake2b(digest_size=16)
        for array in of:
            digest.update(np.ascontiguousarray(array).tobytes())
            digest.update(b"|")
        found.setdefault(digest.digest(), []).append(k)
    return list(found.values())


def bordered(space, S, C, sizes):
    """(B, scale, t), the scaled bordered matrix: S was divided by ``scale``, its mean diagonal, and C times t."""
    n, c = S.shape[0], C.shape[0]
    scale = float(S.trace()) / n
    scale = scale if scale > 0 else 1.0          # S = 0: constraints alone may hold it
    B = space.xp.zeros((n + c, n + c))
    t = space.from_host(np.sqrt(sizes))
    B[:n, :n] = S / scale
    B[n:, :n] = t[:, None] * space.from_host(C)
    B[:n, n:] = B[n:, :n].T
    return B, scale, t


def invert(space, decomposer, B):
    """(B⁻¹, condition, notes) by a decomposer of swell.dense."""
    xp = space.xp
    factors = decomposer.factor(B, space)
    X = factors.solve(xp.eye(B.shape[0]))
    condition = float(abs(B).sum(axis=0).max()) * float(abs(X).sum(axis=0).max())  # sync
    return X, condition, factors.notes


def local_problem(space, decomposer, members, S, C, sizes, dtype, hint):
    """The ``Local`` of a Schur complement and its constraints.

    Raises
    ------
    InputError
        If it is singular: the constraints are too few.
    """
    n = S.shape[0]
    if not n:
        return Local(members, space.empty((0, 0), dtype), space.empty((0, 0), dtype), np.zeros((0, 0)), 1.0, ())
    B, scale, t = bordered(space, S, C, sizes)
    try:
        X, condition, notes = invert(space, decomposer, B)
    except FactorisationError as error:
        if error.singular:
            raise InputError(_too_few(members, n, len(C), hint, str(error))) from None
        raise FactorisationError(f"local problem of subdomain {members[0]}: {error}") from None
    if not condition * np.finfo(float).eps * B.shape[0] < 1:
        raise InputError(_too_few(members, n, len(C), hint, f"its condition is {condition:.0e}"))
    K, basis = X[:n, :n], 0.5 * (X[:n, n:] + X[n:, :n].T) * t
    coarse = -scale * t[:, None] * X[n:, n:] * t
    xp, coarse = space.xp, space.to_host(coarse)
    return Local(members, xp.ascontiguousarray((0.5 / scale * (K + K.T)).astype(dtype)),
                 xp.ascontiguousarray(basis.astype(dtype)), 0.5 * (coarse + coarse.T), condition, notes)


def _too_few(members, n, count, hint, why):
    return (f"the local problem of subdomain {members[0]} is singular with its {count} constraints on {n} dofs of "
            f"the interface ({why}): the subdomain floats, and its constraints do not hold it. {hint}")
