"""The factors of a dense matrix, P A = L U (1.4), in one array; their class tells which one has the unit diagonal."""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError
from swell.core.guests import guest_of
from swell.core.library import native_kernels
from swell.core.registry import load, resolve
from swell.core.settings import DTYPES
from swell.dense.condition import condition
from swell.dense.products import on_device

if TYPE_CHECKING:
    from swell.core.space import Space
    from swell.dense.decomposer import Decomposer


@dataclass(frozen=True, eq=False)
class Metrics:
    """Counts of a decomposition.

    Attributes
    ----------
    section : int
        Rows of a section; n for a method without sections.
    pivots : numpy.ndarray of int, shape (sections,)
        Number of diagonal elements for which a pivot was chosen.
    iterations : numpy.ndarray of int, shape (sections, sections), or None
        For an iterative method: the iterations of every section, summed over its fronts and pivots. ``ICM`` with
        ``form="fronts"`` runs line by line below and to the right of the diagonal; there it is the slowest tile's sum.
    """

    section: int
    pivots: np.ndarray
    iterations: np.ndarray | Any = None      # Any: a caller who chose an iterative method need not test for None


@dataclass(frozen=True, eq=False)
class LUFactors:
    """The factors of P A = L U.

    Attributes
    ----------
    lu : device array, shape (n, n)
        L and U in one array, without the unit diagonal.
    order : int64 device array, shape (n,)
        P A = A[order].
    space : Space
    decomposer : Decomposer
        The settings that made these factors.
    metrics : Metrics
    notes : tuple of str
        Warnings for the user, such as a pivot that is nearly zero.
    lost : float
        ‖(P A − L U) V‖ / ‖A V‖ for a few random V, if growth or a tolerance makes the factors doubtful; else 0.
    """

    lu: Any
    order: Any
    space: Space
    decomposer: Decomposer
    metrics: Metrics
    notes: tuple = field(default=())
    lost: float = 0.0

    unit = ""               # "L" or "U": the factor with the unit diagonal

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.lu.shape[0]

    @property
    def dtype(self):
        """The type of the entries."""
        return self.lu.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the factors."""
        return self.lu.nbytes + self.order.nbytes

    def lower(self):
        """Return L as a new device array."""
        return triangle(self.space.xp, self.lu, True, self.unit == "L")

    def upper(self):
        """Return U as a new device array."""
        return triangle(self.space.xp, self.lu, False, self.unit == "U")

    def largest(self) -> float:
        """Return the largest modulus of L and U, the unit-diagonal factor scaled by the diagonal of the other."""
        return float(largest(self.space, self.lu[None], self.unit)[0])

    @cached_property
    def piv(self):
        """The permutation as LAPACK's swaps, counted from 0, an int32 host array: row j was swapped with row piv[j],
        at least j, for j from 0 on."""
        order = self.space.to_host(self.order)
        rows, place = np.arange(self.n), np.arange(self.n)       # the row at each place, and each row's place
        piv = np.empty(self.n, np.int32)
        for j, row in enumerate(order.tolist()):
            piv[j] = p = place[row]
            place[rows[j]], rows[p] = p, rows[j]
        return piv

    def to_lapack(self):
        """Return new (lu, piv), host arrays with the unit diagonal in L, as `scipy.linalg.lu_solve` takes them."""
        lu = self.space.to_host(self.lu).copy()
        if self.unit == "U":                     # L U = (L D⁻¹) (D U), D the diagonal of L
            D = lu.diagonal().copy()
            lu = np.tril(lu / D, -1) + np.triu(lu * D[:, None], 1) + np.diag(D)
        return lu, self.piv.copy()

    @staticmethod
    def from_lapack(lu, piv, space=None):
        """Return `DoolittleFactors` of LAPACK's factors, such as the result of `scipy.linalg.lu_factor`.

        Parameters
        ----------
        lu : array, shape (n, n)
            L and U, the unit diagonal in L; on the host or a device. It is not copied where the space has it.
        piv : array of int, shape (n,)
            Swaps of rows, counted from 0.
        space : Space or str, optional
            By default the device of ``lu``.

        Raises
        ------
        InputError
            If ``lu`` is not a finite square matrix, or ``piv`` has no n swaps counted from 0.
        FactorisationError
            If U has a zero on its diagonal.
        """
        lu = lu if hasattr(lu, "dtype") else np.asarray(lu)
        if lu.ndim != 2 or lu.shape[0] != lu.shape[1] or not lu.shape[0] or lu.dtype.name not in DTYPES:
            raise InputError(f"lu has shape {tuple(lu.shape)} and dtype {lu.dtype.name}: expected a square matrix of "
                             f"at least one row in one of {', '.join(DTYPES)}, such as scipy.linalg.lu_factor returns")
        n, space = len(lu), space or guest_of(lu).device_of(lu)
        space = make_space(space) if isinstance(space, str) else space
        piv = np.asarray(piv.get() if hasattr(piv, "get") else piv)
        if piv.shape != (n,) or piv.dtype.kind not in "iu":
            raise InputError(f"piv has shape {piv.shape} and dtype {piv.dtype}: expected {n} integers, a swap for each "
                             "row")
        wrong = (piv < np.arange(n)) | (piv >= n)
        if wrong.any():
            j = int(wrong.argmax())
            raise InputError(f"piv[{j}] is {piv[j]}: expected a row from {j} to {n - 1}; swaps count from 0 here, and "
                             "from 1 in LAPACK itself: subtract 1")
        with space.active(n):
            lu = on_device(space, lu)
            if not np.isfinite(largest(space, lu[None]))[0]:
                raise InputError("lu has entries that are not finite: expected finite factors")
            zero = space.to_host(lu.diagonal()) == 0  # sync
            if zero.any():
                raise FactorisationError(f"column {int(zero.argmax())} of U has a zero on the diagonal: the matrix is "
                                         "singular", True)
            order = np.arange(n)[None]
            native_kernels("swell.dense", "pivoting").reorder(piv[None].astype(np.int32), order)
            metrics = Metrics(n, np.array([n], np.int64))
            return DoolittleFactors(lu, space.from_host(order[0]), space, load("decomposer", "getrf")(), metrics)

    def slogdet(self):
        """Return (sign, log |det A|), as `numpy.linalg.slogdet`: a sign, or a complex number of modulus 1, and a
        float."""
        diagonal = self.space.to_host(self.lu.diagonal()).astype(np.result_type(self.dtype, np.float64))  # sync
        size = abs(diagonal)
        swaps = int((self.piv != np.arange(self.n)).sum())
        return (-1) ** swaps * np.prod(diagonal / size), float(np.log(size).sum())

    def determinant(self):
        """Return det A; infinity or 0 if it is out of the range of double precision: `slogdet` has no such limits."""
        sign, size = self.slogdet()
        with np.errstate(over="ignore", under="ignore"):
            return sign * np.exp(size)

    def condition(self, norm=None) -> float:
        """Estimate the condition number ‖A‖₁ ‖A⁻¹‖₁ (condition.py), from below and rarely by a factor above 3.

        Parameters
        ----------
        norm : float, optional
            ‖A‖₁ where it is known; None: the norm of L U is estimated, too.
        """
        return condition(self, norm)

    def inverse(self, solver="trsm"):
        """Return A⁻¹ as a new array in the space of the factors; ``solver`` as in `solve`."""
        return self.solve(self.space.xp.eye(self.n, dtype=self.dtype), solver)

    def solve(self, B, solver="trsm", trans="N"):
        """Solve A X = B, or the transposed or adjoint system; return X, with the shape and on the device of B.

        Parameters
        ----------
        B : array, shape (n,) or (n, m)
            On the host or in the space of the factors.
        solver : str or DenseSolver
            "trsm", "ss", "is(x=32)", "getrs", or a settings object.
        trans : {"N", "T", "C"}
            LAPACK's letters: solve A X = B, Aᵀ X = B, or Aᴴ X = B.

        Raises
        ------
        InputError
            If the solver does not take these factors, or B does not fit.
        FactorisationError
            If the factors no longer represent A, by growth (``lost``), or X is not finite.
        """
        return resolve("dense_solver", solver).build(self, trans).solve(B)

    def require_useful(self):
        """Raise FactorisationError if L U differs so much from P A that a solve gives no solution of A X = B."""
        limit = self.decomposer.most_lost(self.dtype)
        if not self.lost <= limit:
            name = type(self.decomposer).__name__
            raise FactorisationError(f"{name}: L U misses P A by {self.lost:.1e} of its size, where a solution "
                                     f"takes at most {limit:.0e}; {'; '.join(self.notes)}")


class CroutFactors(LUFactors):
    """Factors with the unit diagonal in U (1.10), from Crout's methods."""

    unit = "U"


