"""Space: where vectors live and how they reduce. Krylov methods are written against it and against operators alone."""
from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from types import ModuleType

import numpy as np

from swell.core.errors import OutOfMemory



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
    single_rank : bool
        False if other ranks have parts of the vectors too, so that what a kernel sums is not yet the sum.
    """

    name: str
    xp: ModuleType
    single_rank = True

    def __init__(self):
        self._scalars = threading.local()        # matrices of one space may be multiplied in several threads

    @abstractmethod
    def empty(self, shape, dtype):
        """An uninitialised array."""

    def mapped(self, shape, dtype):
        """(An uninitialised array, the same memory as a NumPy array): kernels write a few results to the first, and the
        host reads the second after ``synchronize``."""
        array = self.empty(shape, dtype)
        return array, array

    @abstractmethod
    def from_host(self, array, out=None):
        """A NumPy array (or one of this space) as an array of this space."""

    @abstractmethod
    def to_host(self, array) -> np.ndarray:
        """An array of this space as a NumPy array."""

    @abstractmethod
    def kernels(self, package: str, stem: str, dtype, state=None):
        """The kernels in ``<package>/kernels/<stem>``, for vectors of ``dtype``, as a namespace of functions."""

    def compile_ahead(self, parts, dtype):
        """Begin to compile the kernels that parts of a configuration will need, such as "method cg", for a type; only
        a GPU's compile ahead."""

    @abstractmethod
    def loop(self, stopping, n):
        """A loop driver."""

    @abstractmethod
    def synchronize(self):
        """Wait for the work in flight."""

    @abstractmethod
    def memory(self) -> tuple[int, int]:
        """(free, total) bytes; numbers that nothing exceeds where the system does not tell."""

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
        """The view of ``base`` that is what ``view`` is of its own base, an array of the same size and layout."""

    @abstractmethod
    def same_memory(self, array, other) -> bool:
        """True if an array of this space lies in the memory of another array, of any library."""

    @abstractmethod
    def finite(self, x) -> bool:
        """True if no entry of an array of this space is NaN or Inf: a host read."""

    def check_fits(self, needed: int, what: str, remedy: str):
        """Raise OutOfMemory, before anything is allocated, if ``what`` needs more bytes than are free."""
        free, total = self.memory()
        if needed > free:
            raise OutOfMemory(f"{what} needs about {needed / 2**30:.2f} GiB on {self.describe()}, and "
                              f"{free / 2**30:.2f} of {total / 2**30:.2f} GiB are free: {remedy}")

    @abstractmethod
    def active(self, rows: int | None = None):
        """A context in which this space works on vectors of about so many rows, after what the caller has under way;
        at its end the work is done."""

    def reserve(self, doubles: int):
        """Make room for the partial sums of a reduction over so many doubles; nothing to do on a CPU."""

    def reserve_sums(self, scalars: int):
        """The same for a kernel whose every block leaves so many scalars."""

    def padded(self, n: int) -> int:
        """The distance of the rows of a basis of vectors of length n."""
        return n

    def collect(self, dots):
        """Complete the inner products that a product's kernel left in parts; nothing to do on a CPU."""

    def norm_inf(self, x, out):
        """``out[0] = ‖x‖∞``."""
        self.kernels("swell.core", "vector", x.dtype).norm_inf(x, out)

    def allreduce(self, scalars):
        """Add up the scalars of all ranks that share the vectors, in place; nothing to do on one device. What kernels,
        ``dots`` and ``apply_dots`` leave are the sums of one rank."""

    def agreed(self):
        """A context whose error on one rank is raised on all of them; on one device, errors are raised as they are."""
        return nullcontext()

    def together(self):
        """A context in which ranks iterate: where a user's function raises an error on one of them, all raise it at the
        end of the block, which all reach; on one device, errors are raised as they are."""
        return nullcontext()

    def guarded(self, M):
        """The preconditioner M of this rank's rows (or None), whose errors within ``together`` wait for its end."""
        return M

    def said(self, texts: list[str]) -> list[str]:
        """Texts about this rank's part as texts that are true of all ranks, each in its place."""
        return texts

    def said_notes(self, notes: list[str]) -> list[str]:
        """The notes of all ranks."""
        return notes

    def require_equal(self, value, what: str):
        """Raise InputError on every rank unless all bring an equal value; nothing to do on one device."""

    def max_over_ranks(self, value: float) -> float:
        """The largest of the numbers that the ranks bring; the number itself on one device."""
        return value

    def local_rows(self, n: int) -> int:
        """How many entries of a vector of length n are here: all of them on one device."""
        return n

    # -- what setups ask of arrays: NumPy answers on a CPU, kernels of ours on a GPU ----------------------------------

    @abstractmethod
    def max_on_host(self, x) -> float:
        """The largest entry of a real vector, −inf of an empty one, NaN if it has one: a host read."""

    @abstractmethod
    def find_true(self, mask) -> tuple[int, int]:
        """(the first place where a mask is true, its size where it is nowhere; how many there are): a host read."""

    @abstractmethod
    def count(self, keys, size: int):
        """How many of the keys are 0, 1, … size − 1: an int64 array."""

    @abstractmethod
    def add_up(self, counts, starts):
        """``starts[i]`` = the sum of the counts before i; the last of ``starts`` is the sum of all."""

    @abstractmethod
    def group_largest(self, keys, size: int):
        """The largest of each ``size`` consecutive integers."""

    def total(self, counts) -> int:
        """The sum of integers: a host read."""
        starts = self.empty(counts.size + 1, np.int64)
        self.add_up(counts, starts)
        return self.last_entries(starts)[0]  # sync

    def last_entries(self, *arrays) -> tuple[int, ...]:
        """The last entry of each array of integers, as sums end with their totals: one host read for all."""
        return tuple(int(array[-1]) for array in arrays)

    def row_pointers(self, rows, count: int, dtype=np.int64):
        """Where each row begins among entries that are sorted by rows, of which these are the numbers; count + 1."""
        pointers = self.empty(count + 1, dtype)
        self.add_up(self.count(rows, count), pointers)
        return pointers

    # -- vectors -----------------------------------------------------------------------------------------------------

    def copy(self, x, out):
        """``out = x``."""
        out[...] = x

    def assign(self, alpha, out):
        """``out = alpha``, a scalar. Vectors of these operations have one length and one type, and begin at multiples
        of 16 bytes on a GPU, as all that a space makes do."""
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
        """``out[0] = Σ w |x|²``."""
        self.kernels("swell.core", "vector", x.dtype).weighted_norm2(x, weights, out)

    def random(self, seed: int, out, first: int = 0):
        """Fill ``out`` with reproducible numbers in [−1, 1), the same on every device: those from the ``first`` on."""
        self.kernels("swell.core", "vector", out.dtype).random(seed, first, out)

    def norms(self, *vectors) -> list[float]:
        """‖v‖₂ and ‖v‖∞ of each vector: one host read, for the beginning and the end of a solve only."""
        if not vectors[0].size:
            return [0.0] * (2 * len(vectors))
        dtype, held = accumulator(vectors[0].dtype), vars(self._scalars)
        if dtype.char not in held:
            held[dtype.char] = self.mapped((3, 2), dtype)
        scalars, host = held[dtype.char]
        for k, v in enumerate(vectors):
            self.kernels("swell.core", "vector", v.dtype).norms(v, scalars[k])
        self.synchronize()  # sync
        found = host.real.tolist()
        return [value for square, most in found[:len(vectors)] for value in (math.sqrt(square), most)]
