"""Space: where vectors live and how they reduce. Krylov methods are written against it and against operators alone."""
from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from types import ModuleType

import numpy as np

from swell.core.columns import Columns
from swell.core.errors import OutOfMemory
from swell.core.ranks import Ranks

ALWAYS_FREE = 2**20     # bytes for which `check_fits` does not ask the system, which takes as long as a small solve


def aligned(size: int, dtype) -> int:
    """Return the least number of elements, at least ``size``, that takes a multiple of 16 bytes."""
    each = max(1, 16 // np.dtype(dtype).itemsize)
    return -(-size // each) * each


def accumulator(dtype):
    """The type in which inner products of ``dtype`` are accumulated and scalars are kept: double, real or complex."""
    return np.dtype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)


class Space(ABC):
    """Where vectors live.

    Attributes
    ----------
    name : str
        "cpu" or "cuda".
    xp : module
        NumPy, or CuPy with the same interface.
    ranks : Ranks
        Who has parts of the vectors: one rank, or several.
    columns : int
        The number k of right-hand sides; if it is more than 1, vectors are `Columns`.
    """

    name: str
    xp: ModuleType
    ranks = Ranks()
    columns = 1

    def __init__(self):
        self._scalars = threading.local()        # matrices of one space may be multiplied in several threads

    @abstractmethod
    def empty(self, shape, dtype):
        """Return a new, uninitialised array on this space's device."""

    def mapped(self, shape, dtype):
        """Return (a new uninitialised array, a NumPy array of the same memory); both are `Columns` if there are several
        right-hand sides.

        Kernels write a few results to the first, and the host reads the second after ``synchronize``."""
        array = self.buffer(shape, dtype)
        return array, array

    def buffer(self, shape, dtype):
        """Return a new, uninitialised array for every right-hand side: `Columns` if there are several."""
        if self.columns == 1:
            return self.empty(shape, dtype)
        size = math.prod(shape) if isinstance(shape, tuple) else shape
        held = self.empty((self.columns, aligned(size, dtype)), dtype)[:, :size]
        return Columns(held.reshape(self.columns, *shape) if isinstance(shape, tuple) else held)

    @abstractmethod
    def from_host(self, array, out=None):
        """Return ``array``, of NumPy or of this space, as an array of this space; copied only if needed.

        ``out``: write into this array, and return it."""

    @abstractmethod
    def to_host(self, array) -> np.ndarray:
        """Return an array of this space as a NumPy array; copied only from a GPU."""

    @abstractmethod
    def kernels(self, package: str, stem: str, dtype, states=None):
        """Return the kernels in ``<package>/kernels/<stem>``, for vectors of ``dtype``, as a namespace of functions.

        ``states``: the loop's states, of which kernels get their own as first argument on a CPU."""

    def compile_ahead(self, parts, dtype):
        """Begin to compile the kernels that ``parts`` of a configuration will need for a dtype; GPUs only.

        ``parts``: a list such as ["method cg", "precond ic"]."""

    @abstractmethod
    def loop(self, stopping, n):
        """Return a new `Loop` that runs a method on n unknowns with the `Stopping` criteria ``stopping``."""

    @abstractmethod
    def synchronize(self):
        """Wait until the device has finished all work of this space."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """Return (free, total) bytes of the device; huge numbers if the system does not tell."""

    @abstractmethod
    def for_columns(self, columns: int) -> "Space":
        """A space on the same device, and the same ranks, for ``columns`` right-hand sides at once."""

    @property
    def local(self) -> "Space":
        """The space of this rank's part of each vector; on one device this space itself."""
        return self

    def counterpart(self, space: "Space") -> "Space":
        """Return the space that replaces this one in copies made for ``space`` (``sharing.py``)."""
        return space.local

    @abstractmethod
    def describe(self) -> str:
        """The device in words."""

    @property
    def device_name(self) -> str:
        """The name that ``make_space`` takes."""
        return self.name

    @abstractmethod
    def another(self) -> "Space":
        """A space on the same device that shares nothing that a solve writes to, for another thread.

        Raises
        ------
        InputError
            Where several ranks share the vectors.
        """

    @abstractmethod
    def same_view(self, view, base):
        """Return a view of ``base`` with the offset, shape and strides that ``view`` has in its own base.

        Both bases have the same size and layout; ``base`` may be `Columns` of it, the view is then `Columns`, too."""

    @abstractmethod
    def same_memory(self, array, other) -> bool:
        """True if ``array``, of this space, begins at the same address as ``other``, an array of any library."""

    @abstractmethod
    def finite(self, x) -> bool:
        """True if no entry of x, an array of this space, is NaN or Inf. It waits for the device."""

    def check_fits(self, needed: int, what: str, remedy: str):
        """Raise OutOfMemory, before an allocation, if more bytes are ``needed`` than are free.

        ``what``, ``remedy``: texts for the message: who needs the memory, and what to do."""
        if needed < ALWAYS_FREE:
            return
        free, total = self.memory()
        if needed > free:
            raise OutOfMemory(f"{what} needs about {needed / 2**30:.2f} GiB on {self.describe()}, and "
                              f"{free / 2**30:.2f} of {total / 2**30:.2f} GiB are free: {remedy}")

    @abstractmethod
    def active(self, rows: int | None = None):
        """Return a context in which this space works, after the caller's pending work; at its end all work is done.

        ``rows``: about how long the vectors are, from which a CPU chooses its threads."""

    def reserve(self, doubles: int):
        """Make room for ``doubles`` partial sums of a reduction; nothing to do on a CPU."""

    def reserve_sums(self, scalars: int):
        """Make room for the partial sums of a kernel whose every block leaves ``scalars`` scalars."""

    def padded(self, n: int) -> int:
        """The distance, in elements, between the vectors of a basis of vectors of length n, stored as rows."""
        return n

    def collect(self, dots):
        """Complete, in place, the inner products ``dots`` that a product's kernel left in parts; on a CPU do nothing.
        """

    def norm_inf(self, x, out):
        """``out[0] = ‖x‖∞``."""
        self.kernels("swell.core", "reductions", x.dtype).norm_inf(x, out)

    # -- array functions for setups: NumPy on a CPU, kernels of swell on a GPU -----------------------------------------

    @abstractmethod
    def max_on_host(self, x) -> float:
        """Return the largest entry of a real vector; −inf if it is empty, NaN if it has NaN. It waits for the device.
        """

    @abstractmethod
    def find_true(self, mask) -> tuple[int, int]:
        """Return (the first place where ``mask`` is true, or its size if nowhere; number of true places).

        It waits for the device."""

    @abstractmethod
    def count(self, keys, size: int):
        """Return a new int64 array of length ``size``: how many of the integers ``keys`` are 0, 1, … size − 1."""

    @abstractmethod
    def prefix_sums(self, counts, starts, each=1):
        """Write prefix sums: ``starts[i]`` = ``each`` × the sum of ``counts`` before i. ``starts`` has one more
        element; the last is the total."""

    @abstractmethod
    def group_max(self, keys, size: int):
        """Return a new array: the largest of each ``size`` consecutive elements of ``keys``."""

    def copied(self, array):
        """Return a new array, equal to a contiguous one."""
        return array.copy()

    def copy_for_caller(self, x):
        """Return a copy of x, an array of this space, for the caller to keep and to free."""
        return x.copy()

    def count_positive(self, x) -> int:
        """Return the number of entries of a real array that are greater than 0. It waits for the device."""
        return int(np.count_nonzero(x > 0))

    def total(self, counts) -> int:
        """Return the sum of an integer array as a Python int. It waits for the device."""
        starts = self.empty(counts.size + 1, np.int64)
        self.prefix_sums(counts, starts)
        return self.last_entries(starts)[0]  # sync

    def last_entries(self, *arrays) -> tuple[int, ...]:
        """Return the last element of each integer array, such as the total of prefix sums, with one wait for all."""
        return tuple(int(array[-1]) for array in arrays)

    def row_pointers(self, rows, count: int, dtype=np.int64):
        """Return CSR row pointers, count + 1 of them, for entries sorted by rows; ``rows``: the row of each entry."""
        pointers = self.empty(count + 1, dtype)
        self.prefix_sums(self.count(rows, count), pointers)
        return pointers

    # -- vectors -----------------------------------------------------------------------------------------------------

    def copy(self, x, out):
        """``out = x``."""
        out[...] = x

    def assign(self, alpha, out):
        """Fill ``out`` with the scalar alpha.

        Vectors of these operations have one length and one type. On a GPU they begin at multiples of 16 bytes, as all
        arrays made by a space do."""
        self.kernels("swell.core", "vector", out.dtype).assign(out.dtype.type(alpha), out)

    def scale(self, alpha, x):
        """``x = alpha x``."""
        self.kernels("swell.core", "vector", x.dtype).scale(x.dtype.type(alpha), x)

    def axpy(self, alpha, x, y):
        """``y = alpha x + y``."""
        self.kernels("swell.core", "vector", x.dtype).axpy(x.dtype.type(alpha), x, y)

    def axpby(self, alpha, x, beta, y):
        """``y = alpha x + beta y``; ``beta == 0`` never reads the old ``y``."""
        kind = x.dtype.type
        self.kernels("swell.core", "vector", x.dtype).axpby(kind(alpha), x, kind(beta), y)

    def combine(self, alpha, y, beta, out):
        """``out = alpha y + beta out`` for an array y that another library has made, (k, n) for `Columns`.

        ``beta == 0`` never reads the old ``out``. Columns that have stopped stay as they are."""
        if not isinstance(out, Columns):
            out[...] = alpha * y if beta == 0 else alpha * y + beta * out
            return
        held = self.buffer(out.size, out.dtype)
        held[...] = y
        self.axpby(alpha, held, beta, out)

    def multiply(self, x, y):
        """``y = x y``, element by element."""
        self.kernels("swell.core", "vector", x.dtype).multiply(x, y)

    def dot(self, x, y, out):
        """``out[0] = (x, y)``, the first argument conjugated; ``out`` is of the type ``accumulator(x.dtype)``."""
        if not x.size:                           # nothing is launched for no entries
            out[:1] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).dot(x, y, out)

    def norm(self, x, out):
        """``out[0] = ‖x‖₂``."""
        if not x.size:                           # nothing is launched for no entries
            out[:1] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).norm(x, out)

    def axpy_dots(self, alpha, x, y, w, out):
        """``y = alpha x + y`` in one pass with ``out[0] = (w, y)`` and ``out[1] = (y, y)`` of the new ``y``."""
        if not x.size:                           # nothing is launched for no entries
            out[:2] = 0
            return
        self.kernels("swell.core", "vector", x.dtype).axpy_dots(x.dtype.type(alpha), x, y, w, out)

    def dots(self, x, y, out):
        """``out[0] = (x, y)`` (the first argument conjugated) and ``out[1] = (y, y)``."""
        self.kernels("swell.core", "vector", x.dtype).dots(x, y, out)

    def weighted_norm2(self, x, weights, out):
        """``out[0] = Σ wᵢ |xᵢ|²``, with w = ``weights``."""
        self.kernels("swell.core", "vector", x.dtype).weighted_norm2(x, weights, out)

    def random(self, seed: int, out, first: int = 0):
        """Fill ``out`` with reproducible numbers in [−1, 1), the same on every device.

        They are numbers ``first``, ``first`` + 1, … of the sequence that ``seed`` starts."""
        self.kernels("swell.core", "vector", out.dtype).random(seed, first, out)

    def norms(self, *vectors) -> list[float]:
        """Return a list: ‖v‖₂ and ‖v‖∞ of the first vector, then of the next. One wait for the device.

        Of `Columns` each is an array with a number for every column. It is for the beginning and the end of a solve
        only."""
        none = 0.0 if self.columns == 1 else np.zeros(self.columns)
        if not vectors[0].size:
            return [none] * (2 * len(vectors))
        dtype, held = accumulator(vectors[0].dtype), vars(self._scalars)
        if dtype.char not in held:
            held[dtype.char] = self.mapped((3, 2), dtype)
        scalars, host = held[dtype.char]
        for k, v in enumerate(vectors):
            self.kernels("swell.core", "reductions", v.dtype).norms(v, scalars[k])
        self.synchronize()  # sync
        if self.columns == 1:
            pairs = host.real.tolist()
            return [value for square, most in pairs[:len(vectors)] for value in (math.sqrt(square), most)]
        squares, most = np.moveaxis(host.array.real, 0, -1).transpose(1, 0, 2)
        return [value for k in range(len(vectors)) for value in (np.sqrt(squares[k]), most[k].copy())]