class DoolittleFactors(LUFactors):
    """Factors with the unit diagonal in L (2.2), from Gaussian elimination and getrf."""

    unit = "L"


def triangle(xp, matrix, lower, unit):
    """Return the lower triangle of a matrix, or the upper one, as a new array; ``unit``: with ones on the diagonal."""
    part = (xp.tril if lower else xp.triu)(matrix, (-1 if lower else 1) if unit else 0)
    return part + xp.eye(len(matrix), dtype=matrix.dtype) if unit else part


def largest(space, matrices, unit=""):
    """Return the largest modulus in each matrix, NaN if it has a NaN: a host array of shape (m,).

    Parameters
    ----------
    matrices : device array, shape (m, n, n)
        Contiguous matrices, row- or column-major.
    unit : str
        For factors, the one with the unit diagonal ("L" or "U"): its entries are multiplied by the other's diagonal.
    """
    count, n, _ = matrices.shape
    by_rows = matrices.strides[-1] == matrices.itemsize
    flat = (matrices if by_rows else matrices.transpose(0, 2, 1)).reshape(-1)
    lines = space.empty(count * n, np.float64)
    space.kernels("swell.dense", "growth", matrices.dtype).largest_of_lines(
        flat, 1 if by_rows else n, {"": 0, "U": 1, "L": 2}[unit], n, lines)
    return space.to_host(lines).reshape(count, n).max(axis=1)  # sync
