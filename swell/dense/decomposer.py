"""Base of all decomposers: the checks of the matrix, the array that is decomposed in place, and the checks of the
pivots and of growth."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.core.guests import guest_of
from swell.core.library import native_kernels
from swell.core.settings import DTYPES, one_of, share, without_effect
from swell.core.devices import make_space
from swell.dense.accuracy import lost
from swell.dense.factors import CroutFactors, LUFactors, Metrics, largest
from swell.dense.products import on_device

TIGHTER = 100           # divisor of a tolerance that is too loose
PIVOTING = ("full", "conditional", "none")


class Work:
    """Matrices of one size during their decomposition.

    Attributes
    ----------
    space : Space
    count, n : int
        Number of matrices, and rows of each.
    matrix : device array, shape (count, n, n)
        A at the beginning, L and U at the end.
    lu : device array, shape (count * n * n,)
        The memory of ``matrix`` as a flat array for the kernels. Matrix k begins at k n²; its entry (i, j) is at
        ``i row + j column`` from there.
    matrices : device array, shape (count + 1,)
        Only its size matters: it tells the kernels the number of matrices.
    pivots : int32 device array, shape (count * n,)
        The row that row j was swapped with; -1 if no pivot was chosen.
    start : None, or list of int64 device arrays, shape (n,)
        The order of each matrix's rows before the first swap.
    largest : numpy.ndarray, shape (count,)
        max |A| of each matrix.
    """

    def __init__(self, space, A, order="C"):
        self.space, self.dtype, (self.count, self.n, _) = space, A.dtype, A.shape
        self.lu = space.empty(A.size, A.dtype)
        self.matrix = self.lu.reshape(A.shape)
        self.row, self.column = self.n, 1
        if order == "F":
            self.matrix, self.row, self.column = self.matrix.transpose(0, 2, 1), 1, self.n
        self.matrix[...] = A
        self.matrices = space.empty(self.count + 1, np.int32)
        self.pivots = space.xp.full(self.count * self.n, -1, np.int32)
        self.start = None
        self.estimate = None
        self.largest = largest(space, self.matrix)

    def kernels(self, stem):
        """Return the kernels of swell.dense in the file ``stem``."""
        return self.space.kernels("swell.dense", stem, self.dtype)

    def tiles(self, x):
        """Return a new array for `blocked.parts`, whose parts tell the kernels the number of tiles of x lines."""
        return self.space.empty(self.count * -(-self.n // x) + 1, np.int32)

    def orders(self, pivots):
        """Return the order of each matrix's rows after its swaps, each a device array of shape (n,). ``pivots``: all
        swaps on the host, shape (count, n)."""
        order = np.tile(np.arange(self.n), (self.count, 1))
        native_kernels("swell.dense", "pivoting").reorder(pivots, order)
        order = self.space.from_host(order)
        return order if self.start is None else [rows[swapped] for rows, swapped in zip(self.start, order, strict=True)]

    def pivots_by_section(self, pivots, section):
        """Return the number of chosen pivots in every section of ``section`` rows; ``pivots``: a matrix's n swaps."""
        return np.add.reduceat(pivots >= 0, range(0, self.n, section)).astype(np.int64)


