"""The factors of a dense matrix, P A = L U (1.4), stored in one array; their type says where the unit diagonal is."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from swell.core.errors import FactorisationError


@dataclass(frozen=True, eq=False)
class Metrics:
    """What a decomposition counted while it ran.

    Attributes
    ----------
    section : int
        Rows of a section; n where the method has none.
    pivots : numpy.ndarray of int, shape (sections,)
        Diagonal elements for which a pivot was looked for.
    iterations : numpy.ndarray of int, shape (sections, sections), or None
        Of an iterative method: iterations of every section, added up over its fronts and pivots. In the part that runs
        line by line (``ICM(form="fronts")``, below and to the right) of its slowest tile.
    """

    section: int
    pivots: np.ndarray
    iterations: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class LUFactors(ABC):
    """P A = L U.

    Attributes
    ----------
    lu : array of the space, shape (n, n)
        L and U in one, without the unit diagonal.
    order : array of the space, of int64, shape (n,)
        P A = A[order].
    space : Space
    decomposer : Decomposer
        The settings that made it.
    metrics : Metrics
    notes : tuple of str
        What a user should know, such as a pivot that is nearly zero.
    lost : float
        ‖(P A − L U) V‖ / ‖A V‖ for a few random V, where growth or a tolerance leaves doubt; else 0.
    """

    lu: object
    order: object
    space: object
    decomposer: object
    metrics: Metrics
    notes: tuple = field(default=())
    lost: float = 0.0

    unit = ""               # "L" or "U": where the unit diagonal is

    @property
    def n(self) -> int:
        """Rows."""
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
        """L, as an array of the space."""

    @abstractmethod
    def upper(self):
        """U, as an array of the space."""

    def largest(self) -> float:
        """The largest entry of L and U, the one with the unit diagonal scaled by the diagonal of the other."""
        return float(largest(self.space, self.lu[None], self.unit)[0])

    def solve(self, B, solver="trsm"):
        """X with A X = B.

        Parameters
        ----------
        B : array, shape (n,) or (n, m)
            On the host or in the space of the factors; X comes back where B is.
        solver : str or DenseSolver
            "trsm", "ss", "is(x=32)", "getrs", or their settings.

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
        """Raise FactorisationError where L U misses P A by so much that a solution with it is none of A X = B."""
        limit = self.decomposer.most_lost(self.dtype)
        if not self.lost <= limit:
            name = type(self.decomposer).__name__
            raise FactorisationError(f"{name}: L U misses P A by {self.lost:.1e} of its size, where a solution "
                                     f"takes at most {limit:.0e}; {'; '.join(self.notes)}")


class CroutFactors(LUFactors):
    """The unit diagonal is in U (1.10), as Crout's methods leave it."""

    unit = "U"

    def lower(self):
        return self.space.xp.tril(self.lu)

    def upper(self):
        xp = self.space.xp
        return xp.triu(self.lu, 1) + xp.eye(self.n, dtype=self.dtype)


class DoolittleFactors(LUFactors):
    """The unit diagonal is in L (2.2), as Gaussian elimination and getrf leave it."""

    unit = "L"

    def lower(self):
        xp = self.space.xp
        return xp.tril(self.lu, -1) + xp.eye(self.n, dtype=self.dtype)

    def upper(self):
        return self.space.xp.triu(self.lu)


def largest(space, matrices, unit=""):
    """The largest modulus in each matrix, NaN if there is one: a host array.

    Parameters
    ----------
    matrices : array of the space, shape (m, n, n)
        One after the other, by rows or by columns.
    unit : str
        Of factors, where the unit diagonal is: entries beside it are taken times the diagonal of the other factor.
    """
    count, n, _ = matrices.shape
    by_rows = matrices.strides[-1] == matrices.itemsize
    flat = (matrices if by_rows else matrices.transpose(0, 2, 1)).reshape(-1)
    lines = space.empty(count * n, np.float64)
    space.kernels("swell.dense", "growth", matrices.dtype).largest_of_lines(
        flat, 1 if by_rows else n, {"": 0, "U": 1, "L": 2}[unit], n, lines)
    return space.to_host(lines).reshape(count, n).max(axis=1)  # sync
