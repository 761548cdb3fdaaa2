"""The shifted Laplacian: M ≈ P⁻¹ for P = A + iβ ω²M, the Helmholtz operator with additional damping.

For A = K − ω²M + iωB (time as e^{+iωt}), P = K − (1 − iβ) ω²M + iωB. Erlangga, Vuik and Oosterlee, Applied Numerical
Mathematics 50 (2004) 409 and 56 (2006) 648; they write e^{−iωt}, and so the conjugate. The waves of P decay within a
few wavelengths. So ILU, sweeps or subdomains work better on P than on A; ``inner`` chooses the method.

ω²M is ``mass``, or comes from the front end `swell.pde.helmholtz`. For a plain matrix it is lumped, from A's row sums:
K annihilates constants, so −Re(A 1) = ω² M 1. Rows whose sum is not negative (next to walls of given pressure) get no
shift. The shift has the sign of the imaginary part of A's trace, so that it absorbs where A does, in either time
convention; for a real trace it is positive.

An application: the inner preconditioner's. Storage: P (values; A's pattern), and the inner preconditioner.
If A equals its transpose, so does P, and M is as symmetric as the inner preconditioner makes it (cocg).

Differs from the textbook: β = 0.5 is meant for a multigrid cycle. With ILU(0), on a mesh that resolves the waves, A
itself does as well; the shift pays where ILU of A fails, and most with ILU(1), ``inner="ilu(level=1)"``
(benchmarks/notes/helmholtz_preconditioners.md).
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.operator import Wrapper
from swell.core.preconditioner import Preconditioner
from swell.core.registry import resolve
from swell.core.settings import describe, real, without_effect
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import rows_of
from swell.preconditioners.lu_rows import diagonal_places


@dataclass(frozen=True)
class ShiftedLaplacian(Preconditioner):
    """A preconditioner for the Helmholtz operator with additional damping.

    Attributes
    ----------
    shift : float
        β of A + iβ ω²M, not negative; 0 leaves A unchanged.
    inner : str or settings object
        Preconditioner of the shifted matrix.
    mass : sparse matrix, n × n, or None
        ω²M, from SciPy or from swell in A's space; A must store all its entries. Every update reads its values anew,
        so a frequency sweep can change them in place. None: lumped, from A's row sums.
    """

    shift: float = 0.5
    inner: Any = "ilu0"
    mass: Any = field(default=None, repr=False, compare=False)

    problem = "Helmholtz, A = K − ω²M + iωB"
    cost = "the inner preconditioner"
    kinds = "c"
    as_given = True

    def __post_init__(self):
        if not real(self.shift) or not 0 <= self.shift < np.inf:
            raise InputError(f"ShiftedLaplacian(shift={self.shift!r}): expected a number of at least 0, such as 0.5")
        if resolve("precond", self.inner) is None:
            raise InputError(f"ShiftedLaplacian(inner={self.inner!r}): expected a preconditioner for the shifted "
                             "matrix, such as 'ilu0'")
        if self.shift == 0:
            without_effect(self, "with shift=0, which leaves A as it is", "give shift=0.5, say", "mass")
        if self.mass is not None and len(getattr(self.mass, "shape", ())) != 2:
            raise InputError(f"ShiftedLaplacian(mass=...) is of type {type(self.mass).__name__}: expected ω²M as a "
                             "sparse matrix, or None")

    def build(self, A):
        return ShiftedLaplacianOperator(A, self)


class ShiftedLaplacianOperator(Wrapper):
    """z = M r for one matrix.

    Attributes
    ----------
    shifted : CSRMatrix
        P.
    inner : LinearOperator
        M ≈ P⁻¹.

    Raises
    ------
    InputError
        For a real system, or a mass matrix whose shape or pattern does not fit A.
    """

    def __init__(self, A, settings):
        super().__init__(A.shape, A.dtype, A.space)
        if A.dtype.kind != "c":
            raise InputError(f"the shifted Laplacian is complex, and the system is {A.dtype.name}: give "
                             "dtype='complex128', or precondition with 'ilu0' or 'ilu(drop=0.001)'")
        self.settings, self._notes = settings, ()
        self._diagonal = diagonal_places(A, "ShiftedLaplacian")
        self._places = None if settings.mass is None else mass_places(A, settings.mass)
        self.shifted = CSRMatrix(A.space, A.indptr, A.indices, A.space.empty(A.nnz, A.dtype), A.shape)
        self._form(A)
        self.inner = resolve("precond", settings.inner).build(self.shifted)

    def _form(self, A):
        """Write the values of ``shifted``, P = A + iβ ω²M. Sets the note if nothing was shifted."""
        xp, P = self.space.xp, self.shifted.data
        P[...] = A.data
        factor = self.dtype.type(1j * damping_sign(A, self._diagonal) * self.settings.shift)
        if self.settings.mass is not None:
            values = xp.asarray(self.settings.mass.data, dtype=self.dtype)
            if self._places is None:
                P += factor * values
            else:
                P[self._places] += factor * values
            return
        lumped = row_masses(A)
        self._notes = () if self.space.find_true(lumped > 0)[1] else (  # sync
            "ShiftedLaplacian: no row of A sums to a negative number, so no mass was found, and nothing was shifted: "
            "give mass=, ω² times the mass matrix",)
        P[self._diagonal] += factor * lumped

    def update(self, A):
        """Recompute P and its preconditioner, in place, for new values of A with the same pattern, and the present
        values of ``mass``."""
        self._form(A)
        self.shifted.discard_adjoint()
        self.inner.update(self.shifted)

    def keep_for(self, A):
        """Do nothing: P keeps its values."""

    def apply_dots(self, x, out, w, dots):
        self.inner.apply_dots(x, out, w, dots)

    @property
    def notes(self):
        """A note if nothing was shifted, and the inner preconditioner's notes."""
        return (*self._notes, *self.inner.notes)

    @property
    def nbytes(self):
        return self.shifted.data.nbytes + self._diagonal.nbytes + self.inner.nbytes

    def describe(self):
        mass = "lumped from row sums" if self.settings.mass is None else "given"
        return f"{describe(replace(self.settings, mass=None))}, its mass {mass}; {self.inner.describe()}"