class Decomposer(ABC):
    """Settings of a decomposition: a frozen dataclass.

    Attributes
    ----------
    problem, cost : str
        Text for the documentation.
    devices : tuple of str
        Names of the spaces that it runs in.
    factors : type
        `CroutFactors` or `DoolittleFactors`: the unit diagonal is in U or in L.
    takes_estimates : bool
        True if it can start from estimates, the factors of a similar matrix.
    """

    problem = "any nonsingular dense matrix"
    cost = "2/3 n³"
    devices: tuple[str, ...] = ("cpu", "cuda")
    factors: type[LUFactors] = CroutFactors
    order = "C"
    takes_estimates = False

    def factor(self, A, space=None) -> LUFactors:
        """Decompose a matrix.

        Parameters
        ----------
        A : array, shape (n, n)
            NumPy or CuPy; float32, float64, complex64 or complex128 (integers become double). It is not changed.
        space : Space or str, optional
            The space of the decomposition, such as "cpu" or "cuda"; by default the device of A.

        Returns
        -------
        LUFactors

        Raises
        ------
        InputError
            If A is not a finite square matrix, or the decomposer does not run in this space.
        FactorisationError
            If a pivot is zero (the message names the column) or the factors are not finite.
        OutOfMemory
            If the factors do not fit; the message states the memory that they need.
        """
        return self._factor(A, space)

    def _factor(self, A, space, prepare=None):
        """Return the factors of one matrix; ``prepare`` as in ``_decomposed``."""
        space = self._space(A, space)
        return self._decomposed(self._checked(A, space), space, prepare=prepare)[0]

    def factor_batch(self, A, space=None, estimates=None):
        """Decompose matrices of one size together: each launch, and each step in Python, serves all of them.

        The matrices share the threads of a CPU (GEM, CM, PCM, ICM), or the launches on a GPU (PCM, ICM, getrf). The
        plain forms of PCM and ICM take one matrix after the other; so does getrf on a CPU, where LAPACK has its own
        threads. There is little to gain if one matrix fills the device.

        Parameters
        ----------
        A : array, shape (m, n, n)
            Its type, and ``space``: see ``factor``.
        estimates : list of CroutFactors, optional
            For ICM: an initial estimate for each matrix, such as the factors of a similar matrix.

        Returns
        -------
        list of LUFactors
            For each matrix the result of ``factor``, up to rounding; all are parts of one array.

        Raises
        ------
        InputError, FactorisationError, OutOfMemory
            See ``factor``. The message names the first matrix that failed; ``index`` of a FactorisationError is its
            number.
        """
        space = self._space(A, space)
        A, factors = self._checked(A, space, 3), []
        at_a_time = max(len(A), 1) if self.supports_batches(space) else 1
        if estimates is not None and len(estimates) != len(A):
            raise InputError(f"there are {len(estimates)} estimates for {len(A)} matrices: expected one for each")
        for first in range(0, len(A), at_a_time):
            some = slice(first, first + at_a_time)
            prepare = None if estimates is None else self._beginning(estimates[some], A.shape[1:], A.dtype)
            try:
                factors += self._decomposed(A[some], space, first, prepare)
            except FactorisationError as error:
                index = first + error.index
                raise FactorisationError(f"matrix {index} of {len(A)}: {error}", error.singular, index) from None
        return factors

    def _decomposed(self, A, space, first=None, prepare=None):
        """Return a list of the factors of each matrix in A, shape (m, n, n). ``first``: the number of A[0] in a batch,
        or None outside of batches. ``prepare``: None, or called with the `Work` before the decomposition."""
        with space.active(len(A) * self.size(A.shape[1])):
            work = Work(space, on_device(space, A), self.order)
            if not np.isfinite(work.largest).all():
                k = int(np.isfinite(work.largest).argmin())
                name = "A" if first is None else f"matrix {first + k} of A"
                raise InputError(f"{name} has {self._not_finite(A[k])}: expected finite numbers")
            if prepare:
                prepare(work)
            section, iterations = self.decompose(work)
            return self._verdict(work, A, section, [None] * len(A) if iterations is None else iterations)

    def _beginning(self, estimates, shape, dtype):
        """Return ``prepare`` for ``_decomposed``, which stores the initial estimates of matrices of this shape and
        type."""
        raise InputError(f"{type(self).__name__} computes its factors from A alone: ICM takes estimates")

    def size(self, n):
        """Return the vector length by which ``Space.active`` chooses threads for one matrix: n, the rows of a
        column."""
        return n

    def supports_batches(self, space) -> bool:
        """Return True if ``decompose`` takes many matrices at a time in this space; False for one."""
        return True

    def most_lost(self, dtype) -> float:
        """Return the largest ``LUFactors.lost`` of usable factors in this type; a quarter of the digits is left."""
        return float(np.finfo(dtype).eps) ** 0.25

    def tightened(self):
        """Return a copy of these settings with a smaller processing tolerance; None if the decomposition is exact."""

    @abstractmethod
    def decompose(self, work) -> tuple[int, np.ndarray | None]:
        """Turn ``work.matrix`` (`Work`) into L and U, in place; write ``work.pivots``. Returns (rows of a section, list
        of each matrix's iterations or None)."""

    @property
    def copies(self) -> int:
        """Number of arrays of the matrix's size that a decomposition needs, with the checks at its end."""
        return 5

    def _checked(self, A, space, axes=2):
        """Return A, a matrix or with three axes many, as an array of shape (m, n, n). Raises InputError as `checked`
        does, and OutOfMemory if ``copies`` arrays of its size do not fit."""
        A = checked(A, axes)
        space.check_fits(self.copies * A.nbytes, f"the decomposition of {f'{len(A)} times ' * (axes > 2)}{A.shape[-1]} "
                         f"rows in {A.dtype.name}", "take a smaller type, or another device")
        return A if axes > 2 else A[None]

    def _space(self, A, space):
        """Return the Space to work in, by default A's own; raise InputError if the decomposer does not run there."""
        space = space or guest_of(A).device_of(A)
        space = make_space(space) if isinstance(space, str) else space
        if space.name not in self.devices:
            raise InputError(f"{type(self).__name__} runs on {' and '.join(self.devices)}, and {space.name} was asked "
                             "for: PCM runs on both")
        return space

    @staticmethod
    def _not_finite(A):
        """Return a text with the first entry that is not finite, and its place, for a message."""
        i, j = (int(k[0]) for k in (~np.isfinite(A.get() if hasattr(A, "get") else A)).nonzero())
        return f"{A[i, j]} at ({i}, {j})"

    def _verdict(self, work, A, section, iterations):
        """Return the LUFactors of each matrix; raise FactorisationError for a zero pivot or a non-finite entry.
        ``work`` holds L and U; ``A``: the matrices before; ``section``, ``iterations``: results of ``decompose``."""
        space, matrix = work.space, work.matrix
        diagonal = abs(space.to_host(matrix.diagonal(axis1=1, axis2=2)))  # sync
        pivots = space.to_host(work.pivots).reshape(work.count, work.n)
        bad = ~(diagonal > 0) | ~np.isfinite(diagonal)
        if bad.any():
            k = int(bad.any(axis=1).argmax())
            raise self._failure(work, int(bad[k].argmax()), diagonal[k], k)
        sizes = largest(space, matrix, self.factors.unit)
        for k in np.flatnonzero(~np.isfinite(sizes)):
            good = space.to_host(space.xp.isfinite(matrix[k]).all(axis=0))  # sync
            if not good.all():
                raise FactorisationError(f"{type(self).__name__}: column {int(good.argmin())} of the factors "
                                         f"overflowed {matrix.dtype}: scale the matrix, or take pivoting='full' or a "
                                         "wider type", index=int(k))
        growth = sizes / np.where(work.largest, work.largest, 1)
        orders = work.orders(pivots)
        made = [self.factors(matrix[k], orders[k], space, self,
                             Metrics(section, work.pivots_by_section(pivots[k], section), iterations[k]),
                             self._notes(work, work.largest[k], diagonal[k], growth[k])) for k in range(work.count)]
        doubtful = (growth * np.sqrt(np.finfo(work.dtype).eps) >= 1) | (self.tightened() is not None)
        return [replace(one, lost=lost(A[k], one)) if doubtful[k] else one for k, one in enumerate(made)]

    def _notes(self, work, largest, diagonal, growth):
        """Return notes (tuple of str) on a tiny smallest pivot, and on growth that may have cost half of the digits.
        ``largest``: max |A|; ``diagonal``: the pivots' moduli; ``growth``: the factors' largest entry over max |A|."""
        eps, notes = np.finfo(work.dtype).eps, ()
        column = int(diagonal.argmin())
        if diagonal[column] <= work.n * eps * largest:
            notes += (f"the pivot of column {column} is {diagonal[column]:.2e}, no more than rounding beside the "
                      f"largest entry {largest:.2e}: the matrix is singular to working precision"
                      + ("" if self.pivoting == "full" else ", or needs pivoting='full'"),)
        if growth * np.sqrt(eps) >= 1:
            notes += (f"the factors have grown {growth:.1e} times as large as the matrix, and so have their errors: "
                      "take pivoting='full'",)
        return notes

    def _failure(self, work, column, diagonal, index):
        """Return the error for the pivot of ``column``, which is zero or not finite, in matrix number ``index``.
        ``diagonal``: the pivots' moduli."""
        name = type(self).__name__
        if diagonal[column] == 0:
            why = ("pivoting is off: take pivoting='full'" if self.pivoting == "none" else
                   f"so is everything below it, to row {work.n - 1}: the matrix is singular")
            return FactorisationError(f"{name}: the pivot of column {column} is zero, and {why}", True, index)
        other = "a wider type" if self.pivoting == "full" else "pivoting='full' or a wider type"
        return FactorisationError(f"{name}: the pivot of column {column} is {diagonal[column]}: the factors overflowed "
                                  f"{work.dtype}; scale the matrix, or take {other}", index=index)


