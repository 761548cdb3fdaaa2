"""Local problems: Schur complements on the interface, bordered by constraints, [S Cᵀ; C 0], and inverted.

The inverse of the bordered matrix is all that BDDC needs from a subdomain (Dohrmann 2003, equations 2 to 5):

    [S Cᵀ; C 0]⁻¹ = [K Ψ; Φᴴ −Σ]

K corrects within the constraints (K = K S K, C K = 0). The columns of Ψ are the coarse basis (C Ψ = I; for a positive
definite A with least energy). The columns of Φ are this basis for Sᴴ (Tu and Li 2008); Φ = Ψ if S is Hermitian, and
Φᴴ = Ψᵀ if it is complex symmetric. Σ = Φᴴ S Ψ is the subdomain's part of the coarse matrix. S alone is singular if the
subdomain floats, which is the normal case. The bordered matrix is nonsingular but indefinite, so it needs an LU with
pivoting: any decomposer of swell.dense. For a Hermitian S a CPU takes Cholesky, if no decomposer is named: S + Cᴴ C is
definite (`by_cholesky` in inverse.py).

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
from swell.preconditioners.bddc.basis import Basis
from swell.preconditioners.bddc.inverse import StoredBlock, decomposer_of, earlier_factors, invert, solver_of
from swell.preconditioners.bddc.symmetry import HERMITIAN


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
        Ψ and Φᴴ, for c constraints.
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

    def bases(self, adjoint=False):
        """Return (Ψ, Φᴴ), or with ``adjoint`` their counterparts (Φ, Ψᴴ) for Sᴴ."""
        if not adjoint:
            return self.basis, self.adjoint
        return tuple(part.conj().swapaxes(1, 2) for part in (self.adjoint, self.basis))

    @property
    def positive(self) -> bool:
        """True if vᴴ K v is not negative beyond rounding for some vectors v, as for a positive definite S."""
        energies = self.K.energies().real
        return not energies.size or bool(energies.min() >= -1e-8 * abs(energies).max())  # sync

    @property
    def rows(self):
        """Number of rows of a bordered matrix."""
        return sum(self.basis.shape[1:])

    @property
    def nbytes(self):
        return self.K.nbytes + self.basis.nbytes + self.adjoint.nbytes


def factors_of(problems):
    """Return the factors of each subdomain's local matrix, by the subdomain's number, from a list of `Locals`; none
    with stored inverses."""
    return {k: factors for p in problems if p.K.factors
            for members, factors in zip(p.members, p.K.factors, strict=True) for k in members}


def bordered(space, S, C, sizes):
    """Return new (B, scale, t): B is the dense matrix [S / scale, (diag(t) C)ᵀ; diag(t) C, 0].

    ``scale`` is the result of `scale_of`, t = √``sizes``. S is a device array; C and ``sizes`` are the host arrays from
    `Constraints.matrix`."""
    n, c = S.shape[0], C.shape[0]
    scale = scale_of(space, S)
    B = space.xp.zeros((n + c, n + c), S.dtype)
    t = space.from_host(np.sqrt(sizes))
    B[:n, :n] = S / scale
    B[n:, :n] = t[:, None] * space.from_host(C)
    B[:n, n:] = B[n:, :n].T
    return B, scale, t


def scale_of(space, S):
    """Return the mean modulus of the diagonal of the device array S, a float; 1 if S is zero or empty."""
    mean = float(abs(space.to_host(S.diagonal())).mean()) if len(S) else 0.0  # sync
    return mean if mean > 0 else 1.0             # S = 0: constraints alone may hold it


def local_problems(space, settings, members, complements, constraints, dtype, hint, symmetry=HERMITIAN, before=None):
    """Return the `Locals` of subdomains of one size: invert their bordered matrices [S Cᵀ; C 0] together.

    Parameters
    ----------
    space : Space
        Of the complements.
    settings : BDDC
        Its ``dense_lu``, ``dense_solver`` and ``averages`` decide how local problems are solved.
    members : list of lists of int
        For each complement its subdomains; all lists have one length.
    complements : list of device arrays, shape (k, k)
        Schur complements S, each different.
    constraints : list of (C, sizes)
        For each complement the result of `Constraints.matrix`; all of one shape.
    dtype : numpy.dtype
        Type of K, Ψ and Φᴴ in the result.
    hint : callable
        ``hint(i, S, C)`` returns advice on constraints of subdomain i with the arrays S and C, for the message.
    symmetry : Symmetry
        Of the complements; rounding errors against it are removed.
    before : dict
        Factors of a subdomain's earlier local matrix, by its number: estimates for ICM.

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
        return Locals(members, StoredBlock(empty), empty, empty, np.zeros((count, 0, 0), complements[0].dtype), ())
    if settings.averages == "basis":
        bases = [Basis(space, C) for C, _ in constraints]
        reduced = [basis.reduced(S) for basis, S in zip(bases, complements, strict=True)]
        scale = np.array([scale_of(space, S) for S in reduced])
        B = xp.stack(reduced) / space.from_host(scale)[:, None, None]
        del reduced
    else:
        scaled = [bordered(space, S, *of) for S, of in zip(complements, constraints, strict=True)]
        B, t = (xp.stack([one[part] for one in scaled]) for part in (0, 2))
        scale = np.array([one[1] for one in scaled])
        del scaled

    def too_few(k, why):
        C = constraints[k][0]
        return InputError(f"the local problem of subdomain {members[k, 0]} is singular with its {len(C)} "
                          f"constraints on {n} dofs of the interface ({why}): the subdomain floats, and its "
                          f"constraints do not hold it. {hint(members[k, 0], complements[k], C)}")

    try:
        decomposer = decomposer_of(settings)
        inverse, condition, notes = invert(space, decomposer, solver_of(settings), B, symmetry.trans,
                                           earlier_factors(decomposer, before or {}, members[:, 0], B.shape[1]),
                                           0 if settings.averages == "basis" else len(constraints[0][0]))
    except FactorisationError as error:
        if error.singular:
            raise too_few(error.index, str(error).partition("; take")[0]) from None    # no decomposer helps
        raise FactorisationError(f"local problem of subdomain {members[error.index, 0]}: {error}") from None
    bad = ~(condition * np.finfo(float).eps * B.shape[1] < 1)
    if bad.any():
        raise too_few(int(bad.argmax()), f"its condition is {condition[bad.argmax()]:.0e}")
    if settings.averages == "basis":
        every = zip(bases, complements, inverse.X, scale, strict=True)
        parts = [basis.parts(S, one / by) for basis, S, one, by in every]
        K, basis, adjoint, coarse = (xp.stack(of) for of in zip(*parts, strict=True))
        K = StoredBlock(xp.ascontiguousarray(symmetry.mean(K).astype(dtype)))
    else:
        t, scale, columns = t[:, :, None], space.from_host(scale)[:, None, None], inverse.columns(n)
        basis, adjoint = columns[:, :n] * t.transpose(0, 2, 1), t * inverse.rows(n)[:, :, :n]
        coarse = -scale * t * columns[:, n:] * t.transpose(0, 2, 1)
        K = inverse.leading(n, scale, symmetry.mean, dtype)
    if symmetry.mirrors:
        adjoint = 0.5 * (adjoint + symmetry.mirror(basis))
        basis = symmetry.mirror(adjoint)
    return Locals(members, K, *(xp.ascontiguousarray(part.astype(dtype)) for part in (basis, adjoint)),
                  space.to_host(symmetry.mean(coarse)), notes, inverse.iterations)
