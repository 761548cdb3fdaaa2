"""The factors of a dense matrix, P A = L U (1.4), in one array; their class tells which one has the unit diagonal."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from swell.core.errors import FactorisationError

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
class LUFactors(ABC):
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

    @abstractmethod
    def lower(self):
        """Return L as a new device array."""

    @abstractmethod
    def upper(self):
        """Return U as a new device array."""

    def largest(self) -> float:
        """Return the largest modulus of L and U, the unit-diagonal factor scaled by the diagonal of the other."""
        return float(largest(self.space, self.lu[None], self.unit)[0])

    def solve(self, B, solver="trsm"):
        """Solve A X = B; return X, with the shape and on the device of B.

        Parameters
        ----------
        B : array, shape (n,) or (n, m)
            On the host or in the space of the factors.
        solver : str or DenseSolver
            "trsm", "ss", "is(x=32)", "getrs", or a settings object.

        Raises
        ------
        InputError
            If the solver does not take these factors, or B does not fit.
        FactorisationError
            If the factors no longer represent A, by growth (``lost``), or X is not finite.
        """
        from swell.core.registry import resolve
        return resolve("dense_solver", solver).build(self).solve(B)

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

    def lower(self):
        return self.space.xp.tril(self.lu)

    def upper(self):
        xp = self.space.xp
        return xp.triu(self.lu, 1) + xp.eye(self.n, dtype=self.dtype)


class DoolittleFactors(LUFactors):
    """Factors with the unit diagonal in L (2.2), from Gaussian elimination and getrf."""

    unit = "L"

    def lower(self):
        xp = self.space.xp
        return xp.tril(self.lu, -1) + xp.eye(self.n, dtype=self.dtype)

    def upper(self):
        return self.space.xp.triu(self.lu)


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