def checked(A, axes=2):
    """Return A, a matrix or (with three axes) matrices of one size, as an array of one of the four types.

    Raises
    ------
    InputError
        If A is sparse, is empty, or has another shape or type.
    """
    if hasattr(A, "tocsr"):
        raise InputError(f"A is {type(A).__name__}, a sparse matrix: expected a dense one; A.toarray() makes it so")
    if not hasattr(A, "dtype"):
        try:
            A = np.asarray(A)
        except ValueError:
            raise InputError("A is a list with rows of different lengths: expected a square matrix") from None
    if A.ndim != axes or A.shape[-2] != A.shape[-1] or not A.shape[-1]:
        expected = "a square matrix" if axes == 2 else "(m, n, n), square matrices"
        raise InputError(f"A has shape {tuple(A.shape)}: expected {expected} of at least one row")
    if A.dtype.kind in "iub":
        A = A.astype(np.float64)
    if A.dtype.name not in DTYPES:
        raise InputError(f"A has dtype {A.dtype.name}: expected one of {', '.join(DTYPES)}")
    return A


def check_order(owner):
    """Raise InputError unless ``owner.order``, a memory order, is "C" or "F"; ``owner``: settings of a decomposer."""
    if owner.order not in ("C", "F"):
        raise InputError(f"{type(owner).__name__}(order={owner.order!r}): expected 'C', rows contiguous, or 'F', "
                         "columns contiguous")


def check_pivoting(owner, *names):
    """Raise InputError unless ``owner.pivoting`` is one of `PIVOTING`, and these fields of the settings ``owner``,
    bounds of pivots, are at least zero and of use there."""
    one_of(owner, "pivoting", PIVOTING)
    for name in names:
        share(owner, name)
    if owner.pivoting != "conditional":
        without_effect(owner, f"with pivoting={owner.pivoting!r}", "give pivoting='conditional'", *names)


def check_x(owner, choices):
    """Raise InputError unless ``owner.x`` is one of ``choices``; ``owner``: settings of a decomposer or solver."""
    if owner.x not in choices or isinstance(owner.x, bool):
        raise InputError(f"{type(owner).__name__}(x={owner.x!r}): expected one of {', '.join(map(str, choices))}")


def tighter(tolerance) -> float:
    """Return a smaller processing tolerance in place of one that is too loose; 0 below rounding."""
    less = float(f"{tolerance / TIGHTER:.6g}")
    return less if less > np.finfo(np.float64).eps else 0.0


def threshold(owner) -> float:
    """Return the largest |l| for which a pivot is chosen, from ``owner.pivoting`` and ``owner.pivot_tolerance``."""
    return np.inf if owner.pivoting == "full" else owner.pivot_tolerance
