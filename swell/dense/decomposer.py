"""What decomposers share: the door for the matrix, the array that is decomposed in place, and the verdict on the
pivots."""
from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.settings import real
from swell.core.space import make_space
from swell.dense.factors import CroutFactors, Metrics

PIVOTING = ("full", "conditional", "none")
DTYPES = ("float32", "float64", "complex64", "complex128")


class Work:
    """A matrix while it is decomposed.

    Attributes
    ----------
    space : Space
    n : int
    matrix : array of the space, shape (n, n)
        A, on its way to L and U.
    lu : array of the space, shape (n * n,)
        The same memory as the kernels see it: entry (i, j) at ``i row + j column``.
    pivots : array of the space, of int32, shape (n,)
        The row that row j was swapped with; -1 where no pivot was looked for.
    start : array of the space, of int64, shape (n,)
        The order of the rows before the first swap.
    largest : float
        max |A|.
    """

    def __init__(self, space, A, order="C"):
        self.space, self.n, self.dtype = space, A.shape[0], A.dtype
        self.lu = space.empty(self.n * self.n, A.dtype)
        self.matrix = self.lu.reshape(self.n, self.n)
        self.row, self.column = self.n, 1
        if order == "F":
            self.matrix, self.row, self.column = self.matrix.T, 1, self.n
        self.matrix[...] = A
        self.pivots = space.xp.full(self.n, -1, np.int32)
        self.start = space.xp.arange(self.n)
        self.estimate = None
        self.largest = float(abs(self.matrix).max())  # sync

    def kernels(self, stem):
        """The kernels of this package called ``stem``."""
        return self.space.kernels("swell.dense", stem, self.dtype)

    def tiles(self, x):
        """An array whose parts say to the kernels how many tiles of ``x`` there are: one entry more than tiles."""
        return self.space.empty(-(-self.n // x) + 1, np.int32)

    def swapped(self, pivots):
        """The order of the rows after the swaps."""
        order = list(range(self.n))
        for j, p in enumerate(pivots.tolist()):
            if p > j:
                order[j], order[p] = order[p], order[j]
        return self.start[self.space.from_host(np.array(order))]

    def pivots_by_section(self, pivots, section):
        """How many pivots were looked for in every section."""
        return np.add.reduceat(pivots >= 0, range(0, self.n, section)).astype(np.int64)


class Decomposer(ABC):
    """Settings of a decomposition: a frozen dataclass.

    Attributes
    ----------
    problem, cost : str
        For the documentation.
    devices : tuple of str
        Where it runs.
    factors : type
        The kind of factors that it makes: where their unit diagonal is.
    """

    problem = "any nonsingular dense matrix"
    cost = "2/3 n³"
    devices = ("cpu", "cuda")
    factors = CroutFactors
    order = "C"

    def factor(self, A, space=None):
        """Decompose a matrix.

        Parameters
        ----------
        A : array, shape (n, n)
            NumPy or CuPy; float32, float64, complex64 or complex128 (integers become double). It is not changed.
        space : Space, optional
            Where to work; by default where A is.

        Returns
        -------
        LUFactors

        Raises
        ------
        InputError
            If A is not a finite square matrix, or the decomposer does not run there.
        FactorisationError
            If a pivot is zero (the message names the column) or the factors are not finite.
        OutOfMemory
            If the factors do not fit; the message says what they need.
        """
        return self._factor(A, space)

    def _factor(self, A, space, prepare=None):
        space = self._space(A, space)
        A = checked(A, space, self.copies)
        with space.active(self.size(A.shape[0])):
            work = Work(space, space.from_host(A), self.order)
            if not np.isfinite(work.largest):
                raise InputError(f"A has {self._not_finite(A)}: expected finite numbers")
            if prepare:
                prepare(work)
            section, iterations = self.decompose(work)
            return self._verdict(work, section, iterations)

    def size(self, n):
        """What a kernel works on at a time, as ``Space.active`` counts it: a front's or a column's are for one
        thread."""
        return n

    @abstractmethod
    def decompose(self, work) -> tuple[int, np.ndarray | None]:
        """Turn ``work.matrix`` into L and U: (size of a section, iterations)."""

    @property
    def copies(self) -> int:
        """Arrays of the matrix's size that a decomposition needs, the checks at its end included."""
        return 5

    def _space(self, A, space):
        """The space, which must be one that the decomposer runs in."""
        space = space or make_space(f"cuda:{A.device.id}" if type(A).__module__.startswith("cupy") else "cpu")
        if space.name not in self.devices:
            raise InputError(f"{type(self).__name__} runs on {' and '.join(self.devices)}, and {space.name} was asked "
                             "for: PCM runs on both")
        return space

    @staticmethod
    def _not_finite(A):
        """The first entry that is not finite, in words."""
        i, j = (int(k[0]) for k in (~np.isfinite(A.get() if hasattr(A, "get") else A)).nonzero())
        return f"{A[i, j]} at ({i}, {j})"

    def _verdict(self, work, section, iterations):
        """The factors, unless a pivot is zero or something is not finite."""
        space, matrix = work.space, work.matrix
        diagonal = abs(space.to_host(matrix.diagonal()))  # sync
        pivots = space.to_host(work.pivots)
        bad = ~(diagonal > 0) | ~np.isfinite(diagonal)
        if bad.any():
            raise self._failure(work, int(bad.argmax()), diagonal)
        if not bool(space.xp.isfinite(matrix).all()):  # sync
            column = int(space.to_host(space.xp.isfinite(matrix).all(axis=0)).argmin())
            raise FactorisationError(f"{type(self).__name__}: column {column} of the factors overflowed "
                                     f"{matrix.dtype}: scale the matrix, or take pivoting='full' or a wider type")
        metrics = Metrics(section, work.pivots_by_section(pivots, section), iterations)
        factors = self.factors(matrix, work.swapped(pivots), space, self, metrics)
        return dataclasses.replace(factors, notes=self._notes(work, factors, diagonal))

    @staticmethod
    def _notes(work, factors, diagonal):
        """What there is to say of the smallest pivot and of the growth, by which half of the digits may be lost."""
        eps, notes = np.finfo(work.dtype).eps, ()
        column = int(diagonal.argmin())
        if diagonal[column] <= work.n * eps * work.largest:
            notes += (f"the pivot of column {column} is {diagonal[column]:.2e}, no more than rounding beside the "
                      f"largest entry {work.largest:.2e}: the matrix is singular to working precision",)
        growth = factors.largest() / work.largest
        if growth * np.sqrt(eps) >= 1:
            notes += (f"the factors have grown {growth:.1e} times as large as the matrix, and so have their errors: "
                      "take pivoting='full'",)
        return notes

    def _failure(self, work, column, diagonal):
        """The error for the first pivot that is zero or not finite."""
        name = type(self).__name__
        if diagonal[column] == 0:
            why = ("pivoting is off: take pivoting='full'" if getattr(self, "pivoting", "full") == "none" else
                   f"so is everything below it, to row {work.n - 1}: the matrix is singular")
            return FactorisationError(f"{name}: the pivot of column {column} is zero, and {why}", singular=True)
        return FactorisationError(f"{name}: the pivot of column {column} is {diagonal[column]}: the factors overflowed "
                                  f"{work.dtype}; scale the matrix, or take pivoting='full' or a wider type")


def checked(A, space, copies):
    """A as an array of one of the four types.

    Raises
    ------
    InputError
        If it is sparse, not a square matrix, empty, or of another type.
    OutOfMemory
        If so many copies of it do not fit.
    """
    if hasattr(A, "tocsr"):
        raise InputError(f"A is {type(A).__name__}, a sparse matrix: expected a dense one; A.toarray() makes it so")
    if not hasattr(A, "dtype"):
        A = np.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.shape[0]:
        raise InputError(f"A has shape {tuple(A.shape)}: expected a square matrix of at least one row")
    if A.dtype.kind in "iub":
        A = A.astype(np.float64)
    if A.dtype.name not in DTYPES:
        raise InputError(f"A has dtype {A.dtype.name}: expected one of {', '.join(DTYPES)}")
    space.check_fits(copies * A.nbytes, f"the decomposition of {A.shape[0]} rows in {A.dtype.name}",
                     "take a smaller type, or another device")
    return A


def check_pivoting(owner):
    """Raise InputError unless the field ``pivoting`` is one that there is."""
    if owner.pivoting not in PIVOTING:
        raise InputError(f"{type(owner).__name__}(pivoting={owner.pivoting!r}): expected one of {', '.join(PIVOTING)}")


def check_not_negative(owner, *names):
    """Raise InputError unless these fields are numbers of at least zero."""
    for name in names:
        value = getattr(owner, name)
        if not real(value) or not value >= 0:
            raise InputError(f"{type(owner).__name__}({name}={value!r}): expected a number of at least 0")


def check_x(owner, choices):
    """Raise InputError unless ``x`` is one of the sizes of blocks that there are."""
    if owner.x not in choices or isinstance(owner.x, bool):
        raise InputError(f"{type(owner).__name__}(x={owner.x!r}): expected one of {', '.join(map(str, choices))}")


def threshold(owner) -> float:
    """|l| up to which a pivot is looked for, of settings with ``pivoting`` and ``pivot_tolerance``."""
    return np.inf if owner.pivoting == "full" else owner.pivot_tolerance