def row_masses(A):
    """Return −Re(A 1), a new real array, or 0 in rows where it is negative. It is ω² M 1 for A = K − ω²M + iωB, if K
    annihilates constants."""
    return A.space.xp.maximum(-A.row_sums().real, 0)


def damping_sign(A, diagonal):
    """Return −1 if A's trace has a negative imaginary part, else 1; ``diagonal``: places of the diagonal in A.data."""
    d, total = A.data[diagonal], A.space.empty(1, accumulator(A.dtype))
    A.space.dot(A.space.xp.ones_like(d), d, total)
    return -1 if float(A.space.to_host(total)[0].imag) < 0 else 1  # sync


def mass_places(A, mass):
    """Return the place in A.data of each entry of ``mass``, an int array; None if the two share their index arrays.

    Raises InputError if shape, format or pattern do not fit."""
    xp, n = A.space.xp, A.shape[1]
    if tuple(mass.shape) != tuple(A.shape):
        raise InputError(f"ShiftedLaplacian(mass=...) has shape {tuple(mass.shape)}: expected {tuple(A.shape)}, that "
                         "of A")
    if not isinstance(mass, CSRMatrix):
        if getattr(mass, "format", None) != "csr" or not mass.has_canonical_format:
            raise InputError("ShiftedLaplacian(mass=...): expected a CSR matrix, its columns sorted and summed: call "
                             "mass = mass.tocsr(); mass.sum_duplicates() first")
    elif mass.indices is A.indices:
        return None
    indptr, indices = xp.asarray(mass.indptr), xp.asarray(mass.indices)
    rows = rows_of(indptr, indices.size, xp).astype(np.int64)
    wanted, there = rows * n + indices, A.rows().astype(np.int64) * n + A.indices
    at = xp.minimum(xp.searchsorted(there, wanted), there.size - 1)
    k, missing = A.space.find_true(there[at] != wanted)  # sync
    if missing:
        raise InputError(f"ShiftedLaplacian(mass=...) has the entry ({int(rows[k])}, {int(indices[k])}), where A "
                         "stores nothing: give both one pattern (zeros may be stored)")
    return at
