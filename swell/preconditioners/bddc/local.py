"""Local problems: Schur complements on the interface, bordered by constraints, [S Cᵀ; C 0], and inverted.

The inverse of the bordered matrix is all that BDDC needs from a subdomain (Dohrmann 2003, equations 2 to 5):

    [S Cᵀ; C 0]⁻¹ = [K Ψ; Ψᵀ −Σ]

K corrects within the constraints (K = K S K, C K = 0). The columns of Ψ are the coarse basis (C Ψ = I, with least
energy). Σ = Ψᵀ S Ψ is the subdomain's part of the coarse matrix. S alone is singular if the subdomain floats, which is
the normal case. The bordered matrix is nonsingular but indefinite, so it needs an LU with pivoting: any decomposer of
swell.dense.

Differs from the textbook: the matrix is scaled so that the mean diagonal of S and the rows of C are 1, because the
pivoting bounds of decomposers are absolute. By default the inverse is stored, which is as large as the factors: so an
application is one product instead of two sequential solves; or K acts by the factors and a dense solver (inverse.py).
Equal subdomains are treated once. Local problems of one size are set up together (``factor_batch``), and applied
together, by one product.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.preconditioners.bddc.inverse import StoredBlock, invert


@dataclass(frozen=True, eq=False)
class Locals:
    """Local problems of one size, with their subdomains.

    Attributes
    ----------
    members : numpy.ndarray of int, shape (m, g)
        For each problem its g equal subdomains.
    K : StoredBlock or FactoredBlock
        K, for k interface dofs.
    basis, adjoint : device arrays, shapes (m, k, c) and (m, c, k)
        Ψ and Ψᵀ, for c constraints.
    coarse : numpy.ndarray, shape (m, c, c)
        Σ, in double precision.
    notes : tuple of str
        Notes of the dense factors.
    iterations : int
        Iterations of ICM.
    """

    members: np.ndarray
    K: Any
    basis: Any
    adjoint: Any
    coarse: np.ndarray
    notes: tuple
    iterations: int = 0

    @property
    def rows(self):
        """Number of rows of a bordered matrix."""
        return sum(self.basis.shape[1:])

    @property
    def nbytes(self):
        return self.K.nbytes + self.basis.nbytes + self.adjoint.nbytes


def bordered(space, S, C, sizes):
    """Return new (B, scale, t): B is the dense matrix [S / scale, (diag(t) C)ᵀ; diag(t) C, 0].

    ``scale`` is the mean diagonal of S, t = √``sizes``. S is a device array; C and ``sizes`` are the host arrays from
    `Constraints.matrix`."""
    n, c = S.shape[0], C.shape[0]
    scale = float(space.to_host(S.diagonal()).mean())  # sync
    scale = scale if scale > 0 else 1.0          # S = 0: constraints alone may hold it
    B = space.xp.zeros((n + c, n + c))
    t = space.from_host(np.sqrt(sizes))
    B[:n, :n] = S / scale
    B[n:, :n] = t[:, None] * space.from_host(C)
    B[:n, n:] = B[n:, :n].T
    return B, scale, t


def local_problems(space, decomposer, solver, members, complements, constraints, dtype, hint, estimates=None):
    """Return the `Locals` of subdomains of one size: invert their bordered matrices [S Cᵀ; C 0] together.

    Parameters
    ----------
    space, decomposer, solver
        The space of the complements, the decomposer of swell.dense, and its solver, or None for stored inverses.
    members : list of lists of int
        For each complement its subdomains; all lists have one length.
    complements : list of device arrays, shape (k, k)
        Schur complements S, each different.
    constraints : list of (C, sizes)
        For each complement the result of `Constraints.matrix`; all of one shape.
    dtype : numpy.dtype
        Type of K, Ψ and Ψᵀ in the result.
    hint : callable
        ``hint(i)`` returns advice on constraints of subdomain i, for the message.
    estimates : list of LUFactors, optional
        For each complement the factors of a similar bordered matrix, for ICM.

    Raises
    ------
    InputError
        If a bordered matrix is singular: its subdomain has too few constraints.
    FactorisationError
        If a bordered matrix cannot be inverted for another reason.
    """
    xp, count, n, members = space.xp, len(members), complements[0].shape[0], np.array(members)
    if not n:
        empty = xp.empty((count, 0, 0), dtype)
        return Locals(members, StoredBlock(empty), empty, empty, np.zeros((count, 0, 0)), ())
    scaled = [bordered(space, S, *of) for S, of in zip(complements, constraints, strict=True)]
    B, t = (xp.stack([one[part] for one in scaled]) for part in (0, 2))
    scale = np.array([one[1] for one in scaled])
    del scaled

    def too_few(k, why):
        return InputError(f"the local problem of subdomain {members[k, 0]} is singular with its {t.shape[1]} "
                          f"constraints on {n} dofs of the interface ({why}): the subdomain floats, and its "
                          f"constraints do not hold it. {hint(members[k, 0])}")

    try:
        inverse, condition, notes = invert(space, decomposer, solver, B, estimates=estimates)
    except FactorisationError as error:
        if error.singular:
            raise too_few(error.index, error) from None
        raise FactorisationError(f"local problem of subdomain {members[error.index, 0]}: {error}") from None
    bad = ~(condition * np.finfo(float).eps * B.shape[1] < 1)
    if bad.any():
        raise too_few(int(bad.argmax()), f"its condition is {condition[bad.argmax()]:.0e}")
    t, scale, columns, rows = t[:, :, None], space.from_host(scale)[:, None, None], inverse.columns(n), inverse.rows(n)
    adjoint = 0.5 * t * (rows[:, :, :n] + columns[:, :n].transpose(0, 2, 1))
    coarse = space.to_host(-scale * t * mean(columns[:, n:]) * t.transpose(0, 2, 1))
    return Locals(members, inverse.leading(n, scale, mean, dtype),
                  *(xp.ascontiguousarray(part.astype(dtype)) for part in (adjoint.transpose(0, 2, 1), adjoint)),
                  coarse, notes, inverse.iterations)


def mean(X):
    """Return the mean of each matrix and its transpose."""
    return 0.5 * (X + X.transpose(0, 2, 1))
